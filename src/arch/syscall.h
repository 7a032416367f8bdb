/* System calls that our stops broke off.  Pure: registers in, registers out.
 *
 * PTRACE_INTERRUPT makes some calls fail with EINTR although no signal came, since the kernel takes
 * the wake-up for one: epoll_wait, semop and semtimedop, sigtimedwait, recv and its kin with a timeout.
 * Their timeouts start again in full. */
#ifndef ALLOCWATCH_ARCH_SYSCALL_H
#define ALLOCWATCH_ARCH_SYSCALL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

/* It returned EINTR, and is of those that do so for no signal. */
bool syscall_was_broken_off(const struct user_regs_struct *regs);
/* It is to be made again: the thread was in a wait. */
bool syscall_waits(const struct user_regs_struct *regs);
/* The kernel would go on with it by restart_syscall(2): nanosleep, poll and futex with a timeout. */
bool syscall_restarts_by_call(const struct user_regs_struct *regs);
/* That is the call it is in. */
bool syscall_is_restart(const struct user_regs_struct *regs);
/* Makes such a call be issued again itself instead, for a filter of the program may not know the other one.
 * `before`: the registers when it was last broken off, for one that has been gone on with in that way already;
 * when they are another call's it fails with EINTR. */
void syscall_restart_itself(struct user_regs_struct *regs, const struct user_regs_struct *before);
/* Makes the thread issue the call again. */
void syscall_make_restart(struct user_regs_struct *regs);
/* Undoes that: the call has failed with EINTR. */
void syscall_break_off(struct user_regs_struct *regs);
/* What the kernel will do when it resumes the thread without a signal: the registers as they will be at
 * the first user instruction. */
void syscall_settle(struct user_regs_struct *regs);
/* The thread leaves no system call when it goes on: nothing is restarted. */
void syscall_forget(struct user_regs_struct *regs);
/* At a stop for system calls: the one at the entry, before the call is made.  (A call that returns ENOSYS may pass
 * for one; it can be made again as well.) */
bool syscall_is_entered(const struct user_regs_struct *regs);
/* A wait that the kernel, when it was broken off for no signal, begins again with the rest of its time, with nobody's
 * help. */
bool syscall_begins_again(long number);
bool syscall_is_sigaction(const struct user_regs_struct *regs);
/* Of the call that it is in, from 0 on. */
uint64_t syscall_argument(const struct user_regs_struct *regs, int number);
bool syscall_is_exec(const struct user_regs_struct *regs);
/* Of such a call: execveat, whose first argument is a folder's descriptor and whose second is the path. */
bool syscall_is_exec_at(const struct user_regs_struct *regs);

#endif
