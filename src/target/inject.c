#define _GNU_SOURCE
#include "target/inject.h"

#include "target/access.h"
#include "target/attach.h"
#include "target/process.h"
#include "target/ptrace.h"
#include "target/resident_area.h"
#include "arch/arch.h"
#include "arch/syscall.h"

#include "base/clock.h"

#include <errno.h>

#define STACK_SCRATCH_DISTANCE 1024            /* below the stack pointer, past the red zone */

struct injection {
	struct task *task;
	struct user_regs_struct regs;      /* as found at the stop */
	struct user_regs_struct settled;   /* as they shall be when the task goes on */
	struct arch_stub stub;
	raddr stub_at;
	uint64_t deadline_ns;
};

/* Hands the signal at which the task is stopped to it, and stops it again before it runs: at its handler's
 * first instruction, or where it was. */
static int deliver_signal(struct task *task, uint64_t deadline_ns)
{
	uint64_t running_ns = task->running_ns;            /* it does not run its own code meanwhile */

	while (task->stop.kind == STOP_SIGNAL) {
		int r;

		task_leave_resident(task);
		r = ptrace_interrupt(task->tid);
		if (r == 0)
			r = task_resume(task);
		if (r == 0)
			r = task_wait(task, deadline_ns);
		task->running_ns = running_ns;
		if (r < 0)
			return r;
	}
	return 0;
}

int inject_make_ready(struct task *task)
{
	return deliver_signal(task, clock_monotonic_ns() + INJECT_DEADLINE_MS * NSEC_PER_MSEC);
}

/* Filters are a thread's own, unless it gave them to all (SECCOMP_FILTER_FLAG_TSYNC). */
static bool may_run(const struct task *task, bool filtered)
{
	return filtered || !process_is_filtered(task->tid);
}

static struct task *find_task(struct target *target, bool filtered)
{
	uint64_t deadline_ns = clock_monotonic_ns() + INJECT_DEADLINE_MS * NSEC_PER_MSEC;
	bool guests = !target_has_own_tasks(target);       /* all that is there */

	for (size_t i = 0; i < target->tasks.count; i++) {
		struct task *task = target->tasks.items[i];

		if (task->stopped && task->guest == guests && task->stop.kind != STOP_SIGNAL &&
		    task->stop.kind != STOP_EXEC && !stop_is_birth(task->stop.kind) &&
		    !stop_is_end(task->stop.kind) && may_run(task, filtered))
			return task;
	}
	for (size_t i = 0; i < target->tasks.count; i++) {
		struct task *task = target->tasks.items[i];

		if (task->stopped && task->guest == guests && task->stop.kind == STOP_SIGNAL &&
		    may_run(task, filtered) && deliver_signal(task, deadline_ns) == 0)
			return task;
	}
	return NULL;
}

struct task *inject_find_task(struct target *target)
{
	struct task *task = access_may_suspend_seccomp() ? NULL : find_task(target, false);

	return task ? task : find_task(target, true);
}

/* Sends the task into the stub; the words that the stub restores are written first. */
static int enter_stub(struct injection *in, const struct arch_stub_call *call)
{
	struct task *task = in->task;
	struct user_regs_struct regs;
	uint8_t code[STUB_SPACE];
	int r = ptrace_getregs(task->tid, &in->regs);

	if (r < 0)
		return r;
	in->settled = in->regs;
	task_mend_restart(task, &in->settled);
	syscall_settle(&in->settled);
	r = arch_build_stub(in->stub_at, call, &in->settled, code, sizeof(code), &in->stub);
	if (r == 0)
		r = target_write(task->target, in->stub_at, code, in->stub.length);
	if (r < 0)
		return r;
	regs = in->regs;
	arch_set_pc(&regs, in->stub_at);
	syscall_forget(&regs);
	return ptrace_setregs(task->tid, &regs);
}

enum stub_stop {
	STUB_CALL,         /* at the entry or the exit of the stub's system call */
	STUB_FOREIGN,      /* at the exit of the call that the task had been stopped in */
	STUB_LEFT,         /* something else came first; the task has its registers back */
};

