/* Places before which a process is let go.
 *
 * Programs that run with more rights than who starts them: the kernel takes the rights of a set-id file, or of one
 * with capabilities, away when the process that executes it is traced by somebody who has less.  So such a process is
 * let go before it does: at a breakpoint in libc's functions for it, a guest at the system call's entry.  A program
 * that makes the call by itself is not seen in time: at the exec's event, before the first instruction of what it
 * executes, it is let go to execute that once more (target/again.h).
 *
 * A sanitizer's check for leaks, which does not work under a tracer: before it, or before the exit() that runs it.
 *
 * Of a process that is traced without ptrace, on the other hand, those before which it is seized: where it executes a program, and libc's
 * _Fork, that the child is cleaned (engine_watch_execs). */
#ifndef ALLOCWATCH_TRACER_GUARD_H
#define ALLOCWATCH_TRACER_GUARD_H

#include "tracer/session.h"

#include <sys/user.h>

#define GUARD_SITES_MAX 64         /* further ones are not guarded */

/* Looks for such places in an object. */
void guard_note_module(struct session *session, uint32_t module);
/* It checks for leaks, in which the ring would be in the way. */
void guard_refuse_ring(struct session *session);
/* Sets the breakpoints that are noted and not set.  0 or negative errno. */
int guard_plant(struct session *session);
void guard_drop_module(struct session *session, uint32_t module);
void guard_forget(struct session *session);
/* The site that a breakpoint is, or NULL. */
const struct guard_site *guard_find(const struct session *session, const struct breakpoint *bp);

/* Whether what the task is about to do runs a program with rights that tracing would take from it; regs: at the entry
 * of a function of this kind.  False, too, where this tracer has all rights itself. */
bool guard_forbids_exec(const struct session *session, pid_t tid, enum guard_kind kind,
			const struct user_regs_struct *regs);
/* The same at the entry of a system call that executes. */
bool guard_forbids_exec_call(const struct session *session, pid_t tid, const struct user_regs_struct *regs);

/* Of a process that is traced without ptrace: has the functions that execute programs watched for that.  0 or negative errno. */
int guard_watch_execs(struct session *session);
/* What the task is about to execute by one of these: nothing, for the file is not there or is not known; a program that is not to
 * be traced; or another one. */
enum guard_exec { GUARD_EXEC_NOTHING, GUARD_EXEC_GAINS_RIGHTS, GUARD_EXEC_ORDINARY };
enum guard_exec guard_judge_exec(const struct session *session, pid_t tid, raddr function, const uint64_t args[2]);
/* Whether the program that the process runs may have such rights: as far as its file can be looked at. */
bool guard_may_have_rights(pid_t pid);

/* At the event of an exec: 1 when the program should have rights and has not got them for being traced, and will
 * execute itself once more when it is let go; 0: nothing of that; negative errno: it should, and cannot. */
int guard_give_back_rights(pid_t tid);

#endif
