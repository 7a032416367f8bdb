/* The live blocks by (address, family): a hash table that is always between two thirds and five
 * sixths full, at every size, and never rehashed as a whole.
 *
 * It consists of shards of about SHARD_BLOCKS blocks, split and merged one at a time as in linear
 * hashing; every shard is a small open-addressing table sized for its own number of blocks.  So
 * the longest operation is to rewrite one shard. */
#ifndef ALLOCWATCH_MODEL_BLOCK_TABLE_H
#define ALLOCWATCH_MODEL_BLOCK_TABLE_H

#include "base/reader.h"
#include "model/steps.h"

#include <stdbool.h>

/* 24 bytes; address 0 is an empty slot. */
struct block_entry {
	uint64_t address : 48;         /* x86-64 gives a process 47 bits unless it asks for more */
	uint64_t thread : 16;          /* its number in the thread_table */
	uint64_t size : 48;
	uint64_t parked : 1;           /* a resize of it has begun */
	uint64_t far : 5;              /* the shard's: slots behind its home, BLOCK_FAR and more */
	uint64_t domain : 10;
	uint32_t trace;
	uint32_t born;
};

#define BLOCK_ADDRESS_MAX ((1ULL << 48) - 1)
#define BLOCK_SIZE_MAX ((1ULL << 48) - 1)
#define BLOCK_FAR 31

struct block_table {
	struct steps shards;
	uint32_t shard_count;
	uint64_t count;
	uint64_t slot_memory;
	uint64_t seed;
};

/* Where a block is; good until the next put or remove. */
struct block_place {
	uint32_t shard;
	struct block_entry *entry;
};

/* The seed keeps a target from choosing addresses that fall into one shard. */
int block_table_init(struct block_table *table, uint64_t seed);
void block_table_fini(struct block_table *table);

bool block_table_find(const struct block_table *table, raddr address, uint32_t domain,
		      struct block_place *ret_place);
/* Begins to load what a find of this block will read. */
void block_table_prefetch(const struct block_table *table, raddr address, uint32_t domain);
/* Adds a block that is not there; 0 or -ENOMEM. */
int block_table_put(struct block_table *table, const struct block_entry *entry);
/* Another block takes the place of one with the same address and family. */
void block_table_replace(const struct block_place *place, const struct block_entry *entry);
void block_table_remove(struct block_table *table, const struct block_place *place);

/* Visits all; a non-zero return ends it and is returned. */
int block_table_each(const struct block_table *table,
		     int (*visit)(void *context, const struct block_entry *entry), void *context);
size_t block_table_memory(const struct block_table *table);

#endif
