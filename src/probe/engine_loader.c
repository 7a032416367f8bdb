/* Records of a ring that is alone which are waited for.  The loader's hook's says, in the order of all others, that objects came or
 * went, and who has written it waits until that is known; so does who is about to execute a program. */
#include "probe/engine_private.h"

#include "target/jumps.h"

#include <errno.h>

static bool may_wait(const struct engine *engine)
{
	return engine->ring.wait_ticks > 0;
}

static void wait_from_now_on(struct engine *engine)
{
	__atomic_store_n(&ring_control(engine->ring.ring)->hook_waits, may_wait(engine), __ATOMIC_RELEASE);
}

static struct jump_range range_of(const struct ring_window *window)
{
	return (struct jump_range){ window->address, window->address + ARCH_WINDOW_MAX };
}

/* Numbers are given one after the other. */
static int add_place(struct engine *engine, const struct ring_window *wanted, raddr function, uint32_t module, enum site_kind kind,
		     const struct jump_words *awaited)
{
	struct ring_window window = *wanted;
	struct ring_place *place;
	const char *reason;
	uint32_t number;
	int r = window.length > 0 ? vec_reserve(&engine->ring.places, 1) : -ENOTSUP;

	if (r == 0)
		r = jumps_add(engine->target, &window, module, awaited, &number, &reason);
	if (r < 0)
		return r;
	place = vec_push(&engine->ring.places);
	*place = (struct ring_place){ .kinds = kind, .address = function };
	return (int)number;
}

void engine_expect_loader(struct engine *engine, raddr hook)
{
	engine->ring.expected = (struct jump_range){ hook, hook + ARCH_WINDOW_MAX };
}

static bool is_alone(const struct engine *engine)
{
	return engine->ring.ring && engine->ring.options.alone;
}

int engine_watch_loader(struct engine *engine, const struct loader_hook *hook)
{
	const struct ring_window window = {
		.address = hook->address, .text = hook->text,
		.length = arch_empty_function(hook->text, hook->text_len, hook->address), .waits = RING_WAITS_LOADER,
	};
	const struct jump_range range = range_of(&window);
	struct jump_words awaited = { 0 };
	int r = is_alone(engine) ? jumps_look_at_stacks(engine->target, &range, 1, &awaited) : -ENOTSUP;

	if (r == 0)
		r = add_place(engine, &window, hook->address, hook->module, SITE_LOADER, &awaited);
	jump_words_fini(&awaited);
	if (r < 0)
		return r;
	engine->ring.hook = (uint32_t)r;
	wait_from_now_on(engine);
	return jumps_plant(engine->target);
}

static struct ring_window window_of(const struct engine_exec *exec)
{
	uint32_t offset = 0, length = arch_long_instruction(exec->text, exec->text_len, exec->function, &offset);

	return (struct ring_window){
		.address = exec->function + offset, .text = exec->text + offset, .length = length, .waits = RING_WAITS_EXEC,
	};
}

int engine_watch_execs(struct engine *engine, struct engine_exec *execs, size_t count)
{
	struct jump_range ranges[ENGINE_EXECS_MAX];
	struct jump_words awaited = { 0 };
	size_t added = 0;
	int r = is_alone(engine) ? 0 : -ENOTSUP;

	for (size_t i = 0; i < count; i++) {
		struct ring_window window = window_of(&execs[i]);

		ranges[i] = range_of(&window);
	}
	if (r == 0)
		r = jumps_look_at_stacks(engine->target, ranges, count, &awaited);
	for (size_t i = 0; i < count; i++) {
		struct ring_window window = window_of(&execs[i]);
		int number = r < 0 ? r : add_place(engine, &window, execs[i].function, execs[i].module, SITE_EXEC, &awaited);

		execs[i].error = number < 0 ? number : 0;
		added += number >= 0;
	}
	jump_words_fini(&awaited);
	if (added == 0)
		return 0;
	engine->ring.execs += added;
	wait_from_now_on(engine);
	return jumps_plant(engine->target);
}

bool engine_watches_loader(const struct engine *engine)
{
	const struct jump *jump;

	if (engine->ring.hook == RING_NO_HOOK || !engine->ring.ring)
		return false;
	jump = &engine->target->jumps.items[engine->ring.hook];
	return jump->planted && !jump->overwritten;
}

/* One position stands for all that wait: who waits for the sink goes on only when that says so, and so does who has come behind. */
static void serve_hook(struct engine *engine, uint64_t position)
{
	if (engine->ring.waits)
		engine->ring.waits_position = position;
	else
		ring_serve_hook(engine->ring.ring, position);
}

void engine_loader_called(struct engine *engine, uint64_t position)
{
	engine->ring.hook_position = position;
	if (engine->sink.objects_changed && engine->sink.objects_changed(engine->sink.context)) {
		engine->ring.waits = true;
		if (engine->ring.hook_waits_from == UINT64_MAX)
			engine->ring.hook_waits_from = position;
	}
	serve_hook(engine, position);
	wait_from_now_on(engine);
}

void engine_exec_called(struct engine *engine, const struct ring_record *record, const struct ring_place *place)
{
	const struct task *task = engine_ring_writer(engine, record->thread);

	if (task && task->tid > 0 && task->target == engine->target && engine->sink.executes &&
	    engine->sink.executes(engine->sink.context, task->tid, place->address, record->args)) {
		engine->ring.waits = true;
	}
	serve_hook(engine, record->position);
}

void engine_let_waiting_go(struct engine *engine)
{
	if (!engine->ring.ring)
		return;
	if (engine->ring.waits)
		ring_serve_hook(engine->ring.ring, engine->ring.waits_position);
	engine->ring.waits = false;
	engine->ring.hook_waits_from = UINT64_MAX;
	wait_from_now_on(engine);
}

void engine_loader_waits_again(struct engine *engine)
{
	if ((engine->ring.hook != RING_NO_HOOK || engine->ring.execs > 0) && may_wait(engine) &&
	    __atomic_load_n(&ring_control(engine->ring.ring)->hook_waits, __ATOMIC_RELAXED) == 0)
		wait_from_now_on(engine);
}

bool engine_loader_has_waited(const struct engine *engine)
{
	const struct ring_side *side = &engine->ring;
	uint64_t first = side->hook_waits_from < side->hook_position ? side->hook_waits_from : side->hook_position;

	return __atomic_load_n(&ring_control(side->ring)->hook_left, __ATOMIC_ACQUIRE) <= first;
}

bool engine_misses_change(const struct engine *engine)
{
	return engine->ring.change_missed;
}

bool engine_take_missed_change(struct engine *engine)
{
	bool missed = engine->ring.change_missed;

	engine->ring.change_missed = false;
	return missed;
}
