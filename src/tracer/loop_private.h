/* What the files of the loop share; nobody else includes it. */
#ifndef ALLOCWATCH_TRACER_LOOP_PRIVATE_H
#define ALLOCWATCH_TRACER_LOOP_PRIVATE_H

#include "tracer/link.h"
#include "tracer/placement.h"
#include "tracer/release.h"
#include "tracer/session.h"

#define LEAVING_DEADLINE_MS 10000      /* for tasks that do not stop to be let go (vfork, D state) */

struct loop {
	struct link *link;
	struct session *session;
	struct placement placement;
	uint64_t next_beat_ns, next_look_ns;
	unsigned since_sweep;          /* stops served since all tasks were looked at */
	uint64_t swept_ns;             /* when that was */
	uint64_t stuck_ns;             /* since when a record has been under way; 0: none */
	struct awaited writer;         /* the same, without ptrace, */
	struct settling settling;      /* and when it is settled */
	uint64_t idle_ns;              /* how long to wait for records */
	uint64_t leaving_deadline_ns;
	bool owes_answer;              /* to a detach that waits for a thread that can be held */
	uint32_t owed_serial;
	pid_t stranger;                /* who stopped and is no task yet */
	uint64_t stranger_deadline_ns;
	size_t next_asked;             /* the thread that is looked at next for loop_ask_in_time() */
	bool catching_up;              /* a stop is served out of its turn, so that its thread can finish a record */
	bool daemon_silent;
	bool left_something;           /* by an attach that failed */
	bool done;
};

/* Attach, exec, new objects, the last snapshot, detach: no heartbeat comes in the middle of them. */
void loop_begin_long_step(struct loop *loop);

/* As loop_catch_up(), without ptrace: nobody is held meanwhile, so whoever is in the midst of a record may wait for a processor for longer. */
bool loop_catch_up_released(struct loop *loop);
/* An allocator has come, whose calls are to be watched. */
void loop_watch_objects(struct loop *loop);
/* Without ptrace: a record is under way, by `writer` where that is known (0: not).  True: it was settled, by seizing the process. */
bool loop_settle_in_time(struct loop *loop, pid_t writer);

/* --- what was recorded before (loop_catch_up.c) --- */
/* Serves all that was recorded before now, `held` being a thread that is looked at (0: none).  False: not all came in time. */
bool loop_catch_up(struct loop *loop, pid_t held);
/* At all other stops it is in a system call, and behind an exec in other memory. */
bool loop_may_be_writing(enum stop_kind kind);
bool loop_is_trap(const struct stop *stop);

/* --- one stop (loop_serve.c) --- */
void loop_serve(struct loop *loop, struct task *task, const struct stop *stop);
/* The task has executed a program. */
void loop_serve_exec(struct loop *loop, struct task *task);
/* True: the last thread ended while something else was done with it (the program that it had just executed was looked at), where that
 * was taken note of; no stop tells of it any more. */
bool loop_serve_unseen_end(struct loop *loop);
/* The kernel knows of none of the tasks any more. */
void loop_serve_lost(struct loop *loop);
/* The process has ended: what is left to do is to say so. */
void loop_finish(struct loop *loop);

/* --- whether the handler is still ours (loop_ask.c) --- */
/* Once a second: at the next stop, or, when none has come since the last time, at one of a thread that runs, or waits in a call
 * that this does not disturb. */
void loop_ask_in_time(struct loop *loop);

/* --- messages (loop_requests.c) --- */
void loop_serve_message(struct loop *loop, struct link_message *message);
void loop_resume_held(struct loop *loop);
/* One that is traced without ptrace has other memory: that is attached to, or it is let go. */
void loop_serve_unseen_exec(struct loop *loop);
/* With the last snapshot; serial 0: nobody has asked for it. */
void loop_leave(struct loop *loop, uint32_t serial);
void loop_detach(struct loop *loop, uint32_t serial);
/* Takes out what can be taken out, and answers; later, when for all of it a thread must be held and none can be yet. */
void loop_undo(struct loop *loop, uint32_t serial);
void loop_answer_detach(struct loop *loop, uint32_t serial, bool clean, const char *text);

#endif
