#include "export/tracemalloc.h"

#include "export/pickle.h"
#include "model/grouping.h"
#include "model/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One of the snapshot's traces. */
struct pickled_trace {
	uint32_t traceback;                 /* remembered; PICKLE_NONE: it is filtered out */
	uint32_t total_frames;
	uint64_t listed_blocks, listed_bytes;       /* of it among the snapshot's blocks */
	bool one_by_one;                    /* written block by block */
};

struct writer {
	struct pickle pickle;
	const struct snapshot *snapshot;
	const struct tracemalloc_options *options;
	struct strtab *strings;
	struct names names;
	VEC_OF(uint32_t) texts;             /* by string: remembered, or PICKLE_NONE */
	uint32_t *places;                   /* the same of (file, line), by place in names.frames */
	struct pickled_trace *groups;               /* by trace */
	VEC_OF(struct statistic_frame) frames;      /* of the trace at hand, most recent first */
	VEC_OF(uint32_t) frame_places;
};

/* --- what there is to write --- */

/* Whether the snapshot's blocks say of each of this trace's what size it has. */
static bool is_listed(const struct writer *w, size_t trace)
{
	const struct snapshot_trace *counts = &w->snapshot->traces.items[trace];
	const struct pickled_trace *group = &w->groups[trace];

	return group->listed_blocks == counts->live_blocks && group->listed_bytes == counts->live_bytes;
}

static void add_up_blocks(struct writer *w)
{
	for (size_t i = 0; i < w->snapshot->blocks.count; i++) {
		const struct snapshot_block *block = &w->snapshot->blocks.items[i];

		w->groups[block->trace].listed_blocks++;
		w->groups[block->trace].listed_bytes += block->size;
	}
}

static int check_size(const struct snapshot *snapshot)
{
	uint64_t blocks = 0;

	for (size_t i = 0; i < snapshot->traces.count; i++)
		blocks += snapshot->traces.items[i].live_blocks;
	return blocks > TRACEMALLOC_BLOCKS_MAX ? -E2BIG : 0;
}

/* --- tracebacks --- */

static int put_text(struct writer *w, uint32_t string)
{
	while (w->texts.count <= string) {
		uint32_t *slot = vec_push(&w->texts);

		if (!slot)
			return -ENOMEM;
		*slot = PICKLE_NONE;
	}
	if (w->texts.items[string] != PICKLE_NONE) {
		pickle_again(&w->pickle, w->texts.items[string]);
		return 0;
	}
	pickle_text(&w->pickle, strtab_get(w->strings, string));
	w->texts.items[string] = pickle_remember(&w->pickle);
	return 0;
}

static int put_frame(struct writer *w, const struct statistic_frame *frame, uint32_t *remembered)
{
	int r;

	if (remembered && *remembered != PICKLE_NONE) {
		pickle_again(&w->pickle, *remembered);
		return 0;
	}
	r = put_text(w, frame->name);
	if (r < 0)
		return r;
	pickle_number(&w->pickle, frame->line);
	pickle_code(&w->pickle, PICKLE_TUPLE2);
	if (remembered)
		*remembered = pickle_remember(&w->pickle);
	return 0;
}

/* tracemalloc's stack of a block that has none. */
static int take_no_frame(struct writer *w)
{
	struct statistic_frame *frame = vec_push(&w->frames);
	int64_t name = strtab_add(w->strings, TRACEBACK_NO_FRAME);

	if (!frame || name < 0)
		return -ENOMEM;
	*frame = (struct statistic_frame){ .name = (uint32_t)name };
	return 0;
}

static int take_frames(struct writer *w, const struct traceback *traceback)
{
	w->frames.count = w->frame_places.count = 0;
	for (uint32_t i = 0; i < traceback->count; i++) {
		const struct traceback_frame *from = &traceback->frames[i];
		const struct statistic_frame *named = names_get(&w->names, from->place);
		struct statistic_frame *frame = vec_push(&w->frames);
		uint32_t *place = vec_push(&w->frame_places);

		if (!named || !frame || !place)
			return -ENOMEM;
		*frame = *named;
		*place = names_place(&w->names, from->place);
	}
	return traceback->count > 0 ? 0 : take_no_frame(w);
}

