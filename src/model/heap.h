/* The live blocks of one process, by address, and counters per (stack, domain).
 *
 * Consumes alloc_events in their true order.  It never asks where they come from and never loses
 * one in silence: what cannot be matched is counted in heap_counters.  Tables grow in small steps;
 * no call takes longer than a millisecond; in the steady state nothing is allocated. */
#ifndef ALLOCWATCH_MODEL_HEAP_H
#define ALLOCWATCH_MODEL_HEAP_H

#include "model/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Named limits; zero takes the default. */
struct heap_limits {
	uint64_t max_blocks;       /* default 2^31, at most 2^32 - 1: further allocations count as lost_events */
	uint32_t max_parked;       /* resizes begun and not ended; default 65536, then lost_events */
	uint64_t max_seen_bytes;   /* memory of the record of addresses seen; default 1 GiB */
};

struct heap_counters {
	uint64_t live_bytes, live_blocks;
	uint64_t peak_bytes;               /* since the start, or the last heap_reset_peak() */
	uint64_t peak_blocks;              /* that lived when peak_bytes was reached first ... */
	uint64_t peak_ns;                  /* ... at this time, CLOCK_MONOTONIC; 0: never yet */
	uint64_t allocations, frees;       /* calls that succeeded; a resize counts as one of each;
					    * a free counts here or in one of the next three */
	uint64_t before_attach_frees;      /* of blocks born before the attach */
	uint64_t after_clear_frees;        /* of blocks forgotten by heap_clear() */
	uint64_t unknown_frees;            /* the rest: double or wild frees, or our own fault */
	uint64_t lost_events;              /* events that could not be recorded: memory, limits, an
					    * address born twice without a free */
};

struct heap_block {
	raddr address;
	uint64_t size;
	uint32_t domain, stack;
	uint32_t thread;                   /* the id of the one that allocated it; 0 unknown */
	uint64_t born_ns;                  /* CLOCK_MONOTONIC, to 10 ms; see heap_cut() */
};

struct heap_trace {                        /* one (stack, domain) */
	uint32_t stack, domain;
	uint64_t live_blocks, live_bytes;
	uint64_t total_blocks, total_bytes;/* ever born here */
	uint64_t temporary_blocks;         /* of these, freed before the thread that made them made
					    * another one, or ended: gone at once */
	uint64_t peak_blocks, peak_bytes;  /* what lived when heap_counters.peak_bytes was reached */
	/* With sampling all of these are estimates: of so many live samples, with these standard deviations. */
	uint64_t samples, blocks_deviation, bytes_deviation;
};

struct heap;

/* from_start: traced from its first instruction, so that no free can be a before_attach_free. */
struct heap *heap_new(const struct heap_limits *limits, bool from_start, uint64_t now_ns);
void heap_free(struct heap *heap);         /* accepts NULL and half-built objects */

/* What is applied from now on are samples, one for so many bytes, and what is counted are estimates (model/sampling.h); 0: all is.
 * Before anything is applied. */
void heap_set_sampling(struct heap *heap, uint64_t sample_bytes);
uint64_t heap_sampling(const struct heap *heap);
/* Who is told of each block that leaves the table of blocks. */
void heap_set_left(struct heap *heap, void (*left)(void *context, raddr address), void *context);

/* 0, or -ENOMEM, -ENOSPC, -ERANGE for an address that no process has (counted as lost, the heap as it was). */
int heap_apply(struct heap *heap, const struct alloc_event *event);
/* A thread ended: what it had parked goes back to being an ordinary live block. */
void heap_thread_gone(struct heap *heap, int32_t tid);

/* Forgets all blocks and traces (tracemalloc's clear_traces); peak starts from zero.  What was lost until now does not
 * count any more, and frees of blocks whose births were are before_attach_frees. */
void heap_clear(struct heap *heap);
/* Whether a free of this address, at which no block lives, is one of the unknown frees. */
bool heap_is_unknown_free(const struct heap *heap, raddr address, uint32_t domain);
void heap_reset_peak(struct heap *heap, uint64_t now_ns);
void heap_count_lost(struct heap *heap, uint64_t events);

/* A moment that parts all blocks into older and younger ones exactly, whatever the resolution of
 * their dates: returns a time, `now_ns` or a little later, with born_ns <= it for every block born so
 * far and born_ns > it for every block that will be.  What a snapshot is dated by. */
uint64_t heap_cut(struct heap *heap, uint64_t now_ns);
/* How far births are dated ahead because of cuts that followed each other faster than dates do (10 ms). */
uint64_t heap_ahead_ns(const struct heap *heap, uint64_t now_ns);

struct heap_counters heap_counters(const struct heap *heap);
/* Bytes of all tables, and of the table of blocks alone (the figure per live block). */
size_t heap_memory(const struct heap *heap);
size_t heap_block_memory(const struct heap *heap);

/* The block that holds an address, interior addresses too; with several, the innermost (smallest)
 * first.  Returns how many were found, at most `space`.  Walks the table: not for the hot path. */
size_t heap_find(const struct heap *heap, raddr address, struct heap_block *found, size_t space);

/* Whether a block of this domain's family lives at exactly this address. */
bool heap_is_live(const struct heap *heap, raddr address, uint32_t domain);

/* That block, in a look at one place.  False: there is none, or it was forgotten by heap_clear(). */
bool heap_block_at(const struct heap *heap, raddr address, uint32_t domain, struct heap_block *ret);

/* Visits all; a non-zero return of the visitor ends it and is returned. */
/* Traces come in an order that is the same until heap_clear(); the number of one in it is its
 * index, -ENOENT when there is none. */
uint32_t heap_trace_count(const struct heap *heap);
int64_t heap_trace_index(const struct heap *heap, uint32_t stack, uint32_t domain);
int heap_each_trace(const struct heap *heap, int (*visit)(void *context, const struct heap_trace *),
		    void *context);
int heap_each_block(const struct heap *heap, int (*visit)(void *context, const struct heap_block *),
		    void *context);
/* Also of the blocks that heap_clear() has made it forget. */
void heap_each_address(const struct heap *heap, void (*visit)(void *context, raddr address), void *context);

#endif
