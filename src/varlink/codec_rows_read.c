/* Rows of statistics back from their tables: every value is hostile. */
#include "varlink/codec_rows.h"

#include "varlink/codec.h"
#include "varlink/domains.h"
#include "varlink/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct codec_rows_reader {
	struct statistics *statistics;
	bool with_diff, by_thread;
	VEC_OF(uint32_t) strings;                 /* by number: id in the statistics' */
	VEC_OF(struct statistic_frame) known;     /* by number */
	VEC_OF(struct statistic) rows;
	VEC_OF(struct statistic_frame) frames;    /* all rows', one behind the other */
	size_t diffs, errors, churn, ages, histograms;    /* rows that have theirs */
	struct domain_map domains;
	bool informed;
};

struct codec_rows_reader *codec_rows_reader_new(const struct statistics_query *query, bool with_diff)
{
	struct codec_rows_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return NULL;
	reader->with_diff = with_diff;
	reader->by_thread = query->key == KEY_THREAD;
	reader->statistics = calloc(1, sizeof(*reader->statistics));
	if (reader->statistics)
		reader->statistics->strings = strtab_new();
	if (!reader->statistics || !reader->statistics->strings) {
		codec_rows_reader_free(reader);
		return NULL;
	}
	reader->statistics->key = query->key;
	reader->statistics->has_churn = query->churn;
	reader->statistics->has_ages = query->ages.given || query->born;
	reader->statistics->has_histograms = query->histogram;
	reader->statistics->sort = query->sort;
	return reader;
}

void codec_rows_reader_free(struct codec_rows_reader *reader)
{
	if (!reader)
		return;
	for (size_t i = 0; i < reader->rows.count; i++)
		free(reader->rows.items[i].histogram);
	vec_fini(&reader->strings);
	vec_fini(&reader->known);
	vec_fini(&reader->rows);
	vec_fini(&reader->frames);
	statistics_free(reader->statistics);
	free(reader);
}

/* Exactly so many integers; `signs`: they may be below 0. */
static int take_cells(const json_t *list, json_int_t *cells, size_t count, bool signs)
{
	if (!json_is_array(list) || json_array_size(list) != count)
		return -EBADMSG;
	for (size_t i = 0; i < count; i++) {
		const json_t *cell = json_array_get(list, i);

		if (!json_is_integer(cell) || (!signs && json_integer_value(cell) < 0))
			return -EBADMSG;
		cells[i] = json_integer_value(cell);
	}
	return 0;
}

static int take_string(struct codec_rows_reader *reader, const json_t *item)
{
	uint32_t *slot = vec_push(&reader->strings);
	char *text;
	int64_t id;

	if (!json_is_string(item))
		return -EBADMSG;
	text = slot ? codec_text(json_string_value(item)) : NULL;
	if (!text)
		return -ENOMEM;
	id = strtab_add(reader->statistics->strings, text);
	free(text);
	if (id < 0)
		return -ENOMEM;
	*slot = (uint32_t)id;
	return 0;
}

static bool are_strings(const struct codec_rows_reader *reader, json_int_t a, json_int_t b, json_int_t c)
{
	uint64_t count = reader->strings.count;

	return (uint64_t)a < count && (uint64_t)b < count && (uint64_t)c < count;
}

static int take_frame(struct codec_rows_reader *reader, const json_t *item)
{
	json_int_t cells[FRAME_COLUMNS];
	struct statistic_frame *frame;
	int r = take_cells(item, cells, FRAME_COLUMNS, false);

	if (r < 0)
		return r;
	if (!are_strings(reader, cells[0], cells[2], cells[3]) || cells[1] > UINT32_MAX || cells[4] > UINT32_MAX ||
	    cells[5] > UINT32_MAX || cells[6] > (FLAG_INLINED | FLAG_HAS_LINE) || reader->known.count >= UINT32_MAX)
		return -EBADMSG;
	frame = vec_push(&reader->known);
	if (!frame)
		return -ENOMEM;
	*frame = (struct statistic_frame){
		.name = reader->strings.items[cells[0]], .line = (uint32_t)cells[1],
		.function = reader->strings.items[cells[2]], .object = reader->strings.items[cells[3]],
		.offset = (uint64_t)cells[4] << 32 | (uint64_t)cells[5],
		.inlined = cells[6] & FLAG_INLINED, .has_line = cells[6] & FLAG_HAS_LINE,
		.number = (uint32_t)(reader->known.count - 1),
	};
	return 0;
}

static int take_row_frames(struct codec_rows_reader *reader, const json_t *item, size_t count)
{
	if (vec_reserve(&reader->frames, count) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const json_t *cell = json_array_get(item, ROW_COLUMNS + i);
		json_int_t number = json_integer_value(cell);

		if (!json_is_integer(cell) || number < 0 || (uint64_t)number >= reader->known.count)
			return -EBADMSG;
		reader->frames.items[reader->frames.count++] = reader->known.items[number];
	}
	return 0;
}

