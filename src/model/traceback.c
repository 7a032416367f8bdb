#define _GNU_SOURCE             /* asprintf */
#include "model/traceback.h"

#include "model/hidden.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Goes outwards over a stack, inlined calls unfolded. */
struct walk {
	const struct snapshot *snapshot;
	uint32_t node;
	uint32_t location;            /* next one of the node's frame */
	enum truncation truncated;
};

static void describe(const struct snapshot *s, uint32_t id, uint32_t at, struct traceback_frame *ret)
{
	const struct snapshot_frame *frame = &s->frames.items[id];
	bool in_module = frame->frame.kind != FRAME_PYTHON && frame->frame.module != MODULE_NONE;
	const struct snapshot_location *location;

	*ret = (struct traceback_frame){
		.object = in_module ?
			strtab_get(s->strings, s->modules.items[frame->frame.module].path) : "",
		.offset = frame->frame.offset,
		.frame = id,
		.location = at,
	};
	if (at >= frame->location_count)
		return;
	location = &s->locations.items[frame->first_location + at];
	ret->inlined = location->inlined;
	if (location->function) {
		ret->function = strtab_get(s->strings, location->function);
		ret->offset = location->function_offset;
	}
	if (location->file && location->line) {
		ret->file = strtab_get(s->strings, location->file);
		ret->line = location->line;
	}
}

/* The next frame outwards; false at the end. */
static bool step(struct walk *walk, struct traceback_frame *ret)
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
			describe(s, node.frame, walk->location++, ret);
			return true;
		}
		walk->node = node.parent;
		walk->location = 0;
	}
	return false;
}

static bool is_hidden(const struct traceback_frame *frame)
{
	return (frame->function && hidden_function(frame->function)) || hidden_object(frame->object) ||
	       (frame->file && hidden_file(frame->file));
}

/* The frame of the allocator function that was called, with whatever is inlined into it.  It is the only one
 * that is innermost and no caller's, so it needs no known name. */
static uint32_t entry_frame(const struct snapshot *snapshot, uint32_t stack)
{
	uint32_t frame = snapshot->nodes.items[stack].frame;

	return snapshot->frames.items[frame].frame.kind == FRAME_EXACT ? frame : FRAME_NONE;
}

/* What is there to show. */
struct extent {
	uint32_t frames, hidden;
	enum truncation truncated;
};

static struct extent measure(const struct snapshot *snapshot, uint32_t stack, bool show_runtime)
{
	struct walk walk = { .snapshot = snapshot, .node = stack };
	struct extent extent = { 0 };
	struct traceback_frame frame;
	uint32_t entry = entry_frame(snapshot, stack);
	bool leading = !show_runtime;

	while (step(&walk, &frame)) {
		leading = leading && (frame.frame == entry || is_hidden(&frame));
		extent.hidden += leading;
		extent.frames++;
	}
	if (extent.hidden == extent.frames)
		extent.hidden = 0;
	extent.truncated = walk.truncated;
	return extent;
}

static uint32_t frames_limit(const struct snapshot *snapshot, const struct traceback_options *options)
{
	uint32_t limit = snapshot->frames_limit ? snapshot->frames_limit : UINT32_MAX;

	/* Behind its own limit a snapshot has some frames of some stacks: those to spare for hiding. */
	return options->limit && options->limit < limit ? options->limit : limit;
}

int traceback_make(const struct snapshot *snapshot, uint32_t stack,
		   const struct traceback_options *options, struct traceback *ret)
{
	struct extent extent = measure(snapshot, stack, options->show_runtime);
	struct walk walk = { .snapshot = snapshot, .node = stack };
	uint32_t limit = frames_limit(snapshot, options);
	struct traceback traceback = {
		.total_frames = extent.frames - extent.hidden,
		.truncated = extent.truncated,
	};

	traceback.count = traceback.total_frames;
	if (traceback.count > limit) {
		traceback.count = limit;
		traceback.truncated = TRUNCATED_LIMIT;
	}
	traceback.frames = calloc(traceback.count ? traceback.count : 1, sizeof(*traceback.frames));
	if (!traceback.frames)
		return -ENOMEM;
	for (uint32_t i = 0; i < extent.hidden; i++)
		step(&walk, &traceback.frames[0]);
	for (uint32_t i = 0; i < traceback.count; i++)
		step(&walk, &traceback.frames[i]);
	*ret = traceback;
	return 0;
}

void traceback_fini(struct traceback *traceback)
{
	free(traceback->frames);
	memset(traceback, 0, sizeof(*traceback));
}

int64_t traceback_frame_name(const struct traceback_frame *frame, struct strtab *strings)
{
	const char *object = *frame->object ? frame->object : TRACEBACK_NO_OBJECT;
	const char *function = frame->function ? frame->function : "";
	int64_t id;
	char *text;

	if (frame->file)
		return strtab_add(strings, frame->file);
	if (asprintf(&text, "%s(%s+0x%" PRIx64 ")", object, function, frame->offset) < 0)
		return -ENOMEM;
	id = strtab_add(strings, text);
	free(text);
	return id;
}
