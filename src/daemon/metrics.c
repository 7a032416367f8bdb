#include "config.h"

#include "daemon/metrics.h"

#include "base/clock.h"
#include "base/proc.h"
#include "daemon/daemon.h"
#include "daemon/metrics_groups.h"
#include "model/engine_kind.h"
#include "model/filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct metrics {
	struct daemon *daemon;
	struct metrics_groups *groups;
	uint64_t start_ns;             /* CLOCK_REALTIME */
	bool stopped;                  /* the daemon is being taken apart */
};

/* One text on its way.  It lives until the last answer has come, also when the deadline was before that. */
struct collection {
	struct metrics *metrics;
	struct metrics_viewer viewer;
	enum openmetrics_format format;
	void (*made)(void *context, char *text, size_t len);   /* NULL: it was told */
	void *context;
	size_t waiting;                /* for answers, and one for the asking itself */
	sd_event_source *deadline;
};

/* --- the text --- */

/* A target's figures, with what they point to. */
struct figures {
	struct openmetrics_target target;
	struct openmetrics_domain domains[WIRE_DOMAINS + WIRE_ALLOCATORS_MAX];
	char domain_texts[WIRE_DOMAINS + WIRE_ALLOCATORS_MAX][DOMAIN_TEXT_MAX];
};

static void fill_domain(struct figures *figures, uint32_t number, uint64_t live_bytes, uint64_t live_blocks)
{
	size_t i = figures->target.domain_count;

	if (live_blocks == 0)
		return;
	figures->domains[i] = (struct openmetrics_domain){ domain_name(number, figures->domain_texts[i]), live_bytes,
							   live_blocks };
	figures->target.domain_count++;
}

static void fill_domains(struct figures *figures, const struct wire_status *status)
{
	for (uint32_t i = 0; i < WIRE_DOMAINS; i++)
		fill_domain(figures, i, status->domains[i].live_bytes, status->domains[i].live_blocks);
	for (unsigned i = 0; i < WIRE_ALLOCATORS_MAX; i++)
		fill_domain(figures, status->user_domains[i].domain, status->user_domains[i].live_bytes,
			    status->user_domains[i].live_blocks);
	figures->target.domains = figures->domains;
}

static void fill(struct figures *figures, const struct session *session)
{
	const struct wire_status *status = session_status(session);

	figures->target = (struct openmetrics_target){
		.pid = session_pid(session),
		.uid = session_owner(session), .exe = session_exe(session),
		.engine = engine_kinds[status->engine],
		.traced = session_state(session) == SESSION_TRACING,
		.exact = status->exact, .crash_safe = status->crash_safe, .since_ns = session_since_ns(session),
		.counters = status->counters, .truncated_stacks = status->truncated_stacks,
		.probe_gaps = status->probe_gaps, .pending_calls = status->pending_calls,
		.children_not_followed = session_not_followed(session), .tracer_memory = status->tracer_memory,
		.stops = status->events, .held_us = status->held_us, .longest_stop_us = status->longest_stop_us,
	};
	fill_domains(figures, status);
}

static bool sees(const struct metrics_viewer *viewer, const struct session *session)
{
	uid_t owner = session_owner(session);

	return viewer->all || viewer->uid == owner || (viewer->sees_roots && owner == 0);
}

/* All processes together have so many lines at most. */
static size_t share_of_groups(size_t targets)
{
	return targets > 0 ? METRICS_GROUPS_TOTAL_MAX / targets : 0;
}

static size_t fill_targets(const struct collection *collection, struct figures *figures)
{
	const struct sessions *sessions = collection->metrics->daemon->sessions;
	size_t count = 0, share = share_of_groups(sessions_count(sessions));

	for (size_t i = 0; i < sessions_count(sessions); i++) {
		const struct session *session = sessions_get(sessions, i);
		struct openmetrics_target *target = &figures[count].target;

		if (!sees(&collection->viewer, session) || session_state(session) == SESSION_ATTACHING)
			continue;
		fill(&figures[count++], session);
		target->group_count = metrics_groups_get(collection->metrics->groups, session, &target->groups,
							 &target->groups_ns);
		if (target->group_count > share)
			target->group_count = share;
	}
	return count;
}

static uint64_t resident_memory(void)
{
	unsigned long long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (file) {
		if (fscanf(file, "%*u %llu", &pages) != 1)
			pages = 0;
		fclose(file);
	}
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static size_t count_snapshots(const struct snapshots *snapshots, const struct metrics_viewer *viewer)
{
	size_t of_root = viewer->sees_roots && !viewer->all ? snapshots_count_of(snapshots, 0, false) : 0;

	return snapshots_count_of(snapshots, viewer->uid, viewer->all) + of_root;
}

static void fill_daemon(const struct collection *collection, struct openmetrics *metrics)
{
	const struct daemon *daemon = collection->metrics->daemon;

	metrics->version = PACKAGE_VERSION;
	metrics->whole = collection->viewer.all || collection->viewer.uid == geteuid();
	metrics->snapshots = count_snapshots(daemon->snapshots, &collection->viewer);
	metrics->clients = server_client_count(daemon->server);
	metrics->snapshot_memory = snapshots_memory(daemon->snapshots);
	metrics->snapshot_disk = snapshots_disk(daemon->snapshots);
	metrics->resident_memory = resident_memory();
	metrics->cpu_us = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) / NSEC_PER_USEC;
	metrics->start_ns = collection->metrics->start_ns;
}

