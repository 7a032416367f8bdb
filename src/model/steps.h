/* An array that grows in steps: items never move, and growing costs one segment, however long the
 * array is.  New items are zero, and segments begin with a line of the cache.  For tables that a stopped
 * thread waits for. */
#ifndef ALLOCWATCH_MODEL_STEPS_H
#define ALLOCWATCH_MODEL_STEPS_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

#define STEP_SHIFT 12
#define STEP_ITEMS (1u << STEP_SHIFT)

struct steps {
	VEC_OF(char *) segments;
	uint32_t item_size;
};

static inline void *steps_at(const struct steps *steps, uint32_t index)
{
	return steps->segments.items[index >> STEP_SHIFT] +
	       (size_t)(index & (STEP_ITEMS - 1)) * steps->item_size;
}

void steps_init(struct steps *steps, uint32_t item_size);
void steps_fini(struct steps *steps);
/* Makes item `index` exist, when all before it do; 0 or -ENOMEM. */
int steps_reach(struct steps *steps, uint32_t index);
/* Gives the segments away that only hold items from `index` on. */
void steps_cut(struct steps *steps, uint32_t index);
/* Of a segment that was taken out of `segments`. */
void steps_free_segment(char *segment);
size_t steps_segment_bytes(const struct steps *steps);
size_t steps_memory(const struct steps *steps);

#endif
