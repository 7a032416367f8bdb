#include "unwind/cfi_rows.h"

#include "base/hash.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

/* Row 0: empty slots name it, so that a look-up may read the row before it knows whether it has one. */
static const struct cfi_row no_row = { .module = UINT32_MAX, .kind = CFI_ROW_DEAD };

static size_t table_size(const struct cfi_table *table)
{
	return table->slots ? (size_t)1 << (64 - table->shift) : 0;
}

static int table_init(struct cfi_table *table, size_t size)
{
	struct cfi_slot *slots = calloc(size, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	*table = (struct cfi_table){ .slots = slots, .shift = 64 - (unsigned int)__builtin_ctzl(size) };
	return 0;
}

static void table_fini(struct cfi_table *table)
{
	free(table->slots);
	table->slots = NULL;
}

int cfi_rows_init(struct cfi_rows *rows)
{
	*rows = (struct cfi_rows){ .row_index_space = 256 };
	rows->row_index = calloc(rows->row_index_space, sizeof(*rows->row_index));
	if (!rows->row_index || table_init(&rows->table, CFI_SLOTS_MIN) < 0 ||
	    cfi_rows_intern(rows, &no_row, NULL) < 0) {
		cfi_rows_fini(rows);
		return -ENOMEM;
	}
	return 0;
}

static void free_frames(struct cfi_rows *rows)
{
	for (size_t i = 0; i < rows->full.count; i++)
		free(rows->full.items[i].frame);
	rows->full.count = 0;
}

void cfi_rows_fini(struct cfi_rows *rows)
{
	free_frames(rows);
	vec_fini(&rows->full);
	vec_fini(&rows->rows);
	free(rows->row_index);
	table_fini(&rows->table);
	table_fini(&rows->old);
}

/* A small new table rather than a large one wiped: that would take longer than a millisecond. */
void cfi_rows_restart(struct cfi_rows *rows)
{
	struct cfi_table small;

	free_frames(rows);
	rows->rows.count = 1;
	memset(rows->row_index, 0, rows->row_index_space * sizeof(*rows->row_index));
	table_fini(&rows->old);
	if (table_init(&small, CFI_SLOTS_MIN) == 0) {
		table_fini(&rows->table);
		rows->table = small;
		return;
	}
	memset(rows->table.slots, 0, table_size(&rows->table) * sizeof(struct cfi_slot));
	rows->table.used = 0;
}

static uint64_t row_hash(const struct cfi_row *row)
{
	return hash_bytes(row, sizeof(*row));
}

static uint32_t *find_row(struct cfi_rows *rows, const struct cfi_row *row)
{
	uint32_t mask = rows->row_index_space - 1;
	uint32_t i = (uint32_t)row_hash(row) & mask;

	while (rows->row_index[i] != 0 &&
	       memcmp(&rows->rows.items[rows->row_index[i] - 1], row, sizeof(*row)) != 0)
		i = (i + 1) & mask;
	return &rows->row_index[i];
}

static int grow_row_index(struct cfi_rows *rows)
{
	uint32_t space = rows->row_index_space * 2;
	uint32_t *index = calloc(space, sizeof(*index));

	if (!index)
		return -ENOMEM;
	free(rows->row_index);
	rows->row_index = index;
	rows->row_index_space = space;
	for (size_t i = 0; i < rows->rows.count; i++)
		if (rows->rows.items[i].kind != CFI_ROW_DEAD)
			*find_row(rows, &rows->rows.items[i]) = (uint32_t)i + 1;
	return 0;
}

static int64_t add_row(struct cfi_rows *rows, const struct cfi_row *row)
{
	struct cfi_row *added;

	if (rows->rows.count >= CFI_ROWS_MAX)
		return -ENOSPC;
	if (rows->rows.count + 1 > rows->row_index_space / 4 * 3 && grow_row_index(rows) < 0)
		return -ENOMEM;
	added = vec_push(&rows->rows);
	if (!added)
		return -ENOMEM;
	memcpy(added, row, sizeof(*row));
	*find_row(rows, row) = (uint32_t)rows->rows.count;
	return (int64_t)rows->rows.count - 1;
}

static int64_t add_full_row(struct cfi_rows *rows, const struct cfi_row *row, Dwarf_Frame *frame)
{
	struct cfi_row numbered = *row;
	struct cfi_full *full = vec_push(&rows->full);
	int64_t id;

	if (!full)
		return -ENOMEM;
	numbered.full = (uint32_t)rows->full.count - 1;
	id = add_row(rows, &numbered);
	if (id < 0) {
		rows->full.count--;
		return id;
	}
	*full = (struct cfi_full){ .frame = frame, .module = row->module };
	return id;
}

int64_t cfi_rows_intern(struct cfi_rows *rows, const struct cfi_row *row, Dwarf_Frame *frame)
{
	uint32_t *found;
	int64_t id;

	if (row->kind == CFI_ROW_FULL) {
		id = add_full_row(rows, row, frame);
		if (id < 0)
			free(frame);
		return id;
	}
	found = find_row(rows, row);
	return *found ? *found - 1 : add_row(rows, row);
}

static struct cfi_slot *find_slot(const struct cfi_table *table, uint64_t key)
{
	return table->slots + (cfi_table_find(table, key) - table->slots);
}

/* At the largest size the table stays as large and the old one still answers: what is in use comes over
 * again, what is not is forgotten at the next turn. */
static int grow(struct cfi_rows *rows)
{
	size_t size = table_size(&rows->table);
	struct cfi_table larger;

	if (table_init(&larger, size < CFI_SLOTS_MAX ? size * 2 : size) < 0)
		return -ENOMEM;
	table_fini(&rows->old);
	rows->old = rows->table;
	rows->table = larger;
	return 0;
}

const struct cfi_slot *cfi_rows_set(struct cfi_rows *rows, uint64_t key, uint32_t frame, uint32_t row)
{
	struct cfi_slot *slot = find_slot(&rows->table, key);

	if (slot->key == 0) {
		if (rows->table.used >= table_size(&rows->table) / 2) {
			if (grow(rows) < 0)
				return NULL;
			slot = find_slot(&rows->table, key);
		}
		rows->table.used++;
	}
	*slot = (struct cfi_slot){ .key = key, .frame = frame, .row = row };
	return slot;
}

const struct cfi_slot *cfi_rows_find_old(struct cfi_rows *rows, uint64_t key)
{
	const struct cfi_slot *slot = find_slot(&rows->old, key);

	if (slot->key == 0 || rows->rows.items[slot->row].kind == CFI_ROW_DEAD)
		return NULL;
	return cfi_rows_set(rows, key, slot->frame, slot->row);
}

/* The index by content is made anew without the dead ones when it next grows; until then a dead row in it
 * equals no live one, because its kind differs. */
void cfi_rows_remove_module(struct cfi_rows *rows, uint32_t module)
{
	for (size_t i = 0; i < rows->rows.count; i++)
		if (rows->rows.items[i].module == module)
			rows->rows.items[i].kind = CFI_ROW_DEAD;
	for (size_t i = 0; i < rows->full.count; i++) {
		if (rows->full.items[i].module != module)
			continue;
		free(rows->full.items[i].frame);
		rows->full.items[i] = (struct cfi_full){ .module = UINT32_MAX };
	}
}

size_t cfi_rows_memory(const struct cfi_rows *rows)
{
	size_t bytes = (table_size(&rows->table) + table_size(&rows->old)) * sizeof(struct cfi_slot) +
		       vec_memory(&rows->rows) + rows->row_index_space * sizeof(uint32_t) + vec_memory(&rows->full);

	/* They are libdw's, who alone knows their size; free(NULL) has none. */
	for (size_t i = 0; i < rows->full.count; i++)
		bytes += malloc_usable_size(rows->full.items[i].frame);
	return bytes;
}
