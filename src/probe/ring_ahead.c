#include "probe/ring_ahead_private.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- life --- */

static void init_conditions(struct ring_ahead *ahead)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_init(&ahead->lock, NULL);
	pthread_cond_init(&ahead->changed, &attributes);
	pthread_cond_init(&ahead->rested, &attributes);
	pthread_condattr_destroy(&attributes);
}

int ring_ahead_new(const struct ring *ring, const struct ring_ahead_options *options, struct ring_ahead **ret_ahead)
{
	struct ring_ahead *ahead = aligned_alloc(CACHE_LINE, sizeof(*ahead));

	if (!ahead)
		return -ENOMEM;
	memset(ahead, 0, sizeof(*ahead));
	ahead->eye = ring_eye(ring);
	ahead->slot_mask = ahead->eye.size / RING_UNIT - 1;
	ahead->max_frames = options->max_frames;
	ahead->nodes_max = options->nodes_max ? options->nodes_max : RING_AHEAD_NODES_DEFAULT;
	ahead->eager = options->eager;
	ahead->begins = options->begins;
	ahead->world = options->world;
	ahead->seen_map = UINT64_MAX;
	ahead->refs = 1;
	ahead->position = ahead->said = ring_position(ring);
	ahead->slots = calloc(ahead->slot_mask + 1, sizeof(*ahead->slots));
	if (!ahead->slots) {
		free(ahead);
		return -ENOMEM;
	}
	init_conditions(ahead);
	*ret_ahead = ahead;
	return 0;
}

void ahead_unref(struct ring_ahead *ahead)
{
	if (atomic_fetch_sub(&ahead->refs, 1) > 1)
		return;
	for (unsigned i = 0; i < RING_AHEAD_HELPERS_MAX; i++)
		free(ahead->translation[i]);
	ahead_table_unref(ahead->table);
	free(ahead->slots);
	ring_free(ahead->ring);
	pthread_cond_destroy(&ahead->rested);
	pthread_cond_destroy(&ahead->changed);
	pthread_mutex_destroy(&ahead->lock);
	free(ahead);
}

void ring_ahead_free(struct ring_ahead *ahead, struct ring *ring)
{
	if (!ahead) {
		ring_free(ring);
		return;
	}
	pthread_mutex_lock(&ahead->lock);
	ahead->ring = ring;
	for (unsigned i = 0; i < ahead->helper_count; i++)
		ahead->helpers[i]->ends = true;
	ahead->generation = 0;
	pthread_cond_broadcast(&ahead->changed);
	pthread_mutex_unlock(&ahead->lock);
	ahead_unref(ahead);
}

int ring_ahead_begin_helper(struct ring_ahead *ahead)
{
	unsigned number = ahead->helper_count;
	int r;

	if (number == RING_AHEAD_HELPERS_MAX)
		return -ENOSPC;
	if (!ahead->translation[number])
		ahead->translation[number] = calloc(ahead->nodes_max + 1, sizeof(*ahead->translation[number]));
	if (!ahead->translation[number])
		return -ENOMEM;
	r = ahead_helper_begin(ahead, number, &ahead->helpers[number]);
	if (r < 0)
		return r;
	ahead->helper_count++;
	/* Where another one was before, whose nodes were others. */
	ahead->seen_map = UINT64_MAX;
	return 0;
}

/* Its thread frees it. */
void ring_ahead_end_helper(struct ring_ahead *ahead)
{
	if (ahead->helper_count == 0)
		return;
	pthread_mutex_lock(&ahead->lock);
	ahead->helpers[--ahead->helper_count]->ends = true;
	ahead->helpers[ahead->helper_count] = NULL;
	/* It looks at this for each stack. */
	ahead->generation = 0;
	pthread_cond_broadcast(&ahead->changed);
	pthread_mutex_unlock(&ahead->lock);
	ahead->seen_map = UINT64_MAX;
}

unsigned ring_ahead_helpers(const struct ring_ahead *ahead)
{
	return ahead ? ahead->helper_count : 0;
}

/* --- what stacks hang on --- */

static bool has_changed(const struct ring_ahead *ahead)
{
	return ahead->seen_map != ahead->world.map->generation || ahead->seen_text != *ahead->world.text ||
	       ahead->seen_unwinder != unwinder_generation(ahead->world.unwinder);
}

/* From now on nothing is taken that was unwound by what there was before. */
static void look_anew(struct ring_ahead *ahead)
{
	struct ahead_table *table, *before = ahead->table;

	ahead->seen_map = ahead->world.map->generation;
	ahead->seen_text = *ahead->world.text;
	ahead->seen_unwinder = unwinder_generation(ahead->world.unwinder);
	ahead->now++;
	table = ahead_table_new(&ahead->world, ahead->now, before);
	pthread_mutex_lock(&ahead->lock);
	ahead->table = table;
	ahead->generation = table ? ahead->now : 0;
	pthread_cond_broadcast(&ahead->changed);
	pthread_mutex_unlock(&ahead->lock);
	ahead_table_unref(before);
}

/* --- taking --- */

void ring_ahead_prefetch(const struct ring_ahead *ahead, uint64_t position)
{
	if (ahead)
		__builtin_prefetch(ahead_slot(ahead, position));
}

static void say_position(struct ring_ahead *ahead, uint64_t position)
{
	if (position - ahead->said < AHEAD_PUBLISH)
		return;
	ahead->said = position;
	atomic_store_explicit(&ahead->position, position, memory_order_relaxed);
}

/* What the next return at this place is taken to be of. */
static void say_function(struct ring_ahead *ahead, uint32_t site, raddr function)
{
	if (site < AHEAD_SITES && atomic_load_explicit(&ahead->functions[site], memory_order_relaxed) != function)
		atomic_store_explicit(&ahead->functions[site], function, memory_order_relaxed);
}

