#include "model/id_table.h"

#include <errno.h>
#include <string.h>

/* As many additions apart that memory has come meanwhile. */
#define SPLITS_AHEAD 4u

void id_table_init(struct id_table *table, uint32_t item_size,
		   uint64_t (*hash)(const void *item))
{
	*table = (struct id_table){ .hash = hash, .bucket_count = 1 };
	steps_init(&table->items, item_size);
	steps_init(&table->heads, sizeof(uint32_t));
}

void id_table_fini(struct id_table *table)
{
	steps_fini(&table->items);
	steps_fini(&table->heads);
	table->count = 0;
	table->bucket_count = 1;
}

static void link_item(struct id_table *table, uint32_t id)
{
	uint32_t *item = id_table_at(table, id);
	uint32_t *head = steps_at(&table->heads, id_table_bucket(table, table->hash(item)));

	*item = *head;
	*head = id + 1;
}

/* The next buckets to be split are known: begins to load the first items of one of them. */
static void prefetch_split(const struct id_table *table, uint32_t opened)
{
	uint32_t top = 1u << (31 - __builtin_clz(opened));
	uint32_t head;

	if (opened - top >= table->count)
		return;
	head = *(const uint32_t *)steps_at(&table->heads, opened - top);
	if (head)
		__builtin_prefetch(id_table_at(table, head - 1));
}

/* Opens one more bucket and moves into it what belongs there, from the one bucket that held it. */
static void split_bucket(struct id_table *table)
{
	uint32_t opened = table->bucket_count++;
	uint32_t top = 1u << (31 - __builtin_clz(opened));
	uint32_t *stay = steps_at(&table->heads, opened - top);
	uint32_t *move = steps_at(&table->heads, opened);
	uint32_t link = *stay;

	prefetch_split(table, opened + SPLITS_AHEAD);
	while (link) {
		uint32_t *item = id_table_at(table, link - 1);
		uint32_t **end = table->hash(item) & top ? &move : &stay;

		**end = link;
		*end = item;
		link = *item;
	}
	*stay = 0;
	*move = 0;
}

int64_t id_table_add(struct id_table *table, const void *item)
{
	uint32_t id = table->count;

	if (id >= INT32_MAX)
		return -ENOSPC;
	if (steps_reach(&table->items, id) < 0 || steps_reach(&table->heads, id) < 0)
		return -ENOMEM;
	if (id >= table->bucket_count)
		split_bucket(table);
	memcpy(id_table_at(table, id), item, table->items.item_size);
	table->count++;
	link_item(table, id);
	return id;
}

size_t id_table_memory(const struct id_table *table)
{
	return steps_memory(&table->items) + steps_memory(&table->heads);
}
