#include "cli/command.h"
#include "cli/failure.h"
#include "cli/fetch.h"
#include "cli/show.h"
#include "cli/terminal.h"
#include "store/store.h"
#include "varlink/codec.h"

struct writing {
	const char *file;
	unsigned percent;               /* as shown */
};

static void show_writing(const struct writing *writing)
{
	progress("writing, %u %%: %s", writing->percent, writing->file);
}

static void on_written(void *context, uint64_t done, uint64_t all)
{
	struct writing *writing = context;
	unsigned percent = (unsigned)((double)done / (double)all * 100);

	if (percent == writing->percent)
		return;
	writing->percent = percent;
	show_writing(writing);
}

int cmd_dump(const struct options *options, int argc, char **argv)
{
	struct writing writing = { .file = argv[1] };
	const struct store_listener listener = { on_written, &writing };
	struct snapshot *snapshot = NULL;
	char *reason = NULL;
	struct fetch fetch;
	int r;

	(void)argc;
	if (!*argv[1])
		return fail_usage("dump", "a file's name cannot be empty");
	fetch_init(&fetch, options);
	r = fetch_snapshot(&fetch, "dump", argv[0], &snapshot);
	fetch_fini(&fetch);
	if (r != EXIT_DONE)
		return r;
	show_writing(&writing);
	if (options_have(options, OPTION(APPEND)))
		r = store_append_telling(argv[1], snapshot, &listener, &reason);
	else
		r = store_save_telling(argv[1], snapshot, &listener, &reason);
	progress_clear();
	if (r < 0)
		r = fail_file("cannot write the snapshot file", argv[1], r, reason);
	else if (options_have(options, OPTION(JSON)))
		r = show_json(json_pack("{s:o, s:o}", "file", codec_bytes(argv[1]), "snapshot",
					codec_snapshot_info(snapshot)));
	snapshot_put(snapshot);
	return r;
}
