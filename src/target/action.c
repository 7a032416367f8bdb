#define _GNU_SOURCE
#include "target/action.h"

#include "target/attach.h"
#include "target/inject.h"
#include "target/process.h"
#include "target/ptrace.h"
#include "target/resident_area.h"
#include "target/signals.h"
#include "arch/syscall.h"

#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FLAG_RESTORER 0x04000000u      /* the kernel's SA_RESTORER */
#define HANDLER_DEFAULT 0
#define HANDLER_IGNORE 1
#define TRAP_BIT (1ULL << (SIGTRAP - 1))
#define STOPS_MAX 8                    /* on the way to the system call */

static const uint64_t sigset_size = 8;     /* of the kernel's sigset_t */

int action_set_of(struct task *task, int sig, const struct kernel_sigaction *action)
{
	struct arch_stub_call call = {
		.number = SYS_rt_sigaction,
		.args = { (uint64_t)sig, 0, 0, sigset_size },
		.data = action, .data_length = sizeof(*action), .data_arg = 1,
	};
	int64_t result;
	int r = inject_syscall(task, task->target->stub, &call, &result);

	return r < 0 ? r : (int)result;
}

/* It comes out on the stack, well below the red zone. */
int action_get_of(struct task *task, int sig, struct kernel_sigaction *ret_action)
{
	struct arch_stub_call call = { .number = SYS_rt_sigaction, .args = { (uint64_t)sig, 0, 0, sigset_size },
				       .data_arg = -1 };
	int64_t result;
	raddr at;
	int r = inject_stack_scratch(task, sizeof(*ret_action), &at);

	if (r < 0)
		return r;
	call.args[2] = at;
	r = inject_syscall(task, task->target->stub, &call, &result);
	if (r < 0 || result < 0)
		return r < 0 ? r : (int)result;
	return target_read(task->target, at, ret_action, sizeof(*ret_action));
}

int action_set(struct task *task, const struct kernel_sigaction *action)
{
	return action_set_of(task, SIGTRAP, action);
}

int action_get(struct task *task, struct kernel_sigaction *ret_action)
{
	return action_get_of(task, SIGTRAP, ret_action);
}

static struct kernel_sigaction programs_action(const struct target *target)
{
	struct kernel_sigaction action;

	_Static_assert(sizeof(action) == sizeof(target->old_action), "the kernel's struct sigaction");
	memcpy(&action, target->old_action, sizeof(action));
	return action;
}

/* Where the program's handler runs, and whether a system call goes on after it, is as it has said. */
struct kernel_sigaction action_ours(const struct target *target)
{
	struct kernel_sigaction programs = programs_action(target);
	uint64_t like = SA_ONSTACK | SA_RESTART;

	if (programs.handler > HANDLER_IGNORE)
		like &= programs.flags;
	return (struct kernel_sigaction){
		.handler = target->areas->start + resident_code().handler,
		.restorer = target->areas->start + resident_code().restorer,
		.flags = SA_SIGINFO | FLAG_RESTORER | SA_NODEFER | like,
	};
}

int action_note(struct target *target, const struct kernel_sigaction *programs)
{
	struct resident_header *header = &target->areas->header;

	memcpy(target->old_action, programs, sizeof(*programs));
	header->old_handler = programs->handler;
	header->old_flags = programs->flags;
	header->old_restorer = programs->restorer;
	header->old_mask = programs->mask;
	header->chain_mask = programs->mask & ~TRAP_BIT;
	return resident_area_write_header(target, target->areas);
}

static uint64_t next_deadline(void)
{
	return clock_monotonic_ns() + INJECT_DEADLINE_MS * NSEC_PER_MSEC;
}

/* To the next stop for a system call; 0 when another stop came first, which stands in the task. */
static int run_to_syscall(struct task *task, struct user_regs_struct *ret_regs)
{
	int r = ptrace_until_syscall(task->tid, 0);

	if (r < 0)
		return r;
	task->stopped = false;
	r = task_wait(task, next_deadline());
	if (r < 0)
		return r;
	if (task->stop.kind != STOP_SYSCALL)
		return 0;
	r = ptrace_getregs(task->tid, ret_regs);
	return r < 0 ? r : 1;
}

static bool is_the_call(const struct user_regs_struct *regs, int sig)
{
	return syscall_is_entered(regs) && syscall_is_sigaction(regs) && (int)syscall_argument(regs, 0) == sig;
}

/* 1: it stands at that call's entry; 0: elsewhere. */
static int run_to_call(struct task *task, int sig, struct user_regs_struct *ret_regs)
{
	int r, stops = 0;

	do
		r = run_to_syscall(task, ret_regs);
	while (r == 1 && !is_the_call(ret_regs, sig) && ++stops < STOPS_MAX);
	return r == 1 ? is_the_call(ret_regs, sig) : r;
}

int action_see_call(struct task *task, int sig, struct kernel_sigaction *ret_action)
{
	struct user_regs_struct regs;
	int r = run_to_call(task, sig, &regs);

	if (r != 1 || syscall_argument(&regs, 1) == 0)
		return r < 0 ? r : 0;
	return target_read(task->target, syscall_argument(&regs, 1), ret_action, sizeof(*ret_action)) == 0;
}

/* The program's action in the call's memory is taken, and ours put there: it is the C library's own copy. */
static int exchange(struct target *target, raddr at)
{
	struct kernel_sigaction programs, ours;
	int r = target_read(target, at, &programs, sizeof(programs));

	if (r == 0)
		r = action_note(target, &programs);
	if (r < 0)
		return r;
	ours = action_ours(target);
	return target_write(target, at, &ours, sizeof(ours));
}

