/* What the kernel puts on a thread's stack for the handler of a signal; nothing is read here. */
#ifndef ALLOCWATCH_ARCH_SIGFRAME_H
#define ALLOCWATCH_ARCH_SIGFRAME_H

#include "arch/arch.h"
#include "base/reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARCH_RESTORER_SIZE 9
#define ARCH_SIGFRAME_SIZE 312         /* of it that is looked at */
#define ARCH_SIGFRAME_PC 176           /* where in it the pc stands */

struct arch_sigframe {
	raddr pc, sp;                  /* where the thread was */
	uint64_t mask;                 /* of signals that it blocked there */
};

/* Whether a frame may begin with these words, as far as they go: few look like that, and nothing else is read for it. */
bool arch_may_be_sigframe(const uint64_t *words, size_t count);
/* Whether this is the code that a handler returns to, as C libraries have it: its address is a frame's first word. */
bool arch_is_restorer(const uint8_t code[ARCH_RESTORER_SIZE]);
/* False: what stands at `at` cannot be one. */
bool arch_parse_sigframe(const uint8_t bytes[ARCH_SIGFRAME_SIZE], raddr at, struct arch_sigframe *ret_frame);
/* All registers of the thread as they were, of one that can be parsed. */
void arch_sigframe_regs(const uint8_t bytes[ARCH_SIGFRAME_SIZE], struct arch_regs *ret_regs);
/* The same in the form that a thread's are read and set in; what does not stand in a frame stays.  And others in their place, of which
 * these bytes of the frame are made: they are to be written in one piece. */
#define ARCH_SIGFRAME_USER 48
#define ARCH_SIGFRAME_USER_SIZE 144
void arch_sigframe_get_user(const uint8_t bytes[ARCH_SIGFRAME_SIZE], struct user_regs_struct *regs);
void arch_sigframe_put_user(const struct user_regs_struct *regs, uint8_t bytes[ARCH_SIGFRAME_SIZE]);

#endif
