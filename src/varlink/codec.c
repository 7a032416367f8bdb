#include "varlink/codec.h"

#include "model/occasion.h"
#include "varlink/tables.h"

const struct codec_table_form codec_tables[TABLE_COUNT] = {
	[TABLE_STRINGS] = { "strings", 0 },
	[TABLE_MODULES] = { "modules", 2 },
	[TABLE_FRAMES] = { "frames", 6 },
	[TABLE_LOCATIONS] = { "locations", 5 },
	[TABLE_NODES] = { "nodes", 2 },
	[TABLE_TRACES] = { "traces", 9 },
	[TABLE_BLOCKS] = { "blocks", 6 },
	[TABLE_SAMPLES] = { "samples", 3 },
};

json_t *codec_unknown(const struct snapshot_unknown *unknown)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}",
			 "unknown_frees", codec_count(unknown->unknown_frees),
			 "before_attach_frees", codec_count(unknown->before_attach_frees),
			 "after_clear_frees", codec_count(unknown->after_clear_frees),
			 "lost_events", codec_count(unknown->lost_events),
			 "truncated_stacks", codec_count(unknown->truncated_stacks),
			 "probe_gaps", codec_count(unknown->probe_gaps));
}

json_t *codec_snapshot_info(const struct snapshot *snapshot)
{
	return json_pack("{s:o, s:o, s:s?, s:I, s:o, s:I, s:I, s:I}",
			 "id", codec_bytes(snapshot->id),
			 "name", codec_bytes(snapshot->name),
			 "reason", occasion_text(snapshot->name ? snapshot->name : ""),
			 "pid", (json_int_t)snapshot->pid,
			 "command", codec_bytes(snapshot->command),
			 "time", codec_count(snapshot->taken_ns),
			 "size", codec_count(snapshot->counters.live_bytes),
			 "count", codec_count(snapshot->counters.live_blocks));
}

/* NULL (no memory) in, NULL out, as with the *_new functions of jansson. */
static json_t *append_or_free(json_t *list, json_t *item)
{
	if (list && json_array_append_new(list, item) < 0) {
		json_decref(list);
		return NULL;
	}
	if (!list)
		json_decref(item);
	return list;
}

static json_t *name_or_null(const struct strtab *strings, uint32_t id, bool known)
{
	return known ? codec_bytes(strtab_get(strings, id)) : json_null();
}

/* Without line information tracemalloc's file name is made from object, function and offset. */
static json_t *encode_frame(const struct strtab *strings, const struct statistic_frame *frame)
{
	return json_pack("{s:o, s:I, s:o, s:o, s:I, s:b}",
			 "file", name_or_null(strings, frame->name, frame->has_line),
			 "line", (json_int_t)frame->line,
			 "function", name_or_null(strings, frame->function, frame->function != 0),
			 "object", codec_bytes(strtab_get(strings, frame->object)),
			 "offset", codec_count(frame->offset),
			 "inlined", frame->inlined);
}

static json_t *encode_traceback(const struct strtab *strings, const struct statistic *row)
{
	json_t *list = json_array();

	for (uint32_t i = 0; list && i < row->frame_count; i++)
		list = append_or_free(list, encode_frame(strings, &row->frames[i]));
	return list;
}

static json_t *text_or_null(const char *text)
{
	return text ? codec_bytes(text) : json_null();
}

json_t *codec_traceback(const struct traceback *traceback)
{
	json_t *list = json_array();

	for (uint32_t i = traceback->count; list && i-- > 0;) {
		const struct traceback_frame *frame = &traceback->frames[i];

		list = append_or_free(list, json_pack("{s:o, s:I, s:o, s:o, s:I, s:b}",
						      "file", text_or_null(frame->file),
						      "line", (json_int_t)frame->line,
						      "function", text_or_null(frame->function),
						      "object", codec_bytes(frame->object),
						      "offset", codec_count(frame->offset),
						      "inlined", frame->inlined));
	}
	return list;
}

static json_t *encode_histogram(const uint64_t *histogram)
{
	json_t *list = json_array();

	for (unsigned i = 0; list && i < HISTOGRAM_STEPS; i++) {
		if (histogram[i] > 0)
			list = append_or_free(list, json_pack("{s:I, s:I, s:I}", "least", codec_count(histogram_least(i)),
							      "most", codec_count(histogram_most(i)),
							      "count", codec_count(histogram[i])));
	}
	return list;
}

