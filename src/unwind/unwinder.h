/* The unwinder's parts, for the files that make it up: unwind.c (its life), lookup.c (what is known of a
 * pc), walk.c (from frame to frame), trail.c (what it has in common with the last one). */
#ifndef ALLOCWATCH_UNWIND_UNWINDER_H
#define ALLOCWATCH_UNWIND_UNWINDER_H

#include "unwind/cfi_rows.h"
#include "unwind/dwarf.h"
#include "unwind/endings.h"
#include "unwind/libunwind.h"
#include "unwind/stack_copy.h"
#include "unwind/trail.h"
#include "unwind/unwind.h"

#define UNWIND_FRAMES_MAX 65600u   /* most frames of one stack, whatever the caller asks for */

/* A frame that walk_plain went through. */
struct passed {
	raddr sp, pc, bp;                  /* as the frame was entered from its callee */
	uint32_t row;
};

struct unwinder {
	const struct module_map *map;
	struct stack_table *stacks;
	struct cfi_rows rows;
	struct stack_copy memory;
	size_t tables;                     /* bytes of them */
	struct libunwind *libunwind;
	VEC_OF(struct dwarf_cfi *) modules;/* by module id, NULL: no CFI */
	VEC_OF(struct unwind_module) known;/* by module id */
	uint64_t generation;
	enum truncation last_reason;
	struct endings endings;
	uint32_t *frames;                  /* ids, of the present stack, innermost first */
	uint32_t *nodes;                   /* of the stack from each frame outwards, by the same index */
	struct passed *passed;             /* by the same index; only those of walk_plain are filled in */
	uint32_t frames_space;
	struct trails trails;
	uint32_t reason_nodes[TRUNCATED_COUNT];
	unwind_translate *translate;
	void *translate_context;
	struct unwind_counters counters;
};

#endif
