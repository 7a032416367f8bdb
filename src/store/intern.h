/* Interned records: equal bytes have equal ids, which count from 1 without gaps.  Private to store/. */
#ifndef ALLOCWATCH_STORE_INTERN_H
#define ALLOCWATCH_STORE_INTERN_H

#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INTERN_RECORDS_MAX (1u << 30)

struct intern {
	VEC_OF(uint64_t) words;        /* the records, each from a word's start */
	VEC_OF(struct intern_record {
		size_t first_word;
		uint32_t len;
		uint32_t mark;         /* the user's own; 0 at first */
	}) records;                    /* [id - 1] */
	struct intern_slot {
		uint32_t id;           /* 0: empty */
		uint32_t hash;         /* so that few records are looked at that are others, and none when there are more slots */
	} *slots;                      /* open addressing, at most half full */
	size_t slot_count;
};

void intern_fini(struct intern *intern);
/* The record's id; *ret_new says whether it was added.  -ENOMEM, -EOVERFLOW. */
int64_t intern_add(struct intern *intern, const void *record, size_t len, bool *ret_new);

static inline uint32_t intern_count(const struct intern *intern)
{
	return (uint32_t)intern->records.count;
}

/* For ids from 1 to intern_count().  The bytes are aligned for any type and move with intern_add. */
static inline const void *intern_get(const struct intern *intern, uint32_t id, size_t *ret_len)
{
	const struct intern_record *record = &intern->records.items[id - 1];

	*ret_len = record->len;
	return intern->words.items + record->first_word;
}

static inline uint32_t *intern_mark(struct intern *intern, uint32_t id)
{
	return &intern->records.items[id - 1].mark;
}

#endif
