/* Why a thread stopped: a value made by a pure function, and the only waiting there is.
 *
 * Signal and int3 stops are looked at and never reaped: a stop that was reaped is dropped by the
 * kernel when the tracer dies, and its signal is lost with it; one that was not is delivered, and
 * PTRACE_CONT consumes it just as well.  Events, system-call stops and exits are reaped. */
#ifndef ALLOCWATCH_TARGET_STOP_H
#define ALLOCWATCH_TARGET_STOP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum stop_kind {
	STOP_NONE,           /* nothing to see */
	STOP_SIGNAL,         /* about to be delivered: sig; SIGTRAP may be an int3 */
	STOP_INTERRUPTED,    /* PTRACE_INTERRUPT, or a new thread's first stop */
	STOP_GROUP,          /* job control: sig */
	STOP_SYSCALL,        /* entry or exit of a system call */
	STOP_CLONE, STOP_FORK, STOP_VFORK,
	STOP_EXEC,
	STOP_OTHER_EVENT,
	STOP_EXITED,         /* sig is the exit code */
	STOP_KILLED,         /* sig is the signal */
};

struct stop {
	enum stop_kind kind;
	pid_t tid;
	int sig;
};

/* Pure: what waitid() said. */
struct stop stop_classify(const siginfo_t *info);

/* Waits for any child or tracee, or (tid > 0) looks at one without waiting, and leaves it as it is.
 * 0 (kind STOP_NONE: nothing), -ECHILD: no such child, -EINTR. */
int stop_wait(struct stop *ret_stop);
int stop_look(pid_t tid, struct stop *ret_stop);
/* Looks at any, without waiting. */
int stop_look_at_any(struct stop *ret_stop);
/* Waits for one, but for no longer than this, and spares the machine meanwhile.  SIGCHLD is blocked in all threads. */
void stop_pause(uint64_t ns);
/* Takes the stop or exit away. */
void stop_reap(pid_t tid);
/* Ends the tracing of a thread of which nothing else is known, with the signal that it is about to have.  0, or as ptrace_detach(). */
int stop_let_go(const struct stop *stop);
static inline bool stop_is_reaped(enum stop_kind kind)
{
	return kind != STOP_NONE && kind != STOP_SIGNAL;
}
/* Of one that others have reaped: how it ended is not known (sig). */
#define STOP_UNKNOWN_STATUS (-1)
/* In the middle of the call that has made a child: it returns later, whatever registers are set now. */
static inline bool stop_is_birth(enum stop_kind kind)
{
	return kind == STOP_CLONE || kind == STOP_FORK || kind == STOP_VFORK;
}
static inline bool stop_is_end(enum stop_kind kind)
{
	return kind == STOP_EXITED || kind == STOP_KILLED;
}

#endif
