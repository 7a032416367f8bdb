/* Whose records they are; and the ring of a process that was forked from one that has a ring: its memory is a copy, its ring is its
 * own. */
#include "probe/engine_private.h"
#include "probe/calls.h"

#include "target/jumps.h"
#include "target/ptrace.h"

#include "base/proc.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

void engine_ring_fork(struct engine *engine, const struct task *task)
{
	if (engine_is_sampling(engine))
		ring_drawn(engine->ring.ring, engine_ring_word(task), &engine->ring.forking);
}

void engine_ring_leave(struct engine *engine)
{
	ring_ahead_forget(engine->ring.ahead);
	engine->ring.ahead = NULL;
	engine->ring.pressure = (struct ring_pressure){ .waits = 0 };
	engine->ring.parents = engine->ring.ring;
	engine->ring.ring = NULL;
	engine->ring.late = UINT64_MAX;
	engine->ring.passed = false;
	engine->counters.records = engine->counters.stacks_ahead = 0;
}

/* Not each way to make a process has the C library write the number of the new one. */
static int read_own_number(struct engine *engine, struct task *task)
{
	struct user_regs_struct regs;
	uint32_t word;
	int r = ptrace_getregs(task->tid, &regs);

	if (r == 0)
		r = target_read(engine->target, arch_thread_pointer(&regs) + engine->ring.layout.tid, &word, sizeof(word));
	if (r == 0)
		task_set_own_number(task, (pid_t)word);
	return r;
}

static void note_pending_calls(struct engine *engine, const struct task *task)
{
	const struct calls *calls = task->calls;

	for (uint32_t i = 0; calls && i < calls->count; i++) {
		if (calls->items[i].kind == CALL_ALLOCATES)
			ring_note_pending(engine->ring.ring, engine_ring_word(task), calls->items[i].sp);
	}
}

int engine_ring_begin_copy(struct engine *engine, struct task *task, uint64_t size)
{
	struct ring_control *control;
	uint32_t holes;
	int r;

	if (!engine->ring.parents)
		return 0;
	engine->ring.options.size = size;
	r = size > 0 ? engine_ring_make(engine) : -ENOMEM;
	if (r == 0)
		r = read_own_number(engine, task);
	if (r < 0)
		return r;
	control = ring_control(engine->ring.ring);
	memcpy(control->shapes, ring_control(engine->ring.parents)->shapes, sizeof(control->shapes));
	memcpy(control->lengths, ring_control(engine->ring.parents)->lengths, sizeof(control->lengths));
	holes = ring_control(engine->ring.parents)->has_holes;
	ring_free(engine->ring.parents);
	engine->ring.parents = NULL;
	engine_ring_publish_stacks(engine);
	engine_ring_note_stacks(engine);
	engine_look_at_noted_stacks(engine);
	if (holes != 0 && holes != RING_HOLES_UNKNOWN)
		control->has_holes = holes;
	if (engine_is_sampling(engine))
		ring_copy_drawn(engine->ring.ring, engine_ring_word(task), &engine->ring.forking);
	else
		note_pending_calls(engine, task);
	__atomic_store_n(&control->state, RING_ON, __ATOMIC_RELEASE);
	return jumps_switch_on(engine->target);
}

/* Of what a record says. */
static pid_t own_number_of(uint64_t thread)
{
	return thread <= INT32_MAX ? (pid_t)thread : 0;
}

pid_t engine_ring_tid(const struct engine *engine, uint64_t thread)
{
	const struct task *task = task_find_own(engine->target, own_number_of(thread));

	return task ? task->tid : 0;
}

static size_t count_unlisted(const struct target *target)
{
	size_t count = 0;

	for (size_t i = 0; i < target->tasks.count; i++)
		count += target->tasks.items[i]->unlisted;
	return count;
}

/* Nothing of theirs is kept but that they were there. */
static void drop_unlisted_without_calls(struct target *target)
{
	for (size_t i = target->tasks.count; i-- > 0;) {
		struct task *task = target->tasks.items[i];

		if (task->unlisted && (!task->calls || calls_pending(task->calls) == 0))
			target->task_gone(target->context, task);
	}
}

static struct task *add_unlisted(struct target *target, pid_t tid)
{
	struct task *task;

	if (count_unlisted(target) >= RING_UNLISTED_MAX)
		drop_unlisted_without_calls(target);
	if (count_unlisted(target) >= RING_UNLISTED_MAX || task_add(target, tid, &task) < 0)
		return NULL;
	task->unlisted = true;
	return task;
}

/* One that has ended is nobody's any more; another process's thread it never was. */
static struct task *add_writer(struct target *target, pid_t tid)
{
	pid_t group = tid > 0 ? proc_thread_group(tid) : -1;
	struct task *task;

	if (group == 0)
		return add_unlisted(target, tid);
	return group == target->pid && task_add(target, tid, &task) == 0 ? task : NULL;
}

/* Of a number that is not ours either a thread that lives says it, or it has ended, and it cannot be known any more what it was called
 * here.  That one is told from others by its own number, below 0. */
static struct task *find_in_namespace(struct target *target, pid_t own_number)
{
	struct task *task;

	target_note_threads(target);
	task = task_find_own(target, own_number);
	if (task || own_number <= 0)
		return task;
	task = add_unlisted(target, -own_number);
	if (task)
		task_set_own_number(task, own_number);
	return task;
}

/* Where nobody tells of threads. */
static struct task *find_untold(struct target *target, pid_t own_number)
{
	return target->namespace_level > 0 ? find_in_namespace(target, own_number) : add_writer(target, own_number);
}

struct task *engine_ring_writer(const struct engine *engine, uint64_t thread)
{
	struct task *task = task_find_own(engine->target, own_number_of(thread));

	return task || !engine->ring.options.alone ? task : find_untold(engine->target, own_number_of(thread));
}

static bool lives(const struct target *target, pid_t own_number)
{
	const struct task *task = task_find_own(target, own_number);

	return task && task->tid > 0 && proc_thread_group(task->tid) == target->pid;
}

bool engine_ring_writer_is_gone(const struct engine *engine, uint64_t thread)
{
	struct target *target = engine->target;
	pid_t own_number = own_number_of(thread);

	if (!engine->ring.options.alone)
		return !task_find_own(target, own_number);
	if (lives(target, own_number))
		return false;
	/* Its number may be another's by now. */
	target_note_threads(target);
	return !lives(target, own_number);
}

uint64_t engine_ring_word(const struct task *task)
{
	return (uint64_t)task->own_number;
}
