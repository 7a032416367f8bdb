#include "cli/answer.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/show.h"
#include "cli/tracing.h"

#include <string.h>

static int detach_one(struct session *session, const struct options *options, pid_t pid, json_t *list)
{
	char name[TRACING_NAME_MAX];
	json_t *reply = NULL;
	bool keep = options_have(options, OPTION(KEEP));
	int r = tracing_detach(session, pid, tracing_name(name, pid), keep, &reply);

	if (!reply)
		return r;
	if (json_object_set_new(reply, "pid", json_integer(pid)) < 0 || json_array_append(list, reply) < 0)
		r = fail_memory();
	else if (r == EXIT_DONE && !options_have(options, OPTION(JSON)))
		printf(keep ? "detached from %s; 'allocwatch attach %d' goes on with what is known\n" :
			      "detached from %s\n", name, (int)pid);
	json_decref(reply);
	return r;
}

/* Goes on after a failure: what can be let go is let go. */
static int detach_all(struct session *session, const struct options *options, json_t *list)
{
	json_t *reply, *target;
	size_t i;
	int r = session_call(session, "cannot list what is traced", "List", json_object(), &reply);

	if (r != EXIT_DONE)
		return r;
	json_array_foreach(json_object_get(reply, "targets"), i, target) {
		int one = detach_one(session, options, (pid_t)answer_number(target, "pid"), list);

		if (one != EXIT_DONE)
			r = one;
	}
	json_decref(reply);
	return r;
}

static int detach(const struct options *options, bool all, pid_t pid)
{
	json_t *list = json_array();
	struct session session;
	int r, shown = EXIT_DONE;

	if (!list)
		return fail_memory();
	r = session_open(options, &session);
	if (r == EXIT_DONE) {
		r = all ? detach_all(&session, options, list) : detach_one(&session, options, pid, list);
		session_close(&session);
		if (!options_have(options, OPTION(JSON)))
			shown = show_finish();
		else if (all || json_array_size(list) > 0)
			shown = show_json(all ? json_pack("{s:O}", "detached", list)
					      : json_incref(json_array_get(list, 0)));
	}
	json_decref(list);
	return r == EXIT_DONE ? shown : r;
}

int cmd_detach(const struct options *options, int argc, char **argv)
{
	bool all = options_have(options, OPTION(ALL));
	pid_t pid = 0;
	int r;

	if (all == (argc == 1))
		return fail_usage("detach", "give either a PID or --all");
	r = all ? EXIT_DONE : tracing_pid("detach", argv[0], &pid);
	return r == EXIT_DONE ? detach(options, all, pid) : r;
}
