/* Frames of objects whose tables say nothing about them (musl's libc as packages have it): from what their code still does up to
 * its return. */
#ifndef ALLOCWATCH_UNWIND_BY_CODE_H
#define ALLOCWATCH_UNWIND_BY_CODE_H

#include "unwind/unwinder.h"

/* The plain row of a frame in an object, and what it leads to has been looked at: a return address behind a call that may have come
 * here.  False: there is none. */
bool by_code_row(struct unwinder *unwinder, const struct arch_regs *regs, struct cfi_row *row);
/* Whether what is called there, when it returns, has its result passed to exit() or to pthread_exit(): nobody has called that. */
bool by_code_is_bottom(struct unwinder *unwinder, raddr pc);

#endif
