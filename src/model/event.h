/* What a probe saw, as a value: no pointers, no process, no names.
 *
 * Both engines produce these and the heap consumes them; the order of heap_apply() calls is the
 * order of truth.  Frees come at entry, allocations at return, a resize in two parts, so that a
 * block freed by one thread and at once given to another is never lost. */
#ifndef ALLOCWATCH_MODEL_EVENT_H
#define ALLOCWATCH_MODEL_EVENT_H

#include "base/reader.h"

#include <stdbool.h>
#include <stdint.h>

enum alloc_kind {
	ALLOC_BORN,           /* address, size, stack, domain */
	ALLOC_UNBORN,         /* address, domain: what was born last has not been given to anybody after all; it
			       * counts as no allocation and no free */
	ALLOC_FREED,          /* old_address, and the domain of the call: malloc and new are one
			       * address space, every other domain is one of its own */
	ALLOC_RESIZE_BEGIN,   /* old_address: parked until this thread's RESIZE_END; still counted */
	ALLOC_RESIZE_END,     /* old_address, address, size, stack: the old block goes, the new one is
			       * born (old_address and address may be equal); with address 0 and
			       * size > 0 the call failed and the old block stays as it was; with
			       * address 0 and size 0 the old block is gone and none is born */
	ALLOC_GIVEN,          /* address, domain: given to somebody by a call that was under way at the attach. It is no
			       * block that is known, but one again, and so may be freed once more */
};

/* In DOMAIN_MMAP, of ranges of addresses, where nothing is freed at a call's entry:
 *   BORN          [address, address + size) is mapped, whatever was mapped there before
 *   RESIZE_BEGIN  this range is about to be unmapped, or moved
 *   RESIZE_END    it is unmapped, and [address, address + size) is mapped, if address is not 0; with address 0 and size > 0
 *                 the call failed */

/* Domains as in tracemalloc: one address space each. */
enum alloc_domain {
	DOMAIN_MALLOC = 0,
	DOMAIN_MMAP = 1,
	DOMAIN_NEW = 2,
	DOMAIN_PYTHON = 3,
	DOMAIN_NEW_ARRAY = 4,
	DOMAIN_USER = 100,    /* this one and up: allocators named by the user */
	DOMAIN_MAX = 1023,
};

/* Domains whose calls nest into one block are one address space. */
static inline uint32_t domain_family(uint32_t domain)
{
	return domain == DOMAIN_NEW || domain == DOMAIN_NEW_ARRAY ? DOMAIN_MALLOC : domain;
}

struct alloc_event {
	enum alloc_kind kind;
	int32_t tid;
	uint32_t domain;
	uint32_t stack;        /* a stack_table node */
	uint64_t time_ns;      /* CLOCK_MONOTONIC; of BORN and RESIZE_END */
	raddr address;
	raddr old_address;
	uint64_t size;         /* requested bytes; of a mapping whole pages */
	uint64_t old_size;     /* of a mapping, from old_address on */
	bool replaces;         /* of one: it was to take the place of what was mapped there */
	bool internal;         /* of one: an allocator's own, which is no block, nor its unmapping a free */
};

#endif
