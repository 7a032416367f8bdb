/* The parts of ring_ahead: ring_ahead.c (the reader's side), ring_ahead_world.c (what stacks hang on), ring_ahead_helper.c (the threads). */
#ifndef ALLOCWATCH_PROBE_RING_AHEAD_PRIVATE_H
#define ALLOCWATCH_PROBE_RING_AHEAD_PRIVATE_H

#include "probe/ring_ahead.h"

#include "ring/ring_eye.h"

#include <pthread.h>
#include <stdatomic.h>

#define AHEAD_SITES 4096u              /* by number, whose function is known to helpers */
#define AHEAD_LEAD (16u << 10)         /* bytes before the reader where a helper begins */
#define AHEAD_CHUNK (32u << 10)        /* that it takes at a time */
#define AHEAD_PUBLISH 2048u            /* how far the reader goes on before it says where it is */
#define CACHE_LINE 64

/* By position.  a ^ b is the key; b: the helper, how much its stack needs and its node. */
struct ahead_slot {
	_Atomic uint64_t a, b;
};
#define AHEAD_NEEDED_SHIFT 32
#define AHEAD_HELPER_SHIFT 56
#define AHEAD_NEEDED_MAX ((1u << (AHEAD_HELPER_SHIFT - AHEAD_NEEDED_SHIFT)) - 1)

/* A file of a module, as the reader's unwinder knows that since. */
struct ahead_file {
	atomic_uint refs;
	int fd;
};

struct ahead_module {
	struct unwind_module known;
	struct ahead_file *file;               /* NULL: it is not known */
};

/* What stacks hang on, as it was when the reader looked; never changed. */
struct ahead_table {
	atomic_uint refs;
	uint64_t generation;
	struct module_map map;                 /* without paths */
	struct ahead_module *modules;          /* by id, as many as in the map */
	bool *is_patched;                      /* likewise */
	int memory_fd;                         /* -1: none */
};

/* All of it is its thread's alone, but for what is said. */
struct ahead_helper {
	struct ring_ahead *ahead;
	unsigned number;
	pthread_t thread;
	struct ahead_table *table;             /* that is taken over; NULL: none */
	struct module_map map;                 /* the table's */
	bool usable;                           /* it could be taken over */
	struct stack_table *stacks;
	struct unwinder *unwinder;
	VEC_OF(uint64_t) since;                /* by module: what the unwinder has */
	uint64_t next;                         /* behind the last record that was looked at */
	struct reader code;                    /* the process's code, as far as it may be read */
	uint64_t pause_ns;
	uint64_t looked_ns, ran_ns, waited_ns; /* its turns on the processors, when they were looked at */
	uint64_t rest_ns;
	raddr function;                        /* of the present stack: where it begins; and whether it is left to the reader */
	bool gave_up;
	/* Under the lock. */
	bool ends, rests, reads_tables;
	/* By it alone, for all to see. */
	_Atomic uint64_t unwound, given_up, memory;
	_Atomic bool is_full;
};

struct ring_ahead {
	struct ring_eye eye;
	struct ahead_slot *slots;
	uint64_t slot_mask;
	uint32_t max_frames, nodes_max;
	bool eager;
	void (*begins)(void);
	/* The reader's. */
	struct ring_ahead_world world;
	uint64_t seen_map, seen_unwinder, seen_text;
	uint64_t said;                         /* where it is, as told */
	uint64_t now;                          /* generation */
	uint64_t *translation[RING_AHEAD_HELPERS_MAX];         /* a helper's node: generation and ours; made with the helper */
	uint64_t taken, noted;
	unsigned helper_count;
	struct ahead_helper *helpers[RING_AHEAD_HELPERS_MAX];
	/* By the reader, for helpers. */
	_Alignas(CACHE_LINE) _Atomic uint64_t position;
	_Atomic uint64_t generation;           /* 0: nothing is to be done */
	_Atomic uint64_t functions[AHEAD_SITES];
	/* By helpers. */
	_Alignas(CACHE_LINE) _Atomic uint64_t cursor;          /* all before it is somebody's */
	/* By all. */
	_Alignas(CACHE_LINE) pthread_mutex_t lock;
	pthread_cond_t changed, rested;
	atomic_bool halt;
	atomic_uint refs;                      /* the owner's, and each helper's */
	struct ahead_table *table;             /* the last one; under the lock */
	struct ring *ring;                     /* to be freed with the last reference */
};

/* Odd constants, and shifts by halves: who knows one key knows nothing of another. */
static inline uint64_t ahead_key(uint64_t position, uint64_t generation, uint64_t function)
{
	uint64_t key = (position + 0x632be59bd9b4e019u) * 0x9e3779b97f4a7c15u;

	key ^= key >> 32;
	key = (key ^ generation) * 0xd6e8feb86659fd93u;
	key ^= key >> 32;
	key = (key ^ function) * 0xbf58476d1ce4e5b9u;
	key ^= key >> 29;
	key *= 0x94d049bb133111ebu;
	return key ^ key >> 32;
}

static inline struct ahead_slot *ahead_slot(const struct ring_ahead *ahead, uint64_t position)
{
	return &ahead->slots[position / RING_UNIT & ahead->slot_mask];
}

/* ring_ahead_world.c.  What there is now; NULL: helpers cannot do with it, or there is no memory. */
struct ahead_table *ahead_table_new(const struct ring_ahead_world *world, uint64_t generation, const struct ahead_table *before);
struct ahead_table *ahead_table_ref(struct ahead_table *table);
void ahead_table_unref(struct ahead_table *table);            /* accepts NULL */
/* The code of the process, for who has the table: -EAGAIN where something of ours may stand. */
int ahead_table_read(const struct ahead_table *table, raddr at, void *buf, size_t len);

/* ring_ahead_helper.c.  The thread has a reference of its own. */
int ahead_helper_begin(struct ring_ahead *ahead, unsigned number, struct ahead_helper **ret_helper);
/* What it has, when its thread is no more, or is another process's. */
void ahead_helper_free(struct ahead_helper *helper);
void ahead_unref(struct ring_ahead *ahead);

#endif
