/* A map from addresses to numbers, made of half-open ranges that may nest: the innermost range that
 * holds an address answers for it.  Filled first, then flattened once into sorted disjoint pieces,
 * so that a lookup is one binary search. */
#ifndef ALLOCWATCH_SYMBOL_INTERVALS_H
#define ALLOCWATCH_SYMBOL_INTERVALS_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

struct interval {
	uint64_t lo, hi;         /* [lo, hi) */
	uint32_t rank;           /* of two equal ranges the one of the higher rank is the inner one */
	uint32_t value;
};

struct intervals {
	VEC_OF(struct interval) items;
};

/* Empty ranges are ignored.  0 or -ENOMEM. */
int intervals_add(struct intervals *intervals, uint64_t lo, uint64_t hi, uint32_t rank,
		  uint32_t value);
/* Makes the ranges disjoint and sorted: once, after the last addition.  0 or -ENOMEM. */
int intervals_flatten(struct intervals *intervals);
/* The piece that holds an address in a flattened map, or NULL. */
const struct interval *intervals_find(const struct intervals *intervals, uint64_t address);
void intervals_fini(struct intervals *intervals);

#endif
