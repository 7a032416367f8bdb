/* One step by libunwind, out of a signal's trampoline about which no table says anything, and which is not one that
 * trampoline.h knows: libunwind knows others by their code.
 *
 * Registers and memory come from the caller; libunwind looks at no file.  It is slow: remember where it had no answer. */
#ifndef ALLOCWATCH_UNWIND_LIBUNWIND_H
#define ALLOCWATCH_UNWIND_LIBUNWIND_H

#include "arch/arch.h"
#include "unwind/stack_copy.h"

#include <stddef.h>

struct libunwind;

struct libunwind *libunwind_new(void);                  /* NULL: no memory */
size_t libunwind_memory(void);          /* of one, without what the library itself keeps */
void libunwind_free(struct libunwind *libunwind);       /* accepts NULL */

enum libunwind_result { LIBUNWIND_SIGNAL_STEP, LIBUNWIND_END, LIBUNWIND_UNKNOWN };

/* *regs become the caller's, who was interrupted there, with LIBUNWIND_SIGNAL_STEP. */
enum libunwind_result libunwind_step(struct libunwind *libunwind, struct stack_copy *memory, struct arch_regs *regs);

#endif
