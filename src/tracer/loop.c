#include "tracer/loop.h"
#include "tracer/loop_private.h"

#include "tracer/follow.h"
#include "tracer/refuge.h"
#include "tracer/release.h"
#include "tracer/snapshot.h"

#include "target/held.h"
#include "target/jumps.h"
#include "target/process.h"
#include "target/ptrace.h"
#include "target/resident.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

/* A sweep looks at every task, and each look is a system call: after as many stops as there are tasks, and
 * these more, it costs little also where there are few.  They pass in a millisecond. */
#define SWEEP_SPARING 64
#define SWEEP_LEAST_NS NSEC_PER_MSEC   /* between two, and so much a task: a fiftieth of the time at most */
#define SWEEP_PAUSE_NS 20000
#define RING_BATCH 256                 /* records between two looks at stops and messages */
/* When there are none; twice as long each time, and from a millisecond on, since many processes that are traced rest, a
 * little longer.  After a rest a program that fills its ring at once waits for so long, once. */
#define RING_PAUSE_NS 50000
#define RING_PAUSE_SLOWLY_NS 1000000
#define RING_PAUSE_MAX_NS 10000000
#define STUCK_MS 1000                  /* that a record may be under way before it is asked by whom */
#define RELEASED_CATCH_UP_MS 5000      /* for records that are being written, without ptrace; */
#define STOPPED_CATCH_UP_MS 200        /* by whom job control or a debugger has; */
#define SAID_EVERY_MS 250              /* and how often it is said meanwhile that this tracer is at work */
#define STRANGER_DEADLINE_MS 200
#define STRANGER_PAUSE_NS 20000

void loop_begin_long_step(struct loop *loop)
{
	link_beat(loop->link, loop->session ? loop->session->target->pid : 0, LONG_STEP_MS);
}

/* --- who is next --- */

/* Looks at every task once.  The kernel shows the youngest stopped child first: without this, busy young
 * threads would keep an older one waiting for ever. */
static unsigned sweep(struct loop *loop)
{
	uint64_t began_ns = clock_monotonic_ns();
	unsigned served = 0;

	loop->since_sweep = 0;
	loop->swept_ns = began_ns;
	for (size_t i = 0; loop->session && i < loop->session->target->tasks.count && !loop->done; i++) {
		struct task *task = loop->session->target->tasks.items[i];
		struct stop stop;

		if (stop_look(task->tid, &stop) < 0 || stop.kind == STOP_NONE)
			continue;
		loop_serve(loop, task, &stop);
		served++;
	}
	if (loop->session)
		held_none_since(loop->session->target, began_ns);
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
		if (!snapshot_child_ended(session, stop->tid, stop->kind == STOP_EXITED && stop->sig == 0))
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

/* By stops, so that none waits for long, and by time, so that it is known how long one has waited. */
static bool is_sweep_due(const struct loop *loop, const struct target *target, uint64_t now_ns)
{
	uint64_t pause_ns = target->tasks.count * SWEEP_PAUSE_NS;

	if (target->tasks.count < 2)
		return false;
	return loop->since_sweep >= target->tasks.count + SWEEP_SPARING ||
	       (loop->since_sweep > 0 &&
		now_ns - loop->swept_ns > (pause_ns > SWEEP_LEAST_NS ? pause_ns : SWEEP_LEAST_NS));
}

bool loop_settle_in_time(struct loop *loop, pid_t writer)
{
	enum settled settled = release_settle_in_time(loop->session, &loop->settling, writer);

	if (settled == SETTLED_NOT)
		return false;
	awaited_end(&loop->writer);
	if (settled == SETTLED_AND_HELD)
		loop_resume_held(loop);
	return true;
}

/* A record has not been finished for so long that its writer may have left it, by a jump out of a handler. */
static bool is_stuck(struct loop *loop)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (loop->stuck_ns == 0)
		loop->stuck_ns = now_ns;
	return now_ns - loop->stuck_ns > STUCK_MS * NSEC_PER_MSEC;
}

static void pass_stuck(struct loop *loop)
{
	struct target *target = loop->session->target;
	bool awaited = false;

	loop->stuck_ns = 0;
	loop_begin_long_step(loop);
	if (target_stop_all(target) < 0)
		return;
	for (size_t i = 0; !awaited && i < target->tasks.count; i++)
		awaited = jumps_await(target->tasks.items[i]);
	if (!awaited)
		engine_pass_record(loop->session->engine);
	/* Stops at int3s that were taken in with the rest are not served. */
	loop->session->out_of_order++;
	loop_resume_held(loop);
}

