#include "daemon/session.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/vec.h"
#include "daemon/limits.h"
#include "daemon/log.h"
#include "daemon/session_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

void session_changed(struct session *session)
{
	session->sessions->owner.changed(session->sessions->owner.context);
}

/* --- where its tracer stores what it knows when nobody is there --- */

void session_give_refuge(struct session *session)
{
	const struct sessions_owner *owner = &session->sessions->owner;
	struct wire_head message = { WIRE_REFUGE, 0, session->pid, sizeof(message) };
	int fd = -1;

	if (!session->has_refuge && owner->refuge)
		fd = owner->refuge(owner->context, session, &session->refuge);
	if (fd < 0)
		return;
	session->has_refuge = true;
	if (tracer_send(session->tracer, &message, sizeof(message), fd) < 0)
		session_leave_refuge(session);
	fd_close(&fd);
}

void session_leave_refuge(struct session *session)
{
	const struct sessions_owner *owner = &session->sessions->owner;

	if (session->has_refuge)
		owner->leave_refuge(owner->context, &session->refuge);
	session->has_refuge = false;
}

/* A tracer that was killed has left nothing there; one that only is not heard any more stores what it knows. */
static void seek_refuge(struct session *session)
{
	const struct sessions_owner *owner = &session->sessions->owner;

	if (session->has_refuge)
		owner->seek_refuge(owner->context, &session->refuge);
	session->has_refuge = false;
}

/* --- the end --- */

void session_unref(struct session *session)
{
	if (--session->references > 0)
		return;
	tracer_let_go(session->tracer);
	module_files_unref(session->modules);
	sd_event_source_disable_unref(session->target_gone);
	fd_close(&session->pidfd);
	vec_fini(&session->questions);
	vec_fini(&session->waiters);
	free(session->exe);
	free(session->command);
	free(session);
}

/* Callbacks may look for the session or begin a new one: it is out of the list by then. */
void session_tell_waiters(struct session *session)
{
	for (size_t i = 0; i < session->waiters.count; i++)
		session->waiters.items[i].ended(session->waiters.items[i].context, &session->ending);
	session->waiters.count = 0;
}

void session_tell_attached(struct session *session)
{
	const struct sessions_owner *owner = &session->sessions->owner;

	/* Of a kept one: its last image from before may still be on its way. */
	if (session->told)
		owner->ended(owner->context, session, &session->ending);
	session->told = true;
	owner->attached(owner->context, session);
}

/* What it leaves is told before, so that nothing follows its end. */
void session_tell_ended(struct session *session)
{
	const struct sessions_owner *owner = &session->sessions->owner;

	if (!session->told || session->images > 0 || session->sessions->closing)
		return;
	session->told = false;
	owner->ended(owner->context, session, &session->ending);
}

void session_tell_limit(struct session *session, const char *limit, const char *format, ...)
{
	const struct sessions_owner *owner = &session->sessions->owner;
	char message[256];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	owner->limit(owner->context, session, limit, message);
}

/* Its tracer came too late for it, say, on a busy machine: it went on by itself (target/park.h). */
static void count_as_not_followed(const struct session *child)
{
	struct session *parent = child->parent > 0 ? sessions_find(child->sessions, child->parent) : NULL;

	if (!parent || parent->start_time != child->parent_start_time)
		return;
	parent->not_followed++;
	if (session_may_log(parent))
		log_warning("process %d: its child %d is not followed: its tracer could not take it", parent->pid, child->pid);
}

void session_end(struct session *session, int error)
{
	struct sessions *sessions = session->sessions;

	if (session->over)
		return;
	session->over = true;
	if (session->state == SESSION_ATTACHING && !sessions->closing)
		count_as_not_followed(session);
	sessions_remove(session);
	if (!sessions->closing)
		session_leave_refuge(session);
	tracer_let_go(session->tracer);
	session->tracer = NULL;
	questions_fail(session, error);
	if (session->state != SESSION_ATTACHING && session->state != SESSION_LOST)
		sessions_remember_ending(sessions, &session->ending);
	session_tell_waiters(session);
	session_tell_ended(session);
	session_unref(session);
	sessions->owner.changed(sessions->owner.context);
}

void session_end_when_complete(struct session *session)
{
	if (session->state == SESSION_ENDING && session->images == 0)
		session_end(session, -ESRCH);
}

void session_hold(struct session *session)
{
	session->images++;
	session->references++;
}

