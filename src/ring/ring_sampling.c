/* Samples as the tracer takes them, of calls that it sees itself, and the filter by which frees of them are told: the target's code
 * does the same (arch/x86_64_ring_code.S). */
#include "ring/ring_private.h"

#include <math.h>

void ring_set_sampling(struct ring *ring, uint64_t bytes)
{
	const double scale = (double)bytes * (1 << RING_LOGARITHM_BITS);

	for (unsigned i = 0; i < RING_LOGARITHMS; i++) {
		double x = 0.5 + 0.5 * i / (RING_LOGARITHMS - 1);

		ring->control->logarithms[i] = (uint64_t)(-log(x) * scale + 0.5);
	}
	ring->sample_bytes = bytes;
	if (ring->families == 0)
		ring_set_families(ring, 1);
	__atomic_store_n(&ring->control->sample_bytes, bytes, __ATOMIC_RELEASE);
}

void ring_set_families(struct ring *ring, uint32_t families)
{
	ring->families = families;
	ring->control->families = families;
}

void ring_set_shape(struct ring *ring, uint32_t number, const struct ring_shape *shape)
{
	ring->control->shapes[number] = *shape;
}

static struct ring_draw *draw_of(const struct ring *ring, uint64_t thread, uint32_t family)
{
	return &ring->control->draws_of[family][thread & (RING_DRAWS - 1)];
}

static uint64_t tag_of(uint64_t thread)
{
	return (uint64_t)((uint32_t)thread >> RING_DRAWS_SHIFT | RING_DRAW_TAG) << RING_DRAW_TAG_SHIFT;
}

static bool is_drawn_for(const struct ring_draw *draw, uint64_t thread)
{
	return ((draw->countdown ^ tag_of(thread)) >> RING_DRAW_TAG_SHIFT) == 0;
}

/* As the target's code draws, but for the logarithm, which here is the library's. */
static uint64_t draw_countdown(struct ring *ring)
{
	uint64_t random = __atomic_fetch_add(&ring->control->draws, 1, __ATOMIC_RELAXED) * RING_KEY_FACTOR + ring->key;

	random = (random ^ random >> 30) * 0xbf58476d1ce4e5b9;
	random = (random ^ random >> 27) * 0x94d049bb133111eb;
	random = (random ^ random >> 31) | 1;
	return (uint64_t)(-log((double)random / 0x1p64) * (double)ring->sample_bytes) + 1;
}

enum ring_fate ring_sample(struct ring *ring, const struct ring_sampled_call *call)
{
	struct ring_draw *draw = draw_of(ring, call->thread, call->family);
	uint64_t tag = tag_of(call->thread), countdown, bytes = call->bytes ? call->bytes : 1;

	/* Put back to before the call by a signal: it comes to the same. */
	if (is_drawn_for(draw, call->thread) && draw->sp == call->sp && draw->site == call->site && draw->fate == RING_SAMPLED)
		return RING_SAMPLED;
	countdown = is_drawn_for(draw, call->thread) ? draw->countdown ^ tag : draw_countdown(ring);
	draw->return_address = call->return_address;
	draw->site = call->site;
	draw->fate = bytes >= countdown ? RING_SAMPLED : RING_PASSED;
	draw->out = 0;
	draw->sp = call->sp;
	draw->countdown = tag | (bytes >= countdown ? draw_countdown(ring) : countdown - bytes);
	return (enum ring_fate)draw->fate;
}

void ring_sample_old_alone(struct ring *ring, const struct ring_sampled_call *call)
{
	struct ring_draw *draw = draw_of(ring, call->thread, call->family);

	if (is_drawn_for(draw, call->thread) && draw->sp == call->sp)
		draw->fate = RING_OLD_ALONE;
}

bool ring_sampled_outer(const struct ring *ring, uint64_t thread, uint32_t family, uint64_t *ret_sp,
			uint64_t *ret_return_address)
{
	const struct ring_draw *draw = draw_of(ring, thread, family);

	*ret_sp = draw->sp;
	*ret_return_address = draw->return_address;
	return is_drawn_for(draw, thread) && draw->sp != 0;
}

bool ring_is_sampled_site(const struct ring *ring, uint64_t thread, uint32_t family, uint32_t site)
{
	return draw_of(ring, thread, family)->site == site;
}

void ring_sample_returned(struct ring *ring, uint64_t thread, uint64_t sp)
{
	for (uint32_t family = 0; family < ring->families; family++) {
		struct ring_draw *draw = draw_of(ring, thread, family);

		if (draw->sp == sp)
			draw->sp = 0;
	}
}

void ring_drawn(const struct ring *ring, uint64_t thread, struct ring_drawn *ret)
{
	for (uint32_t family = 0; family < RING_FAMILIES; family++) {
		const struct ring_draw *draw = draw_of(ring, thread, family);

		ret->of[family] = family < ring->families && is_drawn_for(draw, thread) ? *draw :
										      (struct ring_draw){ .sp = 0 };
	}
}

void ring_copy_drawn(struct ring *ring, uint64_t thread, const struct ring_drawn *drawn)
{
	for (uint32_t family = 0; family < ring->families; family++) {
		struct ring_draw *draw = draw_of(ring, thread, family);

		*draw = drawn->of[family];
		draw->countdown = tag_of(thread) | draw_countdown(ring);
	}
}

static uint8_t *filter_place(const struct ring *ring, uint64_t address)
{
	uint32_t low = (uint16_t)(address >> RING_FILTER_LOW), high = (uint16_t)(address >> RING_FILTER_HIGH);

	return &ring->control->filter[2 * low + high];
}

void ring_filter_add(struct ring *ring, uint64_t address)
{
	uint8_t *place = filter_place(ring, address);

	if (__atomic_load_n(place, __ATOMIC_RELAXED) < RING_FILTER_FULL)
		__atomic_fetch_add(place, 1, __ATOMIC_SEQ_CST);
}

/* The program may have written anything there: below 0 it does not go. */
void ring_filter_remove(struct ring *ring, uint64_t address)
{
	uint8_t *place = filter_place(ring, address), count = __atomic_load_n(place, __ATOMIC_RELAXED);

	while (count > 0 && count < RING_FILTER_FULL &&
	       !__atomic_compare_exchange_n(place, &count, (uint8_t)(count - 1), false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}

bool ring_filter_has(const struct ring *ring, uint64_t address)
{
	return __atomic_load_n(filter_place(ring, address), __ATOMIC_RELAXED) != 0;
}
