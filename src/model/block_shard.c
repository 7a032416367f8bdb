#include "model/block_shard.h"

#include <errno.h>
#include <stdlib.h>

static uint32_t next_slot(const struct shard *shard, uint32_t slot)
{
	return slot + 1 == shard->capacity ? 0 : slot + 1;
}

static uint32_t previous_slot(const struct shard *shard, uint32_t slot)
{
	return slot == 0 ? shard->capacity - 1 : slot - 1;
}

int shard_make(struct shard *shard, uint32_t capacity)
{
	struct block_entry *slots = calloc(capacity, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	*shard = (struct shard){ .slots = slots, .capacity = capacity };
	return 0;
}

static uint32_t at_most_far(uint32_t distance)
{
	return distance < BLOCK_FAR ? distance : BLOCK_FAR;
}

/* How far behind its home a slot's block lies. */
static uint32_t distance(const struct shard *shard, uint64_t seed, uint32_t slot)
{
	const struct block_entry *entry = &shard->slots[slot];
	uint32_t home;

	if (entry->far < BLOCK_FAR)
		return entry->far;
	home = shard_home(shard, block_entry_hash(seed, entry));
	return slot >= home ? slot - home : slot + shard->capacity - home;
}

struct block_entry *shard_find(const struct shard *shard, uint64_t hash, raddr address, uint32_t domain)
{
	uint32_t slot = shard_home(shard, hash);

	for (uint32_t far = 0;; far++, slot = next_slot(shard, slot)) {
		struct block_entry *entry = &shard->slots[slot];

		/* A block nearer to its home than this one would be: it would stand here. */
		if (!entry->address || entry->far < at_most_far(far))
			return NULL;
		if (entry->address == address && domain_family(entry->domain) == domain_family(domain))
			return entry;
	}
}

/* Moves the blocks from `slot` on one further, up to the next empty slot. */
static void open_gap(struct shard *shard, uint32_t slot)
{
	uint32_t to = slot;

	while (shard->slots[to].address)
		to = next_slot(shard, to);
	while (to != slot) {
		uint32_t from = previous_slot(shard, to);

		shard->slots[to] = shard->slots[from];
		shard->slots[to].far = at_most_far(shard->slots[to].far + 1u);
		to = from;
	}
}

void shard_put(struct shard *shard, uint64_t seed, const struct block_entry *entry)
{
	uint32_t slot = shard_home(shard, block_entry_hash(seed, entry)), far = 0;

	while (shard->slots[slot].address && distance(shard, seed, slot) >= far) {
		slot = next_slot(shard, slot);
		far++;
	}
	open_gap(shard, slot);
	shard->slots[slot] = *entry;
	shard->slots[slot].far = at_most_far(far);
	shard->count++;
}

void shard_remove(struct shard *shard, uint64_t seed, struct block_entry *entry)
{
	uint32_t gap = (uint32_t)(entry - shard->slots);

	for (;;) {
		uint32_t next = next_slot(shard, gap), far;

		if (!shard->slots[next].address || shard->slots[next].far == 0)
			break;
		far = distance(shard, seed, next);
		shard->slots[gap] = shard->slots[next];
		shard->slots[gap].far = at_most_far(far - 1);
		gap = next;
	}
	shard->slots[gap].address = 0;
	shard->count--;
}
