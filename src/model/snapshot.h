/* An immutable cut of all traces of a process at one moment: what statistics, diffs, files and
 * exports consume.  Self-contained: no process, no daemon and no binary is needed to read it.
 *
 * A builder fills the public tables, snapshot_check() validates every index in them, and from then
 * on the snapshot is const and shared by reference. */
#ifndef ALLOCWATCH_MODEL_SNAPSHOT_H
#define ALLOCWATCH_MODEL_SNAPSHOT_H

#include "base/strtab.h"
#include "base/vec.h"
#include "model/heap.h"
#include "model/module.h"
#include "model/stack.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What could not be known; all zero in an exact snapshot but for before_attach_frees. */
struct snapshot_unknown {
	uint64_t unknown_frees, before_attach_frees, after_clear_frees, lost_events,
		truncated_stacks, probe_gaps;
};

struct snapshot_module {
	uint32_t path;                       /* string id */
	uint8_t build_id[BUILD_ID_MAX];
	uint32_t build_id_len;
};

/* One source position of a physical frame.  A frame with inlined calls has several, innermost
 * first; all but the last are `inlined`. */
struct snapshot_location {
	uint32_t function;                   /* string id of the demangled name, 0 unknown */
	uint32_t file;                       /* string id, 0: no line information */
	uint32_t line;
	uint32_t function_offset;            /* of the frame's address from its symbol's start */
	bool inlined;
};

struct snapshot_frame {
	struct frame frame;                  /* module indexes `modules`, or MODULE_NONE */
	uint32_t first_location, location_count;   /* in `locations`; 0 of them: no name known */
};

struct snapshot_trace {
	uint32_t stack;                      /* node */
	uint32_t domain;
	uint64_t live_blocks, live_bytes;
	uint64_t total_blocks, total_bytes;  /* ever made */
	uint64_t temporary_blocks;           /* of these, freed at once; see heap_trace */
	uint64_t peak_blocks, peak_bytes;    /* what lived at the peak */
	/* With sampling the figures above are estimates; see heap_trace. */
	uint64_t samples, blocks_deviation, bytes_deviation;
};

struct snapshot_block {                      /* with sampling, one that was sampled */
	raddr address;
	uint64_t size;
	uint32_t trace;                      /* index in `traces` */
	uint32_t thread;                     /* the one that allocated it; 0 unknown */
	uint64_t age_ns;                     /* when the snapshot was taken */
};

struct snapshot_index;

struct snapshot {
	unsigned references;
	uint64_t *account, charged;          /* see snapshot_charge() */
	struct snapshot_index *index;        /* see model/index.h; NULL: none is kept */
	/* identity */
	char *id;                            /* "s17"; NULL before it is kept */
	char *name;                          /* "" when it has none; "exit" at the target's end */
	char *command;                       /* the target's command line, shortened */
	char *exe;
	int64_t pid;
	uint64_t start_time;                 /* the process's, field 22 of /proc/PID/stat */
	uint64_t taken_ns;                   /* CLOCK_REALTIME */
	uint64_t attached_ns;                /* CLOCK_REALTIME */
	uint64_t clock_ns;                   /* taken at this moment of CLOCK_MONOTONIC, as heap_cut()
					      * returned it; 0: unknown */
	uint64_t sample_bytes;               /* one sample for so many bytes; 0: none was left out */
	uint32_t frames_limit;
	bool exact;
	bool symbolized;                     /* locations are filled in */
	bool has_blocks;
	struct heap_counters counters;       /* at that moment */
	struct snapshot_unknown unknown;
	/* tables */
	struct strtab *strings;
	VEC_OF(struct snapshot_module) modules;
	VEC_OF(struct snapshot_frame) frames;        /* [0] is FRAME_NONE */
	VEC_OF(struct snapshot_location) locations;
	VEC_OF(struct stack_node) nodes;             /* [0] is the root; parent < own index */
	VEC_OF(struct snapshot_trace) traces;
	VEC_OF(struct snapshot_block) blocks;
};

/* An empty snapshot with one reference, one frame and one node; NULL when there is no memory. */
struct snapshot *snapshot_new(void);
struct snapshot *snapshot_ref(struct snapshot *snapshot);
void snapshot_put(struct snapshot *snapshot);        /* accepts NULL */

/* 0 when every index is in range, parents come before children, no stack is deeper than
 * SNAPSHOT_DEPTH_MAX and no sum overflows, else -EBADMSG with *ret_reason (a static text) saying what
 * is wrong. */
#define SNAPSHOT_DEPTH_MAX 131072
int snapshot_check(const struct snapshot *snapshot, const char **ret_reason);
size_t snapshot_memory(const struct snapshot *snapshot);      /* bytes, as asked of the allocator */
/* Adds its memory to the account, which must outlive it: what it takes now, in place of what it was charged with before.
 * The last snapshot_put() takes it off again. */
void snapshot_charge(struct snapshot *snapshot, uint64_t *account);
void snapshot_index_free(struct snapshot_index *index);       /* accepts NULL */

/* --- the image a tracer hands over in a sealed memfd --- */

struct snapshot_source {                     /* what the tracer knows at that moment */
	const struct heap *heap;
	const struct stack_table *stacks;
	const struct module_map *modules;
	const char *command, *exe;
	int64_t pid;
	uint64_t start_time, taken_ns, attached_ns, clock_ns /* from heap_cut() */;
	uint32_t frames_limit;
	bool exact, with_blocks;
	uint64_t lost_events;                    /* beside the heap's */
	uint64_t truncated_stacks, probe_gaps;
};

/* Writes the image (only nodes, frames and modules that traces use) through `write`, which returns
 * 0 or negative errno.  Modules keep their ids; unused ones among them have no path.  Traces come
 * in the order of heap_each_trace(), so that heap_trace_index() is their index.  May be called in a
 * forked child. */
int snapshot_image_write(const struct snapshot_source *source,
			 int (*write)(void *context, const void *data, size_t len), void *context);
/* Reads one; every byte is treated as hostile.  -EBADMSG with a reason, -ENOMEM, -E2BIG past
 * SNAPSHOT_IMAGE_MAX.  The new snapshot is checked and unsymbolized. */
#define SNAPSHOT_IMAGE_MAX (16ULL << 30)
int snapshot_image_read(const void *data, size_t len, struct snapshot **ret_snapshot,
			const char **ret_reason);

#endif
