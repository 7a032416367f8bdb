/* Rows of the unwind tables, cached by address, and with them the interned frame of the address: one
 * look-up gives all that a step needs.
 *
 * Few of the rows of a program differ, so a slot holds the number of a row and rows are kept once per
 * module.  Removing a module marks its rows dead, which empties its slots at no cost.  The table doubles
 * without moving anything: the new one starts empty and takes over what is still asked for. */
#ifndef ALLOCWATCH_UNWIND_CFI_ROWS_H
#define ALLOCWATCH_UNWIND_CFI_ROWS_H

#include "arch/arch.h"
#include "base/reader.h"
#include "base/vec.h"

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CFI_SLOTS_MIN 4096u
#define CFI_SLOTS_MAX (1u << 20)       /* at most half of them in use; then the cache starts anew */
#define CFI_ROWS_MAX 65536u            /* different rows, dead ones included; then the cache starts anew */

enum cfi_row_kind {
	CFI_ROW_PLAIN,                 /* CFA = register + offset, registers saved near it */
	CFI_ROW_END,                   /* outermost frame: the return address is undefined, or nobody called */
	CFI_ROW_FULL,                  /* an expression, a signal frame, anything unusual: full evaluation */
	CFI_ROW_OTHER_STACK,           /* its caller is on another stack, and the tables do not say where */
	CFI_ROW_NONE,                  /* the module says nothing about this address */
	CFI_ROW_TRAMPOLINE,            /* as NONE, and it is a signal's trampoline */
	CFI_ROW_FRAME_POINTER,         /* as NONE, and it is none */
	CFI_ROW_DEAD,                  /* its module is gone */
};

/* A plain row is made for speed: CFA = rsp or rbp + offset, the return address right below the CFA,
 * callee-saved registers near it.  Anything else is a full one. */
struct cfi_row {
	uint32_t module;
	int32_t cfa_offset;            /* bytes */
	uint8_t kind;
	uint8_t from_bp;               /* 1: CFA is counted from rbp, 0: from rsp */
	uint8_t saved_mask;            /* bit i: arch_callee_saved[i] */
	uint8_t unused;                /* rows are compared as bytes: no padding */
	uint16_t depth;                /* bytes below the CFA that a step reads */
	int16_t saved[ARCH_CALLEE_SAVED];  /* bytes from the CFA; -8 for a register not saved */
	uint16_t unused_too;
	uint32_t full;                 /* CFI_ROW_FULL: its number in the cache's list of frames */
};
_Static_assert(sizeof(struct cfi_row) == 32, "a row has no padding");

struct cfi_slot {
	uint64_t key;                  /* cfi_key(), 0: empty */
	uint32_t frame;                /* id in the stack table */
	uint32_t row;
};

struct cfi_table {
	struct cfi_slot *slots;
	unsigned int shift;            /* 64 - log2 of the number of slots */
	uint32_t used;
};

struct cfi_full {
	Dwarf_Frame *frame;            /* NULL: free */
	uint32_t module;
};

struct cfi_rows {
	struct cfi_table table;
	struct cfi_table old;          /* read only; slots NULL: none */
	VEC_OF(struct cfi_row) rows;
	VEC_OF(struct cfi_full) full;
	uint32_t *row_index;           /* row + 1 by content, open addressing */
	uint32_t row_index_space;
};

int cfi_rows_init(struct cfi_rows *rows);               /* 0 or -ENOMEM */
void cfi_rows_fini(struct cfi_rows *rows);

/* Addresses of the upper half are the kernel's, or garbage. */
static inline bool cfi_is_key(raddr pc)
{
	return pc != 0 && !(pc >> 63);
}

static inline uint64_t cfi_key(raddr pc, bool exact)
{
	return pc << 1 | exact;
}

/* The number of a row with this content, added when new.  frame: what a CFI_ROW_FULL row is evaluated from
 * (libdw's, malloc'ed; taken over also on failure), else NULL.  -ENOMEM; -ENOSPC: cfi_rows_restart first. */
int64_t cfi_rows_intern(struct cfi_rows *rows, const struct cfi_row *row, Dwarf_Frame *frame);
/* Sets the slot of a key.  Returns it, or NULL when there is no memory. */
const struct cfi_slot *cfi_rows_set(struct cfi_rows *rows, uint64_t key, uint32_t frame, uint32_t row);
/* Looks where cfi_rows_find did not: NULL, or the slot, now also in the current table. */
const struct cfi_slot *cfi_rows_find_old(struct cfi_rows *rows, uint64_t key);
void cfi_rows_remove_module(struct cfi_rows *rows, uint32_t module);
/* Forgets everything. */
void cfi_rows_restart(struct cfi_rows *rows);
size_t cfi_rows_memory(const struct cfi_rows *rows);

/* The slot of a key in a table; an empty one when it is not there.  Its row may be dead. */
static inline const struct cfi_slot *cfi_table_find(const struct cfi_table *table, uint64_t key)
{
	size_t mask = ~(uint64_t)0 >> table->shift;
	size_t i = (key * 0x9e3779b97f4a7c15ULL) >> table->shift;

	while (table->slots[i].key != key && table->slots[i].key != 0)
		i = (i + 1) & mask;
	return &table->slots[i];
}

/* The live slot of a key, or NULL. */
static inline const struct cfi_slot *cfi_rows_find(struct cfi_rows *rows, uint64_t key)
{
	const struct cfi_slot *slot = cfi_table_find(&rows->table, key);

	if (slot->key == 0)
		return rows->old.slots ? cfi_rows_find_old(rows, key) : NULL;
	return rows->rows.items[slot->row].kind != CFI_ROW_DEAD ? slot : NULL;
}

#endif
