#include "symbol/jit_table.h"

#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>

struct jit_table {
	VEC_OF(struct jit_entry) entries;    /* full, it is a ring */
	uint64_t added;
	uint64_t *points;                    /* where entries start or end, sorted, each once */
	uint32_t *owners;                    /* of [points[i], points[i + 1]): an entry's index + 1; 0: nobody's */
	size_t point_count;
};

struct jit_table *jit_table_new(void)
{
	return calloc(1, sizeof(struct jit_table));
}

void jit_table_free(struct jit_table *table)
{
	if (!table)
		return;
	vec_fini(&table->entries);
	free(table->points);
	free(table->owners);
	free(table);
}

int jit_table_add(struct jit_table *table, const struct jit_entry *entry)
{
	struct jit_entry *place;

	if (entry->size == 0 || entry->name_len == 0 || entry->size > UINT64_MAX - entry->start)
		return 0;
	if (table->entries.count < JIT_ENTRIES_MAX)
		place = vec_push(&table->entries);
	else
		place = &table->entries.items[table->added % JIT_ENTRIES_MAX];
	if (!place)
		return -ENOMEM;
	*place = *entry;
	table->added++;
	return 0;
}

size_t jit_table_count(const struct jit_table *table)
{
	return table->entries.count;
}

static size_t newest(const struct jit_table *table, size_t i)
{
	return (size_t)((table->added - 1 - i) % JIT_ENTRIES_MAX);
}

const struct jit_entry *jit_table_newest(const struct jit_table *table, size_t i)
{
	return &table->entries.items[newest(table, i)];
}

/* --- who is where --- */

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int list_points(struct jit_table *table)
{
	size_t count = 2 * table->entries.count, kept = 0;

	table->points = malloc((count + 1) * sizeof(*table->points));
	table->owners = calloc(count + 1, sizeof(*table->owners));
	if (!table->points || !table->owners)
		return -ENOMEM;
	for (size_t i = 0; i < table->entries.count; i++) {
		table->points[2 * i] = table->entries.items[i].start;
		table->points[2 * i + 1] = table->entries.items[i].start + table->entries.items[i].size;
	}
	qsort(table->points, count, sizeof(*table->points), compare);
	for (size_t i = 0; i < count; i++) {
		if (kept == 0 || table->points[kept - 1] != table->points[i])
			table->points[kept++] = table->points[i];
	}
	table->points[kept] = UINT64_MAX;    /* nobody begins there */
	table->point_count = kept;
	return 0;
}

/* How many points are at or below the address. */
static size_t points_up_to(const struct jit_table *table, uint64_t address)
{
	size_t low = 0, high = table->point_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->points[middle] <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The first piece from i on that has no owner; the way there is made shorter. */
static uint32_t free_from(uint32_t *next, uint32_t i)
{
	while (next[i] != i) {
		next[i] = next[next[i]];
		i = next[i];
	}
	return i;
}

/* From the newest entry to the oldest: each gets of its pieces what no later one has, so every piece is
 * looked at once, however the entries lie over each other. */
static void give_away(struct jit_table *table, uint32_t *next)
{
	for (size_t n = 0; n < table->entries.count; n++) {
		size_t entry = newest(table, n);
		const struct jit_entry *from = &table->entries.items[entry];
		uint32_t i = free_from(next, (uint32_t)points_up_to(table, from->start) - 1);

		while (table->points[i] < from->start + from->size) {
			table->owners[i] = (uint32_t)entry + 1;
			next[i] = i + 1;
			i = free_from(next, i + 1);
		}
	}
}

int jit_table_finish(struct jit_table *table)
{
	uint32_t *next;

	if (table->entries.count == 0)
		return 0;
	if (list_points(table) < 0)
		return -ENOMEM;
	next = malloc((table->point_count + 1) * sizeof(*next));
	if (!next)
		return -ENOMEM;
	for (size_t i = 0; i <= table->point_count; i++)
		next[i] = (uint32_t)i;
	give_away(table, next);
	free(next);
	return 0;
}

const struct jit_entry *jit_table_find(const struct jit_table *table, uint64_t address)
{
	size_t above = points_up_to(table, address);
	uint32_t owner = above > 0 ? table->owners[above - 1] : 0;

	return owner > 0 ? &table->entries.items[owner - 1] : NULL;
}
