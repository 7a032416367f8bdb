/* Interned items with dense ids: an array that grows in steps and, over it, a linear hash that
 * grows bucket by bucket, so that no addition is ever long.
 *
 * An item begins with `uint32_t next`, which belongs to the table.  To find one, walk its chain:
 *
 *	for (uint32_t id = id_table_first(t, hash); id != ID_NONE; id = id_table_next(t, id))
 *
 * Nothing is removed while the table lives. */
#ifndef ALLOCWATCH_MODEL_ID_TABLE_H
#define ALLOCWATCH_MODEL_ID_TABLE_H

#include "model/steps.h"

#define ID_NONE UINT32_MAX

struct id_table {
	struct steps items;
	struct steps heads;                     /* uint32_t: id + 1 of a chain's first, 0 empty */
	uint32_t count, bucket_count;
	uint64_t (*hash)(const void *item);
};

static inline uint32_t id_table_bucket(const struct id_table *table, uint64_t hash)
{
	uint32_t mask = UINT32_MAX >> __builtin_clz(table->bucket_count);
	uint32_t bucket = (uint32_t)hash & mask;

	/* Buckets from bucket_count on have not been split off their lower half yet. */
	return bucket < table->bucket_count ? bucket : bucket & (mask >> 1);
}

static inline void *id_table_at(const struct id_table *table, uint32_t id)
{
	return steps_at(&table->items, id);
}

static inline uint32_t id_table_first(const struct id_table *table, uint64_t hash)
{
	if (table->count == 0)
		return ID_NONE;
	return *(const uint32_t *)steps_at(&table->heads, id_table_bucket(table, hash)) - 1;
}

/* Begins to load what id_table_first() will read. */
static inline void id_table_prefetch(const struct id_table *table, uint64_t hash)
{
	if (table->count > 0)
		__builtin_prefetch(steps_at(&table->heads, id_table_bucket(table, hash)));
}

/* The same, of the item it will lead to; waits for what id_table_prefetch() began to load. */
static inline void id_table_prefetch_first(const struct id_table *table, uint64_t hash)
{
	uint32_t id = id_table_first(table, hash);

	if (id != ID_NONE)
		__builtin_prefetch(id_table_at(table, id));
}

static inline uint32_t id_table_next(const struct id_table *table, uint32_t id)
{
	return *(const uint32_t *)id_table_at(table, id) - 1;
}

void id_table_init(struct id_table *table, uint32_t item_size,
		   uint64_t (*hash)(const void *item));
void id_table_fini(struct id_table *table);
/* Adds a copy of `item` (its `next` is ignored) and returns its id; -ENOMEM, -ENOSPC when ids run
 * out.  The caller has looked before that it is new. */
int64_t id_table_add(struct id_table *table, const void *item);
size_t id_table_memory(const struct id_table *table);

#endif
