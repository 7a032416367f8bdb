#include "target/ptrace.h"

#include "target/process.h"
#include "target/rights.h"
#include "target/target.h"

#include "arch/arch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

#define OPTIONS (PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | \
		 PTRACE_O_TRACESYSGOOD)

static void (*on_refusal)(pid_t tid, int error);

void ptrace_on_refusal(void (*refused)(pid_t tid, int error))
{
	on_refusal = refused;
}

void ptrace_refused(pid_t tid, int error)
{
	if (on_refusal)
		on_refusal(tid, error);
	abort();
}

static int request(int what, pid_t tid, uintptr_t address, uintptr_t data)
{
	return ptrace(what, tid, (void *)address, (void *)data) < 0 ? -errno : 0;
}

/* What the kernel does with every thread that is held, and refuses only when it is not, or was killed. */
static int request_of_held(int what, pid_t tid, uintptr_t address, uintptr_t data)
{
	int r = request(what, tid, address, data);

	if (r < 0 && process_tracer(tid) == getpid() && process_thread_state(tid, tid) == 't')
		ptrace_refused(tid, r);
	return r;
}

/* The thread runs from there on, or has other registers. */
static int request_that_changes(int what, pid_t tid, uintptr_t address, uintptr_t data)
{
	task_forget_regs(tid);
	return request_of_held(what, tid, address, data);
}

int ptrace_seize(pid_t tid)
{
	int r = request(PTRACE_SEIZE, tid, 0, OPTIONS);

	if (r == -EPERM && rights_raise_for(tid)) {
		r = request(PTRACE_SEIZE, tid, 0, OPTIONS);
		rights_lower();
	}
	return r;
}

int ptrace_seize_again(pid_t tid)
{
	int r = request(PTRACE_SEIZE, tid, 0, OPTIONS);

	if (r == -EPERM && process_tracer(tid) == 0 && rights_raise()) {
		r = request(PTRACE_SEIZE, tid, 0, OPTIONS);
		rights_lower();
	}
	return r;
}

int ptrace_suspend_seccomp(pid_t tid, bool suspend)
{
	return request(PTRACE_SETOPTIONS, tid, 0, OPTIONS | (suspend ? PTRACE_O_SUSPEND_SECCOMP : 0));
}

/* One that runs is asked, too: any that is ours, and lives. */
int ptrace_interrupt(pid_t tid)
{
	int r = request(PTRACE_INTERRUPT, tid, 0, 0);

	if (r < 0 && process_tracer(tid) == getpid() && !process_thread_is_exiting(tid, tid))
		ptrace_refused(tid, r);
	return r;
}

int ptrace_cont(pid_t tid, int sig)
{
	return request_that_changes(PTRACE_CONT, tid, 0, (uintptr_t)sig);
}

int ptrace_listen(pid_t tid)
{
	return request_that_changes(PTRACE_LISTEN, tid, 0, 0);
}

int ptrace_until_syscall(pid_t tid, int sig)
{
	return request_that_changes(PTRACE_SYSCALL, tid, 0, (uintptr_t)sig);
}

int ptrace_detach(pid_t tid, int sig)
{
	return request_that_changes(PTRACE_DETACH, tid, 0, (uintptr_t)sig);
}

int ptrace_getregs(pid_t tid, struct user_regs_struct *ret_regs)
{
	return request_of_held(PTRACE_GETREGS, tid, 0, (uintptr_t)ret_regs);
}

/* All but the segments' bases, which stay as they are. */
static int set_most_regs(pid_t tid, const struct user_regs_struct *regs)
{
	const unsigned long *values = (const unsigned long *)(const void *)regs;
	int r = 0;

	for (size_t at = 0; r == 0 && at < sizeof(*regs); at += sizeof(*values)) {
		if (!arch_is_segment_base(at))
			r = request_that_changes(PTRACE_POKEUSER, tid, offsetof(struct user, regs) + at,
					    values[at / sizeof(*values)]);
	}
	return r;
}

