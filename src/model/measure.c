#include "model/measure.h"

#include "model/sampling.h"

#include <errno.h>
#include <stdlib.h>

/* NULL, or why its parts do not go together. */
static const char *contradiction(const struct statistics_query *query)
{
	if (query->churn && (query->ages.given || query->key == KEY_THREAD))
		return "churn is what was ever made, of which no single blocks are known: not by thread, and of no age";
	if (query->peak && (query->ages.given || query->key == KEY_THREAD))
		return "what lived at the peak is known by stack and not by block: not by thread, and of no age";
	if (query->histogram && (query->cumulative || query->key == KEY_THREAD || query->peak))
		return "a histogram is of the blocks that live, each counted once: not cumulative, by thread, or of the peak";
	if (query->peak && query->churn)
		return "either what lived at the peak or what was ever made can be shown";
	return NULL;
}

int measure_check(const struct snapshot *snapshot, const struct statistics_query *query, const char **ret_reason)
{
	const char *reason = contradiction(query);

	if (!reason && query->peak && snapshot->counters.peak_bytes > 0 && snapshot->counters.peak_ns == 0)
		reason = "the snapshot was taken by an older version, which did not note what made up the peak";
	if (reason) {
		*ret_reason = reason;
		return -EINVAL;
	}
	if (snapshot->has_blocks)
		return 0;
	if (query->key == KEY_THREAD)
		*ret_reason = "which thread allocated is known of snapshots with blocks only: take them with --blocks";
	else if (query->histogram)
		*ret_reason = "the sizes of blocks are known of snapshots with blocks only: take them with --blocks";
	else if (query->ages.given)
		*ret_reason = "the age of blocks is known of snapshots with blocks only: take them with --blocks";
	else
		return 0;
	return -EINVAL;
}

bool measure_block(const struct snapshot *snapshot, const struct snapshot_block *block, const struct statistics_query *query, struct measure *ret)
{
	const struct block_ages *ages = &query->ages;
	struct sample_weight weight;

	if (ages->given && (block->age_ns < ages->least_ns || block->age_ns >= ages->below_ns))
		return false;
	weight = sample_weight(snapshot->sample_bytes, block->address, block->size);
	*ret = (struct measure){ .size = weight.bytes, .count = weight.blocks, .youngest_ns = block->age_ns,
				 .oldest_ns = block->age_ns, .samples = snapshot->sample_bytes > 0,
				 .size_variance = weight.bytes_variance, .count_variance = weight.blocks_variance };
	return true;
}

struct measure *measure_by_blocks(const struct snapshot *snapshot, const struct statistics_query *query)
{
	struct measure *measures = calloc(snapshot->traces.count + 1, sizeof(*measures));

	for (size_t i = 0; measures && i < snapshot->blocks.count; i++) {
		const struct snapshot_block *block = &snapshot->blocks.items[i];
		struct measure measure;

		if (measure_block(snapshot, block, query, &measure))
			measure_add(&measures[block->trace], &measure);
	}
	return measures;
}
