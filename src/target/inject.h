/* One system call made by a stopped task on our behalf.
 *
 * Only its pc is set, to a stub in the resident code that makes the call and then restores every
 * register by itself: should the tracer die at any moment, the task finishes the stub and goes on. */
#ifndef ALLOCWATCH_TARGET_INJECT_H
#define ALLOCWATCH_TARGET_INJECT_H

#include "arch/resident.h"
#include "target/target.h"

#define INJECT_DEADLINE_MS 3000

/* The task must be held, and not at a signal's delivery (see inject_find_task).  On return it is held again,
 * with its registers as they were; signals that came meanwhile have been delivered.  0 with the call's
 * own result (negative errno inside) in *ret_result; -ESRCH; -ETIMEDOUT: it is not held and still about it; -EBUSY: another
 * one, or itself, still is, so the stub cannot be used; -EKEYREJECTED, and nothing was done: a
 * seccomp filter watches the task's calls and might kill it for this one, and we may not lift it. */
int inject_syscall(struct task *task, raddr stub, const struct arch_stub_call *call, int64_t *ret_result);
/* Room on the task's stack, below all that may be in use. */
int inject_stack_scratch(struct task *task, size_t len, raddr *ret_at);
/* A held task that can make a call now: prefers one that is at no signal; else one whose signal is
 * delivered first, and which then stops at its handler.  A guest only when there are no others, and one whose
 * filter we may not lift likewise.  NULL: none. */
struct task *inject_find_task(struct target *target);
/* Has a held task's signal delivered, as above.  0 or negative errno. */
int inject_make_ready(struct task *task);

#endif
