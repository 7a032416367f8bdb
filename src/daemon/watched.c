/* A process under a rule: from its first sight to its end. */
#include "daemon/sampling.h"
#include "daemon/watches_private.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/proc.h"
#include "daemon/daemon.h"
#include "daemon/events.h"
#include "daemon/log.h"
#include "shim/shim.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Until a process that systemd has just forked executes its program. */
#define EXEC_LOOK_US 3000
#define EXEC_LOOKS_MAX 20000
/* Until one that the shim stands before executes its own program, when it is traced. */
#define SHIM_LOOK_US 20000
#define SHIM_LOOKS_MAX 100
#define TRIES_MAX 10
#define TRY_PAUSE_US 200000            /* times the number of tries that have failed */
#define COMM_MAX 32

static void try_attach(struct watched *watched);
static struct watched *find(const struct rule *rule, int pid, uint64_t start_time);

static struct sessions *sessions_of(const struct watched *watched)
{
	return watched->rule->watches->daemon->sessions;
}

/* Of this process, not of one that had its number before. */
static struct session *session_of(const struct watched *watched)
{
	struct session *session = sessions_find(sessions_of(watched), watched->pid);

	return session && session_start_time(session) == watched->start_time ? session : NULL;
}

static bool is_gone(const struct watched *watched)
{
	uint64_t start_time;

	return proc_start_time(watched->pid, &start_time) < 0 || start_time != watched->start_time;
}

/* --- snapshots --- */

struct taking {
	struct watches *watches;
	char who[HISTORY_WHO_MAX];     /* "": for no rule */
	const char *name;              /* the snapshot's; see model/occasion.h */
	uid_t owner;
	int pid;
	uint64_t start_time;
	struct kept *kept;
};

static void taking_free(struct taking *taking)
{
	taking->watches->taking--;
	free(taking);
}

void watched_tell_untaken(struct watches *watches, uint64_t now_ns)
{
	unsigned more = log_limit_rest(&watches->untaken, now_ns);

	if (more > 0)
		log_warning("%u further snapshots were not taken", more);
}

static void log_not_taken(const struct taking *taking, int error, const char *why)
{
	char text[HISTORY_WHO_MAX + 256];

	snprintf(text, sizeof(text), "%s%sno snapshot of process %d is taken: %s", taking->who, *taking->who ? ": " : "",
		 taking->pid, why);
	if (error == -ENOSPC || error == -E2BIG)
		events_limit(taking->watches->daemon->events, taking->owner, taking->pid, taking->start_time, "snapshots",
			     text);
	if (log_limit_pass(&taking->watches->untaken, SNAPSHOT_LOG_LINES_MAX))
		log_warning("%s", text);
}

static void on_read(void *context, struct snapshot *snapshot, int error, const char *reason)
{
	struct taking *taking = context;
	struct snapshots *snapshots = taking->watches->daemon->snapshots;
	char *full = NULL;
	int r = error;

	if (snapshot) {
		r = snapshots_keep(snapshots, snapshot, taking->name, taking->owner, &taking->kept);
		full = r == -ENOSPC ? snapshots_full(snapshots, taking->owner) : NULL;
		reason = full ? full : r == -ENOSPC ? snapshots_memory_full : "the daemon is out of memory";
	}
	if (r < 0)
		log_not_taken(taking, r, reason);
	free(full);
	if (!snapshot)
		taking_free(taking);
}

static void on_named(void *context, struct snapshot *snapshot)
{
	struct taking *taking = context;
	struct rule *rule = rule_find(taking->watches, taking->who);

	if (taking->kept)
		snapshots_named(taking->watches->daemon->snapshots, taking->kept);
	snapshot_put(snapshot);
	if (rule)
		rule_thin_out(rule);
	taking_free(taking);
}

static void on_image(void *context, const struct answer *answer)
{
	const struct intake_steps steps = { .context = context, .read = on_read, .named = on_named };
	struct taking *taking = context;
	struct daemon *daemon = taking->watches->daemon;
	struct session *session = sessions_find(daemon->sessions, taking->pid);
	const char *why = "it is no longer traced";
	int r = -ESRCH;

	/* One that ends or is let go just now leaves its last one. */
	if (answer->error == 0 && session && session_start_time(session) == taking->start_time)
		r = intake_start(daemon->intakes, answer->fd, session_modules(session), taking->pid, taking->start_time,
				 &steps, &why);
	else if (answer->error == -EAGAIN || answer->error == -ETIMEDOUT)
		log_not_taken(taking, answer->error, "its tracer does not answer");
	if (r == 0)
		return;
	if (answer->error == 0)
		log_not_taken(taking, r, why);
	taking_free(taking);
}

