/* The allocator functions we know: which argument is what, and where the result is.
 * To add one, add a line to catalog.c. */
#ifndef ALLOCWATCH_PROBE_CATALOG_H
#define ALLOCWATCH_PROBE_CATALOG_H

#include "model/allocators.h"
#include "model/misuses.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARG_NONE ALLOCATOR_NO_ARGUMENT

/* mmap(2), munmap(2), mremap(2), brk(2): what their arguments are is told by serve_mapping.c. */
enum mapping_call { MAPPING_NONE, MAPPING_MAP, MAPPING_UNMAP, MAPPING_REMAP, MAPPING_BREAK };

struct catalog_entry {
	const char *name;              /* the symbol */
	int8_t size_arg;               /* requested bytes; ARG_NONE: it allocates nothing */
	int8_t count_arg;              /* times this */
	int8_t old_arg;                /* the block it frees or resizes */
	int8_t out_arg;                /* the result is stored through this pointer, and 0 returned; else
					* it is the return value */
	bool beside_malloc;            /* only in objects that also define malloc: elsewhere (libstdc++'s
					* operator new) it calls malloc, which is probed already */
	uint32_t domain;               /* enum alloc_domain; from DOMAIN_USER on: a user has described it */
	uint64_t fixed_size;           /* requested bytes when no argument says them; 0: one does, or it allocates nothing */
	uint32_t form;                 /* enum heap_form */
	enum mapping_call mapping;     /* of DOMAIN_MMAP */
};

/* The entry of a symbol, or NULL. */
const struct catalog_entry *catalog_find(const char *symbol);
/* The same of one with an allocator's prefix ("je_malloc"), and the prefix's number, from 1 to CATALOG_PREFIXES. */
#define CATALOG_PREFIXES 5
const struct catalog_entry *catalog_find_prefixed(const char *symbol, unsigned *ret_prefix);

/* Its return is watched. */
static inline bool catalog_allocates(const struct catalog_entry *entry)
{
	return entry->mapping != MAPPING_NONE || entry->size_arg != ARG_NONE || entry->fixed_size > 0;
}

#endif
