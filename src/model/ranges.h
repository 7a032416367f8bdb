/* Ranges of addresses that do not overlap, in order.
 *
 * Found by binary search in pieces of CHUNK_RANGES; to add or remove one moves no more than the ranges of a piece and
 * the list of pieces.  They say where mappings lie: what is known of one is in the table of blocks, under its first
 * address. */
#ifndef ALLOCWATCH_MODEL_RANGES_H
#define ALLOCWATCH_MODEL_RANGES_H

#include "base/reader.h"
#include "base/vec.h"

#include <stddef.h>
#include <stdint.h>

struct range {
	raddr start, end;              /* the end is the first address behind it */
	uint64_t birth;                /* of the mapping that it is, or was, a part of: later ones have higher numbers */
};

struct ranges_chunk;

struct ranges {
	VEC_OF(struct ranges_chunk *) chunks;  /* none is empty */
	struct ranges_chunk *spare;
	uint64_t count;
};

void ranges_init(struct ranges *ranges);
void ranges_fini(struct ranges *ranges);

/* The first range that has an address at `from` or above, NULL: there is none.  Good until the next change; its start may be
 * raised and its end lowered. */
struct range *ranges_at_or_above(const struct ranges *ranges, raddr from);
/* Makes sure that the next ranges_add() has memory: 0 or -ENOMEM. */
int ranges_reserve(struct ranges *ranges);
/* One that overlaps none; there must be a reserve. */
void ranges_add(struct ranges *ranges, const struct range *range);
/* The range that starts there, which must be one. */
void ranges_remove(struct ranges *ranges, raddr start);

size_t ranges_memory(const struct ranges *ranges);         /* beyond the struct itself */

#endif
