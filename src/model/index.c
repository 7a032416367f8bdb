#include "model/index.h"

#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum index_key index_key_of(enum statistics_key key)
{
	switch (key) {
	case KEY_LINENO:
		return INDEX_LINENO;
	case KEY_FILENAME:
		return INDEX_FILENAME;
	case KEY_FUNCTION:
		return INDEX_FUNCTION;
	case KEY_DEFINITION:
		return INDEX_DEFINITION;
	case KEY_OBJECT:
		return INDEX_OBJECT;
	case KEY_TRACEBACK:
	case KEY_THREAD:
	case KEY_DOMAIN:
		break;
	}
	return INDEX_KEYS;
}

struct statistic_frame index_key_frame(enum index_key key, const struct statistic_frame *frame, uint32_t no_object)
{
	struct statistic_frame of = { .name = frame->name, .has_line = frame->has_line };

	switch (key) {
	case INDEX_FILENAME:
		/* Without a line it is named by its function, in a group of its own. */
		return frame->has_line ? of : *frame;
	case INDEX_FUNCTION:
		of.object = frame->object;
		if (!frame->function) {
			of.offset = frame->has_line ? 0 : frame->offset;
			return of;
		}
		of.name = of.function = frame->function;
		of.has_line = false;
		return of;
	case INDEX_DEFINITION:
		of.function = frame->function;
		of.object = frame->object;
		of.name = frame->has_line ? frame->name : frame->object ? frame->object : no_object;
		return of;
	case INDEX_OBJECT:
		of.has_line = false;
		of.name = frame->object ? frame->object : no_object;
		of.object = frame->object;
		return of;
	case INDEX_LINENO:
	case INDEX_KEYS:
		break;
	}
	return *frame;
}

/* --- numbers for keys --- */

struct numbering {
	uint32_t *slots;                      /* one more than a number; 0: free */
	uint64_t *keys;                       /* by number */
	size_t mask;
	uint32_t count;
};

static int numbering_init(struct numbering *numbering, size_t most)
{
	size_t slots = 64;

	while (slots < most * 2)
		slots *= 2;
	*numbering = (struct numbering){ .mask = slots - 1 };
	numbering->slots = calloc(slots, sizeof(*numbering->slots));
	numbering->keys = malloc(most * sizeof(*numbering->keys));
	return numbering->slots && numbering->keys ? 0 : -ENOMEM;
}

static void numbering_fini(struct numbering *numbering)
{
	free(numbering->slots);
	free(numbering->keys);
}

static uint32_t number_of(struct numbering *numbering, uint64_t key)
{
	size_t at = hash_u64(key) & numbering->mask;

	for (; numbering->slots[at]; at = (at + 1) & numbering->mask) {
		if (numbering->keys[numbering->slots[at] - 1] == key)
			return numbering->slots[at] - 1;
	}
	numbering->keys[numbering->count] = key;
	numbering->slots[at] = ++numbering->count;
	return numbering->count - 1;
}

/* Equal for what is one group: a function is none with a file of the same name. */
static uint64_t key_number(enum index_key key, const struct statistic_frame *frame)
{
	struct statistic_frame of = index_key_frame(key, frame, 0);
	uint64_t function = key == INDEX_FUNCTION && of.function;

	if (key == INDEX_DEFINITION)
		return (uint64_t)of.name << 32 | of.function;
	return (uint64_t)of.name << 33 | function << 32 | of.line;
}

static int number_groups(struct snapshot_index *index, enum index_key key)
{
	size_t places = (size_t)index->names.place_count + 1;
	struct numbering numbering;
	int r = numbering_init(&numbering, places);

	index->groups[key] = malloc(places * sizeof(*index->groups[key]));
	if (!index->groups[key])
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < places; i++)
		index->groups[key][i] = number_of(&numbering, key_number(key, &index->names.frames[i]));
	index->group_count[key] = numbering.count;
	numbering_fini(&numbering);
	return r;
}

