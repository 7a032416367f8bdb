#include "daemon/resolve.h"

#include "daemon/daemon.h"
#include "daemon/failures.h"
#include "daemon/params.h"
#include "daemon/query.h"
#include "daemon/permit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS "0123456789"

struct resolve {
	struct call *call;
	char *snap;
	int pid;                /* 0: by id */
	bool retried;
	bool waited;            /* for the end of the process */
	void (*got)(void *context, struct snapshot *snapshot);
	void *context;
};

static void try_pid(struct resolve *resolve);

/* The call, to be answered with an error; nobody waits for the snapshot any more. */
static struct call *give_up(struct resolve *resolve)
{
	struct call *call = resolve->call;

	resolve->got(resolve->context, NULL);
	free(resolve->snap);
	free(resolve);
	return call;
}

static void hand_out(struct resolve *resolve, struct snapshot *snapshot)
{
	resolve->got(resolve->context, snapshot);
	free(resolve->snap);
	free(resolve);
}

/* --- a kept one --- */

static void on_kept(void *context, struct snapshot *snapshot, const char *reason)
{
	struct resolve *resolve = context;
	char *snap;

	if (snapshot) {
		hand_out(resolve, snapshot_ref(snapshot));
		return;
	}
	if (reason == snapshots_memory_full) {
		fail_limit(give_up(resolve), "memory", "%s; try again", reason);
		return;
	}
	snap = strdup(resolve->snap);
	fail_no_such_snapshot(give_up(resolve), snap ? snap : "", "snapshot %s cannot be had: %s", snap ? snap : "",
			      reason);
	free(snap);
}

static void try_kept(struct resolve *resolve, struct kept *kept)
{
	snapshots_get(resolve->call->daemon->snapshots, kept, on_kept, resolve);
}

/* --- a fresh one --- */

static void on_read(void *context, struct snapshot *snapshot, int error, const char *reason)
{
	struct resolve *resolve = context;
	int pid = resolve->pid;

	if (snapshot)
		return;         /* names are needed, too */
	fail(give_up(resolve), "the snapshot of process %d cannot be read (%s): %s", pid, strerror(-error), reason);
}

static void on_named(void *context, struct snapshot *snapshot)
{
	hand_out(context, snapshot);
}

static void on_answer(void *context, const struct answer *answer)
{
	struct resolve *resolve = context;
	struct daemon *daemon = resolve->call->daemon;
	struct session *session = permit_session(resolve->call, resolve->pid);
	const struct intake_steps steps = { .context = resolve, .read = on_read, .named = on_named };
	const char *reason;
	int pid = resolve->pid, r;

	/* It has ended meanwhile: then its last one is on its way. */
	if (answer->error == -ESRCH && !resolve->retried) {
		resolve->retried = true;
		try_pid(resolve);
		return;
	}
	if (answer->error < 0 || !session) {
		fail_answer(give_up(resolve), pid, answer);
		return;
	}
	r = intake_start(daemon->intakes, answer->fd, session_modules(session), pid, session_start_time(session),
			 &steps, &reason);
	if (r == -ENOSPC || r == -E2BIG)
		fail_limit(give_up(resolve), "snapshots", "%s; try again", reason);
	else if (r < 0)
		fail(give_up(resolve), "the snapshot of process %d cannot be read: %s", pid, reason);
}

static void try_fresh(struct resolve *resolve, struct session *session)
{
	struct wire_snapshot_request message = { .head.type = WIRE_SNAPSHOT };

	message.with_blocks = param_bool(resolve->call->parameters, "blocks") ||
			      query_needs_blocks(json_object_get(resolve->call->parameters, "query"));
	session_ask(session, &message.head, sizeof(message), WIRE_SNAPSHOT_READY, SNAPSHOT_TIMEOUT_US, on_answer,
		    resolve);
}

/* --- which of them --- */

static void on_ending(void *context, const struct ending *ending)
{
	(void)ending;
	try_pid(context);
}

static void wait_for_end(struct resolve *resolve, struct session *session)
{
	if (session_wait(session, on_ending, resolve) < 0)
		fail_limit(give_up(resolve), "clients", "too many clients wait for the end of one process; try again");
}