static int put_frames(struct writer *w)
{
	int r = 0;

	pickle_code(&w->pickle, PICKLE_MARK);
	for (size_t i = 0; r == 0 && i < w->frames.count; i++)
		r = put_frame(w, &w->frames.items[i],
			      i < w->frame_places.count ? &w->places[w->frame_places.items[i]] : NULL);
	pickle_code(&w->pickle, PICKLE_TUPLE);
	return r;
}

static bool passes(const struct writer *w, const struct snapshot_trace *trace)
{
	return filters_pass(w->options->filters, w->options->filter_count, w->strings, w->frames.items,
			    (uint32_t)w->frames.count, trace->domain);
}

/* --- traces --- */

/* Up to and including the size; put_trace_end() completes it. */
static void put_trace_start(struct writer *w, uint32_t domain, uint64_t size)
{
	if (!w->options->triples)
		pickle_code(&w->pickle, PICKLE_MARK);
	pickle_number(&w->pickle, domain);
	pickle_number(&w->pickle, size);
}

static void put_trace_end(struct writer *w, const struct pickled_trace *group)
{
	if (!w->options->triples)
		pickle_number(&w->pickle, group->total_frames);
	pickle_code(&w->pickle, w->options->triples ? PICKLE_TUPLE3 : PICKLE_TUPLE);
}

/* The traceback is written where it is first needed, inside a trace. */
static int put_traceback(struct writer *w, struct pickled_trace *group)
{
	int r = 0;

	if (group->traceback != PICKLE_NONE) {
		pickle_again(&w->pickle, group->traceback);
		return 0;
	}
	r = put_frames(w);
	group->traceback = pickle_remember(&w->pickle);
	return r;
}

/* The same trace so many times. */
static int put_equal(struct writer *w, struct pickled_trace *group, uint32_t domain, uint64_t size, uint64_t count)
{
	uint32_t number;
	int r;

	if (count == 0)
		return 0;
	put_trace_start(w, domain, size);
	r = put_traceback(w, group);
	put_trace_end(w, group);
	if (r < 0 || count == 1)
		return r;
	number = pickle_remember(&w->pickle);
	while (--count > 0)
		pickle_again(&w->pickle, number);
	return 0;
}

/* Sizes that add up. */
static int put_made_up(struct writer *w, struct pickled_trace *group, const struct snapshot_trace *trace)
{
	uint64_t each = trace->live_bytes / trace->live_blocks, rest = trace->live_bytes % trace->live_blocks;
	int r = put_equal(w, group, trace->domain, each + 1, rest);

	return r < 0 ? r : put_equal(w, group, trace->domain, each, trace->live_blocks - rest);
}

/* Of a listed trace only the traceback: its blocks follow in the order of the snapshot's. */
static int put_group(struct writer *w, size_t index, const struct traceback *traceback)
{
	const struct snapshot_trace *trace = &w->snapshot->traces.items[index];
	struct pickled_trace *group = &w->groups[index];
	int r = take_frames(w, traceback);

	if (r < 0 || !passes(w, trace))
		return r;
	group->total_frames = traceback->count > 0 ? traceback->total_frames : 1;
	group->one_by_one = is_listed(w, index);
	if (!group->one_by_one)
		return put_made_up(w, group, trace);
	/* A tuple of its own, not in the list, only to be named. */
	r = put_frames(w);
	group->traceback = pickle_remember(&w->pickle);
	pickle_code(&w->pickle, PICKLE_POP);
	return r;
}

