#include "model/steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LINE 64u

void steps_init(struct steps *steps, uint32_t item_size)
{
	*steps = (struct steps){ .item_size = item_size };
}

void steps_fini(struct steps *steps)
{
	steps_cut(steps, 0);
	vec_fini(&steps->segments);
}

size_t steps_segment_bytes(const struct steps *steps)
{
	return (size_t)STEP_ITEMS * steps->item_size + LINE;
}

/* What calloc() gives is zero without being touched, but not aligned: its own place is noted in front. */
static char *take_segment(const struct steps *steps)
{
	char *place = calloc(1, steps_segment_bytes(steps)), *segment;

	if (!place)
		return NULL;
	segment = place + LINE - (uintptr_t)place % LINE;
	memcpy(segment - sizeof(place), &place, sizeof(place));
	return segment;
}

void steps_free_segment(char *segment)
{
	char *place;

	memcpy(&place, segment - sizeof(place), sizeof(place));
	free(place);
}

int steps_reach(struct steps *steps, uint32_t index)
{
	char *segment;

	if (index >> STEP_SHIFT < steps->segments.count)
		return 0;
	if (vec_reserve(&steps->segments, 1) < 0)
		return -ENOMEM;
	segment = take_segment(steps);
	if (!segment)
		return -ENOMEM;
	steps->segments.items[steps->segments.count++] = segment;
	return 0;
}

void steps_cut(struct steps *steps, uint32_t index)
{
	size_t keep = ((size_t)index + STEP_ITEMS - 1) >> STEP_SHIFT;

	while (steps->segments.count > keep)
		steps_free_segment(steps->segments.items[--steps->segments.count]);
}

size_t steps_memory(const struct steps *steps)
{
	return steps->segments.count * steps_segment_bytes(steps) +
	       steps->segments.space * sizeof(*steps->segments.items);
}