/* Of a rule's processes they are the daemon's user's, as the others. */
void watches_take(struct watches *watches, struct session *session, const char *who, const char *name)
{
	struct wire_snapshot_request message = { .head.type = WIRE_SNAPSHOT };
	struct taking *taking = session && session_knows(session) ? calloc(1, sizeof(*taking)) : NULL;

	if (!taking)
		return;
	taking->watches = watches;
	strcpy(taking->who, who);
	taking->name = name;
	taking->owner = *who ? geteuid() : session_owner(session);
	taking->pid = session_pid(session);
	taking->start_time = session_start_time(session);
	watches->taking++;
	watched_tell_untaken(watches, clock_monotonic_ns());
	session_ask(session, &message.head, sizeof(message), WIRE_SNAPSHOT_READY, SNAPSHOT_TIMEOUT_US, on_image, taking);
}

static void take(struct watched *watched)
{
	watches_take(watched->rule->watches, session_of(watched), watched->rule->is.who, SNAPSHOT_OF_RULE);
}

const struct history_rule *watches_rule_of(const struct watches *watches, int pid, uint64_t start_time)
{
	for (size_t i = 0; i < watches->rules.count; i++) {
		const struct rule *rule = watches->rules.items[i];
		const struct watched *watched = find(rule, pid, start_time);

		if (watched && watched->state == WATCHED_TRACED)
			return &rule->is;
	}
	return NULL;
}

void watched_take_all(struct rule *rule)
{
	for (size_t i = 0; i < rule->list.count; i++) {
		if (rule->list.items[i]->state == WATCHED_TRACED)
			take(rule->list.items[i]);
	}
}

/* --- its end --- */

void watched_free(struct watched *watched)
{
	struct rule *rule = watched->rule;

	for (size_t i = 0; i < rule->list.count; i++) {
		if (rule->list.items[i] != watched)
			continue;
		vec_remove_unordered(&rule->list, i);
		break;
	}
	sd_event_source_disable_unref(watched->timer);
	free(watched);
}

/* It is no longer traced: since when, and how it ended, is remembered. */
static void end_run(struct watched *watched)
{
	struct watches *watches = watched->rule->watches;
	struct history_run *run = watches_run(watches, watched->rule->is.who, watched->pid, watched->start_time);
	const struct ending *ending = sessions_ending(sessions_of(watched), watched->pid);

	if (!run)
		return;
	run->until_ns = clock_realtime_ns();
	if (ending && ending->start_time == watched->start_time && ending->exited && ending->wait_status != -1) {
		run->has_status = true;
		run->status = ending->wait_status;
	}
	watches_save(watches);
}

static void on_let_go(void *context, const struct answer *answer)
{
	(void)context;
	(void)answer;
}

void watched_end(struct watched *watched)
{
	struct session *session = session_of(watched);

	if (watched->state == WATCHED_TRACED)
		end_run(watched);
	if (session && watched->attached_here && session_state(session) == SESSION_TRACING)
		session_detach(session, on_let_go, NULL);
	else if (session && watched->state == WATCHED_ATTACHING)
		session_abandon(session);
	watched_free(watched);
}

/* --- its beginning --- */

static int on_timer(sd_event_source *source, uint64_t usec, void *context)
{
	struct watched *watched = context;

	(void)source;
	(void)usec;
	watched->timer = sd_event_source_disable_unref(watched->timer);
	try_attach(watched);
	return 0;
}

static void look_again(struct watched *watched, uint64_t usec)
{
	int r;

	watched->state = WATCHED_WAITING;
	/* The one that waits for the shim may still be there, and must not outlive what it looks at. */
	watched->timer = sd_event_source_disable_unref(watched->timer);
	r = sd_event_add_time_relative(watched->rule->watches->daemon->event, &watched->timer, CLOCK_MONOTONIC, usec, usec / 10,
				       on_timer, watched);
	if (r < 0) {
		log_error("%s: process %d cannot be watched: %s", watched->rule->is.who, watched->pid, strerror(-r));
		watched->state = WATCHED_LEFT;
	}
}

