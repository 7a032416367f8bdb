#define _GNU_SOURCE
#include "target/attach.h"
#include "target/bp.h"
#include "target/faults.h"
#include "target/handlers.h"
#include "target/held.h"
#include "target/jumps.h"
#include "target/masks.h"
#include "target/order.h"
#include "target/process.h"
#include "target/ptrace.h"
#include "target/sharers.h"
#include "target/signals.h"
#include "target/stop.h"

#include "base/clock.h"
#include "base/proc.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* A pause between two looks, growing from 20 us to 1 ms; a stop ends it where SIGCHLD is blocked. */
static void pause_briefly(unsigned round)
{
	uint64_t us = 20ULL << (round < 6 ? round : 6);

	stop_pause((us < 1000 ? us : 1000) * NSEC_PER_USEC);
}

void task_take_stop(struct task *task, const struct stop *stop)
{
	bool mended = jumps_mend_fault(task, stop);

	task->stop = *stop;
	task->stopped = true;
	task_forget_seen(task);
	task->group_stopped = false;
	if (mended) {
		task->stop.kind = STOP_NONE;
		task->mended = false;
		return;
	}
	if (stop->kind == STOP_INTERRUPTED || stop->kind == STOP_GROUP)
		task->interrupt_due = false;
	if (stop->kind == STOP_INTERRUPTED)
		task_mend_call(task);
	else
		task->mended = false;
	if (stop_is_reaped(stop->kind))
		stop_reap(stop->tid);
}

int task_wait(struct task *task, uint64_t deadline_ns)
{
	for (unsigned round = 0;; round++) {
		struct stop stop;
		int r = stop_look(task->tid, &stop);

		if (r == -ECHILD) {
			task->stop = (struct stop){ STOP_EXITED, task->tid, STOP_UNKNOWN_STATUS };
			task->stopped = true;
			return -ESRCH;
		}
		if (r == 0 && stop.kind != STOP_NONE) {
			task_take_stop(task, &stop);
			return stop_is_end(stop.kind) ? -ESRCH : 0;
		}
		if (clock_passed(deadline_ns))
			return -ETIMEDOUT;
		if (task->target && task->target->idle)
			task->target->idle(task->target->context);
		if (round > 3)
			pause_briefly(round - 4);
	}
}

static int seize_one(struct target *target, pid_t tid, bool was_ours)
{
	struct task *task;
	int r;

	r = task_add(target, tid, &task);
	if (r < 0)
		return r;
	r = was_ours ? ptrace_seize_again(tid) : ptrace_seize(tid);
	if (r < 0) {
		task_remove(task);
		return r;
	}
	return 1;
}

/* A task's child comes to us with its parent's event, and may be in a list before that is looked at. */
static bool comes_by_itself(pid_t tid)
{
	return process_tracer(tid) == getpid();
}

/* One pass over the task list; returns how many new threads were seized, and how many were listed. */
static int seize_pass(struct target *target, uint64_t *ret_listed)
{
	char path[64];
	int seized = 0, r = 0;
	pid_t tid;
	DIR *dir;

	*ret_listed = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", target->pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while (r >= 0 && (r = proc_next(dir, &tid)) > 0) {
		++*ret_listed;
		if (task_find(tid))
			continue;
		r = seize_one(target, tid, target->was_ours);
		if (r == 1)
			seized++;
		/* A thread that ended meanwhile; a dead main thread whose zombie stays listed (its
		 * siblings keep the process alive) cannot be seized and says EPERM. */
		else if (r == -ESRCH ||
			 (r == -EPERM && (comes_by_itself(tid) || process_thread_is_dead(target->pid, tid))))
			r = 0;
		else if (r == -EPERM)
			target->stranger = tid;
	}
	closedir(dir);
	if (r == -ENOENT)
		return -ESRCH;
	return r < 0 ? r : seized;
}

/* It has executed a program between the look and the seizing, which told nobody of that. */
static void give_back(struct task *task)
{
	held_runs(task, clock_monotonic_ns());
	if (ptrace_interrupt(task->tid) == 0 &&
	    task_wait(task, clock_monotonic_ns() + SCAN_DEADLINE_MS * NSEC_PER_MSEC) == 0 && !stop_is_end(task->stop.kind))
		task_detach(task);
	task_remove(task);
}

static int seize_sharers(struct target *target, const struct sharers *sharers)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < sharers->found.count; i++) {
		pid_t pid = sharers->found.items[i];

		if (task_find(pid))
			continue;
		r = seize_one(target, pid, false);
		if (r == 1 && sharers_has_left(target, pid))
			give_back(task_find(pid));
		else if (r == 1)
			task_find(pid)->guest = true;
		else if (r == -ESRCH || (r == -EPERM && (comes_by_itself(pid) || sharers_has_left(target, pid))))
			r = 0;
		else
			target->stranger = pid;
	}
	return r < 0 ? r : 0;
}