static int take_row(struct codec_rows_reader *reader, const json_t *item)
{
	size_t size = json_is_array(item) ? json_array_size(item) : 0;
	json_int_t cells[ROW_COLUMNS];
	struct statistic *row;

	if (size < ROW_COLUMNS || size - ROW_COLUMNS > UINT32_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < ROW_COLUMNS; i++) {
		const json_t *cell = json_array_get(item, i);

		if (!json_is_integer(cell) || json_integer_value(cell) < 0)
			return -EBADMSG;
		cells[i] = json_integer_value(cell);
	}
	if (cells[2] > UINT32_MAX || cells[3] >= TRUNCATED_COUNT || cells[4] > UINT32_MAX)
		return -EBADMSG;
	row = vec_push(&reader->rows);
	if (!row)
		return -ENOMEM;
	row->size = (uint64_t)cells[0];
	row->count = (uint64_t)cells[1];
	row->total_frames = (uint32_t)cells[2];
	row->truncated = (enum truncation)cells[3];
	row->is_thread = reader->by_thread;
	if (row->is_thread)
		row->thread = (uint32_t)cells[4];
	else
		row->domain = domain_map_here(&reader->domains, (uint32_t)cells[4]);
	row->frame_count = (uint32_t)(size - ROW_COLUMNS);
	return take_row_frames(reader, item, size - ROW_COLUMNS);
}

/* The next row without its part of such a table; NULL: there is none. */
static struct statistic *next_of(struct codec_rows_reader *reader, size_t *done)
{
	return *done < reader->rows.count ? &reader->rows.items[(*done)++] : NULL;
}

static int take_diff(struct codec_rows_reader *reader, const json_t *item)
{
	struct statistic *row = next_of(reader, &reader->diffs);
	json_int_t cells[2];

	if (!row || take_cells(item, cells, 2, true) < 0)
		return -EBADMSG;
	row->size_diff = cells[0];
	row->count_diff = cells[1];
	return 0;
}

static int take_errors(struct codec_rows_reader *reader, const json_t *item)
{
	struct statistic *row = next_of(reader, &reader->errors);
	json_int_t cells[3];

	if (!row || take_cells(item, cells, 3, false) < 0)
		return -EBADMSG;
	row->size_error = (uint64_t)cells[0];
	row->count_error = (uint64_t)cells[1];
	row->samples = (uint64_t)cells[2];
	return 0;
}

static int take_churn(struct codec_rows_reader *reader, const json_t *item)
{
	struct statistic *row = next_of(reader, &reader->churn);
	json_int_t cells[4];

	if (!row || take_cells(item, cells, 4, true) < 0)
		return -EBADMSG;
	row->made_size = cells[0];
	row->made_count = cells[1];
	row->freed_count = cells[2];
	row->temporary_count = cells[3];
	return 0;
}

static int take_ages(struct codec_rows_reader *reader, const json_t *item)
{
	struct statistic *row = next_of(reader, &reader->ages);
	json_int_t cells[2];

	if (!row || take_cells(item, cells, 2, false) < 0)
		return -EBADMSG;
	row->youngest_ns = (uint64_t)cells[0];
	row->oldest_ns = (uint64_t)cells[1];
	return 0;
}

static int take_histogram(struct codec_rows_reader *reader, const json_t *item)
{
	struct statistic *row = next_of(reader, &reader->histograms);
	size_t count = json_is_array(item) ? json_array_size(item) : 1;
	json_int_t cells[2 * HISTOGRAM_STEPS];

	if (!row || count % 2 || count > 2 * HISTOGRAM_STEPS || take_cells(item, cells, count, false) < 0)
		return -EBADMSG;
	if (count == 0)
		return 0;
	row->histogram = calloc(HISTOGRAM_STEPS, sizeof(*row->histogram));
	if (!row->histogram)
		return -ENOMEM;
	for (size_t i = 0; i < count; i += 2) {
		if (cells[i] >= HISTOGRAM_STEPS)
			return -EBADMSG;
		row->histogram[cells[i]] = (uint64_t)cells[i + 1];
	}
	return 0;
}

static int take_table(struct codec_rows_reader *reader, const json_t *tables, const char *name, bool wanted,
		      int (*take)(struct codec_rows_reader *reader, const json_t *item))
{
	const json_t *table = json_object_get(tables, name);
	int r = json_is_array(table) == wanted ? 0 : -EBADMSG;

	for (size_t i = 0; r == 0 && i < json_array_size(table); i++)
		r = take(reader, json_array_get(table, i));
	return r;
}

static int take_count(const json_t *object, const char *key, uint64_t *ret)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return -EBADMSG;
	*ret = (uint64_t)json_integer_value(value);
	return 0;
}

