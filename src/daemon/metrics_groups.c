#include "daemon/metrics_groups.h"

#include "base/clock.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "model/statistics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A name's bytes that are worth to be kept; what is shown is shorter still. */
#define NAME_BYTES_MAX 1024

struct waiter_of_groups {
	void (*arrived)(void *context);
	void *context;
};

/* The lines of one process; the names are owned. */
struct lines {
	struct openmetrics_group *rows;
	size_t count;
	uint64_t taken_ns;             /* CLOCK_REALTIME; 0: none */
};

struct watched {
	struct metrics_groups *groups;
	int pid;
	uint64_t start_time;
	struct lines lines;
	uint64_t began_ns, took_ns;    /* the last time; CLOCK_MONOTONIC */
	bool wanted, running;
	VEC_OF(struct waiter_of_groups) waiters;
	/* the job's */
	struct snapshot *snapshot;
	size_t limit;
	struct lines fresh;
	int error;
};

struct metrics_groups {
	struct daemon *daemon;
	size_t count;
	uint64_t interval_ns;
	size_t running;
	bool starting;                 /* start_wanted() is at work */
	bool stopped;
	VEC_OF(struct watched *) list;
};

/* --- lines --- */

static void lines_fini(struct lines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		free((char *)lines->rows[i].file);
	free(lines->rows);
	memset(lines, 0, sizeof(*lines));
}

/* The end of a path says more than its beginning. */
static char *copy_name(const char *name)
{
	size_t len = strlen(name);

	return strdup(len > NAME_BYTES_MAX ? name + len - NAME_BYTES_MAX : name);
}

static int copy_rows(const struct statistics *statistics, size_t limit, struct lines *ret)
{
	size_t count = statistics->row_count < limit ? statistics->row_count : limit;

	ret->rows = calloc(count + 1, sizeof(*ret->rows));
	if (!ret->rows)
		return -ENOMEM;
	for (; ret->count < count; ret->count++) {
		const struct statistic *row = &statistics->rows[ret->count];
		const struct statistic_frame *frame = row->frame_count > 0 ? &row->frames[0] : NULL;
		char *name = copy_name(frame ? strtab_get(statistics->strings, frame->name) : "");

		if (!name)
			return -ENOMEM;
		ret->rows[ret->count] = (struct openmetrics_group){ name, frame && frame->has_line ? frame->line : 0,
								    row->size, row->count };
	}
	return 0;
}

/* --- one process, once --- */

static void start_wanted(struct metrics_groups *groups);

static void watched_free(struct watched *watched)
{
	lines_fini(&watched->lines);
	lines_fini(&watched->fresh);
	vec_fini(&watched->waiters);
	free(watched);
}

static void tell(struct watched *watched)
{
	VEC_OF(struct waiter_of_groups) waiters = { watched->waiters.items, watched->waiters.count,
						    watched->waiters.space };

	memset(&watched->waiters, 0, sizeof(watched->waiters));
	for (size_t i = 0; i < waiters.count; i++)
		waiters.items[i].arrived(waiters.items[i].context);
	vec_fini(&waiters);
}

static void end(struct watched *watched)
{
	struct metrics_groups *groups = watched->groups;

	watched->took_ns = clock_monotonic_ns() - watched->began_ns;
	watched->running = false;
	groups->running--;
	tell(watched);
	start_wanted(groups);
}

static void run_job(void *context)
{
	struct watched *watched = context;
	const struct statistics_query query = { .key = KEY_LINENO, .limit = watched->limit };
	struct statistics *statistics;
	const char *reason;

	watched->error = 0;
	if (watched->limit == 0)
		return;
	watched->error = statistics_make(watched->snapshot, &query, &statistics, &reason);
	if (watched->error < 0)
		return;
	watched->error = copy_rows(statistics, watched->limit, &watched->fresh);
	statistics_free(statistics);
}

static void on_job(void *context, bool ran)
{
	struct watched *watched = context;

	if (ran && watched->error == 0) {
		lines_fini(&watched->lines);
		watched->lines = watched->fresh;
		watched->lines.taken_ns = watched->snapshot->taken_ns;
		memset(&watched->fresh, 0, sizeof(watched->fresh));
	}
	lines_fini(&watched->fresh);
	snapshot_put(watched->snapshot);
	watched->snapshot = NULL;
	end(watched);
}

/* Takes over the reference. */
static void start_job(struct watched *watched, struct snapshot *snapshot)
{
	watched->snapshot = snapshot;
	watched->limit = watched->groups->count;
	if (work_submit(watched->groups->daemon->work, run_job, on_job, watched) == 0)
		return;
	snapshot_put(snapshot);
	watched->snapshot = NULL;
	end(watched);
}

/* --- where the snapshot comes from --- */

static void on_read(void *context, struct snapshot *snapshot, int error, const char *reason)
{
	struct watched *watched = context;

	if (snapshot)
		return;         /* names are needed, too */
	log_debug("process %d: no snapshot for its metrics: %s, %s", watched->pid, reason, strerror(-error));
	end(watched);
}

static void on_named(void *context, struct snapshot *snapshot)
{
	start_job(context, snapshot);
}

static struct session *session_of(const struct watched *watched)
{
	struct session *session = sessions_find(watched->groups->daemon->sessions, watched->pid);

	return session && session_start_time(session) == watched->start_time ? session : NULL;
}

static void on_taken(void *context, const struct answer *answer)
{
	struct watched *watched = context;
	const struct intake_steps steps = { .context = watched, .read = on_read, .named = on_named };
	struct session *session = session_of(watched);
	const char *reason;

	if (answer->error < 0 || !session ||
	    intake_start(watched->groups->daemon->intakes, answer->fd, session_modules(session), watched->pid,
			 watched->start_time, &steps, &reason) < 0)
		end(watched);
}

