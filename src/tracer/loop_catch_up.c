/* Before a stop is served, and before an answer, all is read that was recorded before: also what threads are just writing. */
#include "tracer/loop_private.h"

#include "target/awaited.h"
#include "target/jumps.h"
#include "target/ptrace.h"

#include "base/clock.h"

#include <signal.h>
#include <time.h>

#define CATCH_UP_DEADLINE_MS 200       /* for records that are being written, */
#define STARVED_DEADLINE_MS 2000       /* while a thread has no processor that may be the writer: as long as all may be held for a moment */
#define CATCH_UP_PAUSE_NS 20000
#define SETTLE_TURNS 50

struct catching_up {
	uint64_t deadline_ns, last_ns;
	bool extended;
	struct awaited starved;
};

bool loop_is_trap(const struct stop *stop)
{
	return stop->kind == STOP_SIGNAL && stop->sig == SIGTRAP;
}

/* At an int3 of ours: it had finished its record by then, and has another call to tell of. */
static bool is_behind_record(const struct task *task, const struct stop *stop)
{
	struct user_regs_struct regs;

	return loop_is_trap(stop) && ptrace_getregs(task->tid, &regs) == 0 && !jumps_contain(task->target, arch_pc(&regs));
}

/* The stop of a thread that has been stopped while it wrote a record, by a signal, comes first.  One behind that has its turn when
 * what others are writing was read: it would be served before that. */
static bool serve_writer(struct loop *loop, pid_t writer)
{
	struct task *task = writer > 0 ? task_find(writer) : NULL;
	struct stop stop;

	if (!task || task->target != loop->session->target || stop_look(writer, &stop) < 0 || stop.kind == STOP_NONE ||
	    is_behind_record(task, &stop))
		return false;
	loop->catching_up = true;
	loop_serve(loop, task, &stop);
	loop->catching_up = false;
	return true;
}

/* At all other stops it is in a system call, and behind an exec in other memory. */
bool loop_may_be_writing(enum stop_kind kind)
{
	return kind == STOP_SIGNAL || kind == STOP_GROUP || kind == STOP_INTERRUPTED;
}

/* Whoever has been stopped before his record says whose it is. */
static void settle_stopped(const struct target *target)
{
	for (size_t i = 0; i < target->tasks.count; i++) {
		struct task *task = target->tasks.items[i];
		struct stop stop;

		if (!task->stopped && stop_look(task->tid, &stop) == 0 && loop_may_be_writing(stop.kind))
			jumps_settle(task);
	}
}

/* It has waited for so long.  Who gets no processor meanwhile, perhaps since others have more to do there than there are processors, has
 * not had its chance: a record that is left for good is one that nobody goes on with who could. */
static bool is_over(struct loop *loop, struct catching_up *up)
{
	if (!clock_passed(up->deadline_ns))
		return false;
	if (!up->extended)
		loop_begin_long_step(loop);
	up->extended = true;
	return clock_passed(up->last_ns) || !awaited_starves(&up->starved, loop->session->target);
}

/* Of what was recorded before `head`. */
static bool read_up_to(struct loop *loop, uint64_t head, pid_t held, struct catching_up *up)
{
	const struct timespec pause = { 0, CATCH_UP_PAUSE_NS };
	struct engine *engine = loop->session->engine;
	unsigned turns = 0;
	pid_t writer;

	while (!engine_read_until(engine, head, &writer)) {
		if ((writer != 0 && writer == held) || loop->catching_up || engine_is_late(engine, false) ||
		    (is_over(loop, up) && engine_is_late(engine, true)))
			return false;
		if (writer == 0 && turns++ % SETTLE_TURNS == 0)
			settle_stopped(loop->session->target);
		if (!serve_writer(loop, writer) && !loop_settle_in_time(loop, writer))
			clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		/* That may have been the end of it, or of its memory. */
		if (loop->done || loop->session->leaving || loop->session->engine != engine)
			return true;
	}
	return true;
}

bool loop_catch_up(struct loop *loop, pid_t held)
{
	bool was_released = loop->session->released, all;
	struct catching_up up = { 0 };

	if (was_released && !loop_catch_up_released(loop))
		return false;
	/* Else it has been seized meanwhile. */
	if (was_released && (loop->session->released || loop->session->leaving || loop->done))
		return true;
	if (!engine_has_ring(loop->session->engine))
		return true;
	up.deadline_ns = clock_monotonic_ns() + CATCH_UP_DEADLINE_MS * NSEC_PER_MSEC;
	up.last_ns = clock_monotonic_ns() + STARVED_DEADLINE_MS * NSEC_PER_MSEC;
	all = read_up_to(loop, engine_ring_head(loop->session->engine), held, &up);
	awaited_end(&up.starved);
	return all;
}
