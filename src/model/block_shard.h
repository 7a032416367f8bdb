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

/* A multiplication, folded.  The multiplier is the table's secret. */
static inline uint64_t block_mix(uint64_t seed, uint64_t key)
{
	unsigned __int128 product = (unsigned __int128)(key ^ seed) * (seed | 1);

	return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

/* Chooses the home in a shard. */
static inline uint64_t block_hash(uint64_t seed, raddr address, uint32_t domain)
{
	return block_mix(seed, address + ((uint64_t)domain_family(domain) << 48));
}

static inline uint64_t block_entry_hash(uint64_t seed, const struct block_entry *entry)
{
	return block_hash(seed, entry->address, entry->domain);
}

/* Chooses the shard.  Neighbours share one: what a program does at a time, it does in few places, and
 * few shards stay in the cache. */
#define NEIGHBOURS_SHIFT 14

static inline uint32_t block_shard_hash(uint64_t seed, raddr address)
{
	return (uint32_t)(block_mix(seed, address >> NEIGHBOURS_SHIFT) >> 16);
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
