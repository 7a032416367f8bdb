#include "store/intern.h"

#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_MIN 64

void intern_fini(struct intern *intern)
{
	vec_fini(&intern->words);
	vec_fini(&intern->records);
	free(intern->slots);
	intern->slots = NULL;
	intern->slot_count = 0;
}

static uint32_t *find_slot(const struct intern *intern, const void *record, size_t len)
{
	size_t mask = intern->slot_count - 1;
	size_t i = hash_bytes(record, len) & mask;

	for (;; i = (i + 1) & mask) {
		const void *have;
		size_t have_len;

		if (intern->slots[i] == 0)
			return &intern->slots[i];
		have = intern_get(intern, intern->slots[i], &have_len);
		if (have_len == len && memcmp(have, record, len) == 0)
			return &intern->slots[i];
	}
}

static int grow_slots(struct intern *intern)
{
	size_t count = intern->slot_count ? intern->slot_count * 2 : SLOTS_MIN;
	uint32_t *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(intern->slots);
	intern->slots = slots;
	intern->slot_count = count;
	for (uint32_t id = 1; id <= intern_count(intern); id++) {
		size_t len;
		const void *record = intern_get(intern, id, &len);

		*find_slot(intern, record, len) = id;
	}
	return 0;
}

static int append(struct intern *intern, const void *record, size_t len)
{
	size_t words = (len + sizeof(uint64_t) - 1) / sizeof(uint64_t);
	struct intern_record *added;

	if (vec_reserve(&intern->words, words ? words : 1) < 0)
		return -ENOMEM;
	added = vec_push(&intern->records);
	if (!added)
		return -ENOMEM;
	added->first_word = intern->words.count;
	added->len = (uint32_t)len;
	if (len > 0)
		memcpy(intern->words.items + intern->words.count, record, len);
	intern->words.count += words;
	return 0;
}

int64_t intern_add(struct intern *intern, const void *record, size_t len, bool *ret_new)
{
	uint32_t *slot;
	int r;

	if (intern_count(intern) >= INTERN_RECORDS_MAX || len > UINT32_MAX)
		return -EOVERFLOW;
	if ((intern->records.count + 1) * 2 > intern->slot_count) {
		r = grow_slots(intern);
		if (r < 0)
			return r;
	}
	slot = find_slot(intern, record, len);
	*ret_new = *slot == 0;
	if (*slot == 0) {
		r = append(intern, record, len);
		if (r < 0)
			return r;
		*slot = intern_count(intern);
	}
	return *slot;
}
