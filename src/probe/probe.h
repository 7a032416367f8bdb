/* One allocator function at one address of one process. */
#ifndef ALLOCWATCH_PROBE_PROBE_H
#define ALLOCWATCH_PROBE_PROBE_H

#include "base/vec.h"
#include "probe/catalog.h"

#include <stdbool.h>
#include <stdint.h>

struct code_part {
	uint64_t address;
	uint64_t size;                 /* 0: unknown */
};

struct probe {
	const struct catalog_entry *entry;
	uint64_t address;              /* run-time */
	uint32_t module;
	bool gone;                     /* its module was unloaded */
	VEC_OF(struct code_part) parts;/* run-time; itself, then functions it may jump to at its end */
	bool ends_by_jump;             /* of one that frees: it may end in another one */
	bool tails_to_import;          /* or to an allocator function of another object */
};

/* operator new: an exception may end it. */
static inline bool probe_may_throw(const struct probe *probe)
{
	return probe->entry->name[0] == '_' && probe->entry->size_arg != ARG_NONE;
}

#endif
