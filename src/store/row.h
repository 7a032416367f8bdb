/* What a snapshot says of itself and of its process, as the values of its rows in the tables
 * `process` and `snapshot`.  Private to store/. */
#ifndef ALLOCWATCH_STORE_ROW_H
#define ALLOCWATCH_STORE_ROW_H

#include "model/snapshot.h"

#include <stdbool.h>
#include <stdint.h>

/* taken_ns to sample_bytes; a version's own come behind those of the one before. */
#define ROW_NUMBERS 25
#define ROW_NUMBERS_1 21
#define ROW_NUMBERS_2 24
#define ROW_COLUMNS ROW_COLUMNS_2 ", sample_bytes"
#define ROW_COLUMNS_2 ROW_COLUMNS_1 ", clock_ns, peak_blocks, peak_ns"
#define ROW_COLUMNS_1                                                                                   \
	"taken_ns, attached_ns, frames_limit, exact, symbolized, has_blocks, "                          \
	"live_bytes, live_blocks, peak_bytes, allocations, frees, heap_before_attach_frees, "           \
	"heap_after_clear_frees, heap_unknown_frees, heap_lost_events, "                                \
	"unknown_frees, before_attach_frees, after_clear_frees, lost_events, truncated_stacks, probe_gaps"

/* How many of a version's there are. */
static inline int row_numbers(uint32_t version)
{
	return version == 1 ? ROW_NUMBERS_1 : version == 2 ? ROW_NUMBERS_2 : ROW_NUMBERS;
}

void row_get(const struct snapshot *snapshot, uint64_t ret[ROW_NUMBERS]);
/* false when one of them is out of its range. */
bool row_set(struct snapshot *snapshot, const uint64_t numbers[ROW_NUMBERS]);
/* Adds the snapshot's own part, under its number in a file of that version, to its checksum. */
void row_checksum(const struct snapshot *snapshot, uint64_t number, uint32_t version, uint64_t *sum);

/* The id of the first trace, and of the first block, of a snapshot: the others follow without gaps.
 * So the rows of one snapshot lie together, and adding one is adding behind the last. */
static inline uint64_t row_first_id(uint64_t snapshot_number)
{
	return snapshot_number << 32;
}

/* Traces and blocks as values, in the order of their columns: id, snapshot, ... */
#define ROW_TRACE_NUMBERS 14
#define ROW_TRACE_NUMBERS_1 8
#define ROW_TRACE_NUMBERS_2 11
#define ROW_BLOCK_NUMBERS 7
#define ROW_BLOCK_NUMBERS_1 6
static inline int row_trace_numbers(uint32_t version)
{
	return version == 1 ? ROW_TRACE_NUMBERS_1 : version == 2 ? ROW_TRACE_NUMBERS_2 : ROW_TRACE_NUMBERS;
}

struct row_place {
	uint64_t snapshot;             /* its number in the file */
	size_t index;                  /* of the trace or block in the snapshot */
};
/* A domain that a user has named stands in a file as this and the id of its name among the strings. */
#define ROW_DOMAIN_NAMED (1u << 20)
void row_trace_get(const struct snapshot_trace *trace, struct row_place place, uint32_t stack,
		   uint64_t ret[ROW_TRACE_NUMBERS]);
void row_block_get(const struct snapshot_block *block, struct row_place place,
		   uint64_t ret[ROW_BLOCK_NUMBERS]);

#endif
