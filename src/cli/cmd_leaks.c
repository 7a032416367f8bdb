#include "base/clock.h"
#include "base/fd.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/fetch.h"
#include "cli/show.h"
#include "cli/terminal.h"
#include "cli/tracing.h"
#include "cli/waiting.h"

#include <errno.h>
#include <string.h>

#define USUAL_TIME_NS (60 * NSEC_PER_SEC)

struct watch {
	const struct options *options;
	struct session session;
	pid_t pid;
	char name[TRACING_NAME_MAX];
	uint64_t time_ns;
	bool attached;                  /* by us: then we detach, too */
	int signals;
};

static int parse_time(const char *text, uint64_t *ret_ns)
{
	if (!text) {
		*ret_ns = USUAL_TIME_NS;
		return EXIT_DONE;
	}
	if (units_parse_duration(text, ret_ns) < 0 || *ret_ns == 0)
		return fail_usage("leaks", "'%s' is no time to wait: write 60s, 10min or '1h 30min'", text);
	return EXIT_DONE;
}

/* Gets a snapshot with blocks at the end of the time. */
static int look(struct watch *watch, struct snapshot **ret_snapshot)
{
	char pid[24];

	snprintf(pid, sizeof(pid), "%d", (int)watch->pid);
	switch (waiting_for(watch->pid, watch->name, clock_monotonic_ns() + watch->time_ns, watch->signals)) {
	case WAITING_ELAPSED:
		return fetch_from_daemon(&watch->session, pid, true, ret_snapshot);
	case WAITING_EXITED:
		watch->attached = false;
		return fail("%s has ended before the time was over; 'allocwatch stats %s:exit' shows what it had not freed",
			    watch->name, pid);
	case WAITING_INTERRUPTED:
		break;
	}
	return fail("interrupted before the time was over: nothing is known of %s yet", watch->name);
}

static int judge(const struct watch *watch, struct statistics_query *query, const struct snapshot *snapshot)
{
	struct statistics *statistics;
	const char *reason = NULL;
	int r;

	query->ages = statistics_older_than(watch->time_ns / 2);
	r = statistics_make(snapshot, query, &statistics, &reason);
	if (r == -EINVAL)
		return fail("cannot tell what %s leaks: %s", watch->name, reason);
	if (r < 0)
		return fail_memory();
	r = show_statistics(watch->options, statistics, false);
	statistics_free(statistics);
	return r;
}

static int run_watch(struct watch *watch, struct statistics_query *query)
{
	struct snapshot *snapshot = NULL;
	int r = tracing_attach_if_need_be(&watch->session, watch->options, watch->pid, watch->name, "watch",
					  &watch->attached);

	if (r == EXIT_DONE)
		r = look(watch, &snapshot);
	if (watch->attached) {
		int detached = tracing_detach(&watch->session, watch->pid, watch->name, false, NULL);

		r = r == EXIT_DONE ? detached : r;
	}
	if (r == EXIT_DONE)
		r = judge(watch, query, snapshot);
	snapshot_put(snapshot);
	return r;
}

int cmd_leaks(const struct options *options, int argc, char **argv)
{
	struct watch watch = { .options = options, .signals = -1 };
	struct statistics_query query;
	int r = tracing_pid("leaks", argv[0], &watch.pid);

	if (r == EXIT_DONE)
		r = parse_time(argc > 1 ? argv[1] : NULL, &watch.time_ns);
	if (r == EXIT_DONE)
		r = show_query(options, "leaks", &query);
	if (r != EXIT_DONE)
		return r;
	r = waiting_catch_signals(&watch.signals);
	if (r < 0)
		return fail("cannot watch %d: signals cannot be caught: %s", (int)watch.pid, strerror(-r));
	tracing_name(watch.name, watch.pid);
	r = session_open_or_start(options, &watch.session);
	if (r == EXIT_DONE) {
		r = run_watch(&watch, &query);
		session_close(&watch.session);
	}
	fd_close(&watch.signals);
	return r;
}