static int take_difference(const json_t *object, const char *key, int64_t *ret)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value))
		return -EBADMSG;
	*ret = json_integer_value(value);
	return 0;
}

/* Older daemons do not say, and have none. */
static int take_sampling(const json_t *reply, const json_t *total, struct statistics *statistics)
{
	int r = take_count(reply, "sample_bytes", &statistics->sample_bytes);

	if (r == 0)
		r = take_count(total, "size_error", &statistics->total_size_error);
	return r == 0 ? take_count(total, "count_error", &statistics->total_count_error) : r;
}

/* The same in each reply. */
static int take_frame_of_rows(struct codec_rows_reader *reader, const json_t *reply)
{
	const json_t *total = json_object_get(reply, "total"), *exact = json_object_get(reply, "exact");
	const json_t *differ = json_object_get(reply, "limits_differ");
	const char *key = json_string_value(json_object_get(reply, "key"));
	struct statistics *statistics = reader->statistics;
	uint64_t rows = 0;
	int r = json_is_boolean(exact) && json_is_boolean(differ) ? 0 : -EBADMSG;

	if (r == 0)
		r = codec_take_unknown(json_object_get(reply, "unknown"), &statistics->unknown);
	if (r == 0)
		r = take_count(reply, "rows", &rows);
	if (r == 0)
		r = take_count(total, "size", &statistics->total_size);
	if (r == 0)
		r = take_count(total, "count", &statistics->total_count);
	if (r == 0 && reader->with_diff)
		r = take_difference(total, "size_diff", &statistics->total_size_diff);
	if (r == 0 && reader->with_diff)
		r = take_difference(total, "count_diff", &statistics->total_count_diff);
	if (r == 0 && json_object_get(reply, "sample_bytes"))
		r = take_sampling(reply, total, statistics);
	if (r < 0)
		return r;
	statistics->all_rows = rows;
	statistics->exact = json_is_true(exact);
	statistics->limits_differ = json_is_true(differ);
	statistics->unnamed = json_is_true(json_object_get(reply, "unnamed"));
	/* Older daemons do not say, and keep to what is asked for. */
	if (key)
		(void)statistics_key_parse(key, &statistics->key);
	reader->informed = true;
	return 0;
}

int codec_rows_reader_feed(struct codec_rows_reader *reader, const json_t *reply)
{
	const json_t *tables = json_object_get(reply, "tables");
	const struct statistics *statistics = reader->statistics;
	int r = take_frame_of_rows(reader, reply);

	if (r == 0)
		r = take_count(tables, "rows_size", &reader->statistics->rows_size);
	if (r == 0)
		r = take_table(reader, tables, "strings", true, take_string);
	if (r == 0)
		r = take_table(reader, tables, "frames", true, take_frame);
	if (r == 0)
		r = codec_take_domains(json_object_get(tables, "domains"), &reader->domains);
	if (r == 0)
		r = take_table(reader, tables, "rows", true, take_row);
	if (r == 0)
		r = take_table(reader, tables, "diffs", reader->with_diff, take_diff);
	if (r == 0)
		r = take_table(reader, tables, "errors", statistics->sample_bytes > 0, take_errors);
	if (r == 0)
		r = take_table(reader, tables, "churn", statistics->has_churn, take_churn);
	if (r == 0)
		r = take_table(reader, tables, "ages", statistics->has_ages, take_ages);
	if (r == 0)
		r = take_table(reader, tables, "histograms", statistics->has_histograms, take_histogram);
	return r;
}

/* Each row has its part of each table. */
static bool is_whole(const struct codec_rows_reader *reader)
{
	const struct statistics *statistics = reader->statistics;
	size_t rows = reader->rows.count;

	return reader->informed && rows <= statistics->all_rows && (!reader->with_diff || reader->diffs == rows) &&
	       (statistics->sample_bytes == 0 || reader->errors == rows) && (!statistics->has_churn || reader->churn == rows) && (!statistics->has_ages || reader->ages == rows) &&
	       (!statistics->has_histograms || reader->histograms == rows);
}

int codec_rows_reader_finish(struct codec_rows_reader *reader, struct statistics **ret)
{
	struct statistics *statistics = reader->statistics;
	struct statistic_frame *frames = reader->frames.items;

	if (!is_whole(reader))
		return -EBADMSG;
	statistics->rows = reader->rows.items;
	statistics->row_count = reader->rows.count;
	statistics->frames = frames;
	statistics->frame_numbers = (uint32_t)reader->known.count;
	/* Of rows without a frame there are none at all. */
	for (size_t i = 0; frames && i < statistics->row_count; i++) {
		statistics->rows[i].frames = frames;
		frames += statistics->rows[i].frame_count;
	}
	memset(&reader->rows, 0, sizeof(reader->rows));
	memset(&reader->frames, 0, sizeof(reader->frames));
	reader->statistics = NULL;
	*ret = statistics;
	return 0;
}