static uint64_t longer_pause(uint64_t ns)
{
	if (ns >= RING_PAUSE_MAX_NS)
		return RING_PAUSE_MAX_NS;
	return ns < RING_PAUSE_SLOWLY_NS ? 2 * ns : ns + ns / 32;
}

static void pause_for_stops(struct loop *loop)
{
	uint64_t began_ns = clock_monotonic_ns();

	stop_pause(loop->idle_ns);
	held_waited(loop->session->target, began_ns);
}

/* The next stop, or none: then records were served, or there is nothing to do for a moment. */
static int look_and_read(struct loop *loop, struct stop *ret_stop)
{
	uint64_t looked_ns = clock_monotonic_ns();
	int served, r = stop_look_at_any(ret_stop);

	if (r < 0 || ret_stop->kind != STOP_NONE)
		return r;
	/* Threads with jumps run for long without a stop that would say until when they did. */
	held_none_since(loop->session->target, looked_ns);
	served = engine_read_ring(loop->session->engine, RING_BATCH, NULL);
	if (served > 0)
		loop->idle_ns = RING_PAUSE_NS;
	else if (served == -EAGAIN && is_stuck(loop))
		pass_stuck(loop);
	else
		pause_for_stops(loop);
	if (served != -EAGAIN)
		loop->stuck_ns = 0;
	if (served <= 0)
		loop->idle_ns = longer_pause(loop->idle_ns);
	return 0;
}

/* It has ended, or has other memory: what it recorded is all there is. */
static void serve_released_end(struct loop *loop, enum release_state state)
{
	struct session *session = loop->session;

	engine_read_last(session->engine);
	release_forget_threads(session);
	if (state == RELEASE_ENDED) {
		release_note_status(session);
		loop_finish(loop);
		return;
	}
	loop_serve_unseen_exec(loop);
}

static void seize_for_exec(struct loop *loop)
{
	loop_begin_long_step(loop);
	if (release_seize_for_exec(loop->session) == 0)
		loop_resume_held(loop);
}

static void let_go_for_rights(struct loop *loop)
{
	loop_begin_long_step(loop);
	if (!release_for_rights(loop->session))
		loop_resume_held(loop);
	loop->idle_ns = RING_PAUSE_NS;
}

void loop_watch_objects(struct loop *loop)
{
	loop_begin_long_step(loop);
	if (release_watch_objects(loop->session))
		loop_resume_held(loop);
	loop->idle_ns = RING_PAUSE_NS;
}

/* A record that is under way is looked at soon again, however long there was nothing to read. */
static bool settle_in_time(struct loop *loop, pid_t writer)
{
	if (loop->settling.position != engine_ring_position(loop->session->engine))
		loop->idle_ns = RING_PAUSE_NS;
	return loop_settle_in_time(loop, writer);
}

/* Of a process that is traced without ptrace: there are records, and ends of snapshots.  One of them, or a pause. */
static void serve_released(struct loop *loop)
{
	enum release_state state;
	struct stop stop;
	pid_t writer;
	int served;

	if (stop_look_at_any(&stop) == 0 && stop.kind != STOP_NONE) {
		if (!release_serve_stop(&stop))
			serve_stranger(loop, &stop);
		return;
	}
	if (loop->session->watch_due) {
		loop_watch_objects(loop);
		return;
	}
	if (loop->session->exec_due) {
		seize_for_exec(loop);
		return;
	}
	served = engine_read_ring(loop->session->engine, RING_BATCH, &writer);
	if (served != -EAGAIN) {
		awaited_end(&loop->writer);
		release_settling_end(&loop->settling);
	}
	if (served > 0) {
		loop->idle_ns = RING_PAUSE_NS;
		return;
	}
	state = release_state(loop->session);
	if (state != RELEASE_RUNS) {
		serve_released_end(loop, state);
		return;
	}
	if (served == -EAGAIN && settle_in_time(loop, writer))
		return;
	/* Whoever writes it may do so yet, where others write by then: answers say so until he cannot any more. */
	if (served == -EAGAIN && awaited_in_vain(&loop->writer, loop->session->target->pid, writer)) {
		engine_pass_living(loop->session->engine);
		awaited_end(&loop->writer);
	}
	stop_pause(loop->idle_ns);
	loop->idle_ns = longer_pause(loop->idle_ns);
}

/* By job control or a debugger: it waits for no processor. */
static bool is_stopped(pid_t pid)
{
	char state = process_thread_state(pid, process_living_thread(pid));

	return state == 'T' || state == 't';
}

