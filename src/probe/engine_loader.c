/* The loader's hook of a ring that is alone: its record says, in the order of all others, that objects came or went, and who has
 * written it waits until that is known. */
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

/* Numbers are given one after the other. */
static int add_place(struct engine *engine, const struct loader_hook *hook, const struct jump_words *awaited)
{
	struct ring_window window = {
		.address = hook->address, .text = hook->text,
		.length = arch_empty_function(hook->text, hook->text_len, hook->address), .waits = true,
	};
	struct ring_place *place;
	const char *reason;
	uint32_t number;
	int r = window.length > 0 ? vec_reserve(&engine->ring.places, 1) : -ENOTSUP;

	if (r == 0)
		r = jumps_add(engine->target, &window, hook->module, awaited, &number, &reason);
	if (r < 0)
		return r;
	place = vec_push(&engine->ring.places);
	*place = (struct ring_place){ .kinds = SITE_LOADER, .address = hook->address };
	engine->ring.hook = number;
	return 0;
}

int engine_watch_loader(struct engine *engine, const struct loader_hook *hook)
{
	const struct jump_range range = { hook->address, hook->address + ARCH_WINDOW_MAX };
	struct jump_words awaited = { 0 };
	int r = engine->ring.ring && engine->ring.options.alone ? 0 : -ENOTSUP;

	if (r == 0)
		r = jumps_look_at_stacks(engine->target, &range, 1, &awaited);
	if (r == 0)
		r = add_place(engine, hook, &awaited);
	if (r == 0) {
		wait_from_now_on(engine);
		r = jumps_plant(engine->target);
	}
	jump_words_fini(&awaited);
	return r;
}

bool engine_watches_loader(const struct engine *engine)
{
	const struct jump *jump;

	if (engine->ring.hook == RING_NO_HOOK || !engine->ring.ring)
		return false;
	jump = &engine->target->jumps.items[engine->ring.hook];
	return jump->planted && !jump->overwritten;
}

void engine_loader_called(struct engine *engine, uint64_t position)
{
	engine->ring.hook_position = position;
	if (engine->sink.objects_changed)
		engine->sink.objects_changed(engine->sink.context);
	ring_serve_hook(engine->ring.ring, position);
	wait_from_now_on(engine);
}

void engine_loader_waits_again(struct engine *engine)
{
	if (engine->ring.hook != RING_NO_HOOK && may_wait(engine) &&
	    __atomic_load_n(&ring_control(engine->ring.ring)->hook_waits, __ATOMIC_RELAXED) == 0)
		wait_from_now_on(engine);
}

bool engine_loader_has_waited(const struct engine *engine)
{
	return __atomic_load_n(&ring_control(engine->ring.ring)->hook_left, __ATOMIC_ACQUIRE) <= engine->ring.hook_position;
}

bool engine_take_missed_change(struct engine *engine)
{
	bool missed = engine->ring.change_missed;

	engine->ring.change_missed = false;
	return missed;
}
