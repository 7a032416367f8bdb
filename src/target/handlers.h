/* Whether a thread is in the handler of a signal: the mask that it has there is the kernel's doing, and passes. */
#ifndef ALLOCWATCH_TARGET_HANDLERS_H
#define ALLOCWATCH_TARGET_HANDLERS_H

#include "target/target.h"

/* The mask that a held thread has once it has left the handlers that it is in, by what stands on its stack.  False: it is
 * in none, or that is not to be seen. */
bool task_mask_outside(struct task *task, uint64_t *ret_mask);

#endif
