/* Whether a thread is in the handler of a signal: the mask that it has there is the kernel's doing, and passes; and where it
 * goes on afterwards stands on its stack. */
#ifndef ALLOCWATCH_TARGET_HANDLERS_H
#define ALLOCWATCH_TARGET_HANDLERS_H

#include "target/target.h"

#include "arch/sigframe.h"

/* The mask that a held thread has once it has left the handlers that it is in, by what stands on its stack.  False: it is
 * in none, or that is not to be seen. */
bool task_mask_outside(struct task *task, uint64_t *ret_mask);

/* Whether a handler at whose first instruction a thread has this stack pointer goes on at the end with what *ret_frame says. */
bool task_handler_begins(struct target *target, raddr sp, struct arch_sigframe *ret_frame);

/* Whether a held thread, once it has left the handlers that it is in, goes on in resident code: a signal came while it was
 * there, and nobody lived who would have moved it out before.  Out of displaced instructions it is moved here. */
bool task_returns_inside(struct task *task);
/* Whether one may go on in the midst of a record, by what looks like a frame on its stack. */
bool task_may_return_to_record(struct task *task);
/* Looks at the stacks of all held threads, many at once, for frames of signals: most have none, and need no look of their own
 * while they are held. */
void target_look_for_frames(struct target *target);

#endif
