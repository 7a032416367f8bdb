/* One allocator function at one address of one process. */
#ifndef ALLOCWATCH_PROBE_PROBE_H
#define ALLOCWATCH_PROBE_PROBE_H

#include "base/vec.h"
#include "probe/catalog.h"

#include <stdbool.h>
#include <stdint.h>

struct probe {
	const struct catalog_entry *entry;
	uint64_t address;              /* run-time */
	uint32_t module;
	bool gone;                     /* its module was unloaded */
	VEC_OF(uint64_t) tails;        /* run-time addresses of functions it may jump to at its end */
	bool tails_to_import;          /* or to an allocator function of another object */
};

/* operator new: an exception may end it. */
static inline bool probe_may_throw(const struct probe *probe)
{
	return probe->entry->name[0] == '_' && probe->entry->size_arg != ARG_NONE;
}

#endif