static int put_groups(struct writer *w)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < w->snapshot->traces.count; i++) {
		struct traceback traceback;

		/* tracemalloc knows live traces only. */
		if (w->snapshot->traces.items[i].live_blocks == 0)
			continue;
		r = traceback_make(w->snapshot, w->snapshot->traces.items[i].stack, &w->options->traceback,
				   &traceback);
		if (r < 0)
			break;
		r = put_group(w, i, &traceback);
		traceback_fini(&traceback);
	}
	return r;
}

static void put_blocks(struct writer *w)
{
	for (size_t i = 0; i < w->snapshot->blocks.count; i++) {
		const struct snapshot_block *block = &w->snapshot->blocks.items[i];
		const struct pickled_trace *group = &w->groups[block->trace];

		if (!group->one_by_one)
			continue;
		put_trace_start(w, w->snapshot->traces.items[block->trace].domain, block->size);
		pickle_again(&w->pickle, group->traceback);
		put_trace_end(w, group);
	}
}

static int put_traces(struct writer *w)
{
	int r;

	pickle_object(&w->pickle, "tracemalloc", "_Traces");
	pickle_code(&w->pickle, PICKLE_EMPTY_DICT);
	pickle_text(&w->pickle, "_traces");
	pickle_code(&w->pickle, PICKLE_EMPTY_LIST);
	pickle_code(&w->pickle, PICKLE_MARK);
	r = put_groups(w);
	if (r == 0)
		put_blocks(w);
	pickle_code(&w->pickle, PICKLE_APPENDS);
	pickle_code(&w->pickle, PICKLE_SETITEM);
	pickle_code(&w->pickle, PICKLE_BUILD);
	return r;
}

static int put_snapshot(struct writer *w)
{
	uint32_t limit = w->snapshot->frames_limit, wanted = w->options->traceback.limit;
	int r;

	pickle_object(&w->pickle, "tracemalloc", "Snapshot");
	pickle_code(&w->pickle, PICKLE_EMPTY_DICT);
	pickle_text(&w->pickle, "traceback_limit");
	pickle_number(&w->pickle, wanted && (wanted < limit || limit == 0) ? wanted : limit);
	pickle_code(&w->pickle, PICKLE_SETITEM);
	pickle_text(&w->pickle, "traces");
	r = put_traces(w);
	pickle_code(&w->pickle, PICKLE_SETITEM);
	pickle_code(&w->pickle, PICKLE_BUILD);
	pickle_code(&w->pickle, PICKLE_STOP);
	return r;
}

/* --- the writer --- */

static int writer_init(struct writer *w)
{
	size_t traces = w->snapshot->traces.count, places;
	int r;

	w->strings = strtab_new();
	if (!w->strings)
		return -ENOMEM;
	r = names_init(&w->names, w->snapshot, w->strings);
	if (r < 0)
		return r;
	places = w->names.place_count;
	w->places = malloc(places * sizeof(*w->places));
	w->groups = calloc(traces ? traces : 1, sizeof(*w->groups));
	if (!w->places || !w->groups)
		return -ENOMEM;
	memset(w->places, 0xff, places * sizeof(*w->places));
	for (size_t i = 0; i < traces; i++)
		w->groups[i].traceback = PICKLE_NONE;
	add_up_blocks(w);
	return 0;
}

static void writer_fini(struct writer *w)
{
	vec_fini(&w->texts);
	vec_fini(&w->frames);
	vec_fini(&w->frame_places);
	free(w->places);
	free(w->groups);
	names_fini(&w->names);
	strtab_free(w->strings);
}

int tracemalloc_write(FILE *out, const struct snapshot *snapshot, const struct tracemalloc_options *options)
{
	struct writer w = { .snapshot = snapshot, .options = options };
	int r = check_size(snapshot);

	if (r < 0)
		return r;
	r = writer_init(&w);
	if (r == 0) {
		pickle_begin(&w.pickle, out);
		r = put_snapshot(&w);
	}
	writer_fini(&w);
	return r;
}
