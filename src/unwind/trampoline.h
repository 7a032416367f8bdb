/* One step out of a signal's trampoline about which no table says anything (musl's): it is known by its code, and
 * what it will give back to the interrupted thread lies on the stack. */
#ifndef ALLOCWATCH_UNWIND_TRAMPOLINE_H
#define ALLOCWATCH_UNWIND_TRAMPOLINE_H

#include "arch/arch.h"
#include "unwind/stack_copy.h"

#include <stdbool.h>

/* *regs, of a handler's caller, become those of whom the signal interrupted; false: that is no trampoline, and they stay. */
bool trampoline_step(struct stack_copy *memory, struct arch_regs *regs);

#endif
