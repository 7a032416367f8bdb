/* Notes in the process itself of the threads that had SIGTRAP blocked, which tracing takes out of their masks: for
 * who heals it when the tracer is dead. */
#ifndef ALLOCWATCH_TARGET_MASKS_H
#define ALLOCWATCH_TARGET_MASKS_H

#include "target/target.h"

/* Before its mask is changed, or as soon as it is held, having inherited such a mask.  Without room or a thread that could
 * make the mapping it stays unnoted. */
void masks_note(struct task *task);
/* It ends, or has its mask back. */
void masks_forget(struct task *task);
/* The memory is a copy of one that has notes at `at` (0: none), which are another process's. */
void masks_begin_again(struct target *target, raddr at);
/* Takes over the notes at `at` that a dead tracer has left: the tasks, all held, get SIGTRAP back when they are let go.
 * What is no table of notes is left alone. */
void masks_adopt(struct target *target, raddr at);
/* The memory is gone. */
void masks_drop(struct target *target);
/* Takes the mapping out, by a system call of `task`.  0 or negative errno. */
int masks_remove(struct target *target, struct task *task);

#endif
