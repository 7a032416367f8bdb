/* Holes in stacks: pages that cannot be read, with others below them that can.  A thread that runs below one, on the stack of a
 * coroutine that is a part of its own, must not have its stack copied up to that one's end. */
#ifndef ALLOCWATCH_TARGET_HOLES_H
#define ALLOCWATCH_TARGET_HOLES_H

#include "target/target.h"

#include <stdbool.h>
#include <stddef.h>

/* What can be read of each is looked up in its process's mappings: stacks[i] becomes the part at its end that can be read without a gap,
 * and has_hole[i] whether there is more that can be below that.  What cannot be read at the lower end is a guard.  A stack that is not there
 * at all has no hole, and stays as it is.  0, or negative errno; -ENOTTY: the kernel cannot be asked so, as before Linux 6.11. */
int holes_look(struct target *target, struct stack_bounds *stacks, bool *has_hole, size_t count);
/* The same by the text of all mappings. */
int holes_look_by_text(struct target *target, struct stack_bounds *stacks, bool *has_hole, size_t count);

#endif