void session_release(struct session *session, const char *exit_snapshot)
{
	session->images--;
	if (exit_snapshot)
		snprintf(session->ending.snapshot, sizeof(session->ending.snapshot), "%s", exit_snapshot);
	session_end_when_complete(session);
	/* Otherwise over since before its last image was kept, as after a detach. */
	if (session->over || session->state == SESSION_LOST || session->state == SESSION_KEPT)
		session_tell_ended(session);
	session_unref(session);
}

void session_forget(struct session *session)
{
	session_end(session, -ECANCELED);
}

void session_abandon(struct session *session)
{
	session_end(session, -ECANCELED);
}

static void on_kept_end(void *context, const struct answer *answer)
{
	(void)context;
	(void)answer;
}

static int on_target_gone(sd_event_source *source, int fd, uint32_t revents, void *context)
{
	(void)fd;
	(void)revents;
	sd_event_source_set_enabled(source, SD_EVENT_OFF);
	if (((struct session *)context)->state == SESSION_KEPT)
		session_detach(context, on_kept_end, context);     /* its last snapshot comes first */
	else
		session_forget(context);
	return 0;
}

void session_watch_target(struct session *session)
{
	session->target_gone = sd_event_source_disable_unref(session->target_gone);
	if (sd_event_add_io(session->sessions->event, &session->target_gone, session->pidfd, EPOLLIN,
			    on_target_gone, session) < 0)
		log_warning("process %d: its end will not be seen", session->pid);
}

/* The target runs on, untraced; the entry stays, so that a person sees what happened, until the
 * target ends or somebody detaches or attaches it. */
void session_become_lost(struct session *session, const char *reason)
{
	if (session->over || session->state == SESSION_LOST)
		return;
	log_error("process %d: tracing has ended: its tracer is lost: %s", session->pid, reason);
	seek_refuge(session);
	tracer_let_go(session->tracer);
	session->tracer = NULL;
	if (session->state == SESSION_ATTACHING) {
		session_end(session, -ECONNRESET);
		return;
	}
	session->state = SESSION_LOST;
	session->ending.error = -ECONNRESET;
	session_watch_target(session);
	questions_fail(session, -ECONNRESET);
	session_tell_waiters(session);
	session_tell_ended(session);
	session_changed(session);
}

/* --- the beginning --- */

static struct session *session_new(struct sessions *sessions, int pid, struct process *process, uid_t owner)
{
	struct session *session = calloc(1, sizeof(*session));

	if (!session)
		return NULL;
	session->sessions = sessions;
	session->references = 1;
	session->pid = pid;
	session->owner = session->ending.owner = owner;
	session->pidfd = process->pidfd;
	process->pidfd = -1;
	session->start_time = process->start_time;
	session->state = SESSION_ATTACHING;
	session->since_ns = clock_realtime_ns();
	session->ending.pid = pid;
	session->ending.start_time = process->start_time;
	session->ending.wait_status = -1;
	session->modules = module_files_new();
	if (!session->modules) {
		session_unref(session);
		return NULL;
	}
	module_files_look(session->modules, pid, session->start_time);
	return session;
}

/* A child of a followed process: it comes with a tracer of its own, which says the rest. */
static int session_adopt(struct session *parent, const struct wire_forked *message, struct process *process, int *fd)
{
	struct sessions *sessions = parent->sessions;
	struct session *session, **slot;
	int r;

	r = sessions_have_room(sessions, parent->owner);
	if (r < 0)
		return r;
	r = -ENOMEM;
	session = session_new(sessions, message->child, process, parent->owner);
	if (session && vec_reserve(&sessions->list, 1) == 0) {
		const struct tracer_owner owner = session_listener(session);

		session->parent = parent->pid;
		session->parent_start_time = parent->start_time;
		module_files_set_user(session->modules, module_files_user(parent->modules));
		r = tracer_adopt(sessions->tracers, parent->tracer, message->child, message->tracer, *fd, &owner,
				 &session->tracer);
		*fd = -1;
	}
	if (r < 0) {
		if (session)
			session_unref(session);
		return r;
	}
	slot = vec_push(&sessions->list);
	*slot = session;
	session_changed(session);
	return 0;
}

