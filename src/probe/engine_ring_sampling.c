/* Samples of a ring: what its code is to know of a function, and of blocks. */
#include "probe/engine_private.h"

static uint8_t argument(int8_t number)
{
	return number == ARG_NONE ? RING_NO_ARGUMENT : (uint8_t)number;
}

uint32_t engine_ring_family(const struct engine *engine, uint32_t domain)
{
	return engine->described ? described_number(engine->described, domain) : 0;
}

uint32_t engine_ring_families(const struct engine *engine)
{
	return 1 + (engine->described ? described_domains(engine->described) : 0);
}

/* Calls like that of malloc, calloc and realloc the site's own word tells. */
static bool is_unusual(const struct engine *engine, const struct catalog_entry *entry)
{
	return engine_ring_family(engine, entry->domain) > 0 || entry->fixed_size > 0 || entry->out_arg != ARG_NONE ||
	       (entry->old_arg != ARG_NONE && entry->old_arg != 0);
}

void engine_ring_tell_arguments(const struct engine *engine, const struct catalog_entry *entry, struct ring_window *window)
{
	if (!window->allocates) {
		window->old_argument = argument(entry->old_arg);
		return;
	}
	window->resizes = entry->old_arg != ARG_NONE;
	window->told = (window->sampled && is_unusual(engine, entry)) || entry->out_arg != ARG_NONE;
	window->size_argument = entry->size_arg != ARG_NONE ? (uint8_t)entry->size_arg : 0;
	window->count_argument = argument(entry->count_arg);
}

void engine_ring_tell_shape(struct engine *engine, const struct catalog_entry *entry, uint32_t number)
{
	const struct ring_shape shape = {
		.fixed_size = entry->fixed_size, .size_argument = argument(entry->size_arg),
		.count_argument = argument(entry->count_arg), .old_argument = argument(entry->old_arg),
		.out_argument = argument(entry->out_arg), .family = engine_ring_family(engine, entry->domain),
	};

	if (number < RING_SHAPES)
		ring_set_shape(engine->ring.ring, number, &shape);
}

bool engine_is_sampling(const struct engine *engine)
{
	return engine->ring.ring && engine->ring.options.sample_bytes > 0;
}

void engine_block_known(struct engine *engine, raddr address)
{
	if (engine_is_sampling(engine))
		ring_filter_add(engine->ring.ring, address);
}

void engine_block_left(struct engine *engine, raddr address)
{
	if (engine_is_sampling(engine))
		ring_filter_remove(engine->ring.ring, address);
}