static void make_text(const struct collection *collection, char **ret_text, size_t *ret_len)
{
	size_t space = sessions_count(collection->metrics->daemon->sessions);
	struct figures *figures = calloc(space + 1, sizeof(*figures));
	struct openmetrics_target *targets = calloc(space + 1, sizeof(*targets));
	struct openmetrics metrics = { .targets = targets };

	if (figures && targets) {
		metrics.target_count = fill_targets(collection, figures);
		for (size_t i = 0; i < metrics.target_count; i++)
			targets[i] = figures[i].target;
		fill_daemon(collection, &metrics);
		if (openmetrics_write(&metrics, collection->format, ret_text, ret_len) < 0)
			*ret_text = NULL;
	}
	free(figures);
	free(targets);
}

static void finish(struct collection *collection)
{
	void (*made)(void *context, char *text, size_t len) = collection->made;
	char *text = NULL;
	size_t len = 0;

	collection->made = NULL;
	if (!collection->metrics->stopped)
		make_text(collection, &text, &len);
	made(collection->context, text, len);
}

/* --- collecting --- */

static void one_less(struct collection *collection)
{
	if (--collection->waiting > 0)
		return;
	if (collection->made)
		finish(collection);
	sd_event_source_disable_unref(collection->deadline);
	free(collection);
}

/* The figures are the session's by now. */
static void on_status(void *context, const struct answer *answer)
{
	(void)answer;
	one_less(context);
}

static void on_groups(void *context)
{
	one_less(context);
}

/* With what has come by now; the rest is newer the next time. */
static int on_deadline(sd_event_source *source, uint64_t usec, void *context)
{
	struct collection *collection = context;

	(void)source;
	(void)usec;
	if (collection->made)
		finish(collection);
	return 0;
}

static void ask(struct collection *collection, struct session *session)
{
	struct wire_head message = { .type = WIRE_STATUS };

	if (!session_knows(session) || !sees(&collection->viewer, session))
		return;
	collection->waiting += 2;
	session_ask(session, &message, sizeof(message), WIRE_STATUS_REPLY, LIST_TIMEOUT_US, on_status, collection);
	if (!metrics_groups_refresh(collection->metrics->groups, session, on_groups, collection))
		collection->waiting--;
}

void metrics_collect(struct metrics *metrics, struct metrics_viewer viewer, enum openmetrics_format format,
		     void (*made)(void *context, char *text, size_t len), void *context)
{
	struct sessions *sessions = metrics->daemon->sessions;
	struct collection *collection = calloc(1, sizeof(*collection));

	if (!collection || sd_event_add_time_relative(metrics->daemon->event, &collection->deadline, CLOCK_MONOTONIC,
						      METRICS_DEADLINE_US, 0, on_deadline, collection) < 0) {
		free(collection);
		made(context, NULL, 0);
		return;
	}
	collection->metrics = metrics;
	collection->viewer = viewer;
	collection->format = format;
	collection->made = made;
	collection->context = context;
	collection->waiting = 1;
	metrics_groups_tidy(metrics->groups);
	/* Asking takes nobody out of the list: what is lost is found out by the event loop. */
	for (size_t i = 0; i < sessions_count(sessions); i++)
		ask(collection, sessions_get(sessions, i));
	one_less(collection);
}

/* --- the whole --- */

int metrics_new(struct daemon *daemon, const struct options *options, struct metrics **ret)
{
	struct metrics *metrics = calloc(1, sizeof(*metrics));

	if (metrics)
		metrics->groups = metrics_groups_new(daemon);
	if (!metrics || !metrics->groups) {
		free(metrics);
		return -ENOMEM;
	}
	metrics->daemon = daemon;
	metrics->start_ns = clock_read_ns(CLOCK_REALTIME);
	metrics_set_options(metrics, options);
	*ret = metrics;
	return 0;
}

void metrics_stop(struct metrics *metrics)
{
	if (!metrics)
		return;
	metrics->stopped = true;
	metrics_groups_stop(metrics->groups);
}

void metrics_free(struct metrics *metrics)
{
	if (!metrics)
		return;
	metrics_groups_free(metrics->groups);
	free(metrics);
}

void metrics_set_options(struct metrics *metrics, const struct options *options)
{
	metrics_groups_set(metrics->groups, options->metrics_groups,
			   (uint64_t)options->metrics_interval_s * NSEC_PER_SEC);
}