static void try_pid(struct resolve *resolve)
{
	struct daemon *daemon = resolve->call->daemon;
	struct session *session = permit_session(resolve->call, resolve->pid);
	enum session_state state = session ? session_state(session) : SESSION_LOST;
	struct kept *kept;
	int pid = resolve->pid;

	if (session && session_knows(session)) {
		try_fresh(resolve, session);
		return;
	}
	if (state == SESSION_ENDING || state == SESSION_DETACHING) {
		wait_for_end(resolve, session);
		return;
	}
	kept = snapshots_last_of(daemon->snapshots, permit_viewer(resolve->call), pid);
	if (kept)
		try_kept(resolve, kept);
	else if (state == SESSION_ATTACHING)
		fail_not_traced(give_up(resolve), pid, "process %d is just being attached; try again", pid);
	else
		fail_not_traced(give_up(resolve), pid, "process %d is not traced and no snapshot of it is kept", pid);
}

/* The number that `text` of `len` digits is; 0: it is none, or no PID. */
static int parse_pid(const char *text, size_t len)
{
	long long pid;

	if (len == 0 || len > 10 || strspn(text, DIGITS) < len)
		return 0;
	pid = strtoll(text, NULL, 10);
	return pid > 0 && pid <= INT32_MAX ? (int)pid : 0;
}

static void try_name(struct resolve *resolve);

static void on_named_end(void *context, const struct ending *ending)
{
	struct resolve *resolve = context;

	(void)ending;
	resolve->waited = true;
	try_name(resolve);
}

/* Who waited for a process and then asks for its PID:exit shall find it, though the tracer's last words may
 * still be on their way. */
static bool await_end(struct resolve *resolve, int pid)
{
	struct session *session = permit_session(resolve->call, pid);
	bool over = kill(pid, 0) < 0 && errno == ESRCH;

	if (resolve->waited || !session || session_state(session) == SESSION_LOST || !over)
		return false;
	if (session_wait(session, on_named_end, resolve) < 0)
		fail_limit(give_up(resolve), "clients", "too many clients wait for the end of one process; try again");
	return true;
}

/* "redis-server.service:last", or without the suffix. */
static struct kept *of_service(const struct resolve *resolve, size_t len, const char *name)
{
	const struct call *call = resolve->call;
	char text[HISTORY_WHO_MAX], who[HISTORY_WHO_MAX];

	if (len >= sizeof(text) || !permit_sees_rules(call))
		return NULL;
	memcpy(text, resolve->snap, len);
	text[len] = '\0';
	return watches_name(text, who) ? watches_find(call->daemon->watches, permit_viewer(call), who, name) : NULL;
}

static void try_name(struct resolve *resolve)
{
	struct snapshots *snapshots = resolve->call->daemon->snapshots;
	struct viewer viewer = permit_viewer(resolve->call);
	const char *colon = strrchr(resolve->snap, ':');
	struct kept *kept = NULL;
	int pid = 0;
	char *snap;

	if (colon) {
		pid = parse_pid(resolve->snap, (size_t)(colon - resolve->snap));
		kept = pid > 0 ? snapshots_by_name(snapshots, viewer, pid, colon + 1)
			       : of_service(resolve, (size_t)(colon - resolve->snap), colon + 1);
	} else {
		kept = snapshots_by_id(snapshots, viewer, resolve->snap);
	}
	if (kept) {
		try_kept(resolve, kept);
		return;
	}
	if (pid > 0 && await_end(resolve, pid))
		return;
	snap = strdup(resolve->snap);
	fail_no_such_snapshot(give_up(resolve), snap ? snap : "", "no snapshot %s is kept", snap ? snap : "");
	free(snap);
}

static void on_listed(void *context)
{
	struct resolve *resolve = context;

	resolve->pid = parse_pid(resolve->snap, strlen(resolve->snap));
	if (resolve->pid > 0)
		try_pid(resolve);
	else
		try_name(resolve);
}

void resolve_snapshot(struct call *call, const char *snap,
		      void (*got)(void *context, struct snapshot *snapshot), void *context)
{
	struct resolve *resolve = calloc(1, sizeof(*resolve));

	if (resolve)
		resolve->snap = strdup(snap);
	if (!resolve || !resolve->snap) {
		free(resolve);
		got(context, NULL);
		fail_memory(call);
		return;
	}
	resolve->call = call;
	resolve->got = got;
	resolve->context = context;
	snapshots_when_listed(call->daemon->snapshots, on_listed, resolve);
}
