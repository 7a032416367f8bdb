#include "model/names.h"

#include "model/hidden.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What is known of a text: whether it is a function's, an object's, or a file's that is hidden; and of a place. */
enum role { ROLE_FUNCTION, ROLE_OBJECT, ROLE_FILE, ROLE_PLACE };
#define ROLE_JUDGED(role) (1u << (2 * (role)))
#define ROLE_HIDDEN(role) (2u << (2 * (role)))

static int number_places(struct names *names, const struct snapshot *snapshot)
{
	names->first = calloc(snapshot->frames.count, sizeof(*names->first));
	if (!names->first)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->frames.count; i++) {
		uint32_t locations = snapshot->frames.items[i].location_count;

		names->first[i] = names->place_count;
		if (__builtin_add_overflow(names->place_count, locations ? locations : 1, &names->place_count))
			return -ENOMEM;
	}
	return 0;
}

int names_init(struct names *names, const struct snapshot *snapshot, struct strtab *strings)
{
	size_t texts = strtab_count(snapshot->strings);

	*names = (struct names){ .snapshot = snapshot, .strings = strings };
	if (number_places(names, snapshot) < 0)
		return -ENOMEM;
	names->frames = calloc((size_t)names->place_count + 1, sizeof(*names->frames));
	names->texts = calloc(texts, sizeof(*names->texts));
	names->text_verdicts = calloc(texts, sizeof(*names->text_verdicts));
	names->verdicts = calloc(names->place_count, sizeof(*names->verdicts));
	return names->frames && names->texts && names->text_verdicts && names->verdicts ? 0 : -ENOMEM;
}

void names_settle(struct names *names)
{
	free(names->texts);
	free(names->text_verdicts);
	free(names->verdicts);
	names->texts = NULL;
	names->text_verdicts = names->verdicts = NULL;
}

void names_fini(struct names *names)
{
	names_settle(names);
	free(names->first);
	free(names->frames);
	memset(names, 0, sizeof(*names));
}

/* --- a place's parts --- */

static const struct snapshot_location *location_of(const struct names *names, struct place place)
{
	const struct snapshot *s = names->snapshot;
	const struct snapshot_frame *frame = &s->frames.items[place.frame];

	return place.location < frame->location_count ?
		&s->locations.items[frame->first_location + place.location] : NULL;
}

/* Strings of the snapshot, 0: none. */
static uint32_t object_of(const struct names *names, struct place place)
{
	const struct frame *frame = &names->snapshot->frames.items[place.frame].frame;

	if (frame->kind == FRAME_PYTHON || frame->module == MODULE_NONE)
		return 0;
	return names->snapshot->modules.items[frame->module].path;
}

static uint32_t file_of(const struct snapshot_location *location)
{
	return location && location->line ? location->file : 0;
}

/* --- names --- */

static int64_t translate(struct names *names, uint32_t text)
{
	int64_t id;

	if (text == 0 || names->texts[text])
		return names->texts[text];
	id = strtab_add(names->strings, strtab_get(names->snapshot->strings, text));
	if (id > 0)
		names->texts[text] = (uint32_t)id;
	return id;
}

static int64_t make_name(struct names *names, struct place place, uint32_t file)
{
	struct traceback_frame frame;

	if (file)
		return translate(names, file);
	traceback_describe(names->snapshot, place, &frame);
	return traceback_frame_name(&frame, names->strings);
}

static int make(struct names *names, struct place place, struct statistic_frame *ret)
{
	const struct snapshot_location *location = location_of(names, place);
	uint32_t file = file_of(location), function_text = location ? location->function : 0;
	int64_t name = make_name(names, place, file);
	int64_t function = translate(names, function_text);
	int64_t object = translate(names, object_of(names, place));

	if (name < 0 || function < 0 || object < 0)
		return -ENOMEM;
	*ret = (struct statistic_frame){
		.name = (uint32_t)name,
		.line = file ? location->line : 0,
		.function = (uint32_t)function,
		.object = (uint32_t)object,
		.offset = function_text ? location->function_offset :
			  names->snapshot->frames.items[place.frame].frame.offset,
		.inlined = location && location->inlined,
		.has_line = file != 0,
	};
	return 0;
}

const struct statistic_frame *names_get(struct names *names, struct place place)
{
	struct statistic_frame *known = &names->frames[names_place(names, place)];

	if (known->name == 0 && make(names, place, known) < 0)
		return NULL;
	return known;
}

/* --- what is hidden --- */

static bool judge(const char *text, enum role role)
{
	switch (role) {
	case ROLE_FUNCTION:
		return hidden_function(text);
	case ROLE_OBJECT:
		return hidden_object(text);
	case ROLE_FILE:
		return hidden_file(text);
	case ROLE_PLACE:
		break;
	}
	return false;
}

static bool is_hidden_text(struct names *names, uint32_t text, enum role role)
{
	uint8_t *verdict = &names->text_verdicts[text];

	if (text == 0)
		return false;
	if (!(*verdict & ROLE_JUDGED(role))) {
		*verdict |= ROLE_JUDGED(role);
		if (judge(strtab_get(names->snapshot->strings, text), role))
			*verdict |= ROLE_HIDDEN(role);
	}
	return *verdict & ROLE_HIDDEN(role);
}

static bool judge_place(struct names *names, struct place place)
{
	const struct snapshot_location *location = location_of(names, place);

	return (location && is_hidden_text(names, location->function, ROLE_FUNCTION)) ||
	       is_hidden_text(names, object_of(names, place), ROLE_OBJECT) ||
	       is_hidden_text(names, file_of(location), ROLE_FILE);
}

static bool is_hidden(void *context, struct place place)
{
	struct names *names = context;
	uint8_t *verdict = &names->verdicts[names_place(names, place)];

	if (!*verdict)
		*verdict = ROLE_JUDGED(ROLE_PLACE) | (judge_place(names, place) ? ROLE_HIDDEN(ROLE_PLACE) : 0);
	return *verdict & ROLE_HIDDEN(ROLE_PLACE);
}

struct walk names_walk(struct names *names, uint32_t stack, bool show_runtime)
{
	return show_runtime ? walk_start(names->snapshot, stack) :
	       walk_start_shown(names->snapshot, stack, is_hidden, names);
}
