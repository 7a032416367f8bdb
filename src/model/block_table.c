#include "model/block_table.h"

#include "model/block_shard.h"

#include <errno.h>
#include <stdlib.h>

#define SHARD_BLOCKS 1024       /* blocks a shard holds on average when it is split */
#define SHARD_BLOCKS_LEAST 512  /* and when two are merged */
#define SHARDS_MAX (1u << 22)
/* A small heap that comes and goes allocates nothing: its shards are not resized below
 * BUCKETS_SMALL.  In a large one some shards may be almost empty; none is resized for less than
 * BUCKETS_STEP. */
#define SHARDS_SMALL 16
#define BUCKETS_SMALL 52
#define BUCKETS_STEP 7

/* Per cent of the places.  A full table costs further buckets, an empty one memory; between the sizes that a
 * growing and a shrinking shard take lies the resize that a steady shard never makes. */
#define FULLEST 85
#define AFTER_GROWTH 70
#define EMPTIEST 68
#define AFTER_SHRINKING 77

_Static_assert(sizeof(struct block_entry) == 24, "the figure per live block depends on it");

static struct shard *shard_at(const struct block_table *table, uint32_t index)
{
	return steps_at(&table->shards, index);
}

static uint32_t shard_index(const struct block_table *table, raddr address)
{
	uint32_t hash = block_shard_hash(table->seed, address);
	uint32_t mask = UINT32_MAX >> __builtin_clz(table->shard_count);
	uint32_t index = hash & mask;

	return index < table->shard_count ? index : index & (mask >> 1);
}

static uint32_t buckets_for(const struct block_table *table, uint32_t count, unsigned percent)
{
	uint32_t least = table->shard_count < SHARDS_SMALL ? BUCKETS_SMALL : BUCKETS_STEP;
	uint32_t buckets = (uint32_t)((uint64_t)count * 100 / (percent * BUCKET_BLOCKS)) + 1;

	return buckets < least ? least : buckets;
}

/* In the order of their homes, so both shards are gone through once. */
static void pour(const struct block_table *table, const struct shard *from, struct shard *into)
{
	struct shard_cursor cursor = { 0 };
	const struct block_entry *entry;

	while ((entry = shard_next(from, &cursor)))
		shard_put(into, block_entry_hash(table->seed, entry), entry);
}

static void replace_shard(struct block_table *table, struct shard *old, const struct shard *new)
{
	table->shard_memory -= shard_memory(old);
	table->shard_memory += shard_memory(new);
	shard_free(old);
	*old = *new;
}

static int resize_shard(struct block_table *table, struct shard *shard, uint32_t buckets)
{
	struct shard resized;

	if (shard_make(&resized, buckets) < 0)
		return -ENOMEM;
	pour(table, shard, &resized);
	replace_shard(table, shard, &resized);
	return 0;
}

static uint32_t count_moving(const struct block_table *table, const struct shard *shard, uint32_t top)
{
	struct shard_cursor cursor = { 0 };
	const struct block_entry *entry;
	uint32_t moving = 0;

	while ((entry = shard_next(shard, &cursor)))
		moving += (block_shard_hash(table->seed, entry->address) & top) != 0;
	return moving;
}

/* Opens shard number shard_count with the blocks of its lower half that now belong to it. */
static void split_shard(struct block_table *table)
{
	uint32_t opened = table->shard_count;
	uint32_t top = 1u << (31 - __builtin_clz(opened)), moving;
	struct shard *lower = shard_at(table, opened - top), *upper;
	struct shard_cursor cursor = { 0 };
	const struct block_entry *entry;
	struct shard kept, moved;

	/* Not now is no error: the shards only get larger. */
	if (opened >= SHARDS_MAX || steps_reach(&table->shards, opened) < 0)
		return;
	moving = count_moving(table, lower, top);
	if (shard_make(&kept, buckets_for(table, lower->count - moving + 1, AFTER_GROWTH)) < 0)
		return;
	if (shard_make(&moved, buckets_for(table, moving + 1, AFTER_GROWTH)) < 0) {
		shard_free(&kept);
		return;
	}
	while ((entry = shard_next(lower, &cursor)))
		shard_put(block_shard_hash(table->seed, entry->address) & top ? &moved : &kept,
			  block_entry_hash(table->seed, entry), entry);
	table->shard_count++;
	replace_shard(table, lower, &kept);
	upper = shard_at(table, opened);
	*upper = (struct shard){ 0 };
	replace_shard(table, upper, &moved);
}

