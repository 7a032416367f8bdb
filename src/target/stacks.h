/* The newest bytes of the stacks of all held threads, read many at once. */
#ifndef ALLOCWATCH_TARGET_STACKS_H
#define ALLOCWATCH_TARGET_STACKS_H

#include "target/target.h"

#define STACK_LOOK_MAX 65536

/* How many bytes of a stack are looked at from `at`, `most` at most: a thread's own stack ends below its thread pointer, and
 * another stack that it may be on does not go beyond that either. */
size_t stack_look_length(raddr at, raddr thread_pointer, size_t most);

/* What is shown of one.  `part` begins at the stack pointer, rounded down to a word, and its buffer is the callee's for that
 * moment; where it is not there the stack ends before that length. */
typedef void stack_shown(void *context, struct task *task, const struct target_part *part);
/* `most`: bytes of each, up to STACK_LOOK_MAX.  Threads that do not stand, or have ended, are passed over, and those that are not
 * wanted (NULL: all are). */
void stacks_show(struct target *target, size_t most, bool (*wanted)(const struct task *task), stack_shown *shown, void *context);

#endif
