#include "random_series.h"

#include "oracle.h"
#include "random.h"
#include "snapshot_builder.h"

#include "varlink/codec.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

enum { TRACES_MAX = 24 };

unsigned pick(unsigned below)
{
	return (unsigned)(random_u64() >> 33) % below;
}

unsigned series_rounds(void)
{
	const char *text = getenv("ORACLE_SERIES");

	return text ? (unsigned)atoi(text) : 320;
}

static const char *const objects[] = { "", "/bin/p", "/opt/\xff/lib y.so" };

/* Few names, so that groups are met again; some of which have every kind of neighbour in order. */
static void pick_physical(struct physical *frame)
{
	static const char *const files[] = { NULL, "/src/a.c", "/src/b.c", "/src/z/a.c", "/src/\xc3\xa9.c", "/src/\xe9.c",
					     "/src/\xf0\x9f\x98\x80.c", "/src/\xee\x80\x80.c" };
	static const char *const functions[] = { NULL, "serve", "main", "Pool::get(int)", "f\xe9" };

	frame->object = pick(COUNT(objects));
	frame->offset = 16 * pick(4);
	frame->count = pick(8) ? 1 + (pick(4) ? 0 : pick(3)) : 0;
	for (unsigned i = 0; i < frame->count; i++) {
		frame->shown[i].file = files[pick(COUNT(files))];
		frame->shown[i].function = functions[pick(COUNT(functions))];
		frame->shown[i].line = 1 + pick(2);
		frame->shown[i].offset = 1 + pick(2);
	}
}

/* The sources of each build of the program lie elsewhere, but for odd ones. */
static const char *file_of(const struct series *series, const char *file, char text[64])
{
	static const char *const folders[] = { "", "/x-1.1", "/y" };

	if (!file || !strstr(file, ".c") || strcmp(file, "/src/b.c") == 0)
		return file;
	snprintf(text, 64, "%s%s", folders[series->builds[0]], file);
	return text;
}

static uint32_t add_physical(struct snapshot *s, const struct series *series, const struct physical *frame)
{
	char text[64];
	uint32_t id = build_frame(s, frame->object ? frame->object - 1 : MODULE_NONE, FRAME_CALL, frame->offset);

	for (unsigned i = 0; i < frame->count; i++)
		build_location(s, frame->shown[i].function ? frame->shown[i].function : "", frame->shown[i].offset,
			       file_of(series, frame->shown[i].file, text), frame->shown[i].file ? frame->shown[i].line : 0,
			       i + 1 < frame->count);
	return id;
}

json_t *hex_or_null(const char *text)
{
	return text ? oracle_hex(text) : json_null();
}

static void list_shown(json_t *list, const struct series *series, const struct physical *frame)
{
	char text[64];
	const char *object = objects[frame->object];

	for (unsigned i = 0; i < frame->count; i++)
		json_array_append_new(list, json_pack("[o, i, o, o, I, b]",
			hex_or_null(file_of(series, frame->shown[i].file, text)),
			frame->shown[i].file ? (int)frame->shown[i].line : 0, hex_or_null(frame->shown[i].function),
			oracle_hex(object), (json_int_t)(frame->shown[i].function ? frame->shown[i].offset : frame->offset),
			i + 1 < frame->count));
	if (frame->count == 0)
		json_array_append_new(list, json_pack("[n, i, n, o, I, b]", 0, oracle_hex(object),
						      (json_int_t)frame->offset, 0));
}

/* The innermost first; hidden ones, which lead inwards, are not meant to be seen. */
static uint32_t add_stack(struct snapshot *s, const struct series *series, json_t *trace)
{
	uint32_t frames[SERIES_DEPTH + 4];
	unsigned count = pick(16) ? 1 + pick(SERIES_DEPTH) : 0, made = 0;
	bool cut = count > 0 && pick(8) == 0;
	json_t *list = json_array();
	const struct physical *used[SERIES_DEPTH];

	if (cut)
		frames[made++] = build_frame(s, MODULE_NONE, FRAME_TRUNCATED, TRUNCATED_NO_CFI);
	for (unsigned i = 0; i < count; i++) {
		used[i] = &series->pool[pick(pick(3) ? SERIES_POOL : 3)];
		frames[made++] = add_physical(s, series, used[i]);
	}
	for (unsigned i = count > 0 ? pick(3) : 0; i > 0; i--) {
		frames[made++] = build_frame(s, 0, FRAME_CALL, 0);
		build_location(s, pick(2) ? "malloc" : "operator new(unsigned long)", 1, "/src/a.c", 1, false);
	}
	for (unsigned i = count; i > 0; i--)
		list_shown(list, series, used[i - 1]);
	json_object_set_new(trace, "frames", list);
	json_object_set_new(trace, "truncated", cut ? json_string("code without unwind information") : json_null());
	return build_stack(s, frames, made);
}

static uint64_t pick_size(void)
{
	static const uint64_t units[] = { 1, 8, 100, 1 << 10, 1 << 20, 1ULL << 40, 1ULL << 47 };

	return pick(9) * units[pick(pick(2) ? 3 : COUNT(units))];
}