static json_t *encode_row(const struct statistics *statistics, const struct statistic *row, bool with_diff)
{
	char domain[DOMAIN_TEXT_MAX];
	json_t *json = json_pack("{s:I, s:I, s:o}", "size", codec_count(row->size),
				 "count", codec_count(row->count),
				 "traceback", encode_traceback(statistics->strings, row));
	int failed = 0;

	if (!json)
		return NULL;
	if (with_diff) {
		failed |= json_object_set_new(json, "size_diff", json_integer(row->size_diff));
		failed |= json_object_set_new(json, "count_diff", json_integer(row->count_diff));
	}
	if (statistics->sample_bytes > 0) {
		failed |= json_object_set_new(json, "size_error", json_integer(codec_count(row->size_error)));
		failed |= json_object_set_new(json, "count_error", json_integer(codec_count(row->count_error)));
		failed |= json_object_set_new(json, "samples", json_integer(codec_count(row->samples)));
	}
	if (statistics->has_ages) {
		failed |= json_object_set_new(json, "youngest_seconds", json_real((double)row->youngest_ns / 1e9));
		failed |= json_object_set_new(json, "oldest_seconds", json_real((double)row->oldest_ns / 1e9));
	}
	if (statistics->has_churn) {
		failed |= json_object_set_new(json, "allocations", json_integer(row->made_count));
		failed |= json_object_set_new(json, "allocated_size", json_integer(row->made_size));
		failed |= json_object_set_new(json, "frees", json_integer(row->freed_count));
		failed |= json_object_set_new(json, "temporary", json_integer(row->temporary_count));
	}
	if (row->histogram)
		failed |= json_object_set_new(json, "histogram", encode_histogram(row->histogram));
	if (with_diff && statistic_is_bigger(row))
		failed |= json_object_set_new(json, "bigger", json_true());
	if (row->is_thread)
		failed |= json_object_set_new(json, "thread", json_integer(row->thread));
	else if (row->frame_count == 0)
		failed |= json_object_set_new(json, "domain", json_string(domain_name(row->domain, domain)));
	if (row->total_frames > 0)
		failed |= json_object_set_new(json, "total_frames", json_integer(row->total_frames));
	if (row->truncated != TRUNCATED_NONE)
		failed |= json_object_set_new(json, "truncated",
					      json_string(truncation_text(row->truncated)));
	if (failed) {
		json_decref(json);
		return NULL;
	}
	return json;
}

json_t *codec_statistics_rows(const struct statistics *statistics, size_t first, size_t count,
			      bool with_diff)
{
	json_t *list = json_array();

	if (first > statistics->row_count)
		first = statistics->row_count;
	if (count > statistics->row_count - first)
		count = statistics->row_count - first;
	for (size_t i = first; list && i < first + count; i++)
		list = append_or_free(list, encode_row(statistics, &statistics->rows[i], with_diff));
	return list;
}

/* NULL, which json_pack leaves out with "o*", when it is no estimate. */
static json_t *error_or_none(const struct statistics *statistics, uint64_t error)
{
	return statistics->sample_bytes > 0 ? json_integer(codec_count(error)) : NULL;
}

static json_t *encode_total(const struct statistics *statistics, bool with_diff)
{
	return json_pack("{s:I, s:I, s:o*, s:o*, s:o*, s:o*}", "size", codec_count(statistics->total_size),
			 "count", codec_count(statistics->total_count),
			 "size_diff", with_diff ? json_integer(statistics->total_size_diff) : NULL,
			 "count_diff", with_diff ? json_integer(statistics->total_count_diff) : NULL,
			 "size_error", error_or_none(statistics, statistics->total_size_error),
			 "count_error", error_or_none(statistics, statistics->total_count_error));
}

json_t *codec_statistics_frame(const struct statistics *statistics, json_t *rows, bool with_diff)
{
	return json_pack("{s:o, s:s, s:o, s:b, s:o, s:I, s:b, s:o*, s:o*}", "statistics", rows,
			 "key", statistics_key_name(statistics->key),
			 "total", encode_total(statistics, with_diff),
			 "exact", statistics->exact,
			 "unknown", codec_unknown(&statistics->unknown),
			 "rows", codec_count(statistics->all_rows),
			 "limits_differ", statistics->limits_differ,
			 "unnamed", statistics->unnamed ? json_true() : NULL,
			 "sample_bytes", error_or_none(statistics, statistics->sample_bytes));
}

json_t *codec_statistics(const struct statistics *statistics, size_t limit, bool with_diff)
{
	size_t count = limit > 0 ? limit : statistics->row_count;

	return codec_statistics_frame(statistics,
				      codec_statistics_rows(statistics, 0, count, with_diff), with_diff);
}

static json_t *encode_sizes(const struct trend *trend, const struct trend_row *row)
{
	json_t *sizes = json_array();

	for (size_t i = 0; sizes && i < trend->snapshot_count; i++)
		sizes = append_or_free(sizes, json_integer(codec_count(trend_size(trend, row, i))));
	return sizes;
}

static json_t *encode_trend_row(const struct trend *trend, const struct trend_row *row)
{
	json_t *json = encode_row(trend->statistics, &trend->statistics->rows[row->row], false);

	if (json && json_object_set_new(json, "growth_per_hour", json_real(row->growth)) == 0 &&
	    json_object_set_new(json, "steadiness", json_real(row->steadiness)) == 0 &&
	    json_object_set_new(json, "sizes", encode_sizes(trend, row)) == 0)
		return json;
	json_decref(json);
	return NULL;
}

json_t *codec_trend_rows(const struct trend *trend, size_t first, size_t count)
{
	size_t rows = trend->statistics->row_count;
	json_t *list = json_array();

	if (first > rows)
		first = rows;
	if (count > rows - first)
		count = rows - first;
	for (size_t i = first; list && i < first + count; i++)
		list = append_or_free(list, encode_trend_row(trend, &trend->rows[i]));
	return list;
}

json_t *codec_trend(const struct trend *trend, size_t limit)
{
	size_t count = limit > 0 ? limit : trend->statistics->row_count;

	return codec_statistics_frame(trend->statistics, codec_trend_rows(trend, 0, count), false);
}