/* The kernel ends a list early when the thread that it has come to ends in that moment: a pass that lists fewer threads than
 * there were before it, and are after it, has not seen all. */
static int seize_whole_pass(struct target *target, bool *ret_whole)
{
	uint64_t before = process_threads(target->pid), listed, after;
	int r = seize_pass(target, &listed);

	after = process_threads(target->pid);
	*ret_whole = listed >= (before < after ? before : after);
	return r;
}

int target_seize(struct target *target, struct sharers *sharers)
{
	uint64_t deadline = clock_monotonic_ns() + SCAN_DEADLINE_MS * NSEC_PER_MSEC;
	bool whole;
	int quiet = 0, r;

	target->stranger = 0;
	/* A thread that is seized reports its clones; one that was not yet may have started another
	 * behind the scan.  Two whole passes without a new one and all are seized.  None is stopped yet: a call that a stop
	 * has broken off is mended when the stop is seen, and that is to be soon. */
	while (quiet < 2) {
		r = seize_whole_pass(target, &whole);
		if (r < 0)
			return r;
		if (target->tasks.count == 0)
			return -EPERM;
		quiet = r == 0 && whole ? quiet + 1 : 0;
		if (clock_passed(deadline))
			return -ETIMEDOUT;
	}
	if (!sharers)
		return 0;
	r = sharers_look_again(target, sharers);
	return r < 0 ? r : seize_sharers(target, sharers);
}

/* Those that ended, and guests that have begun another program meanwhile: nothing of ours is in that. */
static void drop_ended(struct target *target)
{
	for (size_t i = target->tasks.count; i-- > 0;) {
		struct task *task = target->tasks.items[i];

		if (!task->stopped || !target->task_gone)
			continue;
		if (task->guest && task->stop.kind == STOP_EXEC)
			target_release_guest(task, true);
		else if (!stop_is_end(task->stop.kind))
			continue;
		target->task_gone(target->context, task);
	}
}

bool target_take_birth(struct task *task)
{
	unsigned long child;

	if (!stop_is_birth(task->stop.kind))
		return false;
	if (ptrace_event_message(task->tid, &child) == 0)
		target_adopt_child(task->target, task, (pid_t)child);
	task->stop.kind = STOP_NONE;
	task->interrupt_due = ptrace_interrupt(task->tid) == 0;
	task_resume(task);
	return true;
}

static bool trap_is_to_come(const struct target *target, struct task *task)
{
	struct user_regs_struct regs;

	return (task->stop.kind == STOP_INTERRUPTED || task->stop.kind == STOP_GROUP) &&
	       task_getregs(task, &regs) == 0 && bp_find(target, arch_pc(&regs) - 1) &&
	       task_signal_is_pending(task, SIGTRAP);
}

/* A thread that ran into an int3 just when it was interrupted stops for the interruption first, and its
 * SIGTRAP is still to come.  Going away now would let it come to a process without a handler: one step
 * further, and it is at the signal's stop. */
static void bring_to_trap(struct target *target, struct task *task, uint64_t deadline_ns)
{
	/* Job control may hold it once more, before the signal. */
	while (trap_is_to_come(target, task) && !clock_passed(deadline_ns)) {
		task->stopped = false;
		if (ptrace_cont(task->tid, 0) < 0 || task_wait(task, deadline_ns) < 0)
			return;
	}
}

/* Those that do not stop are in a wait that nothing breaks off (vfork, a disk): they will stop before they run another
 * instruction, and nobody should be held for them. */
static bool all_uninterruptible(const struct target *target, bool all)
{
	for (size_t i = 0; i < target->tasks.count; i++) {
		const struct task *task = target->tasks.items[i];

		if (!task->stopped && (all || !task->ran) && process_thread_state(target->pid, task->tid) != 'D' &&
		    process_thread_state(task->tid, task->tid) != 'D')
			return false;
	}
	return true;
}

/* Looks at one that is to stop, and interrupts it when it runs: the look comes first, since it says until when it ran.  Whether
 * it still runs. */
static bool bring_to_stop(struct task *task, bool first_round)
{
	uint64_t looked_ns = clock_monotonic_ns();
	struct stop stop = { 0 };

	if (task->stopped || (task->group_stopped && !task->interrupt_due && ptrace_interrupt(task->tid) < 0))
		return false;
	if (stop_look(task->tid, &stop) == -ECHILD)
		stop = (struct stop){ STOP_EXITED, task->tid, STOP_UNKNOWN_STATUS };
	if (stop.kind != STOP_NONE) {
		task_take_stop(task, &stop);
		target_take_birth(task);        /* may add tasks */
		return !task->stopped;
	}
	held_runs(task, looked_ns);
	/* An interruption from before may have been used up by another stop: any trap takes back one that is due. */
	if (first_round || !task->interrupt_due) {
		ptrace_interrupt(task->tid);
		task->interrupt_due = true;
	}
	return true;
}

