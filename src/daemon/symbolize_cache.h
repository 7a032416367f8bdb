/* Answers of the symbolizer, kept across snapshots and targets in a bounded amount of memory.
 *
 * Two generations: when the younger one has grown to its share of the bound, the older one is
 * thrown away whole, and the younger one takes its place.  An answer that is used moves to the younger generation. */
#ifndef ALLOCWATCH_DAEMON_SYMBOLIZE_CACHE_H
#define ALLOCWATCH_DAEMON_SYMBOLIZE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYMBOLIZE_LOCATIONS_MAX 64         /* of one address */

struct symbolize_cache;

/* Which address: `file` is a number that is never given to another file. */
struct symbolize_key {
	uint64_t file, address;
	bool is_call;
};

struct symbolize_location {
	const char *function, *file;         /* "" unknown */
	uint32_t line, function_offset;
	bool inlined;
};

/* At most max_bytes, about.  NULL when there is no memory. */
struct symbolize_cache *symbolize_cache_new(size_t max_bytes);
void symbolize_cache_free(struct symbolize_cache *cache);     /* accepts NULL */

/* Strings are copied; -ENOMEM: it is not kept. */
int symbolize_cache_add(struct symbolize_cache *cache, const struct symbolize_key *key,
			const struct symbolize_location *locations, size_t count);
/* Fills in up to SYMBOLIZE_LOCATIONS_MAX locations, whose strings live until the next call of any
 * function here, and sets *ret_count (0: known to have no name); false when it is not in here. */
bool symbolize_cache_find(struct symbolize_cache *cache, const struct symbolize_key *key,
			  struct symbolize_location *locations, size_t *ret_count);
/* All that is in it, what was added last first; strings as above.  No function here may be called meanwhile. */
void symbolize_cache_each(const struct symbolize_cache *cache,
			  void (*one)(void *context, const struct symbolize_key *key,
				      const struct symbolize_location *locations, size_t count), void *context);
size_t symbolize_cache_memory(const struct symbolize_cache *cache);

#endif
