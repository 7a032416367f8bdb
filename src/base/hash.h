/* Integer and byte-string hashes for tables inside one process.  Not stable across versions: never
 * write one into a file. */
#ifndef ALLOCWATCH_BASE_HASH_H
#define ALLOCWATCH_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Bijective 64-bit mixer (Stafford's variant 13 of the MurmurHash3 finaliser). */
static inline uint64_t hash_u64(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	x ^= x >> 31;
	return x;
}

static inline uint64_t hash_pair(uint64_t a, uint64_t b)
{
	return hash_u64(a * 0x9e3779b97f4a7c15ULL + b);
}

uint64_t hash_bytes(const void *data, size_t len);

#endif
