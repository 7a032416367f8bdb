/* What the code in the target may take to be mapped of the stacks that it copies from: the program's first one and threads' own, up to
 * their ends.  Where one has a hole that may not be relied on of any. */
#include "probe/engine_private.h"

#include "target/holes.h"

#include "base/clock.h"

#include <errno.h>
#include <sys/mman.h>

#define LOOKS 64                       /* threads that are looked at at a time */
#define PAGE 4096u
#define PROT_ANY (PROT_READ | PROT_WRITE | PROT_EXEC)
#define GUARD_INSTALL 102              /* MADV_GUARD_INSTALL, which older headers do not know */
#define OWN_STACK_MAX ((raddr)1 << 40)
#define POINTER_TRIES 16               /* records of one thread that may say where its thread pointer is */
#define LOOK_SHARE 100                 /* looks take so small a part of the time at most */

struct look {
	struct engine *engine;
	size_t count;
	struct ring_thread threads[LOOKS];
	uint32_t numbers[LOOKS];               /* as they stand behind the threads' pointers */
	uint64_t starts[LOOKS];
	struct stack_bounds stacks[LOOKS];
	bool has_hole[LOOKS];
};

/* Too large for a stack, and there is one at a time. */
static struct look *begin_look(struct engine *engine)
{
	static struct look look;

	look.engine = engine;
	look.count = 0;
	return &look;
}

void engine_ring_publish_stacks(struct engine *engine)
{
	struct ring_control *control = ring_control(engine->ring.ring);
	const struct thread_layout *layout = &engine->ring.layout;

	control->main_stack = layout->main_stack.start;
	control->main_stack_end = layout->main_stack.end;
	control->stack_offset = layout->stack;
}

static bool says_its_number(struct engine *engine, const struct ring_thread *thread)
{
	uint32_t number;

	return target_read(engine->target, thread->pointer + engine->ring.layout.tid, &number, sizeof(number)) == 0 &&
	       number == thread->own_number;
}

static void read_words(struct look *look)
{
	const struct thread_layout *layout = &look->engine->ring.layout;
	struct target_part parts[2 * LOOKS];

	for (size_t i = 0; i < look->count; i++) {
		raddr pointer = look->threads[i].pointer;
		struct target_part *two = &parts[2 * i];

		look->numbers[i] = 0;
		look->starts[i] = 0;
		two[0] = (struct target_part){ .at = pointer + layout->tid, .buf = &look->numbers[i], .len = sizeof(look->numbers[i]) };
		two[1] = (struct target_part){ .at = pointer + layout->stack, .buf = &look->starts[i], .len = sizeof(look->starts[i]) };
	}
	target_read_parts(look->engine->target, parts, 2 * look->count);
}

static void forget_pointer(const struct look *look, const struct ring_thread *thread)
{
	struct task *task = task_find_own(look->engine->target, (pid_t)thread->own_number);

	if (task && task->pointer == thread->pointer)
		task->pointer = 0;
}

/* Those that have a stack of their own: of one that has ended there is nothing, or another's. */
static void keep_known(struct look *look)
{
	size_t kept = 0;

	for (size_t i = 0; i < look->count; i++) {
		const struct ring_thread thread = look->threads[i];
		raddr start = look->starts[i];

		if (look->numbers[i] != thread.own_number) {
			forget_pointer(look, &thread);
			continue;
		}
		if (start == 0 || start % PAGE != 0 || start >= thread.pointer || thread.pointer - start > OWN_STACK_MAX)
			continue;
		look->threads[kept] = thread;
		look->stacks[kept++] = (struct stack_bounds){ start, thread.pointer };
	}
	look->count = kept;
}

static void tell_of_holes(const struct look *look)
{
	struct ring_control *control = ring_control(look->engine->ring.ring);

	for (size_t i = 0; i < look->count; i++) {
		/* It may have ended meanwhile, and its stack with it. */
		if (look->has_hole[i] && says_its_number(look->engine, &look->threads[i]))
			__atomic_store_n(&control->has_holes, 1, __ATOMIC_RELAXED);
	}
}