/* How many still run, of those alone that waited when they were looked at or of all.  The first thread comes last, as it does when they
 * are let go. */
static unsigned bring_to_stops(struct target *target, bool all, bool first_round)
{
	struct task *first = target_first_task(target);
	unsigned running = 0;

	for (size_t i = 0; i < target->tasks.count; i++) {
		if (target->tasks.items[i] != first && (all || !target->tasks.items[i]->ran))
			running += bring_to_stop(target->tasks.items[i], first_round);
	}
	if (first && (all || !first->ran))
		running += bring_to_stop(first, first_round);
	return running;
}

/* Until none of these runs, or all of them that do are in such a wait, or the deadline has passed.  That is looked for every now and then, and
 * when no more than `left` run, of whom it is known. */
static unsigned stop_until(struct target *target, bool all, unsigned left, uint64_t deadline)
{
	uint64_t patience = 0;

	for (unsigned round = 0;; round++) {
		unsigned running = bring_to_stops(target, all, round == 0);

		drop_ended(target);
		if (running == 0 || clock_passed(deadline))
			return running;
		if (round == 0)
			patience = clock_monotonic_ns() + UNINTERRUPTIBLE_MS * NSEC_PER_MSEC;
		if (running <= left || clock_passed(patience)) {
			if (all_uninterruptible(target, all))
				return running;
			patience += UNINTERRUPTIBLE_MS * NSEC_PER_MSEC;
		}
		if (round > 3)
			pause_briefly(round - 4);
	}
}

int target_stop_all(struct target *target)
{
	uint64_t deadline;
	unsigned running;

	order_look(target);
	deadline = clock_monotonic_ns() + STOP_ALL_DEADLINE_MS * NSEC_PER_MSEC;
	/* Those that are held wait for each other, and those that run need not wait for that. */
	running = stop_until(target, false, 0, deadline - STOP_ALL_DEADLINE_MS / 2 * NSEC_PER_MSEC);
	if (target->some_held && target_holds_any(target) && !target_holds_all(target))
		target->some_held(target->context);
	running = stop_until(target, true, running, deadline);
	for (size_t i = 0; target->breakpoints.count > 0 && i < target->tasks.count; i++) {
		if (target->tasks.items[i]->stopped)
			bring_to_trap(target, target->tasks.items[i], deadline + NSEC_PER_SEC);
	}
	drop_ended(target);
	return target->tasks.count == 0 ? -ESRCH : (int)running;
}

static bool is_held(const struct task *task)
{
	return task->stopped && !task->guest && !stop_is_end(task->stop.kind);
}

/* As many as the process has: there is no other, and the list of thousands need not be read once more. */
static bool holds_each_thread(const struct target *target)
{
	uint64_t held = 0;

	for (size_t i = 0; i < target->tasks.count; i++) {
		if (!target->tasks.items[i]->guest && !is_held(target->tasks.items[i]))
			return false;
		held += !target->tasks.items[i]->guest;
	}
	return held > 0 && process_threads(target->pid) == held;
}

/* The kernel decides early in the call that makes a thread or a process whether the tracer is told of it, and late when it is there to be
 * listed.  Between the two its maker may be seized, and wait for a processor as long as it likes: who is born then runs untraced, through
 * instructions that are about to be replaced.  Whoever was in such a call has left it where it is held.  1: there was one; 0: none. */
static int seize_unseen(struct target *target, struct sharers *sharers)
{
	size_t before = target->tasks.count;
	bool whole = holds_each_thread(target);
	int r = whole ? 0 : seize_whole_pass(target, &whole);

	if (r >= 0 && sharers)
		r = sharers_look_again(target, sharers);
	if (r >= 0 && sharers)
		r = seize_sharers(target, sharers);
	return r < 0 ? r : target->tasks.count > before || !whole;
}

int target_hold_all(struct target *target, struct sharers *sharers)
{
	uint64_t deadline = clock_monotonic_ns() + SCAN_DEADLINE_MS * NSEC_PER_MSEC;
	int running, r;

	do {
		running = target_stop_all(target);
		if (running < 0 || target_executed(target))
			return running;
		r = seize_unseen(target, sharers);
	} while (r == 1 && !clock_passed(deadline));
	return r == 1 ? -ETIMEDOUT : r < 0 ? r : running;
}

