/* One step by libunwind, for addresses about which libdw's tables say nothing.
 *
 * libunwind looks for tables itself (debug files of the distribution) and knows signal trampolines by
 * their code.  Registers and memory come from the caller; only /proc/PID/maps and the files it names are
 * looked at by libunwind.  It allocates and is slow: remember where it had no answer. */
#ifndef ALLOCWATCH_UNWIND_LIBUNWIND_H
#define ALLOCWATCH_UNWIND_LIBUNWIND_H

#include "arch/arch.h"
#include "unwind/stack_copy.h"

#include <stdbool.h>
#include <sys/types.h>

struct libunwind;

struct libunwind *libunwind_new(pid_t pid);             /* NULL: no memory */
size_t libunwind_memory(void);          /* of one, without what the library itself keeps */
void libunwind_free(struct libunwind *libunwind);       /* accepts NULL */

enum libunwind_result { LIBUNWIND_STEP, LIBUNWIND_SIGNAL_STEP, LIBUNWIND_END, LIBUNWIND_UNKNOWN };

/* exact: pc is the instruction itself, not a return address.  *regs become the caller's with the two _STEP
 * results (SIGNAL: the caller was interrupted there). */
enum libunwind_result libunwind_step(struct libunwind *libunwind, struct stack_copy *memory, bool exact,
				     struct arch_regs *regs);

#endif