static void on_kept(void *context, struct snapshot *snapshot, const char *reason)
{
	(void)reason;
	if (snapshot)
		start_job(context, snapshot_ref(snapshot));
	else
		end(context);
}

/* One that somebody has taken anyway. */
static struct kept *new_enough(const struct watched *watched)
{
	struct kept *kept = snapshots_last_of(watched->groups->daemon->snapshots, (struct viewer){ .uid = 0 }, watched->pid);
	uint64_t now_ns = clock_read_ns(CLOCK_REALTIME);

	return kept && kept_start_time(kept) == watched->start_time && kept_taken_ns(kept) <= now_ns &&
	       now_ns - kept_taken_ns(kept) < watched->groups->interval_ns ? kept : NULL;
}

static void start(struct watched *watched)
{
	struct wire_snapshot_request message = { .head.type = WIRE_SNAPSHOT };
	struct session *session = session_of(watched);
	struct kept *kept = session ? new_enough(watched) : NULL;

	watched->wanted = false;
	watched->running = true;
	watched->groups->running++;
	watched->began_ns = clock_monotonic_ns();
	if (kept)
		snapshots_get(watched->groups->daemon->snapshots, kept, on_kept, watched);
	else if (session && session_knows(session))
		session_ask(session, &message.head, sizeof(message), WIRE_SNAPSHOT_READY, SNAPSHOT_TIMEOUT_US, on_taken,
			    watched);
	else
		end(watched);
}

/* What ends at once comes back here: then the loop that is running goes on. */
static void start_wanted(struct metrics_groups *groups)
{
	if (groups->starting || groups->stopped)
		return;
	groups->starting = true;
	for (size_t i = 0; i < groups->list.count && groups->running < METRICS_SNAPSHOTS_MAX; i++) {
		if (groups->list.items[i]->wanted)
			start(groups->list.items[i]);
	}
	groups->starting = false;
}

/* --- all of them --- */

struct metrics_groups *metrics_groups_new(struct daemon *daemon)
{
	struct metrics_groups *groups = calloc(1, sizeof(*groups));

	if (groups)
		groups->daemon = daemon;
	return groups;
}

void metrics_groups_stop(struct metrics_groups *groups)
{
	groups->stopped = true;
}

void metrics_groups_free(struct metrics_groups *groups)
{
	if (!groups)
		return;
	for (size_t i = 0; i < groups->list.count; i++) {
		tell(groups->list.items[i]);   /* those whose turn did not come */
		watched_free(groups->list.items[i]);
	}
	vec_fini(&groups->list);
	free(groups);
}

void metrics_groups_set(struct metrics_groups *groups, size_t count, uint64_t interval_ns)
{
	/* Fewer lines are there than are wanted now. */
	for (size_t i = 0; count > groups->count && i < groups->list.count; i++)
		groups->list.items[i]->began_ns = 0;
	groups->count = count;
	groups->interval_ns = interval_ns;
}

static struct watched *find(const struct metrics_groups *groups, const struct session *session)
{
	for (size_t i = 0; i < groups->list.count; i++) {
		struct watched *watched = groups->list.items[i];

		if (watched->pid == session_pid(session) && watched->start_time == session_start_time(session))
			return watched;
	}
	return NULL;
}

static struct watched *find_or_add(struct metrics_groups *groups, const struct session *session)
{
	struct watched *watched = find(groups, session), **slot;

	if (watched)
		return watched;
	slot = vec_push(&groups->list);
	watched = slot ? calloc(1, sizeof(*watched)) : NULL;
	if (!watched) {
		groups->list.count -= slot != NULL;
		return NULL;
	}
	watched->groups = groups;
	watched->pid = session_pid(session);
	watched->start_time = session_start_time(session);
	*slot = watched;
	return watched;
}

static bool is_due(const struct metrics_groups *groups, const struct watched *watched)
{
	uint64_t rest_ns = watched->took_ns * METRICS_REST;

	return watched->began_ns == 0 ||
	       clock_monotonic_ns() - watched->began_ns >= (rest_ns > groups->interval_ns ? rest_ns : groups->interval_ns);
}

bool metrics_groups_refresh(struct metrics_groups *groups, const struct session *session,
			    void (*arrived)(void *context), void *context)
{
	struct watched *watched = groups->count > 0 ? find_or_add(groups, session) : NULL;
	struct waiter_of_groups *waiter;

	if (!watched || (!watched->running && !watched->wanted && !is_due(groups, watched)))
		return false;
	waiter = vec_push(&watched->waiters);
	if (!waiter)
		return false;
	*waiter = (struct waiter_of_groups){ arrived, context };
	if (!watched->running && !watched->wanted) {
		watched->wanted = true;
		start_wanted(groups);
	}
	return true;
}

size_t metrics_groups_get(const struct metrics_groups *groups, const struct session *session,
			  const struct openmetrics_group **ret_groups, uint64_t *ret_ns)
{
	const struct watched *watched = find(groups, session);
	size_t count = watched ? watched->lines.count : 0;

	*ret_groups = watched ? watched->lines.rows : NULL;
	*ret_ns = watched && groups->count > 0 ? watched->lines.taken_ns : 0;
	return count < groups->count ? count : groups->count;
}

void metrics_groups_tidy(struct metrics_groups *groups)
{
	for (size_t i = groups->list.count; i-- > 0;) {
		struct watched *watched = groups->list.items[i];

		if (watched->running || watched->wanted || watched->waiters.count > 0 || session_of(watched))
			continue;
		watched_free(watched);
		vec_remove_unordered(&groups->list, i);
	}
}
