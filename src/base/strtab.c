#include "base/strtab.h"

#include "base/hash.h"
#include "base/vec.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The first chunk, and the most that a further one is: each is as large as all before it. */
#define CHUNK_LEAST 2048
#define CHUNK_MOST 65536

struct chunk {
	struct chunk *next;
	size_t used, space;
	char text[];
};

struct strtab {
	struct chunk *chunks;
	VEC_OF(const char *) strings;
	uint32_t *slots;      /* id + 1, 0 = empty; open addressing */
	size_t slot_count;    /* a power of two, at most 3/4 full */
	size_t chunk_memory;
};

struct strtab *strtab_new(void)
{
	struct strtab *strtab = calloc(1, sizeof(*strtab));

	if (!strtab)
		return NULL;
	strtab->slot_count = 64;
	strtab->slots = calloc(strtab->slot_count, sizeof(*strtab->slots));
	if (!strtab->slots || strtab_add(strtab, "") < 0) {
		strtab_free(strtab);
		return NULL;
	}
	return strtab;
}

void strtab_free(struct strtab *strtab)
{
	struct chunk *chunk;

	if (!strtab)
		return;
	while ((chunk = strtab->chunks)) {
		strtab->chunks = chunk->next;
		free(chunk);
	}
	vec_fini(&strtab->strings);
	free(strtab->slots);
	free(strtab);
}

static uint32_t *find_slot(const struct strtab *strtab, const char *text, size_t len)
{
	size_t mask = strtab->slot_count - 1;
	size_t i = hash_bytes(text, len) & mask;

	for (;; i = (i + 1) & mask) {
		const char *have;

		if (strtab->slots[i] == 0)
			return &strtab->slots[i];
		have = strtab->strings.items[strtab->slots[i] - 1];
		if (strncmp(have, text, len) == 0 && have[len] == '\0')
			return &strtab->slots[i];
	}
}

static int grow_slots(struct strtab *strtab)
{
	uint32_t *slots = calloc(strtab->slot_count * 2, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(strtab->slots);
	strtab->slots = slots;
	strtab->slot_count *= 2;
	for (size_t i = 0; i < strtab->strings.count; i++) {
		const char *text = strtab->strings.items[i];

		*find_slot(strtab, text, strlen(text)) = (uint32_t)i + 1;
	}
	return 0;
}

static size_t chunk_size(const struct strtab *strtab)
{
	if (strtab->chunk_memory >= CHUNK_MOST)
		return CHUNK_MOST;
	return strtab->chunk_memory < CHUNK_LEAST ? CHUNK_LEAST : strtab->chunk_memory;
}

static char *copy_text(struct strtab *strtab, const char *text, size_t len)
{
	struct chunk *chunk = strtab->chunks;
	char *copy;

	if (!chunk || chunk->space - chunk->used < len + 1) {
		size_t space = chunk_size(strtab);

		if (len + 1 > space / 4)
			space = len + 1;
		chunk = malloc(sizeof(*chunk) + space);
		if (!chunk)
			return NULL;
		chunk->used = 0;
		chunk->space = space;
		chunk->next = strtab->chunks;
		strtab->chunks = chunk;
		strtab->chunk_memory += sizeof(*chunk) + space;
	}
	copy = chunk->text + chunk->used;
	memcpy(copy, text, len);
	copy[len] = '\0';
	chunk->used += len + 1;
	return copy;
}

int64_t strtab_add_len(struct strtab *strtab, const char *text, size_t len)
{
	uint32_t *slot;
	char *copy;

	len = strnlen(text, len);
	slot = find_slot(strtab, text, len);
	if (*slot)
		return *slot - 1;
	if (strtab->strings.count >= INT32_MAX)
		return -EOVERFLOW;
	if (strtab->strings.count + 1 > strtab->slot_count / 4 * 3) {
		if (grow_slots(strtab) < 0)
			return -ENOMEM;
		slot = find_slot(strtab, text, len);
	}
	if (vec_reserve(&strtab->strings, 1) < 0)
		return -ENOMEM;
	copy = copy_text(strtab, text, len);
	if (!copy)
		return -ENOMEM;
	strtab->strings.items[strtab->strings.count++] = copy;
	*slot = (uint32_t)strtab->strings.count;
	return *slot - 1;
}

int64_t strtab_add(struct strtab *strtab, const char *text)
{
	return text ? strtab_add_len(strtab, text, strlen(text)) : 0;
}

const char *strtab_get(const struct strtab *strtab, uint32_t id)
{
	assert(id < strtab->strings.count);
	return strtab->strings.items[id];
}

uint32_t strtab_count(const struct strtab *strtab)
{
	return (uint32_t)strtab->strings.count;
}

size_t strtab_memory(const struct strtab *strtab)
{
	return sizeof(*strtab) + strtab->chunk_memory +
	       strtab->strings.space * sizeof(*strtab->strings.items) +
	       strtab->slot_count * sizeof(*strtab->slots);
}
