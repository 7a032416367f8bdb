/* Programs that run with more rights than who starts them.
 *
 * The kernel takes the rights of a set-id file, or of one with capabilities, away when the process that executes it
 * is traced by somebody who has less.  So such a process is let go before it does: at a breakpoint in libc's
 * execve, a guest at the system call's entry.  A program that makes the call by itself is not seen in time. */
#ifndef ALLOCWATCH_TRACER_EXEC_GUARD_H
#define ALLOCWATCH_TRACER_EXEC_GUARD_H

#include "tracer/session.h"

#include <sys/user.h>

#define GUARD_SITES_MAX 64         /* further ones are not guarded */

/* Looks for execve in an object, while nothing is stopped. */
void exec_guard_note_module(struct session *session, uint32_t module);
/* Sets the breakpoints that are noted and not set.  0 or negative errno. */
int exec_guard_plant(struct session *session);
void exec_guard_drop_module(struct session *session, uint32_t module);
void exec_guard_forget(struct session *session);
/* One to stand at an address of an object, for what its kind says. */
void exec_guard_add_site(struct session *session, uint32_t module, uint64_t vaddr, enum guard_kind kind);
/* The site that a breakpoint is, or NULL. */
const struct guard_site *exec_guard_find(const struct session *session, const struct breakpoint *bp);

/* Whether the call that the task is about to make, `regs` at the entry of execve or of the system call, runs a program
 * with rights that tracing would take from it.  False, too, where this tracer has all rights itself. */
bool exec_guard_forbids(const struct session *session, pid_t tid, const struct user_regs_struct *regs);

#endif
