/* Which piece of generated code lies where, as a process has told in the course of time: of several that lie at one
 * address the one told last is there.  Knows no format. */
#ifndef ALLOCWATCH_SYMBOL_JIT_TABLE_H
#define ALLOCWATCH_SYMBOL_JIT_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* Entries kept; the oldest make way. */
#define JIT_ENTRIES_MAX (1u << 20)

struct jit_entry {
	uint64_t start, size;        /* run-time addresses */
	uint64_t name_at;            /* in the file, not in memory */
	uint64_t lines_at;           /* likewise, for the format that has them; 0: none */
	uint32_t name_len;
};

struct jit_table;

struct jit_table *jit_table_new(void);                        /* NULL: no memory */
void jit_table_free(struct jit_table *table);                 /* accepts NULL */
/* Empty ranges, those that go round the end of memory, and those without a name are ignored.  0 or -ENOMEM. */
int jit_table_add(struct jit_table *table, const struct jit_entry *entry);
/* How many were added and are kept; the i-th of them, the newest is 0. */
size_t jit_table_count(const struct jit_table *table);
const struct jit_entry *jit_table_newest(const struct jit_table *table, size_t i);
/* Once, after the last addition.  0 or -ENOMEM. */
int jit_table_finish(struct jit_table *table);
/* What lies at an address, or NULL. */
const struct jit_entry *jit_table_find(const struct jit_table *table, uint64_t address);

#endif
