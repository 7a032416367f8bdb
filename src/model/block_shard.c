#include "model/block_shard.h"

#include <errno.h>
#include <stdlib.h>

#define PASSED_ONE (1ULL << BUCKET_PASSED_SHIFT)

_Static_assert(sizeof(struct bucket) == 128, "a bucket is two lines of the cache");

int shard_make(struct shard *shard, uint32_t bucket_count)
{
	struct bucket *buckets = aligned_alloc(sizeof(*buckets), bucket_count * sizeof(*buckets));

	if (!buckets)
		return -ENOMEM;
	for (uint32_t i = 0; i < bucket_count; i++)
		buckets[i].head = 0;
	*shard = (struct shard){ .buckets = buckets, .bucket_count = bucket_count };
	return 0;
}

void shard_free(struct shard *shard)
{
	free(shard->buckets);
	*shard = (struct shard){ 0 };
}

static uint32_t next_bucket(const struct shard *shard, uint32_t bucket)
{
	return bucket + 1 == shard->bucket_count ? 0 : bucket + 1;
}

/* Never 0.  These bits have no part in choosing the home. */
static uint8_t tag_of(uint64_t hash)
{
	return (uint8_t)(hash | 1);
}

static struct block_entry *find_in(struct bucket *bucket, uint64_t hash, raddr address, uint32_t domain)
{
	uint64_t same = bucket_zero_tags(bucket->head ^ tag_of(hash) * BUCKET_TAG_ONES);

	for (; same; same &= same - 1) {
		struct block_entry *entry = &bucket->blocks[bucket_first_place(same)];

		if (entry->address == address && domain_family(entry->domain) == domain_family(domain))
			return entry;
	}
	return NULL;
}

struct block_entry *shard_find(const struct shard *shard, uint64_t hash, raddr address, uint32_t domain)
{
	uint32_t at = shard_home(shard, hash);

	for (uint32_t i = 0; i < shard->bucket_count; i++, at = next_bucket(shard, at)) {
		struct bucket *bucket = &shard->buckets[at];
		struct block_entry *entry = find_in(bucket, hash, address, domain);

		if (entry)
			return entry;
		if (bucket->head >> BUCKET_PASSED_SHIFT == 0)
			return NULL;
	}
	return NULL;
}

void shard_put(struct shard *shard, uint64_t hash, const struct block_entry *entry)
{
	struct bucket *bucket = &shard->buckets[shard_home(shard, hash)];
	uint64_t empty;

	while (!(empty = bucket_zero_tags(bucket->head))) {
		bucket->head += PASSED_ONE;
		bucket = &shard->buckets[next_bucket(shard, (uint32_t)(bucket - shard->buckets))];
	}
	bucket->head |= (uint64_t)tag_of(hash) << (8 * bucket_first_place(empty));
	bucket->blocks[bucket_first_place(empty)] = *entry;
	shard->count++;
}

void shard_remove(struct shard *shard, uint64_t hash, struct block_entry *entry)
{
	uint32_t in = (uint32_t)(((char *)entry - (char *)shard->buckets) / sizeof(struct bucket));
	unsigned place = (unsigned)(entry - shard->buckets[in].blocks);

	for (uint32_t at = shard_home(shard, hash); at != in; at = next_bucket(shard, at))
		shard->buckets[at].head -= PASSED_ONE;
	shard->buckets[in].head &= ~(0xffULL << (8 * place));
	shard->count--;
}
