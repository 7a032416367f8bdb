#include "cli/answer.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/show.h"
#include "store/store.h"
#include "varlink/codec.h"

#include <errno.h>

/* Every snapshot in the file is read and checked whole. */
static int load_all(const char *path, json_t *list, char **ret_reason)
{
	unsigned count;
	int r = store_count(path, &count, ret_reason);

	for (unsigned which = 1; r == 0 && which <= count; which++) {
		struct snapshot *snapshot;

		r = store_load(path, which, &snapshot, ret_reason);
		if (r < 0)
			break;
		if (json_array_append_new(list, codec_snapshot_info(snapshot)) < 0)
			r = -ENOMEM;
		snapshot_put(snapshot);
	}
	return r;
}

int cmd_load(const struct options *options, int argc, char **argv)
{
	json_t *list = json_array();
	char *reason = NULL;
	int r;

	(void)argc;
	if (!list)
		return fail_memory();
	r = load_all(argv[0], list, &reason);
	if (r < 0)
		r = fail_file("cannot read the snapshot file", argv[0], r, reason);
	else if (options_have(options, OPTION(JSON)))
		r = show_json(json_pack("{s:o, s:O}", "file", codec_bytes(argv[0]), "snapshots", list));
	else
		r = answer_print_snapshots(list) < 0 ? fail_memory() : show_finish();
	json_decref(list);
	return r;
}
