#include "model/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int names_init(struct names *names, const struct snapshot *snapshot, struct strtab *strings)
{
	uint32_t count = 0;

	*names = (struct names){ .strings = strings };
	names->first = calloc(snapshot->frames.count, sizeof(*names->first));
	if (!names->first)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->frames.count; i++) {
		uint32_t locations = snapshot->frames.items[i].location_count;

		names->first[i] = count;
		if (__builtin_add_overflow(count, locations ? locations : 1, &count))
			return -ENOMEM;
	}
	names->frames = calloc(count, sizeof(*names->frames));
	return names->frames ? 0 : -ENOMEM;
}

void names_fini(struct names *names)
{
	free(names->first);
	free(names->frames);
	memset(names, 0, sizeof(*names));
}

static int make(struct names *names, const struct traceback_frame *frame, struct statistic_frame *ret)
{
	int64_t name = traceback_frame_name(frame, names->strings);
	int64_t function = strtab_add(names->strings, frame->function);
	int64_t object = strtab_add(names->strings, frame->object);

	if (name < 0 || function < 0 || object < 0)
		return -ENOMEM;
	*ret = (struct statistic_frame){
		.name = (uint32_t)name,
		.line = frame->line,
		.function = (uint32_t)function,
		.object = (uint32_t)object,
		.offset = frame->offset,
		.inlined = frame->inlined,
		.has_line = frame->file != NULL,
	};
	return 0;
}

int names_get(struct names *names, const struct traceback_frame *frame,
	      struct statistic_frame *ret_frame)
{
	struct statistic_frame *known = &names->frames[names->first[frame->frame] + frame->location];

	if (known->name == 0) {
		int r = make(names, frame, known);

		if (r < 0)
			return r;
	}
	*ret_frame = *known;
	return 0;
}
