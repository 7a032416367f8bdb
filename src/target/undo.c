/* Taking out of a process all that was put into it. */
#include "target/attach.h"
#include "target/bp.h"
#include "target/handlers.h"
#include "target/held.h"
#include "target/inject.h"
#include "target/jumps.h"
#include "target/order.h"
#include "target/process.h"
#include "target/ptrace.h"
#include "target/resident.h"

#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#define PAGE 4096
#define LEAVE_TRIES 200            /* to get a thread out of the resident handler */
#define LEAVE_DEADLINE_MS 3000
#define LEAVE_PAUSE_NS 20000       /* more time with each try */
#define LEAVE_PAUSE_MAX_NS 10000000

/* A thread stands at one of our int3s, and the SIGTRAP would be delivered if we died.  While the handler is
 * still there it is taken as ever, by going on at the displaced instruction; the interruption holds the
 * thread before that runs. */
static void consume_trap(struct target *target, struct task *task)
{
	struct user_regs_struct regs;
	struct breakpoint *bp;
	int code;

	if (!task->stopped || task->stop.kind != STOP_SIGNAL || task->stop.sig != SIGTRAP ||
	    task_getregs(task, &regs) < 0)
		return;
	bp = bp_find(target, arch_pc(&regs) - 1);
	if (!bp || ptrace_signal_code(task->tid, &code) < 0 || code != SI_KERNEL)
		return;
	arch_set_pc(&regs, bp->slot);
	if (ptrace_setregs(task->tid, &regs) < 0 || ptrace_interrupt(task->tid) < 0)
		return;
	task->stop.kind = STOP_NONE;
	if (task_resume(task) == 0)
		task_wait(task, clock_monotonic_ns() + NSEC_PER_SEC);
}

