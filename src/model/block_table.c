#include "model/block_table.h"

#include "model/block_shard.h"

#include <errno.h>
#include <stdlib.h>

#define SHARD_BLOCKS 1024       /* blocks a shard holds on average when it is split */
#define SHARD_BLOCKS_LEAST 512  /* and when two are merged */
#define SHARDS_MAX (1u << 22)
/* A small heap that comes and goes allocates nothing: its shards are not resized below
 * CAPACITY_SMALL.  In a large one some shards may be almost empty; none is resized for less than
 * CAPACITY_STEP. */
#define SHARDS_SMALL 16
#define CAPACITY_SMALL 256
#define CAPACITY_STEP 32

/* Per cent of the slots.  A full table costs probes, an empty one memory; between the sizes that a
 * growing and a shrinking shard take lies the resize that a steady shard never makes. */
#define FULLEST 84
#define AFTER_GROWTH 71
#define EMPTIEST 70
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

static uint32_t capacity_for(const struct block_table *table, uint32_t count, unsigned percent)
{
	uint32_t least = table->shard_count < SHARDS_SMALL ? CAPACITY_SMALL : CAPACITY_STEP;
	uint32_t capacity = (uint32_t)((uint64_t)count * 100 / percent) + 1;

	return capacity < least ? least : capacity;
}

static void pour(const struct block_table *table, const struct shard *from, struct shard *into)
{
	for (uint32_t i = 0; i < from->capacity; i++) {
		const struct block_entry *entry = &from->slots[i];

		if (entry->address)
			shard_put(into, table->seed, entry);
	}
}

static void replace_shard(struct block_table *table, struct shard *old, const struct shard *new)
{
	table->slot_memory -= (uint64_t)old->capacity * sizeof(*old->slots);
	table->slot_memory += (uint64_t)new->capacity * sizeof(*new->slots);
	free(old->slots);
	*old = *new;
}

static int resize_shard(struct block_table *table, struct shard *shard, uint32_t capacity)
{
	struct shard resized;

	if (shard_make(&resized, capacity) < 0)
		return -ENOMEM;
	pour(table, shard, &resized);
	replace_shard(table, shard, &resized);
	return 0;
}

/* Opens shard number shard_count with the blocks of its lower half that now belong to it. */
static void split_shard(struct block_table *table)
{
	uint32_t opened = table->shard_count;
	uint32_t top = 1u << (31 - __builtin_clz(opened));
	struct shard *lower = shard_at(table, opened - top), *upper;
	struct shard kept, moved;
	uint32_t moving = 0;

	/* Not now is no error: the shards only get larger. */
	if (opened >= SHARDS_MAX || steps_reach(&table->shards, opened) < 0)
		return;
	for (uint32_t i = 0; i < lower->capacity; i++) {
		const struct block_entry *entry = &lower->slots[i];

		moving += entry->address && (block_shard_hash(table->seed, entry->address) & top);
	}
	if (shard_make(&kept, capacity_for(table, lower->count - moving + 1, AFTER_SHRINKING)) < 0)
		return;
	if (shard_make(&moved, capacity_for(table, moving + 1, AFTER_SHRINKING)) < 0) {
		free(kept.slots);
		return;
	}
	for (uint32_t i = 0; i < lower->capacity; i++) {
		const struct block_entry *entry = &lower->slots[i];

		if (entry->address)
			shard_put(block_shard_hash(table->seed, entry->address) & top ? &moved : &kept,
				  table->seed, entry);
	}
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

	if (shard_make(&merged, capacity_for(table, lower->count + upper->count + 1, AFTER_SHRINKING)) < 0)
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
	if (shard_make(first, CAPACITY_SMALL) < 0) {
		steps_fini(&table->shards);
		return -ENOMEM;
	}
	table->shard_count = 1;
	table->slot_memory = CAPACITY_SMALL * sizeof(*first->slots);
	return 0;
}

void block_table_fini(struct block_table *table)
{
	for (uint32_t i = 0; i < table->shard_count; i++)
		free(shard_at(table, i)->slots);
	steps_fini(&table->shards);
	table->shard_count = 0;
}

bool block_table_find(const struct block_table *table, raddr address, uint32_t domain,
		      struct block_place *ret_place)
{
	uint64_t hash = block_hash(table->seed, address, domain);
	uint32_t index = shard_index(table, address);
	struct block_entry *entry = shard_find(shard_at(table, index), hash, address, domain);

	if (!entry)
		return false;
	*ret_place = (struct block_place){ index, entry };
	return true;
}

void block_table_prefetch(const struct block_table *table, raddr address, uint32_t domain)
{
	uint64_t hash = block_hash(table->seed, address, domain);
	const struct shard *shard = shard_at(table, shard_index(table, address));

	__builtin_prefetch(&shard->slots[shard_home(shard, hash)]);
}

static int grow(struct block_table *table, struct shard *shard)
{
	uint32_t capacity = capacity_for(table, shard->count + 1, AFTER_GROWTH);

	if (capacity < shard->capacity + CAPACITY_STEP)
		capacity = shard->capacity + CAPACITY_STEP;
	return resize_shard(table, shard, capacity);
}

int block_table_put(struct block_table *table, const struct block_entry *entry)
{
	struct shard *shard = shard_at(table, shard_index(table, entry->address));

	/* One slot stays empty, or a search for what is not there would not end. */
	if ((uint64_t)(shard->count + 1) * 100 > (uint64_t)shard->capacity * FULLEST &&
	    grow(table, shard) < 0 && shard->count + 2 > shard->capacity)
		return -ENOMEM;
	shard_put(shard, table->seed, entry);
	table->count++;
	if (table->count > (uint64_t)table->shard_count * SHARD_BLOCKS)
		split_shard(table);
	return 0;
}

void block_table_replace(const struct block_place *place, const struct block_entry *entry)
{
	uint64_t far = place->entry->far;

	*place->entry = *entry;
	place->entry->far = far;
}

static void shrink(struct block_table *table, struct shard *shard)
{
	uint32_t capacity = capacity_for(table, shard->count + 1, AFTER_SHRINKING);

	/* Without memory for a smaller one the large one does. */
	if (capacity + CAPACITY_STEP <= shard->capacity)
		resize_shard(table, shard, capacity);
}

void block_table_remove(struct block_table *table, const struct block_place *place)
{
	struct shard *shard = shard_at(table, place->shard);

	shard_remove(shard, table->seed, place->entry);
	table->count--;
	if ((uint64_t)shard->count * 100 < (uint64_t)shard->capacity * EMPTIEST)
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

		for (uint32_t slot = 0; slot < shard->capacity; slot++) {
			int r;

			if (!shard->slots[slot].address)
				continue;
			r = visit(context, &shard->slots[slot]);
			if (r != 0)
				return r;
		}
	}
	return 0;
}

size_t block_table_memory(const struct block_table *table)
{
	return table->slot_memory + steps_memory(&table->shards);
}
