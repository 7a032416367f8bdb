#include "arch/syscall.h"

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>

/* Kernel-internal results, include/linux/errno.h. */
#define ERESTARTSYS 512
#define ERESTARTNOINTR 513
#define ERESTARTNOHAND 514
#define ERESTART_RESTARTBLOCK 516

#define SYSCALL_INSN_LENGTH 2

static bool fails_for_no_signal(long number)
{
	static const short calls[] = {
		SYS_epoll_wait, SYS_epoll_pwait, SYS_epoll_pwait2, SYS_semop, SYS_semtimedop,
		SYS_rt_sigtimedwait, SYS_read, SYS_readv, SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg,
		SYS_write, SYS_writev, SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_accept, SYS_accept4,
		SYS_connect, SYS_io_getevents, SYS_io_pgetevents, SYS_io_uring_enter,
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (calls[i] == number)
			return true;
	}
	return false;
}

/* Not read and its kin, for which it depends on the file. */
bool syscall_begins_again(long number)
{
	static const short calls[] = {
		SYS_futex, SYS_nanosleep, SYS_clock_nanosleep, SYS_poll, SYS_wait4, SYS_waitid, SYS_pause, SYS_rt_sigsuspend,
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (calls[i] == number)
			return true;
	}
	return false;
}

bool syscall_was_broken_off(const struct user_regs_struct *regs)
{
	return (long)regs->orig_rax >= 0 && (long)regs->rax == -EINTR &&
	       fails_for_no_signal((long)regs->orig_rax);
}

bool syscall_waits(const struct user_regs_struct *regs)
{
	return (long)regs->orig_rax >= 0 && (long)regs->rax <= -ERESTARTSYS && (long)regs->rax >= -ERESTART_RESTARTBLOCK;
}

bool syscall_restarts_by_call(const struct user_regs_struct *regs)
{
	return (long)regs->orig_rax >= 0 && (long)regs->rax == -ERESTART_RESTARTBLOCK;
}

bool syscall_is_restart(const struct user_regs_struct *regs)
{
	return regs->orig_rax == SYS_restart_syscall;
}

static bool is_same_call(const struct user_regs_struct *a, const struct user_regs_struct *b)
{
	return a->rip == b->rip && a->rsp == b->rsp && a->rdi == b->rdi && a->rsi == b->rsi && a->rdx == b->rdx &&
	       a->r10 == b->r10 && a->r8 == b->r8 && a->r9 == b->r9;
}

void syscall_restart_itself(struct user_regs_struct *regs, const struct user_regs_struct *before)
{
	if (syscall_is_restart(regs)) {
		if (!is_same_call(regs, before)) {
			regs->rax = (unsigned long long)-EINTR;
			syscall_forget(regs);
			return;
		}
		regs->orig_rax = before->orig_rax;
	}
	syscall_make_restart(regs);
}

void syscall_make_restart(struct user_regs_struct *regs)
{
	regs->rax = regs->orig_rax;
	regs->rip -= SYSCALL_INSN_LENGTH;
	regs->orig_rax = (unsigned long long)-1;
}

void syscall_break_off(struct user_regs_struct *regs)
{
	regs->orig_rax = regs->rax;
	regs->rip += SYSCALL_INSN_LENGTH;
	regs->rax = (unsigned long long)-EINTR;
}

void syscall_forget(struct user_regs_struct *regs)
{
	regs->orig_rax = (unsigned long long)-1;
}

void syscall_settle(struct user_regs_struct *regs)
{
	if ((long)regs->orig_rax < 0)
		return;
	switch (-(long)regs->rax) {
	case ERESTARTSYS:
	case ERESTARTNOINTR:
	case ERESTARTNOHAND:
		syscall_make_restart(regs);
		return;
	case ERESTART_RESTARTBLOCK:
		regs->orig_rax = SYS_restart_syscall;
		syscall_make_restart(regs);
		return;
	default:
		if (syscall_was_broken_off(regs))
			syscall_make_restart(regs);
		syscall_forget(regs);
	}
}

bool syscall_is_entered(const struct user_regs_struct *regs)
{
	return (long)regs->orig_rax >= 0 && (long)regs->rax == -ENOSYS;
}

bool syscall_is_sigaction(const struct user_regs_struct *regs)
{
	return regs->orig_rax == SYS_rt_sigaction;
}

/* arch/x86/entry/entry_64.S: the fourth is not rcx, which the instruction overwrites. */
uint64_t syscall_argument(const struct user_regs_struct *regs, int number)
{
	const uint64_t arguments[] = { regs->rdi, regs->rsi, regs->rdx, regs->r10, regs->r8, regs->r9 };

	return arguments[number];
}

bool syscall_is_exec(const struct user_regs_struct *regs)
{
	return regs->orig_rax == SYS_execve || regs->orig_rax == SYS_execveat;
}

bool syscall_is_exec_at(const struct user_regs_struct *regs)
{
	return regs->orig_rax == SYS_execveat;
}
