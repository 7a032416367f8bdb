/* One shard of the table of live blocks: a small open-addressing table of any capacity.
 *
 * Blocks lie in the order of their homes (robin hood hashing), so what a removal must close and what
 * a rewriting must sort are a few blocks, however full the shard is. */
#ifndef ALLOCWATCH_MODEL_BLOCK_SHARD_H
#define ALLOCWATCH_MODEL_BLOCK_SHARD_H

#include "model/block_table.h"
#include "model/event.h"

struct shard {
	struct block_entry *slots;
	uint32_t capacity, count;
};

/* Hash of a block's key, a multiplication folded: the lower half chooses the shard, the upper half
 * the home in it.  The multiplier is the table's secret. */
static inline uint64_t block_hash(uint64_t seed, raddr address, uint32_t domain)
{
	uint64_t key = address + ((uint64_t)domain_family(domain) << 48);
	unsigned __int128 product = (unsigned __int128)(key ^ seed) * (seed | 1);

	return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

static inline uint64_t block_entry_hash(uint64_t seed, const struct block_entry *entry)
{
	return block_hash(seed, entry->address, entry->domain);
}

/* The upper half of the hash scaled to the capacity: a shard can have any size, and rewriting it
 * into another size goes through both in order. */
static inline uint32_t shard_home(const struct shard *shard, uint64_t hash)
{
	return (uint32_t)((hash >> 32) * shard->capacity >> 32);
}

int shard_make(struct shard *shard, uint32_t capacity);
/* The slot of a block, or NULL. */
struct block_entry *shard_find(const struct shard *shard, uint64_t hash, raddr address, uint32_t domain);
/* Adds a block that is not there; at least one slot must stay empty. */
void shard_put(struct shard *shard, uint64_t seed, const struct block_entry *entry);
void shard_remove(struct shard *shard, uint64_t seed, struct block_entry *entry);

#endif