int ptrace_setregs(pid_t tid, const struct user_regs_struct *regs)
{
	int r;

	task_forget_regs(tid);
	r = request(PTRACE_SETREGS, tid, 0, (uintptr_t)regs);
	/* The rest is set all the same where the program has a base that the kernel does not take. */
	if (r == -EIO)
		return set_most_regs(tid, regs);
	return r < 0 ? request_that_changes(PTRACE_SETREGS, tid, 0, (uintptr_t)regs) : 0;
}

int ptrace_set_pc(pid_t tid, raddr pc)
{
	return request_that_changes(PTRACE_POKEUSER, tid, arch_user_pc_offset(), pc);
}

int ptrace_event_message(pid_t tid, unsigned long *ret_message)
{
	return request_of_held(PTRACE_GETEVENTMSG, tid, 0, (uintptr_t)ret_message);
}

int ptrace_getsiginfo(pid_t tid, siginfo_t *ret_info)
{
	return request_of_held(PTRACE_GETSIGINFO, tid, 0, (uintptr_t)ret_info);
}

int ptrace_setsiginfo(pid_t tid, const siginfo_t *info)
{
	return request_of_held(PTRACE_SETSIGINFO, tid, 0, (uintptr_t)info);
}

int ptrace_signal_code(pid_t tid, int *ret_code)
{
	siginfo_t info;
	int r = ptrace_getsiginfo(tid, &info);

	if (r == 0)
		*ret_code = info.si_code;
	return r;
}

bool ptrace_signal_is_queued(pid_t tid, int sig)
{
	struct __ptrace_peeksiginfo_args args = { .nr = 1 };
	siginfo_t info;
	long count;

	do {
		count = ptrace(PTRACE_PEEKSIGINFO, tid, &args, &info);
		args.off++;
	} while (count == 1 && info.si_signo != sig);
	if (count < 0 && process_tracer(tid) == getpid() && process_thread_state(tid, tid) == 't')
		ptrace_refused(tid, -errno);
	return count == 1;
}

int ptrace_getsigmask(pid_t tid, uint64_t *ret_mask)
{
	return request_of_held(PTRACE_GETSIGMASK, tid, sizeof(*ret_mask), (uintptr_t)ret_mask);
}

int ptrace_setsigmask(pid_t tid, uint64_t mask)
{
	task_forget_sigmask(tid);
	return request_of_held(PTRACE_SETSIGMASK, tid, sizeof(mask), (uintptr_t)&mask);
}

int ptrace_peek(pid_t tid, raddr at, void *buf, size_t len)
{
	unsigned char *out = buf;

	while (len > 0) {
		raddr word_at = at & ~7ULL;
		size_t skip = at - word_at, part = 8 - skip < len ? 8 - skip : len;
		long word;

		errno = 0;
		word = ptrace(PTRACE_PEEKTEXT, tid, (void *)(uintptr_t)word_at, NULL);
		if (errno != 0)
			return errno == EIO ? -EFAULT : -errno;
		memcpy(out, (unsigned char *)&word + skip, part);
		at += part;
		out += part;
		len -= part;
	}
	return 0;
}

int ptrace_poke(pid_t tid, raddr at, const void *data, size_t len)
{
	const unsigned char *in = data;

	while (len > 0) {
		raddr word_at = at & ~7ULL;
		size_t skip = at - word_at, part = 8 - skip < len ? 8 - skip : len;
		uint64_t word;
		int r = ptrace_peek(tid, word_at, &word, sizeof(word));

		if (r < 0)
			return r;
		memcpy((unsigned char *)&word + skip, in, part);
		r = request(PTRACE_POKETEXT, tid, word_at, word);
		if (r < 0)
			return r == -EIO ? -EFAULT : r;
		at += part;
		in += part;
		len -= part;
	}
	return 0;
}