/* Nothing else was written by the helper that would have to be seen, so no order is asked for. */
static bool find(const struct ring_ahead *ahead, uint64_t position, raddr function, struct ring_ahead_found *ret)
{
	const struct ahead_slot *slot = ahead_slot(ahead, position);
	uint64_t a = atomic_load_explicit(&slot->a, memory_order_relaxed), b = atomic_load_explicit(&slot->b, memory_order_relaxed);

	if ((a ^ b) != ahead_key(position, ahead->now, function))
		return false;
	ret->helper = (uint32_t)(b >> AHEAD_HELPER_SHIFT);
	ret->needed = b >> AHEAD_NEEDED_SHIFT & AHEAD_NEEDED_MAX;
	ret->node = (uint32_t)b;
	return ret->helper < ahead->helper_count && ret->node <= ahead->nodes_max;
}

static uint64_t noted(const struct ring_ahead *ahead, uint32_t node)
{
	return ahead->now << 32 | node;
}

bool ring_ahead_take(struct ring_ahead *ahead, const struct ring_record *record, raddr function, struct ring_stack *ret_stack,
		     struct ring_ahead_found *ret_found)
{
	uint64_t entry;

	ret_found->is_new = false;
	if (!ahead || ahead->helper_count == 0)
		return false;
	if (has_changed(ahead))
		look_anew(ahead);
	say_position(ahead, record->position);
	say_function(ahead, record->site, function);
	if (!find(ahead, record->position, function, ret_found))
		return false;
	entry = ahead->translation[ret_found->helper][ret_found->node];
	if (entry >> 32 != (uint32_t)ahead->now) {
		ret_found->is_new = true;
		return false;
	}
	ahead->taken++;
	*ret_stack = (struct ring_stack){ .node = (uint32_t)entry, .needed = ret_found->needed, .had = ring_stack_had(record), .whole = true };
	return true;
}

/* Where both do not say the same of it, nothing is certain. */
void ring_ahead_note(struct ring_ahead *ahead, const struct ring_ahead_found *found, const struct ring_stack *stack)
{
	if (!found->is_new || stack->cut || !stack->whole || stack->needed != found->needed)
		return;
	ahead->translation[found->helper][found->node] = noted(ahead, stack->node);
	ahead->noted++;
}

void ring_ahead_pass(struct ring_ahead *ahead, uint64_t position)
{
	if (!ahead)
		return;
	say_position(ahead, position);
	for (unsigned i = 0; i < ahead->helper_count; i++) {
		if (!atomic_load_explicit(&ahead->helpers[i]->is_full, memory_order_relaxed))
			continue;
		/* All translate anew: it is rare. */
		look_anew(ahead);
		atomic_store(&ahead->helpers[i]->is_full, false);
		return;
	}
}

/* --- forks --- */

static bool all_rest(const struct ring_ahead *ahead)
{
	for (unsigned i = 0; i < ahead->helper_count; i++) {
		if (!ahead->helpers[i]->rests && !ahead->helpers[i]->reads_tables)
			return false;
	}
	return true;
}

void ring_ahead_halt(struct ring_ahead *ahead)
{
	uint64_t until_ns = clock_monotonic_ns() + RING_AHEAD_HALT_MS * NSEC_PER_MSEC;
	const struct timespec until = { (time_t)(until_ns / NSEC_PER_SEC), (long)(until_ns % NSEC_PER_SEC) };

	if (!ahead)
		return;
	pthread_mutex_lock(&ahead->lock);
	ahead->halt = true;
	while (!all_rest(ahead) && pthread_cond_timedwait(&ahead->rested, &ahead->lock, &until) == 0)
		;
	pthread_mutex_unlock(&ahead->lock);
}

void ring_ahead_go_on(struct ring_ahead *ahead)
{
	if (!ahead)
		return;
	pthread_mutex_lock(&ahead->lock);
	ahead->halt = false;
	pthread_cond_broadcast(&ahead->changed);
	pthread_mutex_unlock(&ahead->lock);
}

/* Helpers that were ended just before have a reference each, too. */
void ring_ahead_forget(struct ring_ahead *ahead)
{
	if (!ahead)
		return;
	for (unsigned i = 0; i < ahead->helper_count; i++) {
		if (ahead->helpers[i]->rests)
			ahead_helper_free(ahead->helpers[i]);
		free(ahead->translation[i]);
	}
	ahead_table_unref(ahead->table);
	free(ahead->slots);
	free(ahead);
}

/* --- what is told --- */

struct ring_ahead_counters ring_ahead_counters(const struct ring_ahead *ahead)
{
	struct ring_ahead_counters counters = { 0 };

	if (!ahead)
		return counters;
	counters = (struct ring_ahead_counters){ .taken = ahead->taken, .noted = ahead->noted, .worlds = ahead->now };
	for (unsigned i = 0; i < ahead->helper_count; i++) {
		counters.unwound += ahead->helpers[i]->unwound;
		counters.given_up += ahead->helpers[i]->given_up;
	}
	return counters;
}

size_t ring_ahead_memory(const struct ring_ahead *ahead)
{
	size_t bytes;

	if (!ahead)
		return 0;
	bytes = sizeof(*ahead) + (ahead->slot_mask + 1) * sizeof(*ahead->slots);
	for (unsigned i = 0; i < RING_AHEAD_HELPERS_MAX; i++)
		bytes += ahead->translation[i] ? (ahead->nodes_max + 1) * sizeof(*ahead->translation[i]) : 0;
	for (unsigned i = 0; i < ahead->helper_count; i++)
		bytes += ahead->helpers[i]->memory;
	return bytes;
}
