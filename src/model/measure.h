/* What a query counts of a trace, or of a single block. */
#ifndef ALLOCWATCH_MODEL_MEASURE_H
#define ALLOCWATCH_MODEL_MEASURE_H

#include "model/statistics.h"

struct measure {
	uint64_t size, count;
	uint64_t youngest_ns, oldest_ns;      /* of blocks, when the query is about ages */
	uint64_t made_size, made_count, freed_count, temporary_count;
	/* With sampling, of size and count: how many samples they are estimated from, and their variances. */
	uint64_t samples;
	double size_variance, count_variance;
};

/* 0, or -EINVAL with a reason when the snapshot does not know what the query is about. */
int measure_check(const struct snapshot *snapshot, const struct statistics_query *query, const char **ret_reason);
/* One for each trace of a snapshot that was checked, by the blocks of the ages that the query is about; NULL
 * without memory. */
struct measure *measure_by_blocks(const struct snapshot *snapshot, const struct statistics_query *query);
/* false: the query is not about this block. */
bool measure_block(const struct snapshot *snapshot, const struct snapshot_block *block, const struct statistics_query *query, struct measure *ret);

/* Cumulative sums of a deep recursion could run over: they stay at the top instead. */
static inline void measure_add_up(uint64_t *sum, uint64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum) || *sum > INT64_MAX)
		*sum = INT64_MAX;
}

static inline void measure_add(struct measure *sum, const struct measure *more)
{
	if (more->count > 0 && (sum->count == 0 || more->youngest_ns < sum->youngest_ns))
		sum->youngest_ns = more->youngest_ns;
	if (more->oldest_ns > sum->oldest_ns)
		sum->oldest_ns = more->oldest_ns;
	measure_add_up(&sum->size, more->size);
	measure_add_up(&sum->count, more->count);
	sum->samples += more->samples;
	sum->size_variance += more->size_variance;
	sum->count_variance += more->count_variance;
	/* Most questions are not about churn. */
	if (!(more->made_size | more->made_count | more->freed_count | more->temporary_count))
		return;
	measure_add_up(&sum->made_size, more->made_size);
	measure_add_up(&sum->made_count, more->made_count);
	measure_add_up(&sum->freed_count, more->freed_count);
	measure_add_up(&sum->temporary_count, more->temporary_count);
}

/* By what a trace says of itself. */
static inline struct measure measure_trace(const struct snapshot_trace *trace, const struct statistics_query *query)
{
	struct measure measure = { .size = trace->live_bytes, .count = trace->live_blocks };

	/* Of the peak's samples no more is known than their sum. */
	if (!query->peak && trace->samples > 0) {
		measure.samples = trace->samples;
		measure.size_variance = (double)trace->bytes_deviation * (double)trace->bytes_deviation;
		measure.count_variance = (double)trace->blocks_deviation * (double)trace->blocks_deviation;
	}
	if (query->peak) {
		measure.size = trace->peak_bytes;
		measure.count = trace->peak_blocks;
	}
	if (query->churn) {
		measure.made_size = trace->total_bytes;
		measure.made_count = trace->total_blocks;
		if (trace->total_blocks > trace->live_blocks)
			measure.freed_count = trace->total_blocks - trace->live_blocks;
		measure.temporary_count = trace->temporary_blocks;
	}
	return measure;
}

#endif