/* by_text: where the kernel has to make the text of all mappings for it.  False: they could not be looked at. */
static bool look_at(struct look *look, bool by_text)
{
	struct target *target = look->engine->target;
	int r = 0;

	if (look->engine->ring.layout.stack != 0 && look->count > 0) {
		read_words(look);
		keep_known(look);
		r = holes_look(target, look->stacks, look->has_hole, look->count);
		if (r == -ENOTTY && by_text)
			r = holes_look_by_text(target, look->stacks, look->has_hole, look->count);
		if (r == 0)
			tell_of_holes(look);
	}
	look->count = 0;
	return r == 0;
}

static bool is_known_to_have_holes(const struct engine *engine)
{
	uint32_t holes = __atomic_load_n(&ring_control(engine->ring.ring)->has_holes, __ATOMIC_RELAXED);

	return holes != 0 && holes != RING_HOLES_UNKNOWN;
}

/* By the registers of one that is held. */
static bool learn_pointer(struct task *task)
{
	struct user_regs_struct regs;

	if (task->guest || !task->stopped || stop_is_end(task->stop.kind) || task_getregs(task, &regs) < 0)
		return false;
	task->pointer = arch_thread_pointer(&regs);
	return task->pointer != 0;
}

/* Looks at as many as there is room for; false: they could not be looked at. */
static bool add(struct look *look, struct ring_thread thread)
{
	look->threads[look->count++] = thread;
	return look->count < LOOKS || look_at(look, true);
}

static struct ring_thread thread_of(const struct task *task)
{
	return (struct ring_thread){ task->pointer, (uint32_t)task->own_number };
}

void engine_ring_note_stacks(struct engine *engine)
{
	struct target *target = engine->target;

	engine->ring.unseen_stacks.count = 0;
	engine->ring.looks_due = vec_reserve(&engine->ring.unseen_stacks, target->tasks.count) == 0;
	ring_control(engine->ring.ring)->has_holes = engine->ring.looks_due ? RING_HOLES_UNKNOWN : 1;
	for (size_t i = 0; engine->ring.looks_due && i < target->tasks.count; i++) {
		if (learn_pointer(target->tasks.items[i]))
			*vec_push(&engine->ring.unseen_stacks) = thread_of(target->tasks.items[i]);
	}
	/* Without such calls it would have to do with the rest of a page. */
	if (!ring_control(engine->ring.ring)->may_yield)
		engine_look_at_noted_stacks(engine);
}

