#include "tracer/loop.h"

#include "tracer/guard.h"
#include "tracer/follow.h"
#include "tracer/placement.h"
#include "tracer/session.h"
#include "tracer/snapshot.h"

#include "target/action.h"
#include "target/ptrace.h"
#include "target/signals.h"
#include "arch/arch.h"
#include "arch/syscall.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#define TICKS_PER_SECOND (1000 / LINK_TICK_MS)
#define TICKS_PER_BEAT (HEARTBEAT_MS / LINK_TICK_MS)
/* Attach, exec, new objects, the last snapshot, detach: no heartbeat comes in the middle of them. */
#define LONG_STEP_MS 15000
/* A sweep looks at every task, and each look is a system call: after as many stops as there are tasks, and
 * these more, it costs little also where there are few.  They pass in a millisecond. */
#define SWEEP_SPARING 64
#define STRANGER_DEADLINE_MS 200
#define STRANGER_PAUSE_NS 20000
#define LEAVING_DEADLINE_MS 10000      /* for tasks that do not stop to be let go (vfork, D state) */

struct loop {
	struct link *link;
	struct session *session;
	struct placement placement;
	unsigned ticks;
	unsigned since_sweep;          /* stops served since all tasks were looked at */
	uint64_t leaving_deadline_ns;
	bool owes_answer;              /* to a detach that waits for a thread that can be held */
	uint32_t owed_serial;
	pid_t stranger;                /* who stopped and is no task yet */
	uint64_t stranger_deadline_ns;
	bool done;
};

static void begin_long_step(struct loop *loop)
{
	link_beat(loop->link, loop->session ? loop->session->target->pid : 0, LONG_STEP_MS);
}

/* --- one stop --- */

static int resume_running(struct task *task)
{
	if (task->stopped && stop_is_end(task->stop.kind))
		return -ESRCH;
	task->stopped = false;
	return task->guest ? ptrace_until_syscall(task->tid, 0) : ptrace_cont(task->tid, 0);
}

/* Brings a task from the stop of an int3's signal to one from which it could make a system call for us, at the
 * displaced instruction. */
static bool leave_signal_stop(struct task *task)
{
	ptrace_interrupt(task->tid);
	return resume_running(task) == 0 && task_wait(task, clock_monotonic_ns() + NSEC_PER_SEC) == 0;
}

static void serve_ends(struct loop *loop);

/* The loader says that its list of objects changes. */
static void serve_loader(struct loop *loop, struct task *task)
{
	uint64_t started_ns = clock_monotonic_ns(), took_ns;

	if (leave_signal_stop(task)) {
		begin_long_step(loop);
		session_objects_changed(loop->session);
		took_ns = clock_monotonic_ns() - started_ns;
		if (took_ns > loop->session->target->longest_stop_ns)
			loop->session->target->longest_stop_ns = took_ns;
		task_resume(task);
	}
	serve_ends(loop);
}

static void leave(struct loop *loop, uint32_t serial);
static void detach(struct loop *loop, uint32_t serial);

/* It sets its own action for SIGTRAP, or asks for it. */
static void serve_sigaction(struct task *task)
{
	if (action_serve_call(task) == 0)
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
		if ((int)arch_argument(regs, 0) != SIGTRAP)
			return false;
		serve_sigaction(task);
		return true;
	}
	if (task->guest || !site || (executes && !guard_forbids_exec(session, task->tid, site->kind, regs)))
		return false;
	session_say_farewell(session, FAILURE_NOT_PERMITTED, "%s", executes ?
			     "it executes a set-id program, or one with capabilities, which would not have them while it is "
			     "traced" :
			     "its sanitizer's check for leaks comes now, which does not work under a tracer");
	if (leave_signal_stop(task))
		leave(loop, 0);
	serve_ends(loop);
	return true;
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
	if (session->target->handler_lost && !task->guest && leave_signal_stop(task)) {
		action_repair(task);
		task_resume(task);
		return true;
	}
	resume_running(task);
	placement_note(&loop->placement, session->target, task);
	return true;
}

static void serve_signal(struct loop *loop, struct task *task, const struct stop *stop)
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
	if (engine_is_inside(task) && !task_ignores_signal(task, stop->sig) && ptrace_getregs(task->tid, &regs) == 0)
		engine_signal(session->engine, task, arch_sp(&regs));
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
		begin_long_step(loop);
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

