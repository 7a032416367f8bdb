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

static struct intern_slot *find_slot(const struct intern *intern, const void *record, size_t len, uint32_t hash)
{
	size_t mask = intern->slot_count - 1;

	for (size_t i = hash & mask;; i = (i + 1) & mask) {
		struct intern_slot *slot = &intern->slots[i];
		const void *have;
		size_t have_len;

		if (slot->id == 0)
			return slot;
		if (slot->hash != hash)
			continue;
		have = intern_get(intern, slot->id, &have_len);
		if (have_len == len && memcmp(have, record, len) == 0)
			return slot;
	}
}

/* All of these are different. */
static void move_slot(struct intern_slot *slots, size_t mask, struct intern_slot slot)
{
	size_t i = slot.hash & mask;

	while (slots[i].id)
		i = (i + 1) & mask;
	slots[i] = slot;
}

static int grow_slots(struct intern *intern)
{
	size_t count = intern->slot_count ? intern->slot_count * 2 : SLOTS_MIN;
	struct intern_slot *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < intern->slot_count; i++) {
		if (intern->slots[i].id)
			move_slot(slots, count - 1, intern->slots[i]);
	}
	free(intern->slots);
	intern->slots = slots;
	intern->slot_count = count;
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
	uint32_t hash = (uint32_t)hash_bytes(record, len);
	struct intern_slot *slot;
	int r;

	if (intern_count(intern) >= INTERN_RECORDS_MAX || len > UINT32_MAX)
		return -EOVERFLOW;
	if ((intern->records.count + 1) * 2 > intern->slot_count) {
		r = grow_slots(intern);
		if (r < 0)
			return r;
	}
	slot = find_slot(intern, record, len, hash);
	*ret_new = slot->id == 0;
	if (slot->id == 0) {
		r = append(intern, record, len);
		if (r < 0)
			return r;
		*slot = (struct intern_slot){ intern_count(intern), hash };
	}
	return slot->id;
}
