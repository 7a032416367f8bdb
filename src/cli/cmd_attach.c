#include "cli/answer.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/show.h"
#include "cli/terminal.h"
#include "cli/tracing.h"
#include "cli/waiting.h"

#include "base/clock.h"
#include "base/fd.h"
#include "export/printable.h"
#include "model/engine_kind.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static const char *const end_names[] = { "elapsed", "interrupted", "exited" };

/* A process that has ended is no longer traced; the daemon keeps its last snapshot. */
static int end_tracing(struct session *session, pid_t pid, const char *name, enum waiting_end end)
{
	if (end == WAITING_EXITED)
		return session_call(session, "cannot wait for the last snapshot", "WaitGone",
				    json_pack("{s:i}", "pid", (int)pid), NULL);
	return tracing_detach(session, pid, name, false, NULL);
}

static int trace_for_a_while(struct session *session, const struct options *options, pid_t pid,
			     const char *name, int signal_fd, json_t *reply)
{
	enum waiting_end end = waiting_for(pid, name, clock_monotonic_ns() + options->duration_ns, signal_fd);
	int r = end_tracing(session, pid, name, end);

	if (r != EXIT_DONE)
		return r;
	if (options_have(options, OPTION(JSON)))
		return json_object_set_new(reply, "ended", json_string(end_names[end])) < 0 ? fail_memory()
											    : EXIT_DONE;
	if (end == WAITING_EXITED)
		printf("%s has ended; its last snapshot is %d:exit\n", name, (int)pid);
	else
		printf("detached from %s\n", name);
	return show_finish();
}

static int print_attached(const char *name, const json_t *reply)
{
	uint64_t tasks = answer_number(reply, "tasks"), probes = answer_number(reply, "probes");
	const char *hold = answer_text(reply, "hold_reason");

	if (*answer_text(reply, "warning"))
		note("warning: %s: %s", name, answer_text(reply, "warning"));
	printf("tracing %s: %" PRIu64 " task%s, %" PRIu64 " probe%s%s", name, tasks, tasks == 1 ? "" : "s", probes,
	       probes == 1 ? "" : "s", *hold ? ", held by ptrace: " : "");
	printable_write(stdout, hold, strlen(hold), false);
	putchar('\n');
	return show_finish();
}

static int attach_and_trace(struct session *session, const struct options *options, pid_t pid, int signal_fd)
{
	bool json = options_have(options, OPTION(JSON));
	char name[TRACING_NAME_MAX];
	json_t *reply;
	int r = tracing_attach(session, options, pid, tracing_name(name, pid), false, &reply);

	if (r != EXIT_DONE)
		return r;
	if (!json)
		r = print_attached(name, reply);
	/* Even when that could not be printed: somebody asked for it to end. */
	if (options->duration_ns > 0) {
		int ended = trace_for_a_while(session, options, pid, name, signal_fd, reply);

		r = r == EXIT_DONE ? ended : r;
	}
	if (json && r == EXIT_DONE)
		return show_json(reply);
	json_decref(reply);
	return r;
}

/* What --release cannot go with. */
static int check_release(const struct options *options)
{
	if (!options_have(options, OPTION(RELEASE)))
		return EXIT_DONE;
	if (options_have(options, OPTION(HOLD)))
		return fail_usage("attach", "--release cannot be combined with --hold, which keeps ptrace");
	if (options->engine && engine_kind_by_name(options->engine) == ENGINE_INT3)
		return fail_usage("attach", "--release needs the ring engine: int3 stops the process by ptrace");
	if (options_have(options, OPTION(FOLLOW_FORKS)))
		return fail_usage("attach", "--release cannot be combined with --follow-forks, which needs ptrace");
	return EXIT_DONE;
}

int cmd_attach(const struct options *options, int argc, char **argv)
{
	struct session session;
	int signal_fd = -1;
	pid_t pid;
	int r = tracing_pid("attach", argv[0], &pid);

	(void)argc;
	if (r == EXIT_DONE)
		r = check_release(options);
	if (r != EXIT_DONE)
		return r;
	if (options->duration_ns > 0) {
		r = waiting_catch_signals(&signal_fd);
		if (r < 0)
			return fail("cannot attach to %d: signals cannot be caught: %s", (int)pid, strerror(-r));
	}
	r = session_open_or_start(options, &session);
	if (r != EXIT_DONE)
		goto out;
	r = attach_and_trace(&session, options, pid, signal_fd);
	session_close(&session);
out:
	fd_close(&signal_fd);
	return r;
}