/* On a busy machine a thread that is interrupted at once has not run one instruction. */
static void give_time(unsigned try)
{
	uint64_t pause_ns = (uint64_t)try * LEAVE_PAUSE_NS;
	const struct timespec pause = { 0, (long)(pause_ns < LEAVE_PAUSE_MAX_NS ? pause_ns : LEAVE_PAUSE_MAX_NS) };

	if (try > 0)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

/* One that could not be stopped is known to be elsewhere only while it waits in the kernel: a busy machine may let one that
 * was interrupted wait for a CPU anywhere. */
static bool may_be_inside(struct target *target, const struct task *task)
{
	char state = process_thread_state(task->tid, task->tid);

	if (state == 'D')
		return resident_contains(target, process_blocked_pc(task->tid));
	return state != '\0' && state != 'Z' && state != 'X' && !process_thread_is_exiting(task->tid, task->tid);
}

/* Signals that come while we live find nobody in other code of ours. */
static bool returns_matter(const struct target *target)
{
	return target->adopted || target->jump_areas;
}

static bool stands_inside(struct target *target, struct task *task)
{
	struct user_regs_struct regs;

	/* It may wait for room there for as long as was asked for. */
	jumps_settle(task);
	task_leave_resident(task);
	if (task_getregs(task, &regs) < 0)
		return false;
	return resident_contains(target, arch_pc(&regs)) || (returns_matter(target) && task_returns_inside(task));
}

/* One that was seen outside, and has not run since, is so still. */
static bool is_inside(struct target *target, struct task *task)
{
	bool inside;

	if (!task->stopped)
		return may_be_inside(target, task);
	if (task->is_outside)
		return false;
	inside = stands_inside(target, task);
	task->is_outside = !inside && task->regs_known;
	return inside;
}

/* One that job control has stopped runs a few instructions more, and is stopped again as it was. */
static void run_on(struct task *task)
{
	if (task->stop.kind != STOP_GROUP) {
		task_resume(task);
		return;
	}
	held_ends(task);
	if (ptrace_cont(task->tid, 0) == 0)
		task->stopped = false;
}

bool target_leave_resident(struct target *target)
{
	uint64_t deadline_ns = clock_monotonic_ns() + LEAVE_DEADLINE_MS * NSEC_PER_MSEC;

	for (unsigned try = 0; try < LEAVE_TRIES && (try == 0 || !clock_passed(deadline_ns)); try++) {
		bool inside = false;

		for (size_t i = 0; i < target->tasks.count; i++) {
			struct task *task = target->tasks.items[i];

			if (!is_inside(target, task))
				continue;
			inside = true;
			if (task->stopped)
				run_on(task);
		}
		if (!inside)
			return true;
		give_time(try);
		target_stop_all(target);
	}
	return false;
}

static int advise(struct task *task, raddr page, int advice)
{
	struct arch_stub_call call = { .number = SYS_madvise, .args = { page, PAGE, (uint64_t)advice }, .data_arg = -1 };
	int64_t result;
	int r = inject_syscall(task, task->target->stub, &call, &result);

	return r < 0 ? r : (int)result;
}

/* A uprobe that came to a byte with our int3 found its own there, so it seemed, and has lost it with ours.  The
 * kernel sets what is missing whenever the borders of a mapping change: an advice for one page alone makes three of
 * it, its withdrawal one again.  Breakpoints of one object follow one another, mostly; a second time does no harm. */
static void set_uprobes_again(struct target *target)
{
	struct task *task = inject_find_task(target);
	const struct module_range *last = NULL;

	for (size_t i = 0; task && i < target->breakpoints.count; i++) {
		raddr address = target->breakpoints.items[i]->address, page = address & ~(raddr)(PAGE - 1);
		const struct module_range *range = module_map_find(&target->modules, address);

		if (!range || range == last)
			continue;
		last = range;
		if (advise(task, page, MADV_RANDOM) == 0)
			advise(task, page, MADV_NORMAL);
	}
}

/* What is noted of the threads from here on is so while they are held. */
static void begin_undo(struct target *target)
{
	for (size_t i = 0; i < target->tasks.count; i++) {
		target->tasks.items[i]->is_outside = false;
		consume_trap(target, target->tasks.items[i]);
	}
	if (returns_matter(target))
		target_look_for_frames(target);
}

static bool undo_held(struct target *target, const char **ret_text)
{
	int r = 0;

	jumps_switch_off(target);
	begin_undo(target);
	if (jumps_restore(target) > 0)
		*ret_text = "a jump into our code could not be taken out: that stays to serve it, and records nothing";
	else if (bp_restore_all(target) > 0)
		*ret_text = "a breakpoint could not be taken out: the resident handler stays to serve it";
	else if (!target_leave_resident(target))
		*ret_text = "a thread would not leave the resident code: it stays, and does no harm";
	/* While it is still noted which they are. */
	for (size_t i = 0; !*ret_text && i < target->tasks.count; i++) {
		if (target->tasks.items[i]->stopped && !stop_is_end(target->tasks.items[i]->stop.kind))
			task_remask(target->tasks.items[i]);
	}
	if (!*ret_text)
		set_uprobes_again(target);
	if (!*ret_text && target->tasks.count > 0)
		r = resident_keep_stub(target);
	if (!*ret_text && r == 0 && target->tasks.count > 0)
		r = jumps_remove(target, inject_find_task(target));
	if (!*ret_text && r == 0 && target->tasks.count > 0)
		r = resident_remove(target);
	target->left_filtered |= r == -EKEYREJECTED;
	/* -ESRCH, too: who has ended is known by its tasks, and that /proc says so of one that lives is no reason to leave it. */
	target->left_something = *ret_text || (r < 0 && r != -EKEYREJECTED && r != -EAGAIN);
	target->undo_due = r == -EAGAIN;
	if (r == -EKEYREJECTED)
		*ret_text = "its seccomp filter might kill it for a system call of ours: our code stays in it, and does no harm; "
			    "'allocwatchd --heal' as root takes it out";
	else if (r == -EAGAIN)
		*ret_text = "all its threads are in waits that nothing breaks off (in vfork until the child executes a program, "
			    "in D state for a disk): our code stays in it, and does no harm; the next attach or "
			    "'allocwatchd --heal' takes it out";
	else if (r < 0)
		*ret_text = "our code could not be taken out: it stays, and does no harm";
	return *ret_text == NULL;
}

struct task *target_executed(const struct target *target)
{
	for (size_t i = 0; i < target->tasks.count; i++) {
		struct task *task = target->tasks.items[i];

		if (task->stopped && !task->guest && task->stop.kind == STOP_EXEC)
			return task;
	}
	return NULL;
}

static void hide(struct target *target, const struct task *task)
{
	for (size_t i = 0; i < target->tasks.count; i++) {
		if (target->tasks.items[i] == task) {
			vec_remove_unordered(&target->tasks, i);
			return;
		}
	}
}

/* Into the room that it had before. */
static void show(struct target *target, struct task *task)
{
	struct task **slot = vec_push(&target->tasks);

	*slot = task;
}

/* It has other memory: nothing is done through it.  In that which it had others may be, who still have all that is ours. */
static bool undo_without(struct target *target, struct task *executed, const char **ret_text)
{
	pid_t memory_tid = target->memory_tid;
	bool clean = true;

	hide(target, executed);
	if (target->tasks.count > 0) {
		target->memory_tid = target->tasks.items[0]->tid;
		clean = undo_held(target, ret_text);
	}
	if (clean)
		resident_forget(target);
	target->memory_tid = memory_tid;
	show(target, executed);
	return clean;
}

bool target_undo(struct target *target, const char **ret_text)
{
	struct task *executed;

	*ret_text = NULL;
	target->left_something = target->undo_due = false;
	target_stop_all(target);
	executed = target_executed(target);
	return executed ? undo_without(target, executed, ret_text) : undo_held(target, ret_text);
}

static void detach_held(struct task *task)
{
	held_ends(task);
	task_detach(task);
	task->stopped = false;
	task->has_gone = true;
}

struct forgetting {
	struct target *target;
	void (*gone)(void *context, struct task *task);
	void *context;
};

/* Those that have gone; and that have ended, when all have. */
static void forget(const struct forgetting *forgetting, bool all)
{
	struct target *target = forgetting->target;

	for (size_t i = target->tasks.count; i-- > 0;) {
		struct task *task = target->tasks.items[i];

		if (!task->has_gone && !(all && task->stopped))
			continue;
		if (forgetting->gone)
			forgetting->gone(forgetting->context, task);
		task_remove(task);
	}
}

/* What those have done that run already is looked at, as of threads that are nobody's. */
static bool serve_free(void *context)
{
	const struct forgetting *forgetting = context;
	struct target *target = forgetting->target;

	if (!target->free_are_due || !target->free_are_due(target->context))
		return false;
	forget(forgetting, false);
	target->serve_free(target->context);
	return true;
}

void target_let_go(struct target *target, void (*gone)(void *context, struct task *task), void *context)
{
	struct forgetting forgetting = { target, gone, context };
	/* By the process's first thread others see whether it is traced, where nothing in the process itself says that any more. */
	const struct order_going going = { !target->areas, detach_held, serve_free, &forgetting };

	order_let_go(target, &going);
	/* None waits for what is forgotten of another. */
	forget(&forgetting, true);
}

bool target_leave_old_memory(struct target *target, struct task *executed,
			     void (*gone)(void *context, struct task *task), void *context, const char **ret_text)
{
	bool clean = true;

	*ret_text = NULL;
	hide(target, executed);            /* see undo_without() */
	if (target->tasks.count > 0) {
		target->memory_tid = target->tasks.items[0]->tid;
		clean = target_undo(target, ret_text);
		target_let_go(target, gone, context);
	}
	target->memory_tid = executed->tid;
	show(target, executed);
	executed->stop.kind = STOP_NONE;   /* and what is done next is done in its new memory */
	return clean;
}
