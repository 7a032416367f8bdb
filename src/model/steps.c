#include "model/steps.h"

#include <errno.h>
#include <stdlib.h>

void steps_init(struct steps *steps, uint32_t item_size)
{
	*steps = (struct steps){ .item_size = item_size };
}

void steps_fini(struct steps *steps)
{
	steps_cut(steps, 0);
	vec_fini(&steps->segments);
}

int steps_reach(struct steps *steps, uint32_t index)
{
	char *segment;

	if (index >> STEP_SHIFT < steps->segments.count)
		return 0;
	if (vec_reserve(&steps->segments, 1) < 0)
		return -ENOMEM;
	segment = calloc(STEP_ITEMS, steps->item_size);
	if (!segment)
		return -ENOMEM;
	steps->segments.items[steps->segments.count++] = segment;
	return 0;
}

void steps_cut(struct steps *steps, uint32_t index)
{
	size_t keep = ((size_t)index + STEP_ITEMS - 1) >> STEP_SHIFT;

	while (steps->segments.count > keep)
		free(steps->segments.items[--steps->segments.count]);
}

size_t steps_memory(const struct steps *steps)
{
	return steps->segments.count * STEP_ITEMS * steps->item_size +
	       steps->segments.space * sizeof(*steps->segments.items);
}
