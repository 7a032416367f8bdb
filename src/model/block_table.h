/* The live blocks by (address, family): a hash table whose shards are between 68 and 85 per
 * cent full, but for the smallest, and never rehashed as a whole.
 *
 * It consists of shards of about SHARD_BLOCKS blocks, split and merged one at a time as in linear
 * hashing; every shard is a small hash table sized for its own number of blocks.  So
 * the longest operation is to rewrite one shard. */
#ifndef ALLOCWATCH_MODEL_BLOCK_TABLE_H
#define ALLOCWATCH_MODEL_BLOCK_TABLE_H

#include "base/reader.h"
#include "model/steps.h"

#include <stdbool.h>

/* 24 bytes. */
struct block_entry {
	uint64_t address : 48;         /* x86-64 gives a process 47 bits unless it asks for more */
	uint64_t thread : 16;          /* its number in the thread_table */
	uint64_t size : 48;
	uint64_t parked : 1;           /* a resize of it has begun */
	uint64_t domain : 10;
	uint32_t trace;
	uint32_t born;
};

#define BLOCK_ADDRESS_MAX ((1ULL << 48) - 1)
#define BLOCK_SIZE_MAX ((1ULL << 48) - 1)

struct block_table {
	struct steps shards;
	uint32_t shard_count;
	uint64_t count;
	uint64_t shard_memory;
	uint64_t seed;
};

struct shard;

/* Where a block is, or would be; good until the next put or remove. */
struct block_place {
	struct shard *shard;
	uint64_t hash;
	struct block_entry *entry;      /* NULL: it is not there */
};

/* The seed keeps a target from choosing addresses that fall into one shard. */
int block_table_init(struct block_table *table, uint64_t seed);
void block_table_fini(struct block_table *table);

/* Begins to load what a find of this block will read. */
void block_table_seek(const struct block_table *table, raddr address, uint32_t domain,
		      struct block_place *ret_place);
/* Goes on from there; false when it is not there. */
bool block_table_found(struct block_place *place, raddr address, uint32_t domain);
/* Both. */
bool block_table_find(const struct block_table *table, raddr address, uint32_t domain,
		      struct block_place *ret_place);
/* Adds a block that was not found at this place; 0 or -ENOMEM. */
int block_table_put(struct block_table *table, const struct block_place *place,
		    const struct block_entry *entry);
void block_table_remove(struct block_table *table, const struct block_place *place);

/* Visits all; a non-zero return ends it and is returned. */
int block_table_each(const struct block_table *table,
		     int (*visit)(void *context, const struct block_entry *entry), void *context);
size_t block_table_memory(const struct block_table *table);

#endif