/* Runs to the next stop: an enum stub_stop or negative errno. */
static int run_stub(struct injection *in)
{
	struct task *task = in->task;
	struct user_regs_struct now;
	int r = ptrace_until_syscall(task->tid, 0);

	if (r < 0)
		return r;
	task->stopped = false;
	r = task_wait(task, in->deadline_ns);
	if (r < 0)
		return r;
	if (task->stop.kind == STOP_SYSCALL) {
		r = ptrace_getregs(task->tid, &now);
		if (r < 0)
			return r;
		return arch_pc(&now) == in->stub_at + in->stub.after_offset ? STUB_CALL : STUB_FOREIGN;
	}
	r = ptrace_setregs(task->tid, &in->regs);
	if (r == 0 && task->stop.kind == STOP_SIGNAL)
		r = deliver_signal(task, in->deadline_ns);
	return r < 0 ? r : STUB_LEFT;
}

static int stub_call(struct injection *in, const struct arch_stub_call *call, int64_t *ret_result)
{
	struct user_regs_struct now;
	int calls = 0, r;

	while (calls < 2) {                /* the call's entry, its exit */
		if (clock_passed(in->deadline_ns))
			return -ETIMEDOUT;
		r = calls == 0 ? enter_stub(in, call) : 0;
		if (r == 0) {
			do
				r = run_stub(in);
			while (r == STUB_FOREIGN);
		}
		if (r < 0)
			return r;
		calls = r == STUB_CALL ? calls + 1 : 0;
	}
	r = ptrace_getregs(in->task->tid, &now);
	if (r < 0)
		return r;
	*ret_result = (int64_t)arch_result(&now);
	return ptrace_setregs(in->task->tid, &in->settled);
}

/* A guest may be held at the entry of a call of its own: that is put off, and is made when it goes on. */
static int put_off_call(struct task *task)
{
	struct user_regs_struct regs;
	int r = ptrace_getregs(task->tid, &regs);

	if (r == 0 && syscall_is_entered(&regs)) {
		syscall_make_restart(&regs);
		r = ptrace_setregs(task->tid, &regs);
	}
	return r;
}

/* A thread that did not come back in time, on a busy machine, goes on through the stub by itself: until it has left
 * that, other words in it would become its registers. */
static bool stub_is_taken(struct target *target, raddr stub)
{
	struct task *user = target->stub_user ? task_find(target->stub_user) : NULL;
	struct user_regs_struct regs;

	if (user && !user->stopped)
		return true;
	if (user && ptrace_getregs(user->tid, &regs) == 0 && arch_pc(&regs) - stub < STUB_SPACE)
		return true;
	target->stub_user = 0;
	return false;
}

int inject_syscall(struct task *task, raddr stub, const struct arch_stub_call *call, int64_t *ret_result)
{
	struct injection in = { .task = task, .stub_at = stub,
				.deadline_ns = clock_monotonic_ns() + INJECT_DEADLINE_MS * NSEC_PER_MSEC };
	bool in_group_stop = task->stop.kind == STOP_GROUP;
	bool filtered = process_is_filtered(task->tid);    /* it may have begun to be so at any time */
	int r;

	if (stub_is_taken(task->target, stub))
		return -EBUSY;
	r = filtered ? ptrace_suspend_seccomp(task->tid, true) : 0;
	if (r == -EPERM || r == -EINVAL)
		return -EKEYREJECTED;
	if (r == 0 && task->stop.kind == STOP_SYSCALL)
		r = put_off_call(task);
	if (r == 0)
		r = stub_call(&in, call, ret_result);
	if (r < 0)
		task->target->stub_user = task->tid;
	if (filtered)
		ptrace_suspend_seccomp(task->tid, false);
	if (r < 0)
		return r;
	task->stop = (struct stop){ .kind = STOP_NONE, .tid = task->tid };
	if (!in_group_stop)
		return 0;
	/* Back into job control's stop, before it runs anything. */
	r = ptrace_interrupt(task->tid);
	if (r == 0)
		r = ptrace_cont(task->tid, 0);
	task->stopped = false;
	return r == 0 ? task_wait(task, in.deadline_ns) : r;
}

int inject_stack_scratch(struct task *task, size_t len, raddr *ret_at)
{
	struct user_regs_struct regs;
	int r = ptrace_getregs(task->tid, &regs);

	if (r == 0)
		*ret_at = (arch_sp(&regs) - STACK_SCRATCH_DISTANCE - len) & ~15ULL;
	return r;
}