/* What it has set itself, unless another one is there that came around us. */
static void show(struct target *target, raddr at, const struct kernel_sigaction *programs)
{
	struct kernel_sigaction shown;

	if (target_read(target, at, &shown, sizeof(shown)) == 0 && shown.restorer == action_ours(target).restorer)
		target_write(target, at, programs, sizeof(*programs));
}

int action_serve_call(struct task *task)
{
	struct target *target = task->target;
	struct kernel_sigaction before = programs_action(target);
	struct user_regs_struct regs;
	raddr new_at, old_at;
	int r = run_to_call(task, SIGTRAP, &regs);

	if (r != 1)
		return r;
	new_at = syscall_argument(&regs, 1);
	old_at = syscall_argument(&regs, 2);
	if (new_at != 0)
		exchange(target, new_at);
	r = run_to_syscall(task, &regs);
	if (r == 1 && old_at != 0)
		show(target, old_at, &before);
	return r < 0 ? r : 0;
}

/* --- deliveries --- */

void action_check(struct target *target)
{
	uint64_t blocked, ignored, caught;

	if (target->handler_installed && process_signal_masks(target->memory_tid, &blocked, &ignored, &caught) == 0)
		target->handler_lost = !(caught & TRAP_BIT);
}

void action_ask(struct task *task)
{
	struct target *target = task->target;
	struct kernel_sigaction now;

	if (!target->ask_for_handler || !target->handler_installed || task->guest || task->stop.kind == STOP_SIGNAL ||
	    stop_is_end(task->stop.kind) || task_signal_is_due(task))
		return;
	target->ask_for_handler = false;
	if (!process_is_filtered(task->tid) && action_get(task, &now) == 0)
		target->handler_replaced = now.handler > HANDLER_IGNORE && now.handler != action_ours(target).handler;
}

int action_repair(struct task *task)
{
	struct target *target = task->target;
	struct kernel_sigaction now, ours = action_ours(target);
	int r;

	if (task->stop.kind == STOP_SIGNAL || stop_is_end(task->stop.kind))
		return -EAGAIN;
	r = action_get(task, &now);
	target->handler_lost = false;
	/* The kernel leaves all but the handler; with another restorer it is the program's doing. */
	if (r == 0 && now.handler == HANDLER_DEFAULT && now.restorer == ours.restorer)
		r = action_set(task, &ours);
	return r;
}

/* The signal is taken back, and sent again when ours is set. */
static int repair_before(struct task *task)
{
	siginfo_t info;
	int r = ptrace_getsiginfo(task->tid, &info);

	if (r == 0)
		r = ptrace_interrupt(task->tid);
	if (r == 0)
		r = ptrace_cont(task->tid, 0);
	if (r < 0)
		return r;
	task->stopped = false;
	r = task_wait(task, next_deadline());
	if (r < 0 || task->stop.kind == STOP_SIGNAL)
		return r;
	action_repair(task);
	if (syscall(SYS_tgkill, task->target->pid, task->tid, SIGTRAP) < 0)
		return 0;
	task->stopped = false;
	r = ptrace_cont(task->tid, 0);
	if (r == 0)
		r = task_wait(task, next_deadline());
	if (r == 0 && task->stop.kind == STOP_SIGNAL && task->stop.sig == SIGTRAP)
		ptrace_setsiginfo(task->tid, &info);
	return r;
}

/* As the resident handler does it: ours may be gone before the program's handler has ended. */
static void return_to_programs_restorer(struct target *target, const struct user_regs_struct *regs,
					const struct kernel_sigaction *programs)
{
	if ((programs->flags & FLAG_RESTORER) && !process_has_shadow_stack(target->memory_tid))
		target_write(target, arch_sp(regs), &programs->restorer, sizeof(programs->restorer));
}

/* A handler that is used once: the kernel builds the frame for ours, and the thread begins in the program's. */
static int deliver_once(struct task *task)
{
	struct target *target = task->target;
	struct kernel_sigaction programs = programs_action(target), ours = action_ours(target);
	struct user_regs_struct regs;
	uint64_t mask;
	int r = inject_make_ready(task);

	if (r == 0)
		r = ptrace_getregs(task->tid, &regs);
	if (r < 0 || arch_pc(&regs) != ours.handler)
		return r;
	arch_set_pc(&regs, programs.handler);
	return_to_programs_restorer(target, &regs, &programs);
	r = ptrace_setregs(task->tid, &regs);
	if (r == 0 && ptrace_getsigmask(task->tid, &mask) == 0)
		ptrace_setsigmask(task->tid, mask | (programs.mask & ~TRAP_BIT));
	programs.handler = HANDLER_DEFAULT;
	action_note(target, &programs);
	return r;
}

int action_before_delivery(struct task *task)
{
	struct target *target = task->target;
	struct kernel_sigaction programs;
	int code, r = ptrace_signal_code(task->tid, &code);

	if (r < 0 || task->guest || !target->handler_installed || target->handler_replaced)
		return r;
	programs = programs_action(target);
	if (programs.handler == HANDLER_IGNORE && code <= 0) {
		task->stop.kind = STOP_INTERRUPTED;    /* goes on as if it had not come */
		return 0;
	}
	action_check(target);
	if (target->handler_lost)
		r = repair_before(task);
	if (r == 0 && task->stop.kind == STOP_SIGNAL && task->stop.sig == SIGTRAP &&
	    programs.handler > HANDLER_IGNORE && (programs.flags & SA_RESETHAND))
		r = deliver_once(task);
	return r;
}
