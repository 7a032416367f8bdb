#include "daemon/symbolize_cache.h"

#include "base/hash.h"
#include "base/strtab.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>

struct kept_location {
	uint32_t function, file, line, function_offset;
	bool inlined;
};

struct entry {
	struct symbolize_key key;
	uint32_t first, count;               /* in `locations` */
};

struct generation {
	struct strtab *strings;
	VEC_OF(struct kept_location) locations;
	VEC_OF(struct entry) entries;
	uint32_t *slots;                     /* entry + 1, 0 = empty; open addressing */
	size_t slot_count;                   /* a power of two, at most half full */
};

struct symbolize_cache {
	struct generation young, old;
	size_t max_bytes;
};

static void generation_fini(struct generation *generation)
{
	strtab_free(generation->strings);
	vec_fini(&generation->locations);
	vec_fini(&generation->entries);
	free(generation->slots);
	*generation = (struct generation){ 0 };
}

static int generation_init(struct generation *generation)
{
	*generation = (struct generation){ .strings = strtab_new(), .slot_count = 1024 };
	generation->slots = calloc(generation->slot_count, sizeof(*generation->slots));
	if (generation->strings && generation->slots)
		return 0;
	generation_fini(generation);
	return -ENOMEM;
}

static size_t generation_memory(const struct generation *generation)
{
	if (!generation->strings)
		return 0;
	return strtab_memory(generation->strings) +
	       generation->locations.space * sizeof(generation->locations.items[0]) +
	       generation->entries.space * sizeof(generation->entries.items[0]) +
	       generation->slot_count * sizeof(generation->slots[0]);
}

static uint32_t *find_slot(const struct generation *generation, const struct symbolize_key *key)
{
	size_t mask = generation->slot_count - 1;
	size_t i = hash_pair(hash_pair(key->file, key->address), key->is_call) & mask;

	for (;; i = (i + 1) & mask) {
		const struct symbolize_key *have;

		if (generation->slots[i] == 0)
			return &generation->slots[i];
		have = &generation->entries.items[generation->slots[i] - 1].key;
		if (have->file == key->file && have->address == key->address &&
		    have->is_call == key->is_call)
			return &generation->slots[i];
	}
}

static int grow_slots(struct generation *generation)
{
	uint32_t *slots = calloc(generation->slot_count * 2, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(generation->slots);
	generation->slots = slots;
	generation->slot_count *= 2;
	for (size_t i = 0; i < generation->entries.count; i++)
		*find_slot(generation, &generation->entries.items[i].key) = (uint32_t)i + 1;
	return 0;
}

static int keep_location(struct generation *generation, const struct symbolize_location *location)
{
	int64_t function = strtab_add(generation->strings, location->function);
	int64_t file = strtab_add(generation->strings, location->file);
	struct kept_location *kept = vec_push(&generation->locations);

	if (function < 0 || file < 0 || !kept)
		return -ENOMEM;
	*kept = (struct kept_location){ (uint32_t)function, (uint32_t)file, location->line,
					location->function_offset, location->inlined };
	return 0;
}

static int generation_add(struct generation *generation, const struct symbolize_key *key,
			  const struct symbolize_location *locations, size_t count)
{
	size_t first = generation->locations.count;
	struct entry *entry;
	uint32_t *slot;

	if (generation->entries.count + 1 > generation->slot_count / 2 && grow_slots(generation) < 0)
		return -ENOMEM;
	slot = find_slot(generation, key);
	if (*slot)
		return 0;
	for (size_t i = 0; i < count; i++) {
		if (keep_location(generation, &locations[i]) < 0)
			goto undo;
	}
	entry = vec_push(&generation->entries);
	if (!entry)
		goto undo;
	*entry = (struct entry){ *key, (uint32_t)first, (uint32_t)count };
	*slot = (uint32_t)generation->entries.count;
	return 0;
undo:
	generation->locations.count = first;
	return -ENOMEM;
}

static void locations_of(const struct generation *generation, const struct entry *entry,
			 struct symbolize_location *locations)
{
	for (uint32_t i = 0; i < entry->count; i++) {
		const struct kept_location *kept = &generation->locations.items[entry->first + i];

		locations[i] = (struct symbolize_location){
			strtab_get(generation->strings, kept->function),
			strtab_get(generation->strings, kept->file),
			kept->line, kept->function_offset, kept->inlined };
	}
}

static bool generation_find(const struct generation *generation, const struct symbolize_key *key,
			    struct symbolize_location *locations, size_t *ret_count)
{
	const struct entry *entry;
	uint32_t slot;

	if (!generation->strings)
		return false;
	slot = *find_slot(generation, key);
	if (slot == 0)
		return false;
	entry = &generation->entries.items[slot - 1];
	locations_of(generation, entry, locations);
	*ret_count = entry->count;
	return true;
}

struct symbolize_cache *symbolize_cache_new(size_t max_bytes)
{
	struct symbolize_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return NULL;
	cache->max_bytes = max_bytes;
	if (generation_init(&cache->young) < 0) {
		free(cache);
		return NULL;
	}
	return cache;
}

void symbolize_cache_free(struct symbolize_cache *cache)
{
	if (!cache)
		return;
	generation_fini(&cache->young);
	generation_fini(&cache->old);
	free(cache);
}

/* A quarter of the bound, because a table that grows doubles. */
static int make_room(struct symbolize_cache *cache)
{
	struct generation fresh;

	if (generation_memory(&cache->young) <= cache->max_bytes / 4)
		return 0;
	if (generation_init(&fresh) < 0)
		return -ENOMEM;
	generation_fini(&cache->old);
	cache->old = cache->young;
	cache->young = fresh;
	return 0;
}

int symbolize_cache_add(struct symbolize_cache *cache, const struct symbolize_key *key,
			const struct symbolize_location *locations, size_t count)
{
	if (count > SYMBOLIZE_LOCATIONS_MAX)
		return -EINVAL;
	if (make_room(cache) < 0)
		return -ENOMEM;
	return generation_add(&cache->young, key, locations, count);
}

bool symbolize_cache_find(struct symbolize_cache *cache, const struct symbolize_key *key,
			  struct symbolize_location *locations, size_t *ret_count)
{
	/* Before the search, for it may throw strings away. */
	if (make_room(cache) < 0)
		return false;
	if (generation_find(&cache->young, key, locations, ret_count))
		return true;
	if (!generation_find(&cache->old, key, locations, ret_count))
		return false;
	generation_add(&cache->young, key, locations, *ret_count);
	return true;
}

void symbolize_cache_each(const struct symbolize_cache *cache,
			  void (*one)(void *context, const struct symbolize_key *key,
				      const struct symbolize_location *locations, size_t count), void *context)
{
	const struct generation *const both[] = { &cache->young, &cache->old };
	struct symbolize_location locations[SYMBOLIZE_LOCATIONS_MAX];

	for (size_t g = 0; g < sizeof(both) / sizeof(both[0]); g++) {
		for (size_t i = both[g]->entries.count; i-- > 0;) {
			const struct entry *entry = &both[g]->entries.items[i];

			locations_of(both[g], entry, locations);
			one(context, &entry->key, locations, entry->count);
		}
	}
}

size_t symbolize_cache_memory(const struct symbolize_cache *cache)
{
	return generation_memory(&cache->young) + generation_memory(&cache->old);
}
