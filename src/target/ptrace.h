/* ptrace(2) with this project's error convention: 0 or negative errno, -ESRCH being a value and not
 * a fault (the thread is gone, or not stopped).  All calls come from the tracer's one ptrace thread. */
#ifndef ALLOCWATCH_TARGET_PTRACE_H
#define ALLOCWATCH_TARGET_PTRACE_H

#include "base/reader.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

/* Who is told that the kernel refuses something of a thread that is held, and lives: nothing that follows could be relied
 * on, so this process ends; by abort() when that returns.  All its threads go on then, as when it is killed. */
void ptrace_on_refusal(void (*refused)(pid_t tid, int error));
/* The same for other calls about it. */
void ptrace_refused(pid_t tid, int error) __attribute__((noreturn));

/* Followed: threads and children; exec.  Never PTRACE_O_EXITKILL. */
int ptrace_seize(pid_t tid);
/* A thread of a process that was ours before, with the right that was kept for that (rights.h). */
int ptrace_seize_again(pid_t tid);
/* Lifts a stopped task's seccomp filter, and puts it back.  Needs CAP_SYS_ADMIN: -EPERM. */
int ptrace_suspend_seccomp(pid_t tid, bool suspend);
int ptrace_interrupt(pid_t tid);
int ptrace_cont(pid_t tid, int sig);
int ptrace_listen(pid_t tid);
/* Resumes until the next entry or exit of a system call. */
int ptrace_until_syscall(pid_t tid, int sig);
int ptrace_detach(pid_t tid, int sig);
int ptrace_getregs(pid_t tid, struct user_regs_struct *ret_regs);
int ptrace_setregs(pid_t tid, const struct user_regs_struct *regs);
/* Sets the program counter alone, which takes a third of the time. */
int ptrace_set_pc(pid_t tid, raddr pc);
int ptrace_event_message(pid_t tid, unsigned long *ret_message);
/* si_code of the signal that a thread is stopped by. */
int ptrace_signal_code(pid_t tid, int *ret_code);
/* All that is known of that signal, and another in its place. */
int ptrace_getsiginfo(pid_t tid, siginfo_t *ret_info);
int ptrace_setsiginfo(pid_t tid, const siginfo_t *info);
/* The signal waits in the thread's own queue; false also when that cannot be asked. */
bool ptrace_signal_is_queued(pid_t tid, int sig);
/* The blocked signals, as the kernel's 64-bit set. */
int ptrace_getsigmask(pid_t tid, uint64_t *ret_mask);
int ptrace_setsigmask(pid_t tid, uint64_t mask);
/* Writes memory word by word through a stopped thread: works where /proc/PID/mem cannot be opened. */
int ptrace_poke(pid_t tid, raddr at, const void *data, size_t len);
int ptrace_peek(pid_t tid, raddr at, void *buf, size_t len);

#endif
