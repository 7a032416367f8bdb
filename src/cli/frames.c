#include "cli/frames.h"

#include "base/strtab.h"
#include "cli/answer.h"
#include "model/traceback.h"

#include <errno.h>
#include <stdlib.h>

static const char *text_or_null(const json_t *frame, const char *key)
{
	const char *text = answer_text(frame, key);

	return *text ? text : NULL;
}

/* A frame of the answer, with tracemalloc's filename made from it. */
static int take_frame(const json_t *json, struct strtab *strings, struct text_frame *ret_frame)
{
	struct traceback_frame frame = {
		.file = text_or_null(json, "file"),
		.line = (uint32_t)answer_number(json, "line"),
		.function = text_or_null(json, "function"),
		.object = answer_text(json, "object"),
		.offset = answer_number(json, "offset"),
		.inlined = answer_true(json, "inlined"),
	};
	int64_t name = traceback_frame_name(&frame, strings);

	if (name < 0)
		return (int)name;
	ret_frame->name = strtab_get(strings, (uint32_t)name);
	ret_frame->function = frame.function;
	ret_frame->line = frame.line;
	ret_frame->has_line = frame.file != NULL;
	return 0;
}

int frames_print(const json_t *traceback, const struct text_style *style)
{
	size_t count = json_array_size(traceback);
	struct text_frame *frames = calloc(count + 1, sizeof(*frames));
	struct strtab *strings = strtab_new();
	int r = frames && strings ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = take_frame(json_array_get(traceback, i), strings, &frames[i]);
	if (r == 0)
		text_traceback(stdout, frames, count, style);
	strtab_free(strings);
	free(frames);
	return r;
}
