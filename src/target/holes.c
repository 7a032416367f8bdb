#include "target/holes.h"

#include "target/maps.h"
#include "target/maps_query.h"

#include "base/vec.h"

#include <errno.h>

#define PIECES_MAX 4096                /* of one stack */

struct ranges {
	VEC_OF(struct mapped_range) items;
};

/* The first readable mapping at or behind `from`: as maps_query_readable. */
typedef int next_readable(void *context, raddr from, struct mapped_range *ret);

static int next_by_query(void *context, raddr from, struct mapped_range *ret)
{
	const struct target *target = context;

	return maps_query_readable(target->maps_fd, from, ret);
}

/* They ascend. */
static int next_in_ranges(void *context, raddr from, struct mapped_range *ret)
{
	const struct ranges *ranges = context;
	size_t low = 0, high = ranges->items.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->items.items[middle].end <= from)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == ranges->items.count)
		return -ENOENT;
	*ret = ranges->items.items[low];
	return 0;
}

static int look(next_readable *next, void *context, struct stack_bounds *stack, bool *ret_has_hole)
{
	raddr start = 0, at = stack->start;
	bool has_hole = false;

	for (unsigned i = 0; at < stack->end; i++) {
		struct mapped_range range;
		int r = i < PIECES_MAX ? next(context, at, &range) : -ENOENT;

		if (r < 0 && r != -ENOENT)
			return r;
		if (r == -ENOENT || range.start >= stack->end) {
			/* Nothing is there up to its end. */
			has_hole |= start != 0;
			start = start != 0 ? stack->end : 0;
			break;
		}
		has_hole |= start != 0 && range.start > at;
		if (start == 0 || range.start > at)
			start = range.start > stack->start ? range.start : stack->start;
		at = range.end;
	}
	stack->start = start != 0 ? start : stack->start;
	*ret_has_hole = has_hole;
	return 0;
}

static int look_at_all(next_readable *next, void *context, struct stack_bounds *stacks, bool *has_hole, size_t count)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = look(next, context, &stacks[i], &has_hole[i]);
	return r;
}

static int add_readable(struct ranges *ranges, struct maps *maps)
{
	struct map_line map;

	while (maps_next(&maps->cursor, &map)) {
		struct mapped_range *last = ranges->items.count > 0 ? &ranges->items.items[ranges->items.count - 1] : NULL;

		if (!map.readable)
			continue;
		if (last && last->end == map.start) {
			last->end = map.end;
			continue;
		}
		last = vec_push(&ranges->items);
		if (!last)
			return -ENOMEM;
		*last = (struct mapped_range){ map.start, map.end };
	}
	return 0;
}

int holes_look_by_text(struct target *target, struct stack_bounds *stacks, bool *has_hole, size_t count)
{
	struct ranges ranges = { 0 };
	struct maps maps;
	int r = maps_of(target, &maps);

	if (r < 0)
		return r;
	r = add_readable(&ranges, &maps);
	maps_close(&maps);
	if (r == 0)
		r = look_at_all(next_in_ranges, &ranges, stacks, has_hole, count);
	vec_fini(&ranges.items);
	return r;
}

int holes_look(struct target *target, struct stack_bounds *stacks, bool *has_hole, size_t count)
{
	return look_at_all(next_by_query, target, stacks, has_hole, count);
}