/* What fails may work in a moment: a process that has not loaded its libraries yet has no allocator. */
static void take_refusal(struct watched *watched, const char *why)
{
	if (is_gone(watched)) {
		watched_free(watched);
		return;
	}
	watched->tries++;
	if (watched->tries < TRIES_MAX) {
		look_again(watched, (uint64_t)watched->tries * TRY_PAUSE_US);
		return;
	}
	log_error("%s: process %d cannot be traced: %s", watched->rule->is.who, watched->pid, why);
	watched->state = WATCHED_LEFT;
}

static bool runs_shim(int pid)
{
	char path[PATH_MAX];

	process_program(pid, path);
	return strcmp(path, SHIM_PATH) == 0;
}

/* The shim executes the program as soon as it is traced.  That the tracer does not hear of it means that the shim had
 * waited too long and was about to execute it anyway, just when the tracer came: that one knows nothing, and another one
 * is asked. */
static int on_shim_timer(sd_event_source *source, uint64_t usec, void *context)
{
	struct watched *watched = context;
	struct session *session = session_of(watched);

	(void)usec;
	if (!session || watched->state != WATCHED_TRACED)
		return 0;
	if (session_has_executed(session)) {
		take(watched);
	} else if (runs_shim(watched->pid) || watched->shim_looks++ < SHIM_LOOKS_MAX) {
		sd_event_source_set_time_relative(source, SHIM_LOOK_US);
		return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	} else {
		log_warning("%s: process %d was not traced in time to be so from its start", watched->rule->is.who, watched->pid);
		watched->timer = sd_event_source_disable_unref(watched->timer);
		session_detach(session, on_let_go, NULL);
		take_refusal(watched, "its tracer came late");
	}
	return 0;
}

static void take_when_shim_is_gone(struct watched *watched)
{
	watched->timer = sd_event_source_disable_unref(watched->timer);
	if (sd_event_add_time_relative(watched->rule->watches->daemon->event, &watched->timer, CLOCK_MONOTONIC, SHIM_LOOK_US,
				       SHIM_LOOK_US / 10, on_shim_timer, watched) < 0)
		log_error("%s: no snapshot of process %d is taken now: out of memory", watched->rule->is.who, watched->pid);
}

static void become_traced(struct watched *watched)
{
	struct rule *rule = watched->rule;
	struct watches *watches = rule->watches;
	struct history_run *run = watches_run(watches, rule->is.who, watched->pid, watched->start_time);

	watched->state = WATCHED_TRACED;
	if (!run) {
		if (watches->past.runs.count == HISTORY_RUNS_MAX) {
			watches->past.runs.count--;
			memmove(watches->past.runs.items, watches->past.runs.items + 1,
				watches->past.runs.count * sizeof(*watches->past.runs.items));
		}
		run = vec_push(&watches->past.runs);
	}
	if (run) {
		strcpy(run->who, rule->is.who);
		run->pid = watched->pid;
		run->start_time = watched->start_time;
		if (run->since_ns == 0)
			run->since_ns = clock_realtime_ns();
		run->until_ns = 0;
		watches_save(watches);
	}
	log_info("%s: process %d is watched", rule->is.who, watched->pid);
	/* What it starts with, for comparison. */
	if (watched->behind_shim)
		take_when_shim_is_gone(watched);
	else
		take(watched);
}

struct attaching {
	struct watches *watches;
	char who[HISTORY_WHO_MAX];
	int pid;
	uint64_t start_time;
};

static struct watched *find(const struct rule *rule, int pid, uint64_t start_time)
{
	for (size_t i = 0; rule && i < rule->list.count; i++) {
		if (rule->list.items[i]->pid == pid && rule->list.items[i]->start_time == start_time)
			return rule->list.items[i];
	}
	return NULL;
}

static void on_attached(void *context, const struct answer *answer)
{
	struct attaching attaching = *(struct attaching *)context;
	const struct wire_failed *failed = (const struct wire_failed *)answer->message;
	struct watched *watched = find(rule_find(attaching.watches, attaching.who), attaching.pid, attaching.start_time);

	free(context);
	if (!watched || watched->state != WATCHED_ATTACHING)
		return;
	watched->attached_here = answer->error == 0;
	if (answer->error == 0)
		become_traced(watched);
	else
		take_refusal(watched, answer->error == -EREMOTEIO ? failed->text : strerror(-answer->error));
}

