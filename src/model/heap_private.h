/* What the files of the heap share; nobody else includes it. */
#ifndef ALLOCWATCH_MODEL_HEAP_PRIVATE_H
#define ALLOCWATCH_MODEL_HEAP_PRIVATE_H

#include "model/block_table.h"
#include "model/heap.h"
#include "model/id_table.h"
#include "model/ranges.h"
#include "model/seen.h"
#include "model/thread_table.h"

#define BORN_UNIT_NS 10000000ULL      /* a birth time fits 32 bits for 497 days */

struct trace_item {
	uint32_t next;
	uint32_t stack;
	uint64_t domain : 10, temporary_blocks : 54;
	/* peak_*: what lived at the heap's peak, if peak_epoch is the heap's; else that is what lives now. */
	uint32_t live_blocks, peak_blocks;
	uint64_t live_bytes, peak_bytes;
	uint64_t total_blocks, total_bytes;
	uint64_t peak_epoch;
};

_Static_assert(sizeof(struct trace_item) == 64, "an event touches one line of the cache for its trace");

/* A resize that has begun.  The block stays in the table of blocks unless another one was born at
 * its address meanwhile. */
enum park_state {
	PARK_BLOCK,          /* in the table of blocks, its `parked` set */
	PARK_VACATED,        /* freed inside the call and its address taken: nothing is left to do */
	PARK_BEFORE_ATTACH,  /* of no live block: how a free of it would have counted */
	PARK_UNKNOWN,
};

struct parking {
	raddr address;
	int32_t tid;
	uint32_t domain;
	enum park_state state;
};

/* An unmapping, or a mapping's move, that has begun: it will take what was mapped by then. */
struct unmapping {
	int32_t tid;
	raddr start, end;
	uint64_t youngest;       /* as in struct range */
	bool overtaken;          /* others have been given something of it already */
};

/* A segment of forgotten traces; one is freed per event. */
struct dying {
	char *segment;
	size_t bytes;
};

/* Of a trace, by its id: what its live samples add up to. */
struct trace_error {
	uint64_t samples;
	double bytes_variance, blocks_variance;
};

struct heap {
	struct heap_limits limits;
	uint64_t sample_bytes;
	VEC_OF(struct trace_error) errors;   /* as many as traces with sampling, else none */
	void (*left)(void *context, raddr address);
	void *left_context;
	bool from_start;
	uint64_t start_ns;
	struct heap_counters counters;
	struct block_table blocks;
	struct seen seen;
	VEC_OF(struct parking) parkings;
	struct ranges mappings;          /* where the blocks of DOMAIN_MMAP lie */
	VEC_OF(struct unmapping) unmappings;
	uint64_t map_births;             /* how many mappings there have been */
	struct id_table traces;
	struct thread_table threads;
	uint64_t peak_epoch;             /* how many peaks there have been */
	uint64_t born_least;             /* in units: of every birth from now on */
	uint32_t trace_base;             /* blocks with a lower trace were forgotten by a clear */
	VEC_OF(struct dying) dying;
	size_t dying_bytes;
};

/* Of a block that is not forgotten. */
struct trace_item *heap_trace_of(const struct heap *heap, const struct block_entry *block);
/* An id in `traces`, or ID_NONE. */
uint32_t heap_find_trace(const struct heap *heap, uint32_t stack, uint32_t domain);
bool heap_forgotten(const struct heap *heap, const struct block_entry *block);
/* A known block was freed: it leaves the counters. */
void heap_account_leave(struct heap *heap, const struct block_entry *block);
/* A free of no live block. */
void heap_account_unmatched(struct heap *heap, raddr address, uint32_t domain);
/* Takes a block out of the counters of what lives, without calling it freed. */
void heap_drop_live(struct heap *heap, const struct block_entry *block);
/* What is left of a block that was cut in two, as a block more: how much is mapped does not change by it. */
void heap_account_piece(struct heap *heap, const struct block_entry *block);
/* A block is about to lose `bytes` of its size. */
void heap_account_shrink(struct heap *heap, const struct block_entry *block, uint64_t bytes);
int heap_born(struct heap *heap, const struct alloc_event *event);

int heap_map(struct heap *heap, const struct alloc_event *event);
int heap_unmap_begin(struct heap *heap, const struct alloc_event *event);
int heap_unmap_end(struct heap *heap, const struct alloc_event *event);
/* A thread's unmapping that has begun will not end. */
void heap_unmap_forget(struct heap *heap, int32_t tid);
/* The block that a mapping is leaves the table of blocks. */
void heap_unmap_unborn(struct heap *heap, raddr address);

int heap_resize_begin(struct heap *heap, const struct alloc_event *event);
int heap_resize_end(struct heap *heap, const struct alloc_event *event);
/* Another block was born at a parked one's address; false when none is parked there. */
bool heap_parking_vacate(struct heap *heap, const struct block_entry *block);
/* A parked block was freed by somebody else: its resize finds nothing when it ends. */
void heap_parking_forget(struct heap *heap, const struct block_entry *block);

#endif
