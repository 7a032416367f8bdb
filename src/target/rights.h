/* Yama asks for CAP_SYS_PTRACE where the kernel's ordinary rules ask for the same user.  A tracer that gives up root's
 * rights keeps that one there, permitted and not effective, and raises it for a single call at a time, after the
 * ordinary rules have said yes: it may then do what the user could without Yama, and no more.
 *
 * One that lets its target go of ptrace (tracer/release.h) keeps it as well, to seize that once more: who may trace it was judged when
 * it was seized first. */
#ifndef ALLOCWATCH_TARGET_RIGHTS_H
#define ALLOCWATCH_TARGET_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Whether there is something to keep: Yama is there and asks for a capability. */
bool rights_yama_asks(void);
/* For a thread whose uid has changed with PR_SET_KEEPCAPS: of all capabilities that one stays, permitted.  0 or
 * negative errno. */
int rights_keep_ptrace(void);
/* None is left to this thread. */
void rights_drop(void);
/* We are not of those whom Yama lets trace anybody: no CAP_SYS_PTRACE, not even a kept one. */
bool rights_bound_by_yama(void);
/* Raises the kept one, for a process that the ordinary rules let us look at; false: none is kept, or they do not.  To be
 * lowered at once. */
bool rights_raise_for(pid_t pid);
void rights_lower(void);
/* The same whatever the ordinary rules say now: for a process that was traced before, and is to be seized once more. */
bool rights_raise(void);
/* Reads memory of a process that is not the caller's target, raising it if need be.  False: not all of it. */
bool rights_read_memory(pid_t pid, uint64_t at, void *buf, size_t len);

#endif
