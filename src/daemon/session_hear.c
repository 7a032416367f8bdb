/* What the tracer of a session says. */
#include "daemon/session.h"

#include "base/clock.h"
#include "daemon/limits.h"
#include "daemon/log.h"
#include "daemon/session_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void take_program(struct session *session, const struct wire_attached *message)
{
	free(session->exe);
	free(session->command);
	session->exe = strdup(message->exe);
	session->command = strdup(message->command);
}

static void take_executed(struct session *session, const struct wire_attached *message)
{
	session->has_executed = true;
	take_program(session, message);
}

static void take_attached(struct session *session, const struct wire_attached *message)
{
	if (session->state != SESSION_ATTACHING && session->state != SESSION_KEPT)
		return;
	session->target_gone = sd_event_source_disable_unref(session->target_gone);
	take_program(session, message);
	session->since_ns = message->attached_realtime_ns;
	session->state = SESSION_TRACING;
	session_give_refuge(session);
	session_tell_attached(session);
	session_changed(session);
}

static void take_module(struct session *session, const struct wire_module *message, int *fd)
{
	int r = module_files_add(session->modules, message, fd);

	if (r == -ENOSPC && !session->modules_warned) {
		session->modules_warned = true;
		log_warning("process %d: it has too many modules; names in %s and later ones will be missing",
			    session->pid, message->path);
		session_tell_limit(session, "modules",
				   "process %d has too many modules; names in %s and later ones will be missing",
				   session->pid, message->path);
	}
}

static void take_gone(struct session *session, const struct wire_gone *message)
{
	if (session->state == SESSION_ATTACHING)
		return;         /* it is told by a FAILED */
	session->ending.exited = true;
	session->ending.wait_status = message->wait_status;
	session->state = SESSION_ENDING;
	questions_fail(session, -ESRCH);
	session_end_when_complete(session);
}

static bool is_asked_for(const struct wire_head *message)
{
	return ((const struct wire_snapshot_ready *)message)->reason == SNAPSHOT_ASKED;
}

static void take_image(struct session *session, const struct wire_snapshot_ready *message, int *fd)
{
	struct sessions *sessions = session->sessions;

	sessions->owner.image(sessions->owner.context, session, (enum wire_snapshot_reason)message->reason, fd);
}

/* A tracer, or its target through it, must not fill the log. */
bool session_may_log(struct session *session)
{
	unsigned dropped = log_limit_rest(&session->log, clock_monotonic_ns());

	if (dropped > 0)
		log_warning("process %d: %u further lines of its tracer were dropped", session->pid, dropped);
	return log_limit_pass(&session->log, TRACER_LOG_LINES_MAX);
}

/* After it there is nothing left to trace. */
static bool is_last_answer(const struct session *session, const struct wire_head *message)
{
	return (message->type == WIRE_DETACHED && !session->keeps) ||
	       (message->type == WIRE_FAILED && session->state == SESSION_ATTACHING);
}

static void take_set_aside(struct session *session)
{
	session->state = SESSION_KEPT;
	session_watch_target(session);
	session_tell_waiters(session);
	session_tell_ended(session);
	session_changed(session);
}

static void take_answer(struct session *session, const struct wire_head *message, int *fd)
{
	bool last = is_last_answer(session, message);

	if (message->type == WIRE_ATTACHED)
		take_attached(session, (const struct wire_attached *)message);
	else if (message->type == WIRE_STATUS_REPLY)
		session->status = *(const struct wire_status *)message;
	else if (message->type == WIRE_FAILED && message->serial == session->detach_serial &&
		 session->state == SESSION_DETACHING)
		session->state = SESSION_TRACING;
	else if (message->type == WIRE_DETACHED && session->keeps && session->state == SESSION_DETACHING)
		take_set_aside(session);
	else if (message->type == WIRE_DETACHED && message->serial == 0)
		snprintf(session->ending.reason, sizeof(session->ending.reason), "%.255s",
			 ((const struct wire_detached *)message)->text);
	questions_answer(session, message, fd);
	if (last && session->state != SESSION_ENDING)
		session_end(session, -ECANCELED);
}

static void dispatch(struct session *session, const struct wire_head *message, int *fd)
{
	if (message->type == WIRE_LOG) {
		if (session_may_log(session))
			log_warning("process %d: %s", session->pid, ((const struct wire_failed *)message)->text);
		return;
	}
	if (message->pid != session->pid) {
		if (session_may_log(session))
			log_warning("process %d: its tracer spoke of process %d, which it does not trace",
				    session->pid, message->pid);
		return;
	}
	if (message->type == WIRE_MODULE)
		take_module(session, (const struct wire_module *)message, fd);
	else if (message->type == WIRE_EXECED)
		take_executed(session, (const struct wire_attached *)message);
	else if (message->type == WIRE_FORKED)
		session_take_forked(session, (const struct wire_forked *)message, fd);
	else if (message->type == WIRE_TARGET_GONE)
		take_gone(session, (const struct wire_gone *)message);
	else if (message->type == WIRE_SNAPSHOT_READY && message->serial == 0 && !is_asked_for(message))
		take_image(session, (const struct wire_snapshot_ready *)message, fd);
	else
		take_answer(session, message, fd);
}

static void on_message(void *context, const struct wire_head *message, int *fd)
{
	struct session *session = context;

	session->references++;       /* whatever the message brings about */
	dispatch(session, message, fd);
	session_unref(session);
}

/* A tracer leaves when nothing is left to trace; that is no loss. */
static void on_lost(void *context, const char *reason)
{
	struct session *session = context;

	if (session->state == SESSION_ENDING) {
		tracer_let_go(session->tracer);
		session->tracer = NULL;
		return;
	}
	session_become_lost(session, reason);
}

struct tracer_owner session_listener(struct session *session)
{
	return (struct tracer_owner){ session, on_message, on_lost };
}
