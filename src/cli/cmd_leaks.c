#include "base/clock.h"
#include "base/fd.h"
#include "base/units.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/show.h"
#include "cli/terminal.h"
#include "cli/tracing.h"
#include "cli/waiting.h"

#include <errno.h>
#include <string.h>

#define USUAL_TIME_NS (60 * NSEC_PER_SEC)

struct watch {
	const struct options *options;
	struct statistics_query query;
	struct fetch fetch;
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

/* What is half as old as the time, or older, at its end. */
static int look(struct watch *watch, struct statistics **ret)
{
	char pid[24], *name = pid;

	snprintf(pid, sizeof(pid), "%d", (int)watch->pid);
	switch (waiting_for(watch->pid, watch->name, clock_monotonic_ns() + watch->time_ns, watch->signals)) {
	case WAITING_ELAPSED:
		watch->query.ages = statistics_older_than(watch->time_ns / 2);
		watch->fetch.blocks = true;
		return ask_statistics(&watch->fetch, "leaks", &watch->query, &name, 1, ret);
	case WAITING_EXITED:
		watch->attached = false;
		return fail("%s has ended before the time was over; 'allocwatch stats %s:exit' shows what it had not freed",
			    watch->name, pid);
	case WAITING_INTERRUPTED:
		break;
	}
	return fail("interrupted before the time was over: nothing is known of %s yet", watch->name);
}

static int run_watch(struct watch *watch)
{
	struct session *session = &watch->fetch.session;
	struct statistics *statistics = NULL;
	int r = tracing_attach_if_need_be(session, watch->options, watch->pid, watch->name, "watch", &watch->attached);

	if (r == EXIT_DONE)
		r = look(watch, &statistics);
	if (watch->attached) {
		int detached = tracing_detach(session, watch->pid, watch->name, false, NULL);

		r = r == EXIT_DONE ? detached : r;
	}
	if (r == EXIT_DONE)
		r = show_statistics(watch->options, statistics, false);
	statistics_free(statistics);
	return r;
}

int cmd_leaks(const struct options *options, int argc, char **argv)
{
	struct watch watch = { .options = options, .signals = -1 };
	int r = tracing_pid("leaks", argv[0], &watch.pid);

	if (r == EXIT_DONE)
		r = parse_time(argc > 1 ? argv[1] : NULL, &watch.time_ns);
	if (r == EXIT_DONE)
		r = show_query(options, "leaks", &watch.query);
	if (r != EXIT_DONE)
		return r;
	r = waiting_catch_signals(&watch.signals);
	if (r < 0)
		return fail("cannot watch %d: signals cannot be caught: %s", (int)watch.pid, strerror(-r));
	tracing_name(watch.name, watch.pid);
	fetch_init(&watch.fetch, options);
	r = session_open_or_start(options, &watch.fetch.session);
	if (r == EXIT_DONE) {
		r = run_watch(&watch);
		fetch_fini(&watch.fetch);
	}
	fd_close(&watch.signals);
	return r;
}
