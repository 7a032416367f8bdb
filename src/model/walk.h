/* Goes outwards over a stack of a snapshot, inlined calls unfolded: place by place, and a place is one
 * location of a frame. */
#ifndef ALLOCWATCH_MODEL_WALK_H
#define ALLOCWATCH_MODEL_WALK_H

#include "model/snapshot.h"

struct place {
	uint32_t frame;               /* the snapshot's */
	uint32_t location;            /* which one of its locations, 0 the innermost, also when it has none */
};

struct walk {
	const struct snapshot *snapshot;
	uint32_t node;
	uint32_t location;            /* next one of the node's frame */
	enum truncation truncated;    /* known at the end */
};

static inline struct walk walk_start(const struct snapshot *snapshot, uint32_t stack)
{
	return (struct walk){ .snapshot = snapshot, .node = stack };
}

/* The next place outwards; false at the end. */
static inline bool walk_step(struct walk *walk, struct place *ret_place)
{
	const struct snapshot *s = walk->snapshot;

	while (walk->node != STACK_ROOT) {
		struct stack_node node = s->nodes.items[walk->node];
		const struct snapshot_frame *frame = &s->frames.items[node.frame];

		if (frame->frame.kind == FRAME_TRUNCATED) {
			walk->truncated = (enum truncation)frame->frame.offset;
			walk->node = STACK_ROOT;
			return false;
		}
		if (node.frame != FRAME_NONE &&
		    (walk->location < frame->location_count || walk->location == 0)) {
			*ret_place = (struct place){ node.frame, walk->location++ };
			return true;
		}
		walk->node = node.parent;
		walk->location = 0;
	}
	return false;
}

/* Starts behind the leading places that are hidden: the allocator's entry and those that `is_hidden`
 * tells.  If all are, none is. */
struct walk walk_start_shown(const struct snapshot *snapshot, uint32_t stack,
			     bool (*is_hidden)(void *context, struct place place), void *context);

#endif