/* --- places --- */

static int name_frame(struct snapshot_index *index, uint32_t number)
{
	const struct snapshot_frame *frame = &index->names.snapshot->frames.items[number];
	uint32_t locations = frame->location_count ? frame->location_count : 1;

	/* No place of a walk. */
	if (number == FRAME_NONE || frame->frame.kind == FRAME_TRUNCATED)
		return 0;
	for (uint32_t i = 0; i < locations; i++) {
		if (!names_get(&index->names, (struct place){ number, i }))
			return -ENOMEM;
	}
	return 0;
}

static int name_all(struct snapshot_index *index)
{
	size_t frames = index->names.snapshot->frames.count;
	int64_t none = strtab_add(index->strings, TRACEBACK_NO_FRAME);
	int r = none < 0 ? -ENOMEM : 0;

	for (size_t i = 0; r == 0 && i < frames; i++)
		r = name_frame(index, (uint32_t)i);
	if (r == 0)
		index->names.frames[index_no_place(index)] = (struct statistic_frame){ .name = (uint32_t)none, .has_line = true };
	return r;
}

/* --- traces --- */

/* What lies anywhere in memory is asked for so many traces ahead. */
#define AHEAD 16

static void prefetch_stack(const struct snapshot *snapshot, size_t trace)
{
	if (trace < snapshot->traces.count)
		__builtin_prefetch(&snapshot->nodes.items[snapshot->traces.items[trace].stack]);
}

static int find_starts(struct snapshot_index *index)
{
	const struct snapshot *snapshot = index->names.snapshot;
	size_t traces = snapshot->traces.count;

	index->starts = malloc((traces + 1) * sizeof(*index->starts));
	index->first_places = malloc((traces + 1) * sizeof(*index->first_places));
	if (!index->starts || !index->first_places)
		return -ENOMEM;
	for (size_t i = 0; i < traces; i++) {
		struct place place;
		struct walk walk;

		prefetch_stack(snapshot, i + AHEAD);
		walk = names_walk(&index->names, snapshot->traces.items[i].stack, false);
		index->starts[i] = (struct index_start){ walk.node, walk.location };
		index->first_places[i] = walk_step(&walk, &place) ? names_place(&index->names, place) : index_no_place(index);
	}
	return 0;
}

static uint32_t only_place(const struct snapshot_index *index, size_t node)
{
	const struct snapshot *snapshot = index->names.snapshot;
	uint32_t number = snapshot->nodes.items[node].frame;
	const struct snapshot_frame *frame = &snapshot->frames.items[number];

	if (node == STACK_ROOT || number == FRAME_NONE || frame->frame.kind == FRAME_TRUNCATED || frame->location_count > 1)
		return INDEX_SLOW;
	return index->names.first[number];
}

static int make_steps(struct snapshot_index *index)
{
	const struct snapshot *snapshot = index->names.snapshot;

	index->steps = malloc(snapshot->nodes.count * sizeof(*index->steps));
	if (!index->steps)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->nodes.count; i++)
		index->steps[i] = (struct index_step){ snapshot->nodes.items[i].parent, only_place(index, i) };
	return 0;
}

/* --- all of it --- */

static void index_free(struct snapshot_index *index)
{
	for (size_t i = 0; i < INDEX_KEYS; i++)
		free(index->groups[i]);
	free(index->starts);
	free(index->first_places);
	free(index->steps);
	names_fini(&index->names);
	strtab_free(index->strings);
	free(index);
}

void snapshot_index_free(struct snapshot_index *index)
{
	if (index)
		index_free(index);
}

static int fill(struct snapshot_index *index, unsigned parts)
{
	int r = name_all(index);

	if (r == 0)
		r = find_starts(index);
	for (enum index_key key = 0; r == 0 && key < INDEX_KEYS; key++) {
		if (parts & 1u << key)
			r = number_groups(index, key);
	}
	if (r == 0 && parts & INDEX_STEPS)
		r = make_steps(index);
	names_settle(&index->names);
	return r;
}