/* Nothing but SIGKILL wakes one that is held, and that comes to all threads of the process at once. */
static bool were_torn_away(const struct target *target)
{
	struct user_regs_struct regs;
	size_t i = 0;

	while (i < target->tasks.count && !is_held(target->tasks.items[i]))
		i++;
	return i < target->tasks.count && ptrace_getregs(target->tasks.items[i]->tid, &regs) == -ESRCH;
}

/* On its way to its end; a busy machine may let it wait there, in D state, too. */
static bool is_exiting(const struct task *task)
{
	return !task->stopped && !task->guest && process_thread_is_exiting(task->target->pid, task->tid);
}

static void take_ends(struct target *target, bool killed)
{
	for (size_t i = 0; i < target->tasks.count; i++) {
		struct task *task = target->tasks.items[i];
		struct stop stop;

		/* One that is held goes nowhere. */
		if (is_held(task) && !killed)
			continue;
		if (stop_look(task->tid, &stop) == 0 && stop_is_end(stop.kind))
			task_take_stop(task, &stop);
	}
	drop_ended(target);
}

bool target_holds_any(const struct target *target)
{
	for (size_t i = 0; i < target->tasks.count; i++) {
		if (target->tasks.items[i]->stopped && !target->tasks.items[i]->guest)
			return true;
	}
	return false;
}

bool target_holds_all(const struct target *target)
{
	for (size_t i = 0; i < target->tasks.count; i++) {
		if (!target->tasks.items[i]->stopped)
			return false;
	}
	return true;
}

static void let_guests_go(struct target *target)
{
	for (size_t i = target->tasks.count; i-- > 0;) {
		struct task *task = target->tasks.items[i];

		if (!task->guest || !task->stopped)
			continue;
		task_detach(task);
		target->task_gone(target->context, task);
	}
}

int target_wait_for_any(struct target *target)
{
	uint64_t deadline = clock_monotonic_ns() + PATIENCE_MS * NSEC_PER_MSEC;

	for (unsigned round = 0; !target_holds_any(target); round++) {
		let_guests_go(target);
		for (size_t i = 0; i < target->tasks.count; i++) {
			struct task *task = target->tasks.items[i];
			struct stop stop;

			if (task->stopped || stop_look(task->tid, &stop) < 0 || stop.kind == STOP_NONE)
				continue;
			task_take_stop(task, &stop);
			target_take_birth(task);
		}
		drop_ended(target);
		if (!target_has_own_tasks(target))
			return -ESRCH;
		if (clock_passed(deadline))
			return -EAGAIN;
		pause_briefly(round);
	}
	return 0;
}

bool target_has_ended(struct target *target)
{
	uint64_t started = clock_monotonic_ns();
	bool killed = false;

	for (unsigned round = 0;; round++) {
		bool exiting = false;

		killed |= were_torn_away(target);
		for (size_t i = 0; i < target->tasks.count; i++)
			exiting |= is_exiting(target->tasks.items[i]);
		take_ends(target, killed);
		if (!target_has_own_tasks(target))
			return true;
		if ((!killed && !exiting) ||
		    clock_passed(started + (killed ? KILLED_DEADLINE_MS : ENDING_DEADLINE_MS) * NSEC_PER_MSEC))
			return false;
		pause_briefly(round);
	}
}

/* C libraries block even the signals that are their own for a moment, while they make threads and processes, and put
 * back what was there: that, and not this mask, is what the thread will have. */
static bool is_for_a_moment(uint64_t mask)
{
	const uint64_t own = 3ULL << (32 - 1);

	return (mask & own) == own;
}

/* The end of a handler puts back what was there, too. */
static bool is_for_a_handler(struct task *task, uint64_t bit)
{
	uint64_t outside;

	return task_mask_outside(task, &outside) && !(outside & bit);
}

int task_unmask(struct task *task)
{
	const uint64_t bit = 1ULL << (SIGTRAP - 1);
	bool was_blocked;
	uint64_t mask;
	int r;

	if (task->masked) {
		if (task->sigtrap_was_blocked)
			masks_note(task);      /* inherited before it could be held */
		return 0;
	}
	r = task_getsigmask(task, &mask);
	if (r < 0)
		return r;
	task->blocked_faults = is_for_a_moment(mask) ? 0 : faults_in_mask(mask);
	was_blocked = mask & bit;
	if (was_blocked) {
		task->sigtrap_was_blocked = !is_for_a_moment(mask) && !is_for_a_handler(task, bit);
		if (task->sigtrap_was_blocked) {
			masks_note(task);
			/* The thread may have made a system call for that, and have come into a handler. */
			r = ptrace_getsigmask(task->tid, &mask);
			if (r < 0)
				return r;
		}
		r = ptrace_setsigmask(task->tid, mask & ~bit);
		if (r < 0)
			return r;
	}
	task->masked = !was_blocked || task->sigtrap_was_blocked;
	return 0;
}
