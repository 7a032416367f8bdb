/* What the daemon asks for, and what the link tells: ticks, its end, its silence. */
#include "tracer/loop_private.h"

#include "tracer/heal.h"
#include "tracer/opening.h"
#include "tracer/recall.h"
#include "tracer/refuge.h"
#include "tracer/release.h"
#include "tracer/snapshot.h"

#include "target/order.h"
#include "target/process.h"
#include "target/resident.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ticks are never early. */
#define EARLY_NS (LINK_TICK_MS / 2 * NSEC_PER_MSEC)

void loop_answer_detach(struct loop *loop, uint32_t serial, bool clean, const char *text)
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

void loop_undo(struct loop *loop, uint32_t serial)
{
	struct session *session = loop->session;
	const char *text;
	bool clean = session_detach(session, &text);

	if (session->ended) {
		loop->owes_answer = false;
		loop_finish(loop);
	} else if (session->target->undo_due && !clock_passed(loop->leaving_deadline_ns)) {
		loop->owes_answer = true;
		loop->owed_serial = serial;
	} else {
		loop_answer_detach(loop, serial, clean, text);
	}
}

static void resume(struct task *task)
{
	task_resume(task);
}

/* Nobody is forgotten, and who runs stays one that is known. */
static bool serve_running(void *context)
{
	struct session *session = context;

	if (session_room_is_due(session))
		session_make_room(session);
	return false;
}

void loop_resume_held(struct loop *loop)
{
	const struct order_going going = { .go = resume, .between = serve_running, .context = loop->session };
	struct target *target = loop->session->target;
	struct task *executed = target_executed(target);

	if (executed)
		loop_serve_exec(loop, executed);
	order_let_go(target, &going);
	engine_look_at_noted_stacks(loop->session->engine);
}

/* It is heard of again before that has passed: a long step is over.  Without ptrace it may wait for what a thread of the process holds in the
 * kernel (its mappings) that gets no processor. */
static void beat(struct loop *loop)
{
	bool released = loop->session && loop->session->released;

	loop->next_beat_ns = clock_monotonic_ns() + HEARTBEAT_MS * NSEC_PER_MSEC - EARLY_NS;
	link_beat(loop->link, loop->session ? loop->session->target->pid : 0, released ? HEARTBEAT_RELEASED_MS : HEARTBEAT_PATIENCE_MS);
}

static bool begins_released(const struct session *session)
{
	return session->alone && !session->release_due && !session->waits_for_exec;
}

static void begin(struct loop *loop)
{
	struct session *session = loop->session;

	if (begins_released(session))
		release_begin(session);
	else
		loop_resume_held(loop);
}

void loop_serve_unseen_exec(struct loop *loop)
{
	struct session *session = loop->session;
	int r;

	loop_begin_long_step(loop);
	r = release_attach_anew(session);
	if (r == 0) {
		begin(loop);
		return;
	}
	if (r == -ECANCELED)
		session_say_farewell(session, FAILURE_NOT_PERMITTED,
				     "it executes a set-id program, or one with capabilities, which would not have them while it is traced");
	else
		session_say_farewell(session, FAILURE_INTERNAL, "it executes another program, which cannot be attached to: %s",
				     process_tracer(session->target->pid) > 0 ? "another tracer has it, such as a debugger or strace" :
				     strerror(-r));
	resident_forget(session->target);
	session->leaving = true;
	/* Else it is written already, as of an exec. */
	if (r == -ECANCELED)
		snapshot_write_now(session, SNAPSHOT_DETACH);
	loop_answer_detach(loop, 0, true, NULL);
}

/* It was seized for an exec that has failed, or has another thread before it. */
static void end_exec(struct loop *loop)
{
	loop_begin_long_step(loop);
	if (!release_again(loop->session))
		loop_resume_held(loop);
}

/* Who is told of an attach may use a debugger on the process at once, where ptrace is let go; and of what becomes of it he hears later. */
static void answer_and_begin(struct loop *loop, uint32_t serial)
{
	bool let_go = begins_released(loop->session);

	if (!let_go)
		session_send_program(loop->session, WIRE_ATTACHED, serial);
	begin(loop);
	if (let_go)
		session_send_program(loop->session, WIRE_ATTACHED, serial);
}

