#include "model/walk.h"

/* The frame of the allocator function that was called, with whatever is inlined into it.  It is the only one
 * that is innermost and no caller's, so it needs no known name. */
static uint32_t entry_frame(const struct snapshot *snapshot, uint32_t stack)
{
	uint32_t frame = snapshot->nodes.items[stack].frame;

	return snapshot->frames.items[frame].frame.kind == FRAME_EXACT ? frame : FRAME_NONE;
}

struct walk walk_start_shown(const struct snapshot *snapshot, uint32_t stack,
			     bool (*is_hidden)(void *context, struct place place), void *context)
{
	struct walk walk = walk_start(snapshot, stack), before = walk;
	uint32_t entry = entry_frame(snapshot, stack);
	struct place place;

	while (walk_step(&walk, &place)) {
		if (place.frame != entry && !is_hidden(context, place))
			return before;
		before = walk;
	}
	return walk_start(snapshot, stack);
}
