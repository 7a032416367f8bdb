/* What a stack has in common with the last one.
 *
 * Most of a stack is as it was at the last event: its outer frames have not returned and have not called
 * anything else since.  A trail keeps, of the last stack on each piece of memory, where each frame stood.
 * A walk that arrives at one of its frames with the same registers has only to compare the words that led
 * outwards from there, one after the other but none waiting for another, and is done: the node of that
 * frame is known.
 *
 * Only runs of plain rows up to the end of a stack are kept: their steps depend on pc, sp and bp alone. */
#ifndef ALLOCWATCH_UNWIND_TRAIL_H
#define ALLOCWATCH_UNWIND_TRAIL_H

#include "base/reader.h"
#include "unwind/stack_copy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRAILS 16u                 /* by the 64 KiB piece of memory that sp is in */
#define TRAIL_FRAMES_MAX 250u      /* outermost frames kept of a stack */

struct trail_frame {
	raddr sp, pc, bp;              /* in this frame; sp is the CFA of its callee */
	uint32_t node;                 /* the stack from this frame outwards */
	int32_t bp_offset;             /* where it keeps its caller's bp, from its CFA; 0: still in bp */
};

struct trail {
	uint32_t count;
	/* [0] is above every stack, [1] the outermost frame. */
	struct trail_frame frames[TRAIL_FRAMES_MAX + 1];
};

struct trails {
	struct trail *trails;          /* TRAILS of them */
};

int trails_init(struct trails *trails);                 /* 0 or -ENOMEM */
void trails_fini(struct trails *trails);
size_t trails_memory(void);
/* The tables of a module changed: the same words may lead elsewhere. */
void trails_forget(struct trails *trails);

struct trail *trails_find(struct trails *trails, raddr sp);

/* Whether all words that led outwards from frame `from` of the trail are still in the window. */
bool trail_holds(const struct trail *trail, uint32_t from, const struct stack_window *window);

#endif
