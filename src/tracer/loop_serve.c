/* What is done about one stop. */
#include "tracer/loop_private.h"

#include "tracer/follow.h"
#include "tracer/guard.h"
#include "tracer/release.h"
#include "tracer/snapshot.h"

#include "target/action.h"
#include "target/faults.h"
#include "target/held.h"
#include "target/jumps.h"
#include "target/process.h"
#include "target/ptrace.h"
#include "target/resident.h"
#include "target/signals.h"
#include "arch/arch.h"
#include "arch/syscall.h"

#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static int go_on(struct task *task)
{
	if (task->stopped && stop_is_end(task->stop.kind))
		return -ESRCH;
	task->stopped = false;
	return task->guest ? ptrace_until_syscall(task->tid, 0) : ptrace_cont(task->tid, 0);
}

static int resume_running(struct task *task)
{
	held_ends(task);
	return go_on(task);
}

/* Brings a task from the stop of an int3's signal to one from which it could make a system call for us, at the
 * displaced instruction. */
static bool leave_signal_stop(struct task *task)
{
	ptrace_interrupt(task->tid);
	return go_on(task) == 0 && task_wait(task, clock_monotonic_ns() + NSEC_PER_SEC) == 0;
}

static void serve_ends(struct loop *loop);
static void serve_syscall(struct loop *loop, struct task *task);

/* What those have stopped for that were held with another one. */
static void serve_held(struct loop *loop)
{
	struct target *target = loop->session->target;

	if (target_executed(target)) {
		loop_resume_held(loop);
		return;
	}
	for (size_t i = target->tasks.count; i-- > 0 && !loop->done && !loop->session->leaving;) {
		struct task *task = i < target->tasks.count ? target->tasks.items[i] : NULL;
		struct stop stop;

		if (!task || !task->stopped || stop_is_end(task->stop.kind))
			continue;
		stop = task->stop;
		task->stopped = stop.kind != STOP_SIGNAL;
		if (stop.kind == STOP_SIGNAL)
			loop_serve(loop, task, &stop);
		else if (stop.kind == STOP_SYSCALL)
			serve_syscall(loop, task);
		else
			task_resume(task);
	}
}

/* The loader says that its list of objects changes. */
static void serve_loader(struct loop *loop, struct task *task)
{
	if (leave_signal_stop(task)) {
		loop_begin_long_step(loop);
		if (!loop->session->release_due)
			session_objects_changed(loop->session);
		else if (release_begin_program(loop->session))
			return;
		serve_held(loop);
	}
	serve_ends(loop);
}

/* It sets its own action for SIGTRAP, or for what our code may be stopped by, or asks for it. */
static void serve_sigaction(struct task *task, int sig)
{
	if ((sig == SIGTRAP ? action_serve_call(task) : faults_serve_call(task, sig)) == 0)
		task_resume(task);
}

/* It is let go before it executes a program whose rights tracing would take away (a guest later, at the system
 * call's entry), and before a check for leaks that does not work under a tracer. */
static bool serve_guard(struct loop *loop, struct task *task, const struct breakpoint *bp,
			const struct user_regs_struct *regs)
{
	struct session *session = loop->session;
	const struct guard_site *site = guard_find(session, bp);
	bool executes = site && site->kind <= GUARD_FEXECVE;

	if (!task->guest && site && site->kind == GUARD_SIGACTION) {
		int sig = (int)arch_argument(regs, 0);

		if (sig != SIGTRAP && !faults_has(sig))
			return false;
		serve_sigaction(task, sig);
		return true;
	}
	if (task->guest || !site || (executes && !guard_forbids_exec(session, task->tid, site->kind, regs)))
		return false;
	session_say_farewell(session, FAILURE_NOT_PERMITTED, "%s", executes ?
			     "it executes a set-id program, or one with capabilities, which would not have them while it is "
			     "traced" :
			     "its sanitizer's check for leaks comes now, which does not work under a tracer");
	if (leave_signal_stop(task))
		loop_leave(loop, 0);
	serve_ends(loop);
	return true;
}

static bool handler_needs_a_call(const struct target *target)
{
	return target->handler_lost || target->ask_for_handler || faults_need_a_call(target);
}