static void serve_exec(struct loop *loop, struct task *task)
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
	begin_long_step(loop);
	session_exec(loop->session, task);
	if (loop->session->refused)
		detach(loop, 0);           /* nothing was seen: there is no last snapshot */
	else
		task_resume(task);
}

/* The process has ended: what is left to do is to say so. */
static void finish(struct loop *loop)
{
	struct session *session = loop->session;
	struct wire_gone gone = { .head = { WIRE_TARGET_GONE, 0, session->target->pid, sizeof(gone) },
				  .wait_status = session->exit_status };

	begin_long_step(loop);
	snapshot_write_now(session, SNAPSHOT_EXIT);
	link_send(session->link, &gone, sizeof(gone), -1);
	link_flush(session->link);
	loop->done = true;
}

static bool only_guests(const struct target *target)
{
	for (size_t i = 0; i < target->tasks.count; i++) {
		if (!target->tasks.items[i]->guest)
			return false;
	}
	return true;
}

static void serve_end(struct loop *loop, struct task *task)
{
	struct session *session = loop->session;
	struct target *target = session->target;
	const char *text;

	target->task_gone(target->context, task);
	if (!only_guests(target) || session->leaving)
		return;
	/* Processes that still share its memory keep our int3s: they are taken out through those. */
	if (target->tasks.count > 0)
		session_detach(session, &text);
	finish(loop);
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

/* The kernel knows of none of them any more. */
static void serve_lost(struct loop *loop)
{
	struct target *target = loop->session->target;

	for (size_t i = 0; i < target->tasks.count; i++) {
		struct task *task = target->tasks.items[i];

		if (task->stopped && stop_is_end(task->stop.kind))
			continue;
		task->stop = (struct stop){ STOP_EXITED, task->tid, STOP_UNKNOWN_STATUS };
		task->stopped = true;
	}
	serve_ends(loop);
}

static void answer_detach(struct loop *loop, uint32_t serial, bool clean, const char *text)
{
	struct session *session = loop->session;
	struct wire_detached answer = { .head = { WIRE_DETACHED, serial, session->target->pid, sizeof(answer) },
					.clean = clean };

	if (!text && serial == 0)
		text = session->farewell;
	if (text)
		strncpy(answer.text, text, sizeof(answer.text) - 1);
	link_send(loop->link, &answer, sizeof(answer), -1);
	loop->owes_answer = false;
}

/* Takes out what can be taken out, and answers; later, when for all of it a thread must be held and none can be yet. */
static void undo(struct loop *loop, uint32_t serial)
{
	struct session *session = loop->session;
	const char *text;
	bool clean = session_detach(session, &text);

	if (session->ended) {
		loop->owes_answer = false;
		finish(loop);
	} else if (session->target->undo_due && !clock_passed(loop->leaving_deadline_ns)) {
		loop->owes_answer = true;
		loop->owed_serial = serial;
	} else {
		answer_detach(loop, serial, clean, text);
	}
}

static void let_go(struct loop *loop, struct task *task)
{
	if (loop->owes_answer && !task->guest) {
		undo(loop, loop->owed_serial);     /* with this one held */
		return;
	}
	if (!stop_is_end(task->stop.kind))
		task_detach(task);
	engine_task_gone(loop->session->engine, task);
	task_remove(task);
}

static void serve(struct loop *loop, struct task *task, const struct stop *stop)
{
	if (stop->kind == STOP_SIGNAL && !loop->session->leaving) {
		serve_signal(loop, task, stop);
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
		serve_exec(loop, task);
		break;
	case STOP_SYSCALL:
		serve_syscall(loop, task);
		break;
	default:
		if (loop->session->target->handler_installed)
			task_unmask(task);
		task_resume(task);
	}
	serve_ends(loop);
}

/* --- who is next --- */

/* Looks at every task once.  The kernel shows the youngest stopped child first: without this, busy young
 * threads would keep an older one waiting for ever. */
static unsigned sweep(struct loop *loop)
{
	unsigned served = 0;

	loop->since_sweep = 0;
	for (size_t i = 0; loop->session && i < loop->session->target->tasks.count && !loop->done; i++) {
		struct task *task = loop->session->target->tasks.items[i];
		struct stop stop;

		if (stop_look(task->tid, &stop) < 0 || stop.kind == STOP_NONE)
			continue;
		serve(loop, task, &stop);
		served++;
	}
	return served;
}

/* Its parent is in the middle of telling of it, and only that tells what it has inherited; a machine that is busy
 * may let the parent wait for some time.  True: the deadline has passed, so the parent was killed instead. */
static bool waited_enough(struct loop *loop, pid_t tid)
{
	const struct timespec pause = { 0, STRANGER_PAUSE_NS };

	if (loop->stranger != tid) {
		loop->stranger = tid;
		loop->stranger_deadline_ns = clock_monotonic_ns() + STRANGER_DEADLINE_MS * NSEC_PER_MSEC;
	}
	if (clock_passed(loop->stranger_deadline_ns))
		return true;
	clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	return false;
}

/* A child that is no task yet. */
static void serve_stranger(struct loop *loop, const struct stop *stop)
{
	struct session *session = loop->session;
	struct task *task;

	if (stop_is_end(stop->kind)) {
		stop_reap(stop->tid);
		if (!snapshot_child_ended(stop->tid, stop->kind == STOP_EXITED && stop->sig == 0))
			follow_child_ended(stop->tid);
		return;
	}
	if (!session) {
		ptrace_detach(stop->tid, 0);
		return;
	}
	if (sweep(loop) > 0 || task_find(stop->tid) || loop->done || !waited_enough(loop, stop->tid))
		return;
	loop->stranger = 0;
	if (target_adopt_child(session->target, NULL, stop->tid) == 1) {
		task = task_find(stop->tid);
		if (task->stopped)
			task_resume(task);
	}
}

static void serve_next_stop(struct loop *loop)
{
	struct target *target = loop->session ? loop->session->target : NULL;
	struct stop stop;
	struct task *task;
	int r;

	if (target && target->tasks.count > 1 && loop->since_sweep >= target->tasks.count + SWEEP_SPARING &&
	    sweep(loop) > 0)
		return;
	r = stop_wait(&stop);
	if (r == -ECHILD && target && !loop->session->leaving)
		serve_lost(loop);
	if (r < 0 || stop.kind == STOP_NONE)
		return;
	task = task_find(stop.tid);
	loop->since_sweep++;
	if (task)
		serve(loop, task, &stop);
	else
		serve_stranger(loop, &stop);
}

/* --- messages --- */

static void resume_held(struct loop *loop)
{
	struct target *target = loop->session->target;

	for (size_t i = target->tasks.count; i-- > 0;) {
		struct task *task = target->tasks.items[i];

		if (task->stopped && !stop_is_end(task->stop.kind))
			task_resume(task);
	}
}

static void attach(struct loop *loop, const struct wire_attach *request)
{
	begin_long_step(loop);
	if (loop->session && loop->session->set_aside) {
		if (session_resume(loop->session, request) == 0)
			resume_held(loop);
		return;
	}
	if (loop->session) {
		session_fail(loop->link, request->head.serial, request->head.pid, FAILURE_LIMIT, 0,
			     "this tracer has a process already");
		return;
	}
	if (session_attach(loop->link, request, &loop->session) < 0) {
		loop->done = true;
		return;
	}
	resume_held(loop);
}

static void detach(struct loop *loop, uint32_t serial)
{
	struct session *session = loop->session;

	loop->leaving_deadline_ns = clock_monotonic_ns() + LEAVING_DEADLINE_MS * NSEC_PER_MSEC;
	if (session->set_aside) {
		session->set_aside = false;
		answer_detach(loop, serial, true, NULL);
		return;
	}
	undo(loop, serial);
}

static void set_aside(struct loop *loop, uint32_t serial)
{
	struct wire_detached answer = { .head = { WIRE_DETACHED, serial, loop->session->target->pid, sizeof(answer) } };
	const char *text = NULL;

	begin_long_step(loop);
	answer.clean = loop->session->set_aside || session_set_aside(loop->session, &text);
	if (loop->session->ended) {
		loop->session->set_aside = false;
		finish(loop);
		return;
	}
	if (text)
		strncpy(answer.text, text, sizeof(answer.text) - 1);
	link_send(loop->link, &answer, sizeof(answer), -1);
}

static void leave(struct loop *loop, uint32_t serial)
{
	if (!loop->session || (loop->session->leaving && !loop->session->set_aside))
		return;
	begin_long_step(loop);
	snapshot_write_now(loop->session, SNAPSHOT_DETACH);
	detach(loop, serial);
}

static void tick(struct loop *loop)
{
	loop->ticks++;
	if (loop->ticks % TICKS_PER_SECOND == 0 && loop->session && !loop->session->leaving)
		session_verify(loop->session);
	if (loop->ticks % TICKS_PER_BEAT == 0)
		link_beat(loop->link, loop->session ? loop->session->target->pid : 0, HEARTBEAT_PATIENCE_MS);
}

/* A daemon that is stopped or hangs: nobody could ask for what is traced, or let it go.  What it is sent now it
 * finds when it goes on. */
static void leave_silent_daemon(struct loop *loop)
{
	if (loop->session && !loop->session->leaving)
		session_fail(loop->link, 0, loop->session->target->pid, FAILURE_INTERNAL, 0,
			     "let go: the daemon did not answer for %d s", LINK_SILENT_TICKS * LINK_TICK_MS / 1000);
	leave(loop, 0);
	if (!loop->session)
		loop->done = true;
}

static void answer_done(struct loop *loop, const struct wire_head *request)
{
	struct wire_head done = { WIRE_DONE, request->serial, request->pid, sizeof(done) };

	link_send(loop->link, &done, sizeof(done), -1);
}

/* Requests that need a session. */
static void serve_request(struct loop *loop, const struct link_message *message)
{
	const struct wire_head *head = &message->body.head;
	struct session *session = loop->session;

	if (!session || (session->leaving && !session->set_aside)) {
		session_fail(loop->link, head->serial, head->pid, FAILURE_NOT_TRACED, 0, "process %d is not traced",
			     head->pid);
		return;
	}
	switch (message->type) {
	case WIRE_SNAPSHOT:
		session_verify(session);
		snapshot_start(session, head->serial,
			       ((const struct wire_snapshot_request *)head)->with_blocks);
		break;
	case WIRE_STATUS:
		session_verify(session);
		session_send_status(session, head->serial);
		break;
	case WIRE_BLOCK:
		session_send_blocks(session, head->serial, ((const struct wire_block_request *)head)->address);
		break;
	case WIRE_CLEAR:
		heap_clear(session->heap);
		answer_done(loop, head);
		break;
	case WIRE_RESET_PEAK:
		heap_reset_peak(session->heap, clock_monotonic_ns());
		answer_done(loop, head);
		break;
	case WIRE_DETACH:
		leave(loop, head->serial);
		break;
	case WIRE_SET_ASIDE:
		set_aside(loop, head->serial);
		break;
	default:
		break;
	}
}

static void serve_message(struct loop *loop, struct link_message *message)
{
	switch (message->type) {
	case LINK_TICK:
		tick(loop);
		break;
	case LINK_CLOSED:
	case LINK_TERMINATE:
		leave(loop, 0);
		if (!loop->session)
			loop->done = true;
		break;
	case LINK_SILENT:
		leave_silent_daemon(loop);
		break;
	case WIRE_ATTACH:
		attach(loop, (const struct wire_attach *)&message->body);
		break;
	default:
		serve_request(loop, message);
	}
	fd_close(&message->fd);
	free(message);
}

static bool is_finished(const struct loop *loop)
{
	const struct session *session = loop->session;

	if (loop->done)
		return snapshot_running() == 0 || !session || session->leaving;
	return session && session->leaving && !session->set_aside && snapshot_running() == 0 &&
	       (session->target->tasks.count == 0 || clock_passed(loop->leaving_deadline_ns));
}

int loop_run(struct link *link, struct session *session)
{
	struct loop loop = { .link = link, .session = session };
	int status = EXIT_SUCCESS;

	if (session && session->refused)
		detach(&loop, 0);
	else if (session)
		resume_held(&loop);
	while (!is_finished(&loop)) {
		bool traces = (loop.session && loop.session->target->tasks.count > 0) || snapshot_running() > 0;
		struct link_message *message = NULL;

		if (!traces || link_has_message(link))
			message = link_take(link, !traces);
		if (message)
			serve_message(&loop, message);
		else
			serve_next_stop(&loop);
	}
	if (loop.owes_answer)
		undo(&loop, loop.owed_serial);
	if (loop.session && session_left_to_root(loop.session))
		status = TRACER_LEFT_SOMETHING;
	begin_long_step(&loop);        /* until this process has ended */
	session_free(loop.session);
	return status;
}