static void attach(struct loop *loop, const struct wire_attach *request)
{
	int r;

	loop_begin_long_step(loop);
	if (loop->session && loop->session->set_aside) {
		if (session_resume(loop->session, request) == 0)
			answer_and_begin(loop, request->head.serial);
		beat(loop);
		return;
	}
	if (loop->session) {
		session_fail(loop->link, request->head.serial, request->head.pid, FAILURE_LIMIT, 0,
			     "this tracer has a process already");
		return;
	}
	r = session_attach(loop->link, request, &loop->session);
	if (r < 0) {
		loop->left_something = r == -EUCLEAN;
		loop->done = true;
		return;
	}
	answer_and_begin(loop, request->head.serial);
	beat(loop);
}

void loop_detach(struct loop *loop, uint32_t serial)
{
	struct session *session = loop->session;

	loop->leaving_deadline_ns = clock_monotonic_ns() + LEAVING_DEADLINE_MS * NSEC_PER_MSEC;
	if (session->set_aside) {
		session->set_aside = false;
		loop_answer_detach(loop, serial, true, NULL);
		return;
	}
	loop_undo(loop, serial);
}

/* What was let go of ptrace is seized, to be let go of wholly.  False: it cannot be, which was said. */
static bool take_back(struct loop *loop, uint32_t serial)
{
	struct session *session = loop->session;
	pid_t pid = session->target->pid, other;
	int r = session->released ? release_end(session) : 0;

	if (r == 0 || r == -ESRCH)
		return true;
	other = process_tracer(pid);
	session_fail(loop->link, serial, pid, FAILURE_INTERNAL, 0,
		     "process %d cannot be let go: %s; try again afterwards", pid,
		     other > 0 ? "another tracer has it, such as a debugger or strace: end that" : strerror(-r));
	return false;
}

static void set_aside(struct loop *loop, uint32_t serial)
{
	struct wire_detached answer = { .head = { WIRE_DETACHED, serial, loop->session->target->pid, sizeof(answer) } };
	const char *text = NULL;

	loop_begin_long_step(loop);
	if (!take_back(loop, serial))
		return;
	answer.clean = loop->session->set_aside || session_set_aside(loop->session, &text);
	if (loop->session->ended) {
		loop->session->set_aside = false;
		loop_finish(loop);
		return;
	}
	if (text)
		strncpy(answer.text, text, sizeof(answer.text) - 1);
	link_send(loop->link, &answer, sizeof(answer), -1);
}

/* It cannot be seized again.  Nobody waits for a better moment: what stays is taken out when the daemon heals. */
static void leave_released(struct loop *loop, uint32_t serial)
{
	struct session *session = loop->session;
	enum release_state state = release_state(session);

	engine_read_last(session->engine);
	release_forget_threads(session);
	if (state == RELEASE_ENDED) {
		release_note_status(session);
		loop_finish(loop);
		return;
	}
	session->leaving = true;
	/* Nor can a fresh process seize it now that another tracer has it. */
	session->target->left_something = state == RELEASE_RUNS && process_tracer(session->target->pid) == 0;
	if (state == RELEASE_RUNS)
		session_verify(session);
	if (!link_is_closed(loop->link))
		snapshot_write_now(session, SNAPSHOT_DETACH);
	loop_answer_detach(loop, serial, state != RELEASE_RUNS, state != RELEASE_RUNS ? NULL :
			   "another tracer has it: our jumps stay, and do no harm; 'allocwatchd --heal' takes them out");
}

void loop_leave(struct loop *loop, uint32_t serial)
{
	if (!loop->session || (loop->session->leaving && !loop->session->set_aside))
		return;
	loop_begin_long_step(loop);
	if (loop->session->released)
		release_drop_ended(loop->session);
	if (loop->session->released && release_end(loop->session) < 0) {
		leave_released(loop, serial);
		return;
	}
	/* What was overwritten by now has been missed there, which a status would say, too. */
	if (!loop->session->leaving)
		session_verify(loop->session);
	/* When nobody is there to take it, it is stored once the process is free: see refuge.h. */
	if (!link_is_closed(loop->link))
		snapshot_write_now(loop->session, SNAPSHOT_DETACH);
	loop_detach(loop, serial);
}

/* Nobody has asked for it, so nothing has been read for that.  Who is let go of ptrace is held first, and writes nothing then. */
static void leave_unasked(struct loop *loop)
{
	struct session *session = loop->session;

	if (session && !session->released && !session->leaving)
		session->out_of_order += !loop_catch_up(loop, 0);
	if (!loop->done)
		loop_leave(loop, 0);
	if (!loop->session)
		loop->done = true;
}