/* An int3 of ours: true when it was one. */
static bool serve_breakpoint(struct loop *loop, struct task *task)
{
	struct session *session = loop->session;
	struct user_regs_struct regs;
	struct breakpoint *bp;
	int code;

	if (ptrace_getregs(task->tid, &regs) < 0)
		return true;               /* killed meanwhile: its end comes next */
	bp = bp_find(session->target, arch_pc(&regs) - 1);
	if (!bp || (bp->ambiguous && (ptrace_signal_code(task->tid, &code) < 0 || code != SI_KERNEL)))
		return false;
	/* First of all a safe state: should we die now, the signal is delivered, and the resident handler
	 * lets the thread go on at the displaced instruction. */
	if (ptrace_set_pc(task->tid, bp->slot) < 0)
		return true;
	session->stops++;
	if (bp == session->loader_hook) {
		serve_loader(loop, task);
		return true;
	}
	if (!bp->site && serve_guard(loop, task, bp, &regs))
		return true;
	if (!task_hits_again(task, bp, &regs))
		engine_hit(session->engine, task, bp, &regs);
	if (handler_needs_a_call(session->target) && !task->guest && leave_signal_stop(task)) {
		if (session->target->handler_lost)
			action_repair(task);
		action_ask(task);
		faults_serve(task);
		task_resume(task);
		serve_ends(loop);
		return true;
	}
	resume_running(task);
	placement_note(&loop->placement, session->target, task);
	return true;
}

/* caught_up: all that the thread has recorded has been read. */
static void serve_signal(struct loop *loop, struct task *task, const struct stop *stop, bool caught_up)
{
	struct session *session = loop->session;
	struct target *target = session->target;
	struct user_regs_struct regs;
	struct breakpoint *bp;
	bool ours;

	target->served = task;
	ours = stop->sig == SIGTRAP && !session->leaving && serve_breakpoint(loop, task);
	target->served = NULL;
	if (ours)
		return;
	task_take_stop(task, stop);
	/* The handler may leave by a jump: then the call was not made, or did not return. */
	bp = task_before_displaced(task, &regs);
	task->taken_back = bp && engine_take_back(session->engine, task, bp, arch_sp(&regs));
	/* One that is ignored runs no handler that could allocate; to know that costs a look into /proc. */
	if ((!caught_up || engine_is_inside(task)) && !task_ignores_signal(task, stop->sig) &&
	    ptrace_getregs(task->tid, &regs) == 0) {
		if (caught_up)
			engine_signal(session->engine, task, arch_sp(&regs));
		else
			engine_signal_later(session->engine, task, arch_sp(&regs));
	}
	if (stop->sig == SIGTRAP && action_before_delivery(task) < 0)
		return;
	task_resume(task);
}

static void adopt(struct loop *loop, struct task *task)
{
	struct session *session = loop->session;
	unsigned long child;
	struct task *added;

	/* The tracer forks itself for a child that it hands over: with a big heap that takes its time. */
	if (session->follows)
		loop_begin_long_step(loop);
	if (ptrace_event_message(task->tid, &child) == 0) {
		int r = target_adopt_child(session->target, task, (pid_t)child);

		if (r < 0 && r != -ESRCH)
			session->lost_tasks++;
		added = r == 1 ? task_find((pid_t)child) : NULL;
		if (added && added->stopped)
			task_resume(added);
	}
	task->stop.kind = STOP_NONE;
	task_resume(task);
}

static void forget_task(struct loop *loop, struct task *task)
{
	engine_task_gone(loop->session->engine, task);
	heap_thread_gone(loop->session->heap, task->tid);
	task_remove(task);
}

static void release_guest(struct loop *loop, struct task *task, bool executed)
{
	target_release_guest(task, executed);
	forget_task(loop, task);
}

/* The thread that made the call has its leader's number from now on, and no end of its own is told. */
static void forget_former_self(struct loop *loop, const struct task *leader)
{
	unsigned long former;
	struct task *task;

	if (ptrace_event_message(leader->tid, &former) < 0 || (pid_t)former == leader->tid)
		return;
	task = task_find((pid_t)former);
	if (task)
		forget_task(loop, task);
}

static void serve_syscall(struct loop *loop, struct task *task)
{
	struct user_regs_struct regs;

	/* Not for every exec: one that fails goes on with the heap that it shares. */
	if (task->guest && ptrace_getregs(task->tid, &regs) == 0 && syscall_is_exec(&regs) &&
	    guard_forbids_exec_call(loop->session, task->tid, &regs)) {
		release_guest(loop, task, false);
		return;
	}
	task->stop.kind = STOP_NONE;
	task_resume(task);
}

