#define _GNU_SOURCE             /* asprintf */
#include "model/traceback.h"

#include "model/hidden.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void traceback_describe(const struct snapshot *s, struct place place, struct traceback_frame *ret)
{
	const struct snapshot_frame *frame = &s->frames.items[place.frame];
	bool in_module = frame->frame.kind != FRAME_PYTHON && frame->frame.module != MODULE_NONE;
	const struct snapshot_location *location;

	*ret = (struct traceback_frame){
		.object = in_module ?
			strtab_get(s->strings, s->modules.items[frame->frame.module].path) : "",
		.offset = frame->frame.offset,
		.place = place,
	};
	if (place.location >= frame->location_count)
		return;
	location = &s->locations.items[frame->first_location + place.location];
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

static bool is_hidden(void *context, struct place place)
{
	struct traceback_frame frame;

	traceback_describe(context, place, &frame);
	return (frame.function && hidden_function(frame.function)) || hidden_object(frame.object) ||
	       (frame.file && hidden_file(frame.file));
}

static uint32_t count_places(struct walk walk, enum truncation *ret_truncated)
{
	struct place place;
	uint32_t count = 0;

	while (walk_step(&walk, &place))
		count++;
	*ret_truncated = walk.truncated;
	return count;
}

uint32_t traceback_limit(const struct snapshot *snapshot, const struct traceback_options *options)
{
	uint32_t limit = snapshot->frames_limit ? snapshot->frames_limit : UINT32_MAX;

	/* Behind its own limit a snapshot has some frames of some stacks: those to spare for hiding. */
	return options->limit && options->limit < limit ? options->limit : limit;
}

int traceback_make(const struct snapshot *snapshot, uint32_t stack,
		   const struct traceback_options *options, struct traceback *ret)
{
	struct walk walk = options->show_runtime ? walk_start(snapshot, stack) :
			   walk_start_shown(snapshot, stack, is_hidden, (void *)snapshot);
	uint32_t limit = traceback_limit(snapshot, options);
	struct traceback traceback = { 0 };
	struct place place;

	traceback.total_frames = count_places(walk, &traceback.truncated);
	traceback.count = traceback.total_frames;
	if (traceback.count > limit) {
		traceback.count = limit;
		traceback.truncated = TRUNCATED_LIMIT;
	}
	traceback.frames = calloc(traceback.count ? traceback.count : 1, sizeof(*traceback.frames));
	if (!traceback.frames)
		return -ENOMEM;
	for (uint32_t i = 0; i < traceback.count && walk_step(&walk, &place); i++)
		traceback_describe(snapshot, place, &traceback.frames[i]);
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
