/* One allocator function at one address of one process. */
#ifndef ALLOCWATCH_PROBE_PROBE_H
#define ALLOCWATCH_PROBE_PROBE_H

#include "base/vec.h"
#include "model/event.h"
#include "probe/catalog.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct code_part {
	uint64_t address;
	uint64_t size;                 /* 0: unknown */
};

struct probe {
	const struct catalog_entry *entry;
	uint64_t address;              /* run-time */
	uint32_t module;
	uint32_t forms;                /* enum heap_form */
	raddr word;                    /* run-time; of brk: where libc keeps the break */
	bool gone;                     /* its module was unloaded */
	VEC_OF(struct code_part) parts;/* run-time; itself, then functions it may jump to at its end */
	bool ends_by_jump;             /* of one that frees: it may end in another one */
	bool tails_to_import;          /* or to an allocator function of another object */
};

/* operator new, or what a user has written in C++: an exception may end it. */
static inline bool probe_may_throw(const struct probe *probe)
{
	return strncmp(probe->entry->name, "_Z", 2) == 0 && catalog_allocates(probe->entry);
}

/* What one of them makes the other may free, and a call of one within one of the other is a part of it. */
static inline bool probe_is_of_family(const struct probe *probe, const struct probe *other)
{
	return domain_family(probe->entry->domain) == domain_family(other->entry->domain);
}

#endif