void loop_serve_exec(struct loop *loop, struct task *task)
{
	if (task->guest)
		forget_former_self(loop, task);
	if (task->guest && loop->session->follows) {
		follow_guest(loop->session, task);
		return;
	}
	if (task->guest) {
		release_guest(loop, task, true);
		return;
	}
	loop_begin_long_step(loop);
	session_exec(loop->session, task);
	if (loop->session->refused)
		loop_detach(loop, 0);           /* nothing was seen: there is no last snapshot */
	else
		task_resume(task);
}

void loop_finish(struct loop *loop)
{
	struct session *session = loop->session;
	struct wire_gone gone = { .head = { WIRE_TARGET_GONE, 0, session->target->pid, sizeof(gone) },
				  .wait_status = session->exit_status };

	loop_begin_long_step(loop);
	snapshot_write_now(session, SNAPSHOT_EXIT);
	link_send(session->link, &gone, sizeof(gone), -1);
	link_flush(session->link);
	loop->done = true;
}

/* Processes that still share its memory keep our int3s: they are taken out through those. */
static void finish_without_tasks(struct loop *loop)
{
	const char *text;

	if (loop->session->target->tasks.count > 0)
		session_detach(loop->session, &text);
	loop_finish(loop);
}

static void serve_end(struct loop *loop, struct task *task)
{
	struct target *target = loop->session->target;

	target->task_gone(target->context, task);
	if (!target_has_own_tasks(target) && !loop->session->leaving)
		finish_without_tasks(loop);
}

bool loop_serve_unseen_end(struct loop *loop)
{
	struct session *session = loop->session;

	if (!session || loop->done || session->leaving || session->released || target_has_own_tasks(session->target))
		return false;
	if (session->exit_status == -1)
		release_note_status(session);
	finish_without_tasks(loop);
	return true;
}

static struct task *find_ended(const struct target *target)
{
	for (size_t i = 0; i < target->tasks.count; i++) {
		struct task *task = target->tasks.items[i];

		if (task->stopped && stop_is_end(task->stop.kind))
			return task;
	}
	return NULL;
}

/* Ends that were taken in while something else was done with a task: nobody tells of them a second time. */
static void serve_ends(struct loop *loop)
{
	struct task *task;

	while (!loop->done && !loop->session->leaving && (task = find_ended(loop->session->target)))
		serve_end(loop, task);
}

void loop_serve_lost(struct loop *loop)
{
	struct target *target = loop->session->target;

	for (size_t i = 0; i < target->tasks.count; i++) {
		if (process_tracer(target->tasks.items[i]->tid) == getpid())
			ptrace_refused(target->tasks.items[i]->tid, -ECHILD);
	}
	for (size_t i = 0; i < target->tasks.count; i++) {
		struct task *task = target->tasks.items[i];

		if (task->stopped && stop_is_end(task->stop.kind))
			continue;
		task->stop = (struct stop){ STOP_EXITED, task->tid, STOP_UNKNOWN_STATUS };
		task->stopped = true;
	}
	serve_ends(loop);
}

static void let_go(struct loop *loop, struct task *task)
{
	if (target_take_birth(task))
		return;         /* it comes again at the end of its call */
	if (loop->owes_answer && !task->guest) {
		loop_undo(loop, loop->owed_serial);     /* with this one held */
		return;
	}
	if (!stop_is_end(task->stop.kind))
		task_detach(task);
	engine_task_gone(loop->session->engine, task);
	task_remove(task);
}

/* A signal for the program itself, what stops it, and a guest's system calls, which may be those of our code in the midst of a record:
 * nothing that the heap could hear of out of order.  Who waited here for what others write, and they for a processor, would keep a
 * program that has a signal each millisecond in its handler for ever. */
static bool tells_nothing(const struct stop *stop)
{
	return stop->kind == STOP_SYSCALL || stop->kind == STOP_GROUP || stop->kind == STOP_INTERRUPTED ||
	       (stop->kind == STOP_SIGNAL && !loop_is_trap(stop));
}

/* A signal of the program's own, or a guest's system call but an exec, of a thread that is not in our code: what it has recorded can be read
 * when it has gone on. */
