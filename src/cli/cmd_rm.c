#include "cli/answer.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/session.h"
#include "cli/show.h"
#include "cli/snap.h"

#include <string.h>

/* EXIT_USAGE for anything that is no kept snapshot: a PID must not remove the last one of it. */
static int check_names(int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		const char *reason = "give the id of a kept snapshot, such as s17, or PID:NAME";
		struct snap snap;

		if (snap_parse(argv[i], &snap, &reason) < 0 || snap.kind == SNAP_PID || snap.kind == SNAP_FILE ||
		    (snap.kind == SNAP_NAMED && snap.pid == 0))
			return fail_usage("rm", "'%s' cannot be removed: %s", argv[i], reason);
	}
	return EXIT_DONE;
}

/* The latest of a process's kept snapshots with a name, as PID:NAME means it everywhere. */
static int id_of_named(struct session *session, const struct snap *snap, json_t *ids)
{
	const char *name = strrchr(snap->text, ':') + 1;
	json_t *reply, *info, *id = NULL;
	size_t i;
	int r = session_call(session, "cannot list the kept snapshots", "ListSnapshots",
			     json_pack("{s:i}", "pid", (int)snap->pid), &reply);

	if (r != EXIT_DONE)
		return r;
	json_array_foreach(json_object_get(reply, "snapshots"), i, info) {
		if (strcmp(answer_text(info, "name"), name) == 0)
			id = json_object_get(info, "id");
	}
	if (!id)
		r = fail("cannot remove %s: no such snapshot is kept; 'allocwatch snapshots %d' shows those that are",
			 snap->text, (int)snap->pid);
	else if (json_array_append(ids, id) < 0)
		r = fail_memory();
	json_decref(reply);
	return r;
}

static int collect_ids(struct session *session, int argc, char **argv, json_t *ids)
{
	int r = EXIT_DONE;

	for (int i = 0; r == EXIT_DONE && i < argc; i++) {
		const char *reason;
		struct snap snap;

		snap_parse(argv[i], &snap, &reason);
		if (snap.kind == SNAP_NAMED)
			r = id_of_named(session, &snap, ids);
		else if (json_array_append_new(ids, json_string(argv[i])) < 0)
			r = fail_memory();
	}
	return r;
}

static int remove_snapshots(struct session *session, const struct options *options, int argc, char **argv)
{
	json_t *ids = json_array();
	int r = ids ? collect_ids(session, argc, argv, ids) : fail_memory();

	if (r == EXIT_DONE)
		r = session_call(session, "cannot remove snapshots", "RemoveSnapshots",
				 json_pack("{s:O}", "ids", ids), NULL);
	if (r == EXIT_DONE && options_have(options, OPTION(JSON)))
		r = show_json(json_pack("{s:O}", "removed", ids));
	json_decref(ids);
	return r;
}

int cmd_rm(const struct options *options, int argc, char **argv)
{
	struct session session;
	int r = check_names(argc, argv);

	if (r == EXIT_DONE)
		r = session_open_kept(options, &session);
	if (r != EXIT_DONE)
		return r;
	r = remove_snapshots(&session, options, argc, argv);
	session_close(&session);
	return r;
}
