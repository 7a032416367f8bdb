/* The last resort: code without unwind tables, by frame pointer.
 *
 * Nothing says that such code keeps one, so a step is only believed when what it finds looks like a
 * return address, behind a call that may have led there: in a known module, or in anonymous code, where an interpreter or a JIT has its own. From a
 * module it leads to the latter only where another frame pointer further out was saved. */
#ifndef ALLOCWATCH_UNWIND_FRAMEPOINTER_H
#define ALLOCWATCH_UNWIND_FRAMEPOINTER_H

#include "arch/arch.h"
#include "model/module.h"
#include "unwind/stack_copy.h"

#include <stdbool.h>

#define FRAME_POINTER_REACH (1u << 20)     /* bytes from sp to the frame pointer, at most */

struct frame_pointer {
	const struct module_map *map;
	struct stack_copy *memory;
	bool anonymous;                    /* pc is in no module: its caller need not be in one */
	/* The thread was stopped here.  Stops are at entries and rets of functions, where the return address is
	 * at sp and the frame pointer is still, or again, the caller's. */
	bool innermost;
};

enum frame_pointer_result { FRAME_POINTER_STEP, FRAME_POINTER_END, FRAME_POINTER_UNKNOWN };

/* *regs become the caller's only with FRAME_POINTER_STEP. */
enum frame_pointer_result frame_pointer_step(const struct frame_pointer *by, struct arch_regs *regs);

#endif