int snapshot_index_make(const struct snapshot *snapshot, unsigned parts, struct snapshot_index **ret)
{
	struct snapshot_index *index = calloc(1, sizeof(*index));
	int r;

	if (!index)
		return -ENOMEM;
	index->rules = hidden_rules_number();
	index->strings = strtab_new();
	r = index->strings ? names_init(&index->names, snapshot, index->strings) : -ENOMEM;
	if (r == 0)
		r = fill(index, parts);
	if (r < 0) {
		index_free(index);
		return r;
	}
	*ret = index;
	return 0;
}

size_t snapshot_index_memory(const struct snapshot_index *index)
{
	size_t places, bytes;

	if (!index)
		return 0;
	places = (size_t)index->names.place_count + 1;
	bytes = sizeof(*index) + strtab_memory(index->strings) + places * sizeof(*index->names.frames) +
		index->names.snapshot->frames.count * sizeof(*index->names.first) +
		(index->names.snapshot->traces.count + 1) * (sizeof(*index->starts) + sizeof(*index->first_places));
	for (size_t i = 0; i < INDEX_KEYS; i++)
		bytes += index->groups[i] ? places * sizeof(*index->groups[i]) : 0;
	return bytes + (index->steps ? index->names.snapshot->nodes.count * sizeof(*index->steps) : 0);
}

/* --- with the snapshot --- */

/* A name that is made: OBJECT(FUNCTION+0xOFFSET), its own text and its place in a table of strings. */
#define MADE_NAME_MAX 96

static size_t text_size(const struct snapshot *snapshot, uint32_t text)
{
	return strlen(strtab_get(snapshot->strings, text));
}

/* Of places without a source line, as all are of a program without debugging information. */
static size_t made_names_estimate(const struct snapshot *snapshot)
{
	size_t bytes = 0;

	for (size_t i = 0; i < snapshot->frames.count; i++) {
		const struct snapshot_frame *frame = &snapshot->frames.items[i];
		size_t object = frame->frame.module == MODULE_NONE || frame->frame.kind == FRAME_PYTHON ? 0 :
				text_size(snapshot, snapshot->modules.items[frame->frame.module].path);

		if (frame->location_count == 0)
			bytes += object + MADE_NAME_MAX;
		for (uint32_t l = 0; l < frame->location_count; l++) {
			const struct snapshot_location *location = &snapshot->locations.items[frame->first_location + l];

			if (!location->file || !location->line)
				bytes += object + text_size(snapshot, location->function) + MADE_NAME_MAX;
		}
	}
	return bytes;
}

size_t snapshot_index_estimate(const struct snapshot *snapshot)
{
	size_t places = snapshot->frames.count + snapshot->locations.count + 1;

	return sizeof(struct snapshot_index) + 2 * strtab_memory(snapshot->strings) + made_names_estimate(snapshot) +
	       places * (sizeof(struct statistic_frame) + (1 + INDEX_KEYS) * sizeof(uint32_t)) +
	       (snapshot->traces.count + 1) * (sizeof(struct index_start) + sizeof(uint32_t)) +
	       snapshot->nodes.count * sizeof(struct index_step);
}

int snapshot_index_keep(struct snapshot *snapshot)
{
	struct snapshot_index *index, *none = NULL;
	int r;

	/* One made by other rules stays until nobody uses it. */
	if (snapshot_index_any(snapshot))
		return 0;
	r = snapshot_index_make(snapshot, INDEX_ALL, &index);
	if (r < 0)
		return r;
	/* Who comes second has made the same. */
	if (!__atomic_compare_exchange_n(&snapshot->index, &none, index, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		index_free(index);
	return 0;
}

void snapshot_index_drop(struct snapshot *snapshot)
{
	snapshot_index_free(snapshot->index);
	snapshot->index = NULL;
}
