/* Which addresses have been seen to be freed: one bit per 8 bytes, kept per 4 KiB page: jemalloc,
 * tcmalloc and mimalloc lay blocks of 8 bytes side by side.
 * Answers whether a free of no live block can be of one born before the attach. */
#ifndef ALLOCWATCH_MODEL_SEEN_H
#define ALLOCWATCH_MODEL_SEEN_H

#include "base/reader.h"
#include "model/id_table.h"

#include <stdbool.h>

struct seen {
	struct id_table pages;
	uint64_t max_bytes;
};

void seen_init(struct seen *seen, uint64_t max_bytes);
void seen_fini(struct seen *seen);
/* Past max_bytes no new page is remembered. */
void seen_mark(struct seen *seen, raddr address, uint32_t family);
/* As if it had not been freed. */
void seen_forget(struct seen *seen, raddr address, uint32_t family);
/* Begins to load what the other two will read. */
void seen_prefetch(const struct seen *seen, raddr address, uint32_t family);
/* The second step of that, which waits for the first. */
void seen_prefetch_page(const struct seen *seen, raddr address, uint32_t family);
bool seen_has(const struct seen *seen, raddr address, uint32_t family);
size_t seen_memory(const struct seen *seen);

#endif
