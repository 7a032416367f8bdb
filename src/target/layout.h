/* Where the C library of a target keeps what its threads say of themselves, found by looking: the kernel's number of a thread, in
 * the PID namespace that it is in, and the lowest address of its stack, as words at a distance from the thread pointer. */
#ifndef ALLOCWATCH_TARGET_LAYOUT_H
#define ALLOCWATCH_TARGET_LAYOUT_H

#include "target/target.h"

#include <stdbool.h>

struct thread_layout {
	uint32_t tid;                  /* distance of a 32-bit word */
	bool has_tid;
	bool has_pointer;              /* a thread has a thread pointer: its C library has begun */
	uint32_t stack;                /* of a 64-bit word; 0: that is not known */
	struct stack_bounds main_stack; /* the program's first one, as it is known */
};

/* All threads are held.  What cannot be found is left as it is not known. */
void thread_layout_look(struct target *target, struct thread_layout *ret_layout);
/* The same in several steps, the last of them when all are held: each looks at those threads that are held and have not run since the step
 * before.  *look: of one program; begun with NULL, freed by thread_layout_forget(). */
struct layout_look;
void thread_layout_look_ahead(struct target *target, struct layout_look **look);
void thread_layout_look_last(struct target *target, struct layout_look **look, struct thread_layout *ret_layout);
void thread_layout_forget(struct layout_look **look);
/* Once more for the stack alone, at a thread that is held. */
void thread_layout_look_at(struct task *task, struct thread_layout *layout);
/* The program's first stack as it is mapped now, by all its mappings; 0 to 0: that is not to be seen. */
struct stack_bounds thread_layout_main_stack(const struct target *target);

#endif