static int attach(struct watched *watched, struct process *process)
{
	const struct history_rule *is = &watched->rule->is;
	struct wire_attach message = { .frames_limit = is->frames, .follow_forks = is->follow_forks,
				       .domains = 1u << DOMAIN_MALLOC };
	struct attaching *attaching = calloc(1, sizeof(*attaching));
	int r;

	message.engine = (uint8_t)(is->has_engine ? (unsigned)is->engine : watched->rule->watches->daemon->engine);
	message.ptrace = (uint8_t)watched->rule->watches->daemon->ptrace;
	message.ring_readers = (uint8_t)watched->rule->watches->daemon->ring_readers;
	message.ring_wait_ms = watched->rule->watches->daemon->ring_wait_ms;
	if (!attaching) {
		fd_close(&process->pidfd);
		return -ENOMEM;
	}
	attaching->watches = watched->rule->watches;
	strcpy(attaching->who, is->who);
	attaching->pid = watched->pid;
	attaching->start_time = watched->start_time;
	watched->state = WATCHED_ATTACHING;
	watched->behind_shim = runs_shim(watched->pid);
	message.from_exec = watched->behind_shim;
	memcpy(message.allocators, watched->rule->watches->daemon->allocators.list, sizeof(message.allocators));
	sampling_by_default(&message, watched->rule->watches->daemon->sample_bytes);
	r = session_attach(sessions_of(watched), watched->pid, process, geteuid(), &message, on_attached, attaching);
	if (r < 0)
		free(attaching);
	return r;
}

/* A child of systemd that has not executed its program yet is called "(redis-server)". */
static bool has_not_executed(struct watched *watched)
{
	char path[48], *comm;
	bool has_not;

	snprintf(path, sizeof(path), "/proc/%d/comm", watched->pid);
	if (file_read_text(path, COMM_MAX, &comm, NULL) < 0)
		return false;
	has_not = comm[0] == '(' && strchr(comm, ')') != NULL;
	free(comm);
	return has_not && watched->looks++ < EXEC_LOOKS_MAX;
}

/* True: somebody traces it here already, or what is left of that is still being put away. */
static bool is_in_hand(struct watched *watched)
{
	struct session *session = sessions_find(sessions_of(watched), watched->pid);

	if (!session)
		return false;
	if (session_state(session) == SESSION_LOST) {
		session_forget(session);
		return false;
	}
	if (session_start_time(session) == watched->start_time && session_state(session) == SESSION_TRACING)
		become_traced(watched);
	else
		take_refusal(watched, "it is just being attached, or let go");
	return true;
}

static void try_attach(struct watched *watched)
{
	struct process process;
	bool zombie = false;
	int leader, r;

	if (has_not_executed(watched)) {
		look_again(watched, EXEC_LOOK_US);
		return;
	}
	if (watched->rule->watches->stopped || is_in_hand(watched))
		return;
	r = process_open(watched->pid, &process, &zombie, &leader);
	if (r == 0 && process.start_time != watched->start_time) {
		fd_close(&process.pidfd);
		r = -ESRCH;
	}
	if (r == 0)
		r = attach(watched, &process);
	if (r == -ESRCH)
		watched_free(watched);
	else if (r < 0)
		take_refusal(watched, r == -ENOSPC ? "as many processes are traced already as may be" : strerror(-r));
}

void watched_begin(struct rule *rule, int pid)
{
	uint64_t start_time;
	struct watched *watched, **slot;

	if (pid == getpid() || proc_start_time(pid, &start_time) < 0 || find(rule, pid, start_time))
		return;
	watched = vec_reserve(&rule->list, 1) < 0 ? NULL : calloc(1, sizeof(*watched));
	if (!watched) {
		log_error("%s: process %d cannot be watched: %s", rule->is.who, pid, strerror(ENOMEM));
		return;
	}
	watched->rule = rule;
	watched->pid = pid;
	watched->start_time = start_time;
	slot = vec_push(&rule->list);
	*slot = watched;
	try_attach(watched);
}

/* --- while it is traced --- */

/* One whose tracer died is traced anew; one that was let go by somebody is left alone. */
static void look(struct watched *watched)
{
	struct session *session = session_of(watched);

	if (watched->state == WATCHED_TRACED && session && session_state(session) == SESSION_LOST) {
		take_refusal(watched, "its tracer has died");
		return;
	}
	if (watched->state == WATCHED_TRACED && !session) {
		end_run(watched);
		watched->state = WATCHED_LEFT;
	}
	if ((watched->state == WATCHED_LEFT || watched->state == WATCHED_WAITING) && is_gone(watched))
		watched_free(watched);
}

void watched_look_all(struct rule *rule)
{
	for (size_t i = rule->list.count; i-- > 0;) {
		if (i < rule->list.count)
			look(rule->list.items[i]);
	}
}