bool loop_catch_up_released(struct loop *loop)
{
	struct session *session = loop->session;
	const struct engine *engine = session->engine;
	uint64_t head = engine_ring_head(engine), said_ns = clock_monotonic_ns();
	uint64_t deadline_ns = said_ns + RELEASED_CATCH_UP_MS * NSEC_PER_MSEC;
	uint64_t stopped_deadline_ns = said_ns + STOPPED_CATCH_UP_MS * NSEC_PER_MSEC;
	pid_t pid = session->target->pid;

	while (session->released && session->engine == engine && (int64_t)(head - engine_ring_position(engine)) > 0) {
		bool late = clock_passed(deadline_ns) || (clock_passed(stopped_deadline_ns) && is_stopped(pid));
		uint64_t position = engine_ring_position(engine);

		if (clock_passed(said_ns + SAID_EVERY_MS * NSEC_PER_MSEC)) {
			said_ns = clock_monotonic_ns();
			link_beat(loop->link, pid, HEARTBEAT_RELEASED_MS);
			release_renew(session);
		}
		serve_released(loop);
		/* That may have been the end of it, or of its memory. */
		if (loop->done || session->leaving)
			return true;
		if (session->engine == engine && engine_ring_position(engine) == position && engine_is_late(session->engine, late))
			return false;
	}
	return true;
}

static int wait_for_stop(struct target *target, struct stop *ret_stop)
{
	uint64_t began_ns = clock_monotonic_ns();
	int r = stop_wait(ret_stop);

	if (target)
		held_waited(target, began_ns);
	return r;
}

static void serve_next_stop(struct loop *loop)
{
	struct target *target = loop->session ? loop->session->target : NULL;
	struct stop stop;
	struct task *task;
	int r;

	if (target && loop->session->released) {
		serve_released(loop);
		return;
	}
	if (target && loop->session->watch_due && !loop->session->leaving) {
		loop_watch_objects(loop);
		return;
	}
	if (target && loop->session->rights_due && !loop->session->leaving) {
		let_go_for_rights(loop);
		return;
	}
	if (target && is_sweep_due(loop, target, clock_monotonic_ns()) && sweep(loop) > 0)
		return;
	if (target && !loop->session->leaving && engine_has_ring(loop->session->engine))
		r = look_and_read(loop, &stop);
	else
		r = wait_for_stop(target, &stop);
	if (r == -ECHILD && target && !loop->session->leaving)
		loop_serve_lost(loop);
	if (r < 0 || stop.kind == STOP_NONE)
		return;
	task = task_find(stop.tid);
	loop->since_sweep++;
	if (task)
		loop_serve(loop, task, &stop);
	else
		serve_stranger(loop, &stop);
}

/* --- the loop --- */

static bool is_finished(const struct loop *loop)
{
	const struct session *session = loop->session;

	if (loop->done)
		return snapshot_running() == 0 || !session || session->leaving;
	return session && session->leaving && !session->set_aside && snapshot_running() == 0 &&
	       (session->target->tasks.count == 0 || clock_passed(loop->leaving_deadline_ns));
}

/* The process is free by now: what follows holds nobody.  When it is not, whose threads wait in vfork or for a disk, the
 * end of this process frees them, and that is not put off. */
static void store_when_unheard(struct loop *loop)
{
	if (!loop->session || loop->session->target->tasks.count > 0)
		return;
	link_flush(loop->link);
	if (loop->daemon_silent || link_is_closed(loop->link))
		refuge_store(loop->session);
}

/* There is more to wait for than messages. */
static bool is_busy(const struct loop *loop)
{
	const struct session *session = loop->session;

	return (session && (session->released || session->target->tasks.count > 0)) || snapshot_running() > 0;
}

int loop_run(struct link *link, struct session *session)
{
	const uint64_t now_ns = clock_monotonic_ns();
	struct loop loop = { .link = link, .session = session, .idle_ns = RING_PAUSE_NS,
			     .next_beat_ns = now_ns + HEARTBEAT_MS * NSEC_PER_MSEC, .next_look_ns = now_ns + NSEC_PER_SEC };
	int status = EXIT_SUCCESS;

	if (session && session->refused)
		loop_detach(&loop, 0);
	else if (session)
		loop_resume_held(&loop);
	while (!is_finished(&loop)) {
		bool traces = is_busy(&loop);
		struct link_message *message = NULL;

		if (loop_serve_unseen_end(&loop))
			continue;
		if (!traces || link_has_message(link))
			message = link_take(link, !traces);
		if (message)
			loop_serve_message(&loop, message);
		else
			serve_next_stop(&loop);
	}
	if (loop.owes_answer)
		loop_undo(&loop, loop.owed_serial);
	if (loop.left_something || (loop.session && session_left_something(loop.session)))
		status = TRACER_LEFT_SOMETHING;
	loop_begin_long_step(&loop);        /* until this process has ended */
	store_when_unheard(&loop);
	session_free(loop.session);
	return status;
}