static void add_blocks(struct snapshot *s, const struct series *series, json_t *blocks, unsigned count, uint64_t *bytes)
{
	for (; count > 0; count--) {
		struct snapshot_block *block = vec_push(&s->blocks);

		ck_assert_ptr_nonnull(block);
		*block = (struct snapshot_block){
			.address = 0x10000 + 16 * s->blocks.count, .size = pick_size(), .trace = (uint32_t)s->traces.count,
			.thread = pick(5) ? 100 + pick(3) : 0, .age_ns = pick(60) * series->unit,
		};
		*bytes += block->size;
		json_array_append_new(blocks, json_pack("[i, I, I, i]", (int)block->trace, (json_int_t)block->size,
							(json_int_t)block->age_ns, (int)block->thread));
	}
}

static void add_trace(struct snapshot *s, const struct series *series, json_t *traces, json_t *blocks)
{
	static const uint32_t domains[] = { 0, 0, 0, 1, 2, 100 };
	unsigned count = pick(5) ? 1 + pick(4) : 0, freed = pick(3) ? pick(4) : 0, peak = pick(3) ? 1 + pick(4) : 0;
	json_t *document = json_object(), *numbers;
	uint64_t bytes = 0;
	uint32_t domain = domains[pick(COUNT(domains))], stack = add_stack(s, series, document);
	struct snapshot_trace *trace;

	add_blocks(s, series, blocks, count, &bytes);
	build_trace(s, stack, domain, count, bytes);
	trace = &s->traces.items[s->traces.count - 1];
	trace->total_blocks += freed;
	trace->total_bytes += freed ? pick_size() : 0;
	trace->temporary_blocks = pick(freed + 1);
	trace->peak_blocks = peak;
	trace->peak_bytes = peak ? pick_size() : 0;
	numbers = json_pack("{s:i, s:i, s:I, s:i, s:I, s:i, s:i, s:I}", "domain", (int)domain,
		"live_blocks", (int)count, "live_bytes", (json_int_t)bytes, "total_blocks", (int)trace->total_blocks,
		"total_bytes", (json_int_t)trace->total_bytes, "temporary_blocks", (int)trace->temporary_blocks,
		"peak_blocks", (int)peak, "peak_bytes", (json_int_t)trace->peak_bytes);
	json_object_update(document, numbers);
	json_decref(numbers);
	json_array_append_new(traces, document);
}

static json_t *describe(const struct snapshot *s, const struct series *series, json_t *traces, json_t *blocks)
{
	return json_pack("{s:[i, i], s:I, s:I, s:I, s:I, s:i, s:b, s:b, s:o, s:o, s:o}", "builds", (int)series->builds[0],
			 (int)series->builds[1], "pid", (json_int_t)s->pid,
			 "start", (json_int_t)s->start_time, "clock", (json_int_t)s->clock_ns, "taken", (json_int_t)s->taken_ns,
			 "limit", (int)s->frames_limit, "exact", s->exact, "symbolized", s->symbolized,
			 "unknown", codec_unknown(&s->unknown), "traces", traces, "blocks", s->has_blocks ? blocks : json_null());
}

static void set_build(struct snapshot *s, uint32_t module, unsigned build)
{
	s->modules.items[module].build_id[0] = (uint8_t)build;
	s->modules.items[module].build_id_len = 1;
}

static struct snapshot *random_snapshot(struct series *series, uint64_t at)
{
	struct snapshot *s = snapshot_new();
	json_t *traces = json_array(), *blocks = json_array();
	const char *reason = "";

	ck_assert_ptr_nonnull(s);
	for (unsigned i = 0; i < 2; i++) {
		series->builds[i] = pick(3) ? series->builds[i] : pick(3);
		set_build(s, build_module(s, objects[1 + i]), series->builds[i]);
	}
	s->pid = pick(30) ? 4242 : 17;
	s->start_time = pick(40) ? 1 : 2;
	s->clock_ns = pick(30) ? (1000 + at) * series->unit : 0;
	s->taken_ns = 1700000000000000000ULL + at * series->unit * (1 + pick(2));
	s->frames_limit = pick(3) ? 25 : 1 + pick(SERIES_DEPTH);
	s->exact = pick(4);
	s->symbolized = pick(4);
	s->has_blocks = pick(5);
	s->unknown.lost_events = pick(3);
	s->counters.peak_ns = s->counters.peak_bytes = 1;
	for (unsigned i = pick(16) ? 1 + pick(TRACES_MAX) : 0; i > 0; i--)
		add_trace(s, series, traces, blocks);
	json_array_append_new(series->documents, describe(s, series, traces, blocks));
	if (!s->has_blocks) {
		s->blocks.count = 0;
		json_decref(blocks);
	}
	ck_assert_msg(snapshot_check(s, &reason) == 0, "%s", reason);
	return s;
}

void series_make(struct series *series)
{
	static const uint64_t units[] = { 1, 1000003, 1000000000, 3600000000000 };
	uint64_t at = 0;

	*series = (struct series){ .count = 3 + pick(SERIES_MAX - 2), .documents = json_array() };
	series->unit = units[pick(COUNT(units))];
	for (size_t i = 0; i < SERIES_POOL; i++)
		pick_physical(&series->pool[i]);
	for (size_t i = 0; i < series->count; i++) {
		series->snapshots[i] = random_snapshot(series, at);
		at += pick(12) ? 1 + pick(30) : 0;
	}
}

void series_free(struct series *series)
{
	for (size_t i = 0; i < series->count; i++)
		snapshot_put(series->snapshots[i]);
	json_decref(series->documents);
}
