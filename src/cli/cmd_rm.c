#include "cli/command.h"
#include "cli/failure.h"
#include "cli/session.h"
#include "cli/show.h"
#include "cli/snap.h"

/* EXIT_USAGE for anything that is no kept snapshot: a PID must not remove the last one of it. */
static int collect_ids(int argc, char **argv, json_t *ids)
{
	for (int i = 0; i < argc; i++) {
		const char *reason = "give the id of a kept snapshot, such as s17, or PID:NAME";
		struct snap snap;

		if (snap_parse(argv[i], &snap, &reason) < 0 || snap.kind == SNAP_PID || snap.kind == SNAP_FILE)
			return fail_usage("rm", "'%s' cannot be removed: %s", argv[i], reason);
		if (json_array_append_new(ids, json_string(argv[i])) < 0)
			return fail_memory();
	}
	return EXIT_DONE;
}

int cmd_rm(const struct options *options, int argc, char **argv)
{
	json_t *ids = json_array();
	struct session session;
	int r = ids ? collect_ids(argc, argv, ids) : fail_memory();

	if (r != EXIT_DONE)
		goto out;
	r = session_open(options, &session);
	if (r != EXIT_DONE)
		goto out;
	r = session_call(&session, "cannot remove snapshots", "RemoveSnapshots", json_pack("{s:O}", "ids", ids),
			 NULL);
	session_close(&session);
	if (r == EXIT_DONE && options_have(options, OPTION(JSON)))
		r = show_json(json_pack("{s:O}", "removed", ids));
out:
	json_decref(ids);
	return r;
}
