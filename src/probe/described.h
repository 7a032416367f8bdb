/* The functions of allocators that a user has described, as catalog entries: see model/allocators.h. */
#ifndef ALLOCWATCH_PROBE_DESCRIBED_H
#define ALLOCWATCH_PROBE_DESCRIBED_H

#include "base/vec.h"
#include "probe/catalog.h"

struct described_function {
	struct allocator_function is;
	struct catalog_entry entry;
	bool found;                    /* in an object */
};

struct described {
	bool mappings;                 /* mmap and its like are watched */
	bool operators;                /* operator new and delete are watched in every object, and each is told from malloc */
	VEC_OF(struct described_function *) functions;
};

/* Adds an allocator whose domain has this number; its entries stay where they are.  0 or -ENOMEM. */
int described_add(struct described *described, const struct allocator *allocator, uint32_t domain);
void described_fini(struct described *described);

/* The entry of a symbol in the object at `path`, or NULL; described may be NULL. */
const struct catalog_entry *described_find(struct described *described, const char *path, const char *symbol);
/* How many of the arguments matter, from the first one on. */
int described_arguments(const struct described *described);
/* How many domains they have; and a domain's number among these, from 1, or 0: it is none of them. */
uint32_t described_domains(const struct described *described);
uint32_t described_number(const struct described *described, uint32_t domain);
/* The name of a function that no object had so far; NULL: there is none. */
const char *described_missing(const struct described *described);

#endif
