/* Records that nobody will finish, or not soon, in a process that is seized for that: a handler of a signal has come in their midst. */
#include "probe/engine_private.h"
#include "probe/view.h"

#include "target/attach.h"
#include "target/handlers.h"
#include "target/ptrace.h"

#include <errno.h>

#define UNFINISHED_MAX 4096                /* records at a time */

static bool look(struct engine *engine, struct task *task, struct chain *chain)
{
	struct user_regs_struct user;
	struct arch_regs regs;

	if (task_getregs(task, &user) < 0)
		return false;
	arch_regs_from_user(&user, &regs);
	chain->count = unwinder_chain(engine->unwinder, &regs, &engine->reader, UINT64_MAX, chain->frames, &chain->whole);
	return true;
}

/* What the kernel's frames on its stack bring back is put out of records.  True: it is in the midst of none. */
static bool settle_handlers(struct engine *engine, struct task *task)
{
	static struct chain chain;

	if (!task->stopped)
		return false;
	if (stop_is_end(task->stop.kind))
		return true;
	if (jumps_is_in_record(task) || !look(engine, task, &chain))
		return false;
	for (uint32_t i = 1; i < chain.count; i++) {
		if (chain.frames[i].interrupted && jumps_settle_frame(engine->target, view_signal_frame(&chain, i)) < 0)
			return false;
	}
	if (chain.count == UNWIND_CHAIN_MAX)
		return false;
	return chain.whole || !task_may_return_to_record(task);
}

/* Each, as far as it can be. */
static bool settle_all(struct engine *engine)
{
	const struct target *target = engine->target;
	bool all = true;

	for (size_t i = 0; i < target->tasks.count; i++)
		all &= settle_handlers(engine, target->tasks.items[i]);
	return all;
}

/* Most threads have no frame of a signal where that is seen at a glance. */
static void settle_those_with_frames(struct engine *engine)
{
	struct target *target = engine->target;

	target_look_for_frames(target);
	for (size_t i = 0; i < target->tasks.count; i++) {
		if (!target->tasks.items[i]->is_frameless)
			settle_handlers(engine, target->tasks.items[i]);
	}
}

/* A guest says that it is the thread whose data it has. */
static bool nobody_writes(struct engine *engine, uint64_t thread, bool *all_asked, bool *all_settled)
{
	pid_t tid = thread != 0 && !target_has_guests(engine->target) ? engine_ring_tid(engine, thread) : 0;
	struct task *task = tid > 0 ? task_find(tid) : NULL;

	if (task && task->target == engine->target)
		return settle_handlers(engine, task);
	if (!*all_asked)
		*all_settled = settle_all(engine);
	*all_asked = true;
	return *all_settled;
}

/* Of the piece at this position, which is not committed.  False: it still is to come. */
static bool end_unfinished(struct engine *engine, uint64_t position, uint64_t thread, bool *all_asked, bool *all_settled)
{
	struct ring *ring = engine->ring.ring;
	uint64_t found = position;

	if (!nobody_writes(engine, thread, all_asked, all_settled))
		return false;
	/* It may have been made void with what its thread comes back to. */
	if (ring_find_unfinished(ring, &found, &thread) && found == position)
		ring_make_void(ring, position);
	return !ring_find_unfinished(ring, &found, &thread) || found != position;
}

/* --- those that are not settled --- */

void engine_read_last(struct engine *engine)
{
	if (!engine_catch_up(engine))
		engine->counters.failed_reads++;
}

void engine_pass_living(struct engine *engine)
{
	struct ring_side *side = &engine->ring;
	struct ring_record record;

	if (!side->ring || ring_next(side->ring, &record) != -EAGAIN)
		return;
	side->passed_thread = !side->passed || side->passed_thread == record.thread ? record.thread : 0;
	side->passed = true;
	engine_pass_record(engine);
}

bool engine_may_be_overwritten(struct engine *engine)
{
	struct ring_side *side = &engine->ring;

	if (side->passed && side->passed_thread != 0 && engine_ring_writer_is_gone(engine, side->passed_thread))
		side->passed = false;
	return side->passed;
}

/* Who was passed is no more in the record that he had, nor comes back to it. */
static void settle_passed(struct engine *engine)
{
	if (engine->ring.passed && settle_all(engine))
		engine->ring.passed = false;
}

/* --- all of them --- */

bool engine_settle(struct engine *engine)
{
	bool all_asked = false, all_settled = false, ended = true;
	uint64_t position, thread;

	if (!engine->ring.ring)
		return true;
	settle_those_with_frames(engine);
	position = ring_position(engine->ring.ring);
	for (unsigned i = 0; ended && ring_find_unfinished(engine->ring.ring, &position, &thread); i++)
		ended = i < UNFINISHED_MAX && end_unfinished(engine, position, thread, &all_asked, &all_settled);
	settle_passed(engine);
	return ended;
}

bool engine_is_in_handler(struct engine *engine, struct task *task, raddr at)
{
	static struct chain chain;
	struct user_regs_struct user;
	struct arch_regs regs;

	if (ptrace_getregs(task->tid, &user) < 0)
		return true;
	arch_regs_from_user(&user, &regs);
	chain.count = unwinder_chain(engine->unwinder, &regs, &engine->reader, UINT64_MAX, chain.frames, &chain.whole);
	for (uint32_t i = 1; i < chain.count; i++) {
		if (chain.frames[i].interrupted && view_signal_frame(&chain, i) == at)
			return true;
	}
	return !chain.whole;
}
