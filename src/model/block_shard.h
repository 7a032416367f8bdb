/* One shard of the table of live blocks: a small hash table of any number of buckets.
 *
 * A bucket is two neighbouring lines of the cache: a byte of five blocks' hashes each, and the blocks.
 * So a block is found, added or removed by looking at one place in memory, and nothing is ever moved.
 * A block whose bucket is full lies in the next one that is not; a bucket counts those that passed over
 * it, so that a search knows where it may end. */
#ifndef ALLOCWATCH_MODEL_BLOCK_SHARD_H
#define ALLOCWATCH_MODEL_BLOCK_SHARD_H

#include "model/block_table.h"
#include "model/event.h"

#define BUCKET_BLOCKS 5
#define BUCKET_TAG_ONES 0x0101010101ULL
#define BUCKET_TAG_BITS (BUCKET_TAG_ONES << 7)
#define BUCKET_PASSED_SHIFT 40          /* above the tags: how many passed; a shard has far fewer blocks */

struct bucket {
	uint64_t head;                  /* a tag for each block, 0 where there is none */
	struct block_entry blocks[BUCKET_BLOCKS];
};

struct shard {
	struct bucket *buckets;
	uint32_t bucket_count, count;
};

/* The highest bit of each tag that is zero. */
static inline uint64_t bucket_zero_tags(uint64_t head)
{
	uint64_t low = head & ~BUCKET_TAG_BITS & BUCKET_TAG_ONES * 0xff;

	return ~((low + (BUCKET_TAG_BITS - BUCKET_TAG_ONES)) | head) & BUCKET_TAG_BITS;
}

static inline unsigned bucket_first_place(uint64_t bits)
{
	return (unsigned)__builtin_ctzll(bits) / 8;
}

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

/* The upper half of the hash scaled to the number of buckets: a shard can have any size, and rewriting it
 * into another size goes through both in order. */
static inline uint32_t shard_home(const struct shard *shard, uint64_t hash)
{
	return (uint32_t)((hash >> 32) * shard->bucket_count >> 32);
}

/* 0 or -ENOMEM. */
int shard_make(struct shard *shard, uint32_t bucket_count);
void shard_free(struct shard *shard);
/* The place of a block, or NULL. */
struct block_entry *shard_find(const struct shard *shard, uint64_t hash, raddr address, uint32_t domain);
/* Adds a block that is not there; there must be a place. */
void shard_put(struct shard *shard, uint64_t hash, const struct block_entry *entry);
void shard_remove(struct shard *shard, uint64_t hash, struct block_entry *entry);
/* Goes through all blocks in the order of their buckets; starts as { 0 }. */
struct shard_cursor {
	uint32_t next_bucket;
	struct bucket *bucket;
	uint64_t left;                  /* the highest bit of each tag that is still to come */
};

/* The next block, or NULL. */
static inline struct block_entry *shard_next(const struct shard *shard, struct shard_cursor *cursor)
{
	unsigned place;

	while (!cursor->left) {
		if (cursor->next_bucket == shard->bucket_count)
			return NULL;
		cursor->bucket = &shard->buckets[cursor->next_bucket++];
		cursor->left = ~bucket_zero_tags(cursor->bucket->head) & BUCKET_TAG_BITS;
	}
	place = bucket_first_place(cursor->left);
	cursor->left &= cursor->left - 1;
	return &cursor->bucket->blocks[place];
}

static inline uint32_t shard_places(const struct shard *shard)
{
	return shard->bucket_count * BUCKET_BLOCKS;
}

static inline size_t shard_memory(const struct shard *shard)
{
	return (size_t)shard->bucket_count * sizeof(*shard->buckets);
}

#endif