/* The reverse of split_shard(). */
static void merge_shard(struct block_table *table)
{
	uint32_t closed = table->shard_count - 1;
	uint32_t top = 1u << (31 - __builtin_clz(closed));
	struct shard *lower = shard_at(table, closed - top), *upper = shard_at(table, closed);
	struct shard merged, none = { 0 };

	if (shard_make(&merged, buckets_for(table, lower->count + upper->count + 1, AFTER_SHRINKING)) < 0)
		return;
	pour(table, lower, &merged);
	pour(table, upper, &merged);
	replace_shard(table, lower, &merged);
	replace_shard(table, upper, &none);
	table->shard_count--;
	steps_cut(&table->shards, table->shard_count);
}

int block_table_init(struct block_table *table, uint64_t seed)
{
	struct shard *first;

	*table = (struct block_table){ .seed = seed };
	steps_init(&table->shards, sizeof(struct shard));
	if (steps_reach(&table->shards, 0) < 0)
		return -ENOMEM;
	first = shard_at(table, 0);
	if (shard_make(first, BUCKETS_SMALL) < 0) {
		steps_fini(&table->shards);
		return -ENOMEM;
	}
	table->shard_count = 1;
	table->shard_memory = shard_memory(first);
	return 0;
}

void block_table_fini(struct block_table *table)
{
	for (uint32_t i = 0; i < table->shard_count; i++)
		shard_free(shard_at(table, i));
	steps_fini(&table->shards);
	table->shard_count = 0;
}

void block_table_seek(const struct block_table *table, raddr address, uint32_t domain,
		      struct block_place *ret_place)
{
	uint64_t hash = block_hash(table->seed, address, domain);
	struct shard *shard = shard_at(table, shard_index(table, address));
	const struct bucket *home = &shard->buckets[shard_home(shard, hash)];

	__builtin_prefetch(home);
	__builtin_prefetch((const char *)home + sizeof(*home) / 2);
	*ret_place = (struct block_place){ .shard = shard, .hash = hash };
}

bool block_table_found(struct block_place *place, raddr address, uint32_t domain)
{
	place->entry = shard_find(place->shard, place->hash, address, domain);
	return place->entry;
}

bool block_table_find(const struct block_table *table, raddr address, uint32_t domain,
		      struct block_place *ret_place)
{
	block_table_seek(table, address, domain, ret_place);
	return block_table_found(ret_place, address, domain);
}

static int grow(struct block_table *table, struct shard *shard)
{
	uint32_t buckets = buckets_for(table, shard->count + 1, AFTER_GROWTH);

	if (buckets < shard->bucket_count + BUCKETS_STEP)
		buckets = shard->bucket_count + BUCKETS_STEP;
	return resize_shard(table, shard, buckets);
}

int block_table_put(struct block_table *table, const struct block_place *place,
		    const struct block_entry *entry)
{
	struct shard *shard = place->shard;

	if ((uint64_t)(shard->count + 1) * 100 > (uint64_t)shard_places(shard) * FULLEST &&
	    grow(table, shard) < 0 && shard->count == shard_places(shard))
		return -ENOMEM;
	shard_put(shard, place->hash, entry);
	table->count++;
	if (table->count > (uint64_t)table->shard_count * SHARD_BLOCKS)
		split_shard(table);
	return 0;
}

static void shrink(struct block_table *table, struct shard *shard)
{
	uint32_t buckets = buckets_for(table, shard->count + 1, AFTER_SHRINKING);

	/* Without memory for a smaller one the large one does. */
	if (buckets + BUCKETS_STEP <= shard->bucket_count)
		resize_shard(table, shard, buckets);
}

void block_table_remove(struct block_table *table, const struct block_place *place)
{
	struct shard *shard = place->shard;

	shard_remove(shard, place->hash, place->entry);
	table->count--;
	if ((uint64_t)shard->count * 100 < (uint64_t)shard_places(shard) * EMPTIEST)
		shrink(table, shard);
	if (table->shard_count > 1 &&
	    table->count < (uint64_t)table->shard_count * SHARD_BLOCKS_LEAST)
		merge_shard(table);
}

int block_table_each(const struct block_table *table,
		     int (*visit)(void *context, const struct block_entry *entry), void *context)
{
	for (uint32_t i = 0; i < table->shard_count; i++) {
		const struct shard *shard = shard_at(table, i);
		struct shard_cursor cursor = { 0 };
		const struct block_entry *entry;

		while ((entry = shard_next(shard, &cursor))) {
			int r = visit(context, entry);

			if (r != 0)
				return r;
		}
	}
	return 0;
}

size_t block_table_memory(const struct block_table *table)
{
	return table->shard_memory + steps_memory(&table->shards);
}
