/* Stacks of the ring's records, unwound ahead of its reader by threads of their own, its helpers.
 *
 * A helper looks at the ring alone: it neither pairs calls nor traces the process, and writes nothing that anybody else trusts.  Of each
 * stack it leaves two words by the record's position, which hold a key of that position, of all that the stack hangs on, and of the
 * function that was called.  Only who finds the key of his own record there takes the stack; so what is late, torn, or was unwound by what
 * is not true any more is never taken, and nobody waits for anybody.
 *
 * What is taken is no frames but the number of a node in the helper's table.  The first time that the reader meets one it unwinds that
 * record by itself, and notes which node of its own that is. */
#ifndef ALLOCWATCH_PROBE_RING_AHEAD_H
#define ALLOCWATCH_PROBE_RING_AHEAD_H

#include "probe/ring_stack.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_AHEAD_HELPERS_MAX 15u
#define RING_AHEAD_NODES_DEFAULT (1u << 19)    /* of a helper's table; then it begins anew */
#define RING_AHEAD_MODULES_MAX 1024u           /* whose files are kept open for helpers, in half of the descriptors; with more they rest */

struct ring_ahead;

/* What stacks hang on.  All of it is the reader's: it is looked at in the reader's calls alone, and outlives them. */
struct ring_ahead_world {
	const struct module_map *map;
	const struct unwinder *unwinder;       /* which modules' tables are known, and since when */
	const uint64_t *text;                  /* another number each time that something of ours is put into code, or taken out */
	/* A module's file, which stays the owner's; negative: there is none. */
	int (*module_fd)(void *context, uint32_t module);
	/* Sets those of the modules, which are false, in whose code something of ours stands: helpers do not read that. */
	void (*find_patched)(void *context, bool *modules, size_t count);
	/* The process's memory (/proc/PID/mem), which stays the owner's; negative: it cannot be had. */
	int (*memory_fd)(void *context);
	void *context;
};

struct ring_ahead_options {
	struct ring_ahead_world world;
	uint32_t max_frames;
	uint32_t nodes_max;                    /* 0: RING_AHEAD_NODES_DEFAULT */
	void (*begins)(void);                  /* called by each helper first; NULL: nothing is */
	bool eager;                            /* helpers do not rest when processors are short */
};

/* No helper yet.  0 or -ENOMEM. */
int ring_ahead_new(const struct ring *ring, const struct ring_ahead_options *options, struct ring_ahead **ret_ahead);
/* Ends all helpers and takes the ring, which is freed when the last of them has noticed: nobody is waited for.  Accepts NULL for ahead: then
 * the ring is freed. */
void ring_ahead_free(struct ring_ahead *ahead, struct ring *ring);

/* Begins one more, or ends the last one.  0; -ENOSPC, -EAGAIN: there is none to begin. */
int ring_ahead_begin_helper(struct ring_ahead *ahead);
void ring_ahead_end_helper(struct ring_ahead *ahead);
unsigned ring_ahead_helpers(const struct ring_ahead *ahead);

/* Begins to load what ring_ahead_take will look at. */
void ring_ahead_prefetch(const struct ring_ahead *ahead, uint64_t position);

/* What a helper has found, that is to be noted. */
struct ring_ahead_found {
	bool is_new;
	uint32_t helper, node, needed;
};
/* The stack of the record that the reader is at, a return's of this function.  False: it is the reader's to unwind, and to note with what was
 * found. */
bool ring_ahead_take(struct ring_ahead *ahead, const struct ring_record *record, raddr function, struct ring_stack *ret_stack,
		     struct ring_ahead_found *ret_found);
void ring_ahead_note(struct ring_ahead *ahead, const struct ring_ahead_found *found, const struct ring_stack *stack);
/* Now and then: where the reader is, though it took nothing.  Helpers that are full begin anew. */
void ring_ahead_pass(struct ring_ahead *ahead, uint64_t position);

/* Around a fork.  Before: waits until helpers rest, for RING_AHEAD_HALT_MS at most, but not for one that reads the tables of an object.
 * In the child, which has no helpers, what they had is freed, but of those that did not rest: that stays behind. */
#define RING_AHEAD_HALT_MS 20
void ring_ahead_halt(struct ring_ahead *ahead);
void ring_ahead_go_on(struct ring_ahead *ahead);
void ring_ahead_forget(struct ring_ahead *ahead);

struct ring_ahead_counters {
	uint64_t taken;                /* stacks of helpers */
	uint64_t noted;                /* nodes of theirs that were translated */
	uint64_t unwound, given_up;    /* by helpers: stacks, and those that are the reader's alone */
	uint64_t worlds;               /* how often what stacks hang on has changed */
};
struct ring_ahead_counters ring_ahead_counters(const struct ring_ahead *ahead);
size_t ring_ahead_memory(const struct ring_ahead *ahead);

#endif
