#include "base/hash.h"

#include <string.h>

uint64_t hash_bytes(const void *data, size_t len)
{
	const unsigned char *p = data;
	uint64_t h = 0x9e3779b97f4a7c15ULL ^ len;

	for (; len >= 8; p += 8, len -= 8) {
		uint64_t word;

		memcpy(&word, p, 8);
		h = hash_pair(h, word);
	}
	if (len > 0) {
		uint64_t word = 0;

		memcpy(&word, p, len);
		h = hash_pair(h, word);
	}
	return h;
}