/* Without its socket the child's tracer lets the child go. */
void session_take_forked(struct session *session, const struct wire_forked *message, int *fd)
{
	struct process process = { .pidfd = -1 };
	int leader, r = -EEXIST;
	bool zombie;

	if (*fd >= 0 && session->tracer && !sessions_find(session->sessions, message->child)) {
		r = process_open(message->child, &process, &zombie, &leader);
		if (r == 0 && process.start_time != message->start_time)
			fd_close(&process.pidfd);
		/* One that has ended by now has left a snapshot all the same. */
		process.start_time = message->start_time;
		if (r == 0 || r == -ESRCH)
			r = session_adopt(session, message, &process, fd);
		fd_close(&process.pidfd);
	}
	session->not_followed += r < 0;
	/* Its tracer has died before it was heard of, perhaps before it had the child. */
	if (r == -ESRCH || r == -EPERM)
		tracers_heal(session->sessions->tracers, message->child);
	if (r == -ENOSPC || r == -EDQUOT)
		session_tell_limit(session, "sessions",
				   "child %d of process %d is not followed: too many processes are traced",
				   message->child, session->pid);
	if (r < 0 && session_may_log(session))
		log_warning("process %d: its child %d is not followed: %s", session->pid, message->child,
			    r == -ENOSPC || r == -EDQUOT ? "too many processes are traced" : strerror(-r));
}

int session_attach(struct sessions *sessions, int pid, struct process *process, uid_t owner,
		   struct wire_attach *message, answer_fn answered, void *context)
{
	struct session *session, **slot;
	struct file_user user;
	int r = sessions_have_room(sessions, owner);

	if (r < 0) {
		fd_close(&process->pidfd);
		return r;
	}
	r = -ENOMEM;
	session = session_new(sessions, pid, process, owner);
	fd_close(&process->pidfd);
	if (session && vec_reserve(&sessions->list, 1) == 0) {
		const struct tracer_owner listener = session_listener(session);

		r = tracer_start(sessions->tracers, pid, &listener, &session->tracer);
	}
	if (r < 0) {
		if (session)
			session_unref(session);
		return r;
	}
	slot = vec_push(&sessions->list);
	*slot = session;
	file_user_of_attach(message, pid, &user);
	module_files_set_user(session->modules, &user);
	message->head.type = WIRE_ATTACH;
	message->start_time = session->start_time;
	question_ask(session, &message->head, sizeof(*message), session->pidfd, WIRE_ATTACHED, ATTACH_TIMEOUT_US,
		     answered, context);
	if (session->questions.count == 0)      /* it could not be asked, and `answered` knows */
		session_end(session, -ECONNRESET);
	else
		session_changed(session);
	return 0;
}

void session_resume(struct session *session, struct wire_attach *message, answer_fn answered, void *context)
{
	message->head.type = WIRE_ATTACH;
	message->start_time = session->start_time;
	session->keeps = false;
	question_ask(session, &message->head, sizeof(*message), session->pidfd, WIRE_ATTACHED, ATTACH_TIMEOUT_US,
		     answered, context);
}

bool session_knows(const struct session *session)
{
	return session->state == SESSION_TRACING || session->state == SESSION_KEPT;
}

int session_wait(struct session *session, ending_fn ended, void *context)
{
	struct waiter *waiter;

	if (session->waiters.count >= SESSION_WAITERS_MAX)
		return -ENOSPC;
	waiter = vec_push(&session->waiters);
	if (!waiter)
		return -ENOMEM;
	waiter->ended = ended;
	waiter->context = context;
	return 0;
}

void session_wait_cancel(struct session *session, void *context)
{
	for (size_t i = 0; i < session->waiters.count; i++) {
		if (session->waiters.items[i].context == context) {
			vec_remove_unordered(&session->waiters, i);
			return;
		}
	}
}

uid_t session_owner(const struct session *session)
{
	return session->owner;
}

int session_pid(const struct session *session)
{
	return session->pid;
}

uint64_t session_start_time(const struct session *session)
{
	return session->start_time;
}

enum session_state session_state(const struct session *session)
{
	return session->state;
}

const char *session_state_name(const struct session *session)
{
	switch (session->state) {
	case SESSION_ATTACHING:
		return "attaching";
	case SESSION_TRACING:
		return session->status.stopped ? "stopped" : "tracing";
	case SESSION_DETACHING:
	case SESSION_ENDING:
		return "detaching";
	case SESSION_KEPT:
		return "kept";
	case SESSION_LOST:
		return "lost";
	}
	return "";
}

const char *session_command(const struct session *session)
{
	return session->command ? session->command : "";
}

bool session_has_executed(const struct session *session)
{
	return session->has_executed;
}

const char *session_exe(const struct session *session)
{
	return session->exe ? session->exe : "";
}

uint64_t session_not_followed(const struct session *session)
{
	return session->not_followed + session->status.children_not_followed;
}

uint64_t session_since_ns(const struct session *session)
{
	return session->since_ns;
}

struct module_files *session_modules(const struct session *session)
{
	return session->modules;
}

const struct wire_status *session_status(const struct session *session)
{
	return &session->status;
}
