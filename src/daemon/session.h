/* A traced process: its tracer, its state, what it was asked and has not answered, its modules' files.
 *
 * Sessions know tracers and images, not clients: who asks gets its answer through a callback, from
 * the event loop, exactly once. */
#ifndef ALLOCWATCH_DAEMON_SESSION_H
#define ALLOCWATCH_DAEMON_SESSION_H

#include "daemon/lost_files.h"
#include "daemon/module_files.h"
#include "daemon/process.h"
#include "daemon/tracer.h"
#include "tracer/wire.h"

#include <stdbool.h>
#include <systemd/sd-event.h>

enum session_state {
	SESSION_ATTACHING,
	SESSION_TRACING,
	SESSION_DETACHING,
	SESSION_KEPT,         /* no longer traced; its tracer keeps what it knows */
	SESSION_ENDING,       /* the process has ended; its last image is still on its way */
	SESSION_LOST,         /* its tracer died: no longer traced */
};

struct session;
struct sessions;

/* What came of a question to a tracer. */
struct answer {
	/* 0: message is the expected one.  -EREMOTEIO: message is a wire_failed.  Without a message:
	 * -ESRCH the process ended, -ECANCELED it was detached, -ECONNRESET the tracer died,
	 * -ETIMEDOUT, -EAGAIN too many questions or the tracer does not listen. */
	int error;
	const struct wire_head *message;
	int *fd;                          /* beside it; taken by setting it to -1 */
};
typedef void (*answer_fn)(void *context, const struct answer *answer);

/* How tracing ended, for those who wait for it. */
struct ending {
	int pid;
	uint64_t start_time;              /* with pid, whose end it is */
	/* 0: see `exited`; -ECONNRESET: the tracer died. */
	int error;
	bool exited;                      /* else it was detached */
	int wait_status;                  /* as from waitpid, -1 unknown; when it has exited */
	char snapshot[24];                /* id of its last one, "" when there is none */
	char reason[256];                 /* of its being let go when nobody asked for that; "": none */
	uid_t owner;
};
typedef void (*ending_fn)(void *context, const struct ending *ending);

struct sessions_owner {
	void *context;
	/* A snapshot that nobody asked for: takes the image by setting *fd to -1, holds the session with
	 * session_hold() until it is kept. */
	void (*image)(void *context, struct session *session, enum wire_snapshot_reason reason, int *fd);
	void (*changed)(void *context);   /* the number or states of sessions */
	/* It is traced from now on; and no longer, with all that it leaves kept by then. */
	void (*attached)(void *context, const struct session *session);
	void (*ended)(void *context, const struct session *session, const struct ending *ending);
	/* Something of it is not done for a limit's sake; names as in struct events. */
	void (*limit)(void *context, const struct session *session, const char *limit, const char *message);
	/* The file in which its tracer stores what it knows when the daemon is gone, as in lost.h; NULL: there is none. */
	int (*refuge)(void *context, const struct session *session, struct lost_file *ret_file);
	void (*leave_refuge)(void *context, const struct lost_file *file);
	/* The daemon no longer hears that tracer, which may store what it knows there. */
	void (*seek_refuge)(void *context, const struct lost_file *file);
};

int sessions_new(sd_event *event, struct tracers *tracers, size_t max, const struct sessions_owner *owner,
		 struct sessions **ret);
void sessions_free(struct sessions *sessions);
/* Those that are there stay. */
void sessions_set_max(struct sessions *sessions, size_t max);
size_t sessions_count(const struct sessions *sessions);           /* lost ones, too */
size_t sessions_live_count(const struct sessions *sessions);
struct session *sessions_get(const struct sessions *sessions, size_t i);
struct session *sessions_find(const struct sessions *sessions, int pid);
/* The last ending of a process that is no longer there, or about to be forgotten; NULL when it is not known (any
 * more). */
const struct ending *sessions_ending(const struct sessions *sessions, int pid);

/* Starts a tracer and asks it to attach (message: filled in but for its head).  Takes over
 * process->pidfd.  0, and the answer goes to `answered`; -ENOSPC too many sessions, -EDQUOT too many of this
 * owner, or a negative errno of starting the tracer. */
int session_attach(struct sessions *sessions, int pid, struct process *process, uid_t owner,
		   struct wire_attach *message, answer_fn answered, void *context);
/* Asks the tracer; message->type and what follows the head are filled in.  `answered` may be called at
 * once. */
void session_ask(struct session *session, struct wire_head *message, size_t len, enum wire_type expected,
		 uint64_t timeout_us, answer_fn answered, void *context);
/* Asks for the end; the answer is a WIRE_DETACHED. Several may wait for it. */
void session_detach(struct session *session, answer_fn answered, void *context);
/* As session_detach(), but its tracer stays with what it knows: SESSION_KEPT. */
void session_set_aside(struct session *session, answer_fn answered, void *context);
/* Has the tracer of a SESSION_KEPT attach again. */
void session_resume(struct session *session, struct wire_attach *message, answer_fn answered, void *context);
/* Whether its tracer can be asked what it knows. */
bool session_knows(const struct session *session);
/* `ended` is told once tracing has ended.  0, -ENOSPC, -ENOMEM. */
int session_wait(struct session *session, ending_fn ended, void *context);
/* No longer interested (a client left). */
void session_wait_cancel(struct session *session, void *context);
/* Removes a lost session. */
void session_forget(struct session *session);
/* Lets the target go without asking: the tracer's socket is closed. */
void session_abandon(struct session *session);

int session_pid(const struct session *session);
uid_t session_owner(const struct session *session);
uint64_t session_start_time(const struct session *session);
enum session_state session_state(const struct session *session);
const char *session_state_name(const struct session *session);     /* as in type Target */
const char *session_command(const struct session *session);
const char *session_exe(const struct session *session);
/* Another program, since it was attached to. */
bool session_has_executed(const struct session *session);
uint64_t session_since_ns(const struct session *session);          /* CLOCK_REALTIME */
struct module_files *session_modules(const struct session *session);
/* The last figures the tracer gave, all zero before. */
const struct wire_status *session_status(const struct session *session);

/* Children that should have been followed and are not. */
uint64_t session_not_followed(const struct session *session);

/* Whether another line about this session may go into the log now: what a target or its tracer can
 * bring about without an end is bounded. */
bool session_may_log(struct session *session);

/* An image is on its way: the session's end waits for it. */
void session_hold(struct session *session);
/* exit_snapshot: the id under which its last one is kept, or NULL. */
void session_release(struct session *session, const char *exit_snapshot);

#endif
