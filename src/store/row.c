#include "store/row.h"

#include "store/checksum.h"
#include "store/store.h"

#include <string.h>

#define FLAGS_END 6            /* frames_limit and three flags stand before the counters */
#define COUNTERS (ROW_NUMBERS - FLAGS_END)

static const size_t counters[COUNTERS] = {
	offsetof(struct snapshot, counters.live_bytes),
	offsetof(struct snapshot, counters.live_blocks),
	offsetof(struct snapshot, counters.peak_bytes),
	offsetof(struct snapshot, counters.allocations),
	offsetof(struct snapshot, counters.frees),
	offsetof(struct snapshot, counters.before_attach_frees),
	offsetof(struct snapshot, counters.after_clear_frees),
	offsetof(struct snapshot, counters.unknown_frees),
	offsetof(struct snapshot, counters.lost_events),
	offsetof(struct snapshot, unknown.unknown_frees),
	offsetof(struct snapshot, unknown.before_attach_frees),
	offsetof(struct snapshot, unknown.after_clear_frees),
	offsetof(struct snapshot, unknown.lost_events),
	offsetof(struct snapshot, unknown.truncated_stacks),
	offsetof(struct snapshot, unknown.probe_gaps),
	offsetof(struct snapshot, clock_ns),
	offsetof(struct snapshot, counters.peak_blocks),
	offsetof(struct snapshot, counters.peak_ns),
	offsetof(struct snapshot, sample_bytes),
};

void row_get(const struct snapshot *snapshot, uint64_t ret[ROW_NUMBERS])
{
	ret[0] = snapshot->taken_ns;
	ret[1] = snapshot->attached_ns;
	ret[2] = snapshot->frames_limit;
	ret[3] = snapshot->exact;
	ret[4] = snapshot->symbolized;
	ret[5] = snapshot->has_blocks;
	for (size_t i = 0; i < COUNTERS; i++)
		memcpy(&ret[FLAGS_END + i], (const char *)snapshot + counters[i], sizeof(*ret));
}

bool row_set(struct snapshot *snapshot, const uint64_t numbers[ROW_NUMBERS])
{
	if (numbers[2] > UINT32_MAX || numbers[3] > 1 || numbers[4] > 1 || numbers[5] > 1)
		return false;
	snapshot->taken_ns = numbers[0];
	snapshot->attached_ns = numbers[1];
	snapshot->frames_limit = (uint32_t)numbers[2];
	snapshot->exact = numbers[3];
	snapshot->symbolized = numbers[4];
	snapshot->has_blocks = numbers[5];
	for (size_t i = 0; i < COUNTERS; i++)
		memcpy((char *)snapshot + counters[i], &numbers[FLAGS_END + i], sizeof(*numbers));
	return true;
}

static uint64_t text_value(const char *text)
{
	return text ? checksum_bytes(text, strnlen(text, STORE_TEXT_MAX)) : 0;
}

void row_checksum(const struct snapshot *snapshot, uint64_t number, uint32_t version, uint64_t *sum)
{
	size_t count = (size_t)row_numbers(version);
	uint64_t values[ROW_NUMBERS + 7];

	row_get(snapshot, values);
	values[count] = number;
	values[count + 1] = text_value(snapshot->id);
	values[count + 2] = text_value(snapshot->name);
	values[count + 3] = text_value(snapshot->command);
	values[count + 4] = (uint64_t)snapshot->pid;
	values[count + 5] = snapshot->start_time;
	values[count + 6] = text_value(snapshot->exe);
	checksum_add(sum, CHECKSUM_SNAPSHOT, values, count + 7);
}

void row_trace_get(const struct snapshot_trace *trace, struct row_place place, uint32_t stack,
		   uint64_t ret[ROW_TRACE_NUMBERS])
{
	ret[0] = row_first_id(place.snapshot) + place.index;
	ret[1] = place.snapshot;
	ret[2] = stack;
	ret[3] = trace->domain;
	ret[4] = trace->live_blocks;
	ret[5] = trace->live_bytes;
	ret[6] = trace->total_blocks;
	ret[7] = trace->total_bytes;
	ret[8] = trace->temporary_blocks;
	ret[9] = trace->peak_blocks;
	ret[10] = trace->peak_bytes;
	ret[11] = trace->samples;
	ret[12] = trace->blocks_deviation;
	ret[13] = trace->bytes_deviation;
}

void row_block_get(const struct snapshot_block *block, struct row_place place,
		   uint64_t ret[ROW_BLOCK_NUMBERS])
{
	ret[0] = row_first_id(place.snapshot) + place.index;
	ret[1] = place.snapshot;
	ret[2] = row_first_id(place.snapshot) + block->trace;
	ret[3] = block->address;
	ret[4] = block->size;
	ret[5] = block->age_ns;
	ret[6] = block->thread;
}