static void verify(struct loop *loop)
{
	loop->next_look_ns = clock_monotonic_ns() + NSEC_PER_SEC - EARLY_NS;
	if (!loop->session || loop->session->leaving)
		return;
	if (loop->session->released) {
		if (release_look(loop->session))
			loop_resume_held(loop);
		return;
	}
	session_verify(loop->session);
	loop_ask_in_time(loop);
}

/* By the clock: where others have the processors ticks come late, and few of them. */
static void tick(struct loop *loop)
{
	if (loop->session && release_exec_failed(loop->session))
		end_exec(loop);
	if (loop->session && loop->session->heap)
		snapshot_start_waiting(loop->session);
	if (clock_passed(loop->next_look_ns))
		verify(loop);
	if (clock_passed(loop->next_beat_ns))
		beat(loop);
}

/* A daemon that is stopped or hangs: nobody could ask for what is traced, or let it go.  What it is sent now it
 * finds when it goes on. */
static void leave_silent_daemon(struct loop *loop)
{
	loop->daemon_silent = true;
	if (loop->session && !loop->session->leaving)
		session_fail(loop->link, 0, loop->session->target->pid, FAILURE_INTERNAL, 0,
			     "let go: the daemon did not answer for %d s", LINK_SILENT_TICKS * LINK_TICK_MS / 1000);
	leave_unasked(loop);
}

static void recall(struct loop *loop, struct link_message *message)
{
	loop_begin_long_step(loop);
	if (!loop->session)
		recall_send(loop->link, (const struct wire_recall *)&message->body, message->fd);
	loop->done = true;
}

static void answer_done(struct loop *loop, const struct wire_head *request)
{
	struct wire_head done = { WIRE_DONE, request->serial, request->pid, sizeof(done) };

	link_send(loop->link, &done, sizeof(done), -1);
}

static void heal(struct loop *loop, const struct wire_head *request)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", request->pid);
	if (loop->session)
		return;
	loop_begin_long_step(loop);        /* tells the daemon, too, which process this is */
	if (heal_main(request->pid > 0 ? number : NULL) == EXIT_SUCCESS)
		answer_done(loop, request);
	else
		session_fail(loop->link, request->serial, request->pid, FAILURE_INTERNAL, 0, "not all could be taken out");
	loop->done = true;
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
	/* Answers are of now, or say that they are not exact. */
	session->out_of_order += !loop_catch_up(loop, 0);
	/* Of what was loaded by then calls may have been missed, which is known when it is watched. */
	if (session->watch_due && !loop->done && !session->leaving)
		loop_watch_objects(loop);
	/* And of what may have been loaded without a record, when it is looked for. */
	if (session->released && !loop->done && engine_misses_change(session->engine))
		verify(loop);
	if (loop->done || (session->leaving && !session->set_aside)) {
		session_fail(loop->link, head->serial, head->pid, FAILURE_GONE, 0, "process %d has just ended", head->pid);
		return;
	}
	engine_take_losses(session->engine);
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
	case WIRE_MISUSES:
		session_send_misuses(session, head->serial);
		break;
	case WIRE_CLEAR:
		session_clear(session);
		answer_done(loop, head);
		break;
	case WIRE_RESET_PEAK:
		heap_reset_peak(session->heap, clock_monotonic_ns());
		answer_done(loop, head);
		break;
	case WIRE_DETACH:
		if (take_back(loop, head->serial))
			loop_leave(loop, head->serial);
		break;
	case WIRE_SET_ASIDE:
		set_aside(loop, head->serial);
		break;
	default:
		break;
	}
}

void loop_serve_message(struct loop *loop, struct link_message *message)
{
	switch (message->type) {
	case LINK_TICK:
		tick(loop);
		break;
	case LINK_CLOSED:
	case LINK_TERMINATE:
		leave_unasked(loop);
		break;
	case LINK_SILENT:
		leave_silent_daemon(loop);
		break;
	case WIRE_REFUGE:
		if (loop->session)
			refuge_take(loop->session, &message->fd);
		break;
	case WIRE_RECALL:
		recall(loop, message);
		break;
	case WIRE_HEAL:
		heal(loop, &message->body.head);
		break;
	case WIRE_OPEN:
		loop_begin_long_step(loop);
		if (!loop->session)
			opening_send(loop->link, (const struct wire_open *)&message->body);
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
