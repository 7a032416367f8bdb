#include "model/layout.h"

#include "base/hash.h"
#include "model/definition.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* "What has this key is there": a function and its start, or an offset and its line. */
struct fact {
	uint32_t module;
	uint64_t key, value;
};

struct layout {
	VEC_OF(struct fact) facts;            /* sorted */
};

static int compare_facts(const void *left, const void *right)
{
	const struct fact *a = left, *b = right;

	if (a->module != b->module)
		return a->module < b->module ? -1 : 1;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return (a->value > b->value) - (a->value < b->value);
}

static int add_fact(struct layout *layout, uint32_t module, uint64_t key, uint64_t value)
{
	struct fact *fact = vec_push(&layout->facts);

	if (!fact)
		return -ENOMEM;
	*fact = (struct fact){ module, key, value };
	return 0;
}

/* A source may lie elsewhere in the same build's debugging information, or in another's; its name stays. */
static uint64_t hash_place(const struct snapshot *snapshot, const struct snapshot_location *location)
{
	const char *function = strtab_get(snapshot->strings, location->function);
	const char *file = definition_base_name(strtab_get(snapshot->strings, location->file));

	return hash_pair(hash_bytes(function, definition_function_length(function)), hash_bytes(file, strlen(file)));
}

/* By the function that the address is in, not by what is inlined there. */
static int add_frame(struct layout *layout, const struct snapshot *snapshot, const struct snapshot_frame *frame)
{
	const struct snapshot_location *location = &snapshot->locations.items[frame->first_location + frame->location_count - 1];
	uint64_t place;
	int r;

	if (!location->function || !location->file || !location->line)
		return 0;
	place = hash_place(snapshot, location);
	r = add_fact(layout, frame->frame.module, place, frame->frame.offset - location->function_offset);
	if (r == 0)
		r = add_fact(layout, frame->frame.module, hash_pair(frame->frame.offset, frame->frame.kind),
			     hash_pair(place, location->line));
	return r;
}

static bool is_of_interest(const struct snapshot *snapshot, const struct snapshot_frame *frame)
{
	return frame->location_count > 0 && frame->frame.kind != FRAME_PYTHON && frame->frame.kind != FRAME_TRUNCATED &&
	       frame->frame.module != MODULE_NONE && snapshot->modules.items[frame->frame.module].build_id_len == 0;
}

int layout_new(const struct snapshot *snapshot, struct layout **ret)
{
	struct layout *layout = calloc(1, sizeof(*layout));
	int r = layout ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < snapshot->frames.count; i++) {
		if (i != FRAME_NONE && is_of_interest(snapshot, &snapshot->frames.items[i]))
			r = add_frame(layout, snapshot, &snapshot->frames.items[i]);
	}
	if (r < 0) {
		layout_free(layout);
		return r;
	}
	if (layout->facts.count > 0)
		qsort(layout->facts.items, layout->facts.count, sizeof(*layout->facts.items), compare_facts);
	*ret = layout;
	return 0;
}

void layout_free(struct layout *layout)
{
	if (!layout)
		return;
	vec_fini(&layout->facts);
	free(layout);
}

static size_t first_of(const struct layout *layout, uint32_t module)
{
	size_t low = 0, high = layout->facts.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (layout->facts.items[middle].module < module)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_of(const struct layout *layout, size_t at, uint32_t module)
{
	return at < layout->facts.count && layout->facts.items[at].module == module;
}

/* The facts of one key from `at` on: where they end, and whether they all say the same.  Functions of one name, and parts of
 * one, have several starts. */
static size_t end_of_key(const struct layout *layout, size_t at, bool *ret_clear)
{
	const struct fact *facts = layout->facts.items;
	size_t end = at;

	while (end < layout->facts.count && facts[end].module == facts[at].module && facts[end].key == facts[at].key)
		end++;
	*ret_clear = facts[end - 1].value == facts[at].value;
	return end;
}

bool layout_contradicts(const struct layout *a, uint32_t module_a, const struct layout *b, uint32_t module_b)
{
	size_t i = first_of(a, module_a), j = first_of(b, module_b);

	while (is_of(a, i, module_a) && is_of(b, j, module_b)) {
		const struct fact *in_a = &a->facts.items[i], *in_b = &b->facts.items[j];
		bool a_clear, b_clear;
		size_t a_end = end_of_key(a, i, &a_clear), b_end = end_of_key(b, j, &b_clear);

		if (in_a->key == in_b->key && a_clear && b_clear && in_a->value != in_b->value)
			return true;
		if (in_a->key <= in_b->key)
			i = a_end;
		if (in_b->key <= in_a->key)
			j = b_end;
	}
	return false;
}
