/* One unwind: from the registers of the innermost frame outwards. */
#ifndef ALLOCWATCH_UNWIND_WALK_H
#define ALLOCWATCH_UNWIND_WALK_H

#include "unwind/unwinder.h"

/* Stacks one unwind may pass through: alternate signal stacks, coroutines called from coroutines. */
#define WALK_SEGMENTS_MAX 16u

/* Pieces of stacks passed through, [start, end); the last one is the present one and has no end yet. */
struct walk_segments {
	struct walk_segment { raddr start, end; } items[WALK_SEGMENTS_MAX];
	unsigned int count;
};

struct walk {
	struct unwinder *unwinder;
	struct arch_regs regs;             /* of the present frame */
	bool exact;                        /* its pc is no return address */
	uint32_t count, max;               /* frames, in unwinder->frames */
	uint32_t plain_from;               /* the last run of walk_plain began with this one */
	bool plain_to_end;                 /* and led to the outermost frame */
	struct trail *trail;
	uint32_t joined;                   /* the frame of the trail where the rest is known, 0: none */
	struct walk_segments *segments;
};

/* Takes the frames, up to the end or `max`.  Returns why it stopped. */
enum truncation walk_stack(struct walk *walk);
/* The same frame by frame: where each stands, up to the first whose sp is above `until`.  Returns how many;
 * *ret_whole: the last one is the outermost. */
uint32_t walk_chain(struct walk *walk, raddr until, struct unwind_frame *frames, bool *ret_whole);
/* Bytes from the first sp to where the stack on which the walk began was left. */
uint32_t walk_used_bytes(const struct walk *walk);
/* The same, with what a signal's frame has beyond that, and the stack on which it then went on. */
struct unwind_reach walk_reach(const struct walk *walk);

#endif