static bool can_be_read_later(const struct loop *loop, const struct task *task, const struct stop *stop)
{
	struct user_regs_struct regs;

	return (stop->kind == STOP_SIGNAL || stop->kind == STOP_SYSCALL) && !loop->session->leaving &&
	       engine_is_behind(loop->session->engine) && ptrace_getregs(task->tid, &regs) == 0 &&
	       (stop->kind == STOP_SIGNAL || !syscall_is_exec(&regs)) && !jumps_contain(task->target, arch_pc(&regs)) &&
	       resident_resume(task->target, arch_pc(&regs)) == arch_pc(&regs);
}

/* False: somebody is just writing, or there is so much that the thread is not held for it. */
static bool read_what_is_there(struct loop *loop, const struct task *task, const struct stop *stop)
{
	struct engine *engine = loop->session->engine;
	pid_t writer;

	if (can_be_read_later(loop, task, stop))
		return false;
	return !engine_has_ring(engine) || engine_read_until(engine, engine_ring_head(engine), &writer);
}

/* Each stop puts a thread back to before its record: where it would not get any further, since its next signal is always due before it
 * has written that, or its own trap flag stops it at each instruction, the call is served here, as at an int3.  With what was
 * recorded before still to come it is put back once more.  Before a handler of a signal the pc is one that has CFI, for who unwinds there:
 * of a call the function's own, and a return is served, so that it is its caller's. */
static void stand_in(struct loop *loop, struct task *task, bool steps, bool handles)
{
	struct session *session = loop->session;
	struct user_regs_struct regs;
	uint32_t number;
	bool again;

	if (loop->catching_up || session->leaving || !engine_has_ring(session->engine) ||
	    !jumps_stands_before_record(task, &number, &regs, &again))
		return;
	if (!again && !steps && !(handles && jumps_is_return(session->target, number))) {
		if (handles)
			jumps_show_origin(task, number);
		return;
	}
	engine_stand_in(session->engine, number, &regs);
	jumps_pass_record(task, number, !steps);
}

/* What our code reads in vain is no matter of the program's: the thread goes on as after a stop that was for us alone. */
static struct stop without_fault(struct task *task, const struct stop *stop)
{
	struct stop left = *stop;

	if (jumps_mend_fault(task, stop))
		left.kind = STOP_INTERRUPTED;
	return left;
}

void loop_serve(struct loop *loop, struct task *task, const struct stop *seen)
{
	const struct stop mended = without_fault(task, seen), *stop = &mended;
	bool extra_step = loop_is_trap(stop) && jumps_is_extra_step(task), caught_up;

	if (loop_may_be_writing(stop->kind))
		jumps_settle(task);
	/* What was recorded before comes before.  Of the thread itself nothing more will come now. */
	caught_up = tells_nothing(stop) ? read_what_is_there(loop, task, stop) : loop_catch_up(loop, task->tid);
	loop->session->out_of_order += !caught_up && loop_is_trap(stop);
	/* What was served meanwhile may have been an exec, which ends the other threads and lets guests go. */
	if (loop->done || task_find(stop->tid) != task)
		return;
	if (loop_may_be_writing(stop->kind) && (caught_up || extra_step))
		stand_in(loop, task, extra_step, stop->kind == STOP_SIGNAL && !loop_is_trap(stop));
	if (extra_step && !loop->session->leaving) {
		resume_running(task);
		return;
	}
	if (stop->kind == STOP_SIGNAL && !loop->session->leaving) {
		serve_signal(loop, task, stop, caught_up || loop_is_trap(stop));
		return;
	}
	if (stop_is_end(stop->kind) && !loop->session->leaving) {
		/* Reaped last: its parent hears of the end when the snapshot of it is on its way. */
		task->stop = *stop;
		serve_end(loop, task);
		stop_reap(stop->tid);
		return;
	}
	task_take_stop(task, stop);
	if (loop->session->leaving) {
		let_go(loop, task);
		return;
	}
	switch (stop->kind) {
	case STOP_CLONE:
	case STOP_FORK:
	case STOP_VFORK:
		adopt(loop, task);
		break;
	case STOP_EXEC:
		loop_serve_exec(loop, task);
		break;
	case STOP_SYSCALL:
		serve_syscall(loop, task);
		break;
	default:
		if (loop->session->target->handler_installed)
			task_unmask(task);
		engine_task_born(loop->session->engine, task);
		if (stop->kind == STOP_INTERRUPTED) {
			action_ask(task);
			faults_serve(task);
		}
		task_resume(task);
	}
	serve_ends(loop);
}
