#include "store/checksum.h"

/* The finaliser of splitmix64. */
static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	x ^= x >> 31;
	return x;
}

void checksum_add(uint64_t *sum, enum checksum_record record, const uint64_t *values, size_t count)
{
	uint64_t hash = mix(record + 0x9e3779b97f4a7c15ULL * count);

	for (size_t i = 0; i < count; i++)
		hash = mix(hash + 0x9e3779b97f4a7c15ULL) ^ mix(hash + values[i]);
	*sum += mix(hash);
}

/* FNV-1a, and the length, so that no text hashes like NULL. */
uint64_t checksum_bytes(const void *data, size_t len)
{
	const unsigned char *bytes = data;
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3ULL;
	return mix(hash + len);
}