void engine_look_at_noted_stacks(struct engine *engine)
{
	struct look *look = begin_look(engine);
	uint32_t unknown = RING_HOLES_UNKNOWN;
	bool seen = true;

	if (!engine->ring.ring || !engine->ring.looks_due)
		return;
	engine->ring.looks_due = false;
	for (size_t i = 0; i < engine->ring.unseen_stacks.count; i++)
		seen &= add(look, engine->ring.unseen_stacks.items[i]);
	seen &= look_at(look, true);
	vec_fini(&engine->ring.unseen_stacks);
	/* One that has been made meanwhile is known of by now, and stays so. */
	if (seen)
		__atomic_compare_exchange_n(&ring_control(engine->ring.ring)->has_holes, &unknown, 0, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
}

static void look_at_one(struct engine *engine, const struct task *task)
{
	struct look *look = begin_look(engine);

	add(look, thread_of(task));
	look_at(look, false);
}

void engine_task_born(struct engine *engine, struct task *task)
{
	if (!engine->ring.ring)
		return;
	if (engine->ring.layout.stack == 0) {
		thread_layout_look_at(task, &engine->ring.layout);
		engine_ring_publish_stacks(engine);
	}
	if (task->pointer == 0 && learn_pointer(task))
		look_at_one(engine, task);
}

void engine_ring_hear_of_pointer(struct engine *engine, struct task *task, raddr pointer)
{
	struct ring_thread thread;

	if (task->pointer != 0 || task->pointer_tries == POINTER_TRIES)
		return;
	task->pointer_tries++;
	task->pointer = pointer;
	thread = thread_of(task);
	if (says_its_number(engine, &thread))
		look_at_one(engine, task);
	else
		task->pointer = 0;
}

/* --- now and then --- */

static void look_at_main_stack(struct engine *engine)
{
	struct stack_bounds bounds = engine->ring.layout.main_stack;
	bool has_hole;
	int r = holes_look(engine->target, &bounds, &has_hole, 1);

	if (r == -ENOTTY)
		bounds = thread_layout_main_stack(engine->target);
	else if (r < 0)
		return;
	if (bounds.start == engine->ring.layout.main_stack.start || bounds.end != engine->ring.layout.main_stack.end)
		return;
	engine->ring.layout.main_stack = bounds;
	engine_ring_publish_stacks(engine);
}

static void look_at_some_threads(struct engine *engine)
{
	struct target *target = engine->target;
	struct look *look = begin_look(engine);

	for (size_t i = 0; i < target->tasks.count && i < LOOKS; i++) {
		struct task *task = target->tasks.items[engine->ring.hole_looks++ % target->tasks.count];

		if (task->pointer != 0 || learn_pointer(task))
			add(look, thread_of(task));
	}
	look_at(look, true);
}

void engine_look_for_holes(struct engine *engine)
{
	uint64_t began_ns = clock_monotonic_ns(), ended_ns;

	engine_look_at_noted_stacks(engine);
	if (!engine->ring.ring || is_known_to_have_holes(engine) || began_ns < engine->ring.next_look_ns)
		return;
	look_at_main_stack(engine);
	look_at_some_threads(engine);
	engine->ring.below_is_anothers = false;
	ended_ns = clock_monotonic_ns();
	engine->ring.next_look_ns = ended_ns + LOOK_SHARE * (ended_ns - began_ns);
}

void engine_ring_look_whether_grown(struct engine *engine)
{
	struct stack_bounds before = engine->ring.layout.main_stack, now;

	if (!engine->ring.outgrown)
		return;
	engine->ring.outgrown = false;
	now = thread_layout_main_stack(engine->target);
	/* What is below it may be another's: a coroutine's, below a hole. */
	engine->ring.below_is_anothers = now.start == before.start && now.end == before.end;
	engine->ring.layout.main_stack = now;
	engine_ring_publish_stacks(engine);
}

/* --- by the program's own calls --- */

void engine_ring_watch_unmaps(struct engine *engine, const struct planned_module *planned)
{
	raddr bias = engine->target->modules.modules.items[planned->module].bias;

	for (uint32_t i = 0; engine->ring.planting && i < planned->plan.unmap_count; i++) {
		const struct plan_unmap *unmap = &planned->plan.unmaps[i];
		struct ring_window window = {
			.address = unmap->window.vaddr + bias, .text = unmap->window.text, .length = unmap->window.length,
			.sp_below = unmap->window.sp_below, .unmaps = unmap->by,
		};
		const char *reason;
		uint32_t number;

		/* Numbers are given one after the other. */
		if (vec_reserve(&engine->ring.places, 1) < 0 ||
		    jumps_add(engine->target, &window, planned->module, &engine->ring.awaited, &number, &reason) < 0)
			continue;
		*vec_push(&engine->ring.places) = (struct ring_place){
			.kinds = SITE_UNMAP, .address = window.address, .unmaps = unmap->by,
		};
		engine->ring.unmaps++;
	}
}

/* A little more than the code itself would take for one. */
void engine_ring_see_unmap(struct engine *engine, uint32_t number, const struct user_regs_struct *regs)
{
	const struct stack_bounds *first = &engine->ring.layout.main_stack;
	raddr start = arch_argument(regs, 0), end = start + arch_argument(regs, 1), sp = arch_sp(regs);
	raddr stack_end = sp >= first->start && sp < first->end ? first->end : arch_thread_pointer(regs);
	enum ring_unmaps by = engine->ring.places.items[number].unmaps;

	if ((by == RING_UNMAPS_BY_PROTECTION && (arch_argument(regs, 2) & PROT_ANY)) ||
	    (by == RING_UNMAPS_BY_ADVICE && (int)arch_argument(regs, 2) != GUARD_INSTALL))
		return;
	if (start < stack_end && end > sp)
		__atomic_store_n(&ring_control(engine->ring.ring)->has_holes, 1, __ATOMIC_RELAXED);
}
