#include "daemon/last_words.h"

#include "daemon/daemon.h"
#include "daemon/events.h"
#include "daemon/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct last_words {
	struct daemon *daemon;
	struct session *session;       /* held until the snapshot is kept */
	enum wire_snapshot_reason reason;
	struct kept *kept;
};

static const char *const reason_names[] = {
	[SNAPSHOT_ASKED] = "", [SNAPSHOT_EXIT] = "exit", [SNAPSHOT_EXEC] = "exec",
	[SNAPSHOT_DETACH] = "detach", [SNAPSHOT_LOST] = "lost",
};

/* error: -ENOSPC and -E2BIG are limits. */
static void tell_not_kept(struct daemon *daemon, struct session *session, enum wire_snapshot_reason reason, int error,
			  const char *why)
{
	int pid = session_pid(session);
	char text[256];

	if (session_may_log(session))
		log_error("process %d: its %s snapshot is lost: %s", pid, reason_names[reason], why);
	if (error != -ENOSPC && error != -E2BIG)
		return;
	snprintf(text, sizeof(text), "the %s snapshot of process %d is lost: %s", reason_names[reason], pid, why);
	events_limit(daemon->events, session_owner(session), pid, session_start_time(session), "snapshots", text);
}

static void on_last_read(void *context, struct snapshot *snapshot, int error, const char *reason)
{
	struct last_words *last = context;
	struct session *session = last->session;
	int r = error;
	char *full = NULL;

	if (snapshot) {
		r = snapshots_keep(last->daemon->snapshots, snapshot, reason_names[last->reason],
				   session_owner(session), &last->kept);
		full = r == -ENOSPC ? snapshots_full(last->daemon->snapshots, session_owner(session)) : NULL;
		reason = full ? full : r == -ENOSPC ? snapshots_memory_full : "the daemon is out of memory";
	}
	if (r < 0)
		tell_not_kept(last->daemon, session, last->reason, r, reason);
	free(full);
	last->session = NULL;
	session_release(session, r == 0 && last->reason == SNAPSHOT_EXIT ? kept_id(last->kept) : NULL);
	if (!snapshot)
		free(last);
}

static void on_last_named(void *context, struct snapshot *snapshot)
{
	struct last_words *last = context;

	if (last->kept)
		snapshots_named(last->daemon->snapshots, last->kept);
	snapshot_put(snapshot);
	free(last);
}

static int start_intake(struct last_words *last, int *fd, const char **ret_why)
{
	const struct intake_steps steps = { .context = last, .read = on_last_read, .named = on_last_named, .last = true };
	struct session *session = last->session;

	return intake_start(last->daemon->intakes, fd, session_modules(session), session_pid(session),
			    session_start_time(session), &steps, ret_why);
}

void last_words_take(void *daemon, struct session *session, enum wire_snapshot_reason reason, int *fd)
{
	struct last_words *last = calloc(1, sizeof(*last));
	const char *why = "the daemon is out of memory";
	int r = -ENOMEM;

	if (last) {
		*last = (struct last_words){ .daemon = daemon, .session = session, .reason = reason };
		r = start_intake(last, fd, &why);
	}
	if (r < 0) {
		free(last);
		tell_not_kept(daemon, session, reason, r, why);
		return;
	}
	session_hold(session);
}
