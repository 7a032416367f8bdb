#include "cli/answer.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/list_file.h"
#include "cli/show.h"
#include "cli/terminal.h"
#include "varlink/codec.h"

#include <errno.h>

/* Every snapshot in the file, with `read`. */
static int list_all(const char *path, store_read_fn read, json_t *list, char **ret_reason)
{
	unsigned count;
	int r = store_count(path, &count, ret_reason);

	for (unsigned which = 1; r == 0 && which <= count; which++) {
		struct snapshot *snapshot;

		progress("reading snapshot %u of %u", which, count);
		r = read(path, which, &snapshot, ret_reason);
		if (r < 0)
			break;
		if (json_array_append_new(list, codec_snapshot_info(snapshot)) < 0)
			r = -ENOMEM;
		snapshot_put(snapshot);
	}
	return r;
}

int list_file(const struct options *options, const char *path, store_read_fn read)
{
	json_t *list = json_array();
	char *reason = NULL;
	int r;

	if (!list)
		return fail_memory();
	r = list_all(path, read, list, &reason);
	progress_clear();
	if (r < 0)
		r = fail_file("cannot read the snapshot file", path, r, reason);
	else if (options_have(options, OPTION(JSON)))
		r = show_json(json_pack("{s:o, s:O}", "file", codec_bytes(path), "snapshots", list));
	else
		r = answer_print_snapshots(list) < 0 ? fail_memory() : show_finish();
	json_decref(list);
	return r;
}

/* Checked whole. */
int cmd_load(const struct options *options, int argc, char **argv)
{
	(void)argc;
	return list_file(options, argv[0], store_load);
}
