#include "model/ranges.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_RANGES 256

struct ranges_chunk {
	uint32_t count;
	struct range items[CHUNK_RANGES];
};

void ranges_init(struct ranges *ranges)
{
	*ranges = (struct ranges){ 0 };
}

void ranges_fini(struct ranges *ranges)
{
	for (size_t i = 0; i < ranges->chunks.count; i++)
		free(ranges->chunks.items[i]);
	free(ranges->spare);
	vec_fini(&ranges->chunks);
}

/* The last chunk that starts at or below an address, else the first. */
static size_t find_chunk(const struct ranges *ranges, raddr address)
{
	size_t low = 0, high = ranges->chunks.count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (ranges->chunks.items[middle]->items[0].start <= address)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* The first of a chunk that ends above an address, or its count. */
static uint32_t find_in(const struct ranges_chunk *chunk, raddr address)
{
	uint32_t low = 0, high = chunk->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (chunk->items[middle].end > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

struct range *ranges_at_or_above(const struct ranges *ranges, raddr from)
{
	size_t number = find_chunk(ranges, from);
	struct ranges_chunk *chunk;
	uint32_t at;

	if (ranges->chunks.count == 0)
		return NULL;
	chunk = ranges->chunks.items[number];
	at = find_in(chunk, from);
	if (at < chunk->count)
		return &chunk->items[at];
	return number + 1 < ranges->chunks.count ? &ranges->chunks.items[number + 1]->items[0] : NULL;
}

int ranges_reserve(struct ranges *ranges)
{
	if (vec_reserve(&ranges->chunks, 1) < 0)
		return -ENOMEM;
	if (!ranges->spare)
		ranges->spare = calloc(1, sizeof(*ranges->spare));
	return ranges->spare ? 0 : -ENOMEM;
}

/* Puts the spare one behind the first `number`. */
static struct ranges_chunk *open_chunk(struct ranges *ranges, size_t number)
{
	struct ranges_chunk **place = ranges->chunks.items + number, *chunk = ranges->spare;

	assert(chunk && ranges->chunks.count < ranges->chunks.space);
	memmove(place + 1, place, (ranges->chunks.count - number) * sizeof(*place));
	*place = chunk;
	ranges->chunks.count++;
	ranges->spare = NULL;
	return chunk;
}

static void close_chunk(struct ranges *ranges, size_t number)
{
	struct ranges_chunk **place = ranges->chunks.items + number, *chunk = *place;

	ranges->chunks.count--;
	memmove(place, place + 1, (ranges->chunks.count - number) * sizeof(*place));
	if (ranges->spare)
		free(chunk);
	else
		ranges->spare = chunk;
}

static void split(struct ranges *ranges, size_t number)
{
	struct ranges_chunk *upper = open_chunk(ranges, number + 1), *lower = ranges->chunks.items[number];

	upper->count = lower->count - lower->count / 2;
	lower->count /= 2;
	memcpy(upper->items, lower->items + lower->count, upper->count * sizeof(upper->items[0]));
}

void ranges_add(struct ranges *ranges, const struct range *range)
{
	size_t number = find_chunk(ranges, range->start);
	struct ranges_chunk *chunk;
	uint32_t at;

	if (ranges->chunks.count == 0) {
		open_chunk(ranges, 0)->count = 0;
	} else if (ranges->chunks.items[number]->count == CHUNK_RANGES) {
		split(ranges, number);
		number = find_chunk(ranges, range->start);
	}
	chunk = ranges->chunks.items[number];
	at = find_in(chunk, range->start);
	memmove(&chunk->items[at + 1], &chunk->items[at], (chunk->count - at) * sizeof(chunk->items[0]));
	chunk->items[at] = *range;
	chunk->count++;
	ranges->count++;
}

/* A chunk that has become small, and the one behind it. */
static void merge(struct ranges *ranges, size_t number)
{
	struct ranges_chunk *lower = ranges->chunks.items[number], *upper;

	if (number + 1 >= ranges->chunks.count)
		return;
	upper = ranges->chunks.items[number + 1];
	if (lower->count + upper->count > CHUNK_RANGES / 2)
		return;
	memcpy(lower->items + lower->count, upper->items, upper->count * sizeof(lower->items[0]));
	lower->count += upper->count;
	close_chunk(ranges, number + 1);
}

void ranges_remove(struct ranges *ranges, raddr start)
{
	size_t number = find_chunk(ranges, start);
	struct ranges_chunk *chunk = ranges->chunks.items[number];
	uint32_t at = find_in(chunk, start);

	assert(at < chunk->count && chunk->items[at].start == start);
	chunk->count--;
	ranges->count--;
	memmove(&chunk->items[at], &chunk->items[at + 1], (chunk->count - at) * sizeof(chunk->items[0]));
	if (chunk->count == 0)
		close_chunk(ranges, number);
	else
		merge(ranges, number);
}

size_t ranges_memory(const struct ranges *ranges)
{
	return vec_memory(&ranges->chunks) + (ranges->chunks.count + (ranges->spare != NULL)) * sizeof(struct ranges_chunk);
}
