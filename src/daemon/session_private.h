/* Shared by sessions.c, session.c, session_ask.c and session_hear.c only. */
#ifndef ALLOCWATCH_DAEMON_SESSION_PRIVATE_H
#define ALLOCWATCH_DAEMON_SESSION_PRIVATE_H

#include "base/vec.h"
#include "daemon/limits.h"
#include "daemon/log_limit.h"
#include "daemon/session.h"

struct question {
	struct session *session;
	uint32_t serial;
	enum wire_type expected;
	answer_fn answered;
	void *context;
	sd_event_source *deadline;
};

struct waiter {
	ending_fn ended;
	void *context;
};

struct sessions {
	sd_event *event;
	struct tracers *tracers;
	size_t max;
	struct sessions_owner owner;
	VEC_OF(struct session *) list;
	struct ending endings[ENDINGS_MAX];    /* a ring */
	size_t ending_count;                   /* ever */
	bool closing;                          /* the daemon leaves those that are left */
};

struct session {
	struct sessions *sessions;
	unsigned references;
	unsigned images;                       /* on their way */
	int pid, pidfd;
	uid_t owner;
	uint64_t start_time;
	enum session_state state;
	bool over;                             /* out of the list, everybody has been told */
	bool told;                             /* that it is traced, and not yet that it is no longer */
	struct tracer *tracer;                 /* NULL: let go */
	struct module_files *modules;
	bool modules_warned;
	uint64_t not_followed;       /* children that the daemon did not take, or whose tracer has not taken them */
	int parent;                            /* whose child it is that is followed; 0: nobody's */
	uint64_t parent_start_time;
	char *exe, *command;
	bool has_executed;                     /* another program since it was attached to */
	uint64_t since_ns;
	struct wire_status status;
	struct log_limit log;
	VEC_OF(struct question *) questions;
	uint32_t last_serial, detach_serial;
	VEC_OF(struct waiter) waiters;
	struct ending ending;
	bool has_refuge;
	struct lost_file refuge;
	bool keeps;                            /* detaching, to be SESSION_KEPT */
	sd_event_source *target_gone;          /* of a lost or a kept session */
};

/* --- sessions.c --- */

/* Whether there is room for one more of this owner's.  0, -ENOSPC, -EDQUOT. */
int sessions_have_room(const struct sessions *sessions, uid_t owner);
void sessions_remove(struct session *session);
void sessions_remember_ending(struct sessions *sessions, const struct ending *ending);

/* --- session.c --- */

/* Tells everybody, lets the tracer go and frees the session as soon as no image needs it. */
void session_end(struct session *session, int error);
void session_unref(struct session *session);
void session_become_lost(struct session *session, const char *reason);
void session_end_when_complete(struct session *session);
/* Gives its tracer a file for what it knows, or takes that away: the daemon has heard all. */
void session_give_refuge(struct session *session);
void session_leave_refuge(struct session *session);
void session_changed(struct session *session);
/* The end of a target that nobody traces. */
void session_watch_target(struct session *session);
void session_tell_waiters(struct session *session);
/* Who hears of all sessions. */
void session_tell_attached(struct session *session);
void session_tell_ended(struct session *session);
void session_tell_limit(struct session *session, const char *limit, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void session_take_forked(struct session *session, const struct wire_forked *message, int *fd);

/* --- session_hear.c: who hears a tracer for it --- */

struct tracer_owner session_listener(struct session *session);

/* --- session_ask.c --- */

/* As session_ask(), with a descriptor (borrowed, -1: none) beside the message. */
void question_ask(struct session *session, struct wire_head *message, size_t len, int fd,
		  enum wire_type expected, uint64_t timeout_us, answer_fn answered, void *context);
/* To all with the message's serial.  Unknown ones came too late and are dropped. */
void questions_answer(struct session *session, const struct wire_head *message, int *fd);
void questions_fail(struct session *session, int error);

#endif
