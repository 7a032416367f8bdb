/* What a query counts of a trace, or of a single block. */
#ifndef ALLOCWATCH_MODEL_MEASURE_H
#define ALLOCWATCH_MODEL_MEASURE_H

#include "model/statistics.h"

struct measure {
	uint64_t size, count;
	uint64_t youngest_ns, oldest_ns;      /* of blocks, when the query is about ages */
	uint64_t made_size, made_count, freed_count, temporary_count;
};

/* 0, or -EINVAL with a reason when the snapshot does not know what the query is about. */
int measure_check(const struct snapshot *snapshot, const struct statistics_query *query, const char **ret_reason);
/* By what a trace says of itself. */
struct measure measure_trace(const struct snapshot_trace *trace, const struct statistics_query *query);
/* One for each trace of a snapshot that was checked, by the blocks of the ages that the query is about; NULL
 * without memory. */
struct measure *measure_by_blocks(const struct snapshot *snapshot, const struct statistics_query *query);
/* false: the query is not about this block. */
bool measure_block(const struct snapshot_block *block, const struct statistics_query *query, struct measure *ret);
/* Stays at the top instead of overflowing. */
void measure_add(struct measure *sum, const struct measure *more);

#endif
