/* Rows of statistics as interned tables, there and back: type RowTables of the interface. */
#include "varlink/codec.h"
#include "varlink/domains.h"
#include "varlink/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FLAG_INLINED = 1, FLAG_HAS_LINE = 2 };

#define FRAME_COLUMNS 7
#define ROW_COLUMNS 5            /* before its frames */
/* Of an integer and its comma, about. */
#define CELL_COST 8

struct codec_rows_writer {
	const struct statistics *statistics;
	bool with_diff;
	size_t row;                      /* where it has come to */
	uint32_t *strings, *frames;      /* by id: one more than its number in the stream; 0: not sent yet */
	uint32_t string_count, frame_count;
	/* the piece at hand */
	json_t *piece;
	size_t cost;
};

struct codec_rows_writer *codec_rows_writer_new(const struct statistics *statistics, bool with_diff)
{
	struct codec_rows_writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		return NULL;
	writer->statistics = statistics;
	writer->with_diff = with_diff;
	writer->strings = calloc(strtab_count(statistics->strings), sizeof(*writer->strings));
	writer->frames = calloc((size_t)statistics->frame_numbers + 1, sizeof(*writer->frames));
	if (writer->strings && writer->frames)
		return writer;
	codec_rows_writer_free(writer);
	return NULL;
}

void codec_rows_writer_free(struct codec_rows_writer *writer)
{
	if (!writer)
		return;
	free(writer->strings);
	free(writer->frames);
	free(writer);
}

static int append(struct codec_rows_writer *writer, const char *table, json_t *item, size_t cost)
{
	writer->cost += cost;
	return json_array_append_new(json_object_get(writer->piece, table), item) < 0 ? -ENOMEM : 0;
}

static int append_cells(struct codec_rows_writer *writer, const char *table, const json_int_t *cells, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < count; i++) {
		if (json_array_append_new(list, json_integer(cells[i])) < 0) {
			json_decref(list);
			list = NULL;
		}
	}
	return append(writer, table, list, count * CELL_COST);
}

static int send_string(struct codec_rows_writer *writer, uint32_t id)
{
	const char *text = strtab_get(writer->statistics->strings, id);
	int r;

	if (writer->strings[id])
		return 0;
	r = append(writer, "strings", codec_bytes(text), 3 + 2 * strnlen(text, CODEC_TEXT_MAX));
	if (r == 0)
		writer->strings[id] = ++writer->string_count;
	return r;
}

static int send_frame(struct codec_rows_writer *writer, const struct statistic_frame *frame)
{
	int r = send_string(writer, frame->name);

	if (r == 0)
		r = send_string(writer, frame->function);
	if (r == 0)
		r = send_string(writer, frame->object);
	if (r == 0) {
		const json_int_t cells[FRAME_COLUMNS] = {
			writer->strings[frame->name] - 1, frame->line, writer->strings[frame->function] - 1,
			writer->strings[frame->object] - 1, (json_int_t)(frame->offset >> 32),
			(json_int_t)(frame->offset & UINT32_MAX),
			(frame->inlined ? FLAG_INLINED : 0) | (frame->has_line ? FLAG_HAS_LINE : 0),
		};

		r = append_cells(writer, "frames", cells, FRAME_COLUMNS);
	}
	if (r == 0)
		writer->frames[frame->number] = ++writer->frame_count;
	return r;
}

/* What the row refers to; 1: the piece is full before all of it is in. */
static int send_frames(struct codec_rows_writer *writer, const struct statistic *row)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < row->frame_count; i++) {
		if (writer->frames[row->frames[i].number])
			continue;
		if (writer->cost >= CODEC_PIECE_SIZE)
			return 1;
		r = send_frame(writer, &row->frames[i]);
	}
	return r;
}

static int send_histogram(struct codec_rows_writer *writer, const uint64_t *histogram)
{
	json_int_t cells[2 * HISTOGRAM_STEPS];
	size_t count = 0;

	for (unsigned i = 0; histogram && i < HISTOGRAM_STEPS; i++) {
		if (histogram[i] == 0)
			continue;
		cells[count++] = i;
		cells[count++] = codec_count(histogram[i]);
	}
	return append_cells(writer, "histograms", cells, count);
}

static int send_numbers(struct codec_rows_writer *writer, const struct statistic *row)
{
	json_int_t *cells = calloc(ROW_COLUMNS + (size_t)row->frame_count, sizeof(*cells));
	int r;

	if (!cells)
		return -ENOMEM;
	cells[0] = codec_count(row->size);
	cells[1] = codec_count(row->count);
	cells[2] = row->total_frames;
	cells[3] = row->truncated;
	cells[4] = row->is_thread ? row->thread : row->domain;
	for (uint32_t i = 0; i < row->frame_count; i++)
		cells[ROW_COLUMNS + i] = writer->frames[row->frames[i].number] - 1;
	r = append_cells(writer, "rows", cells, ROW_COLUMNS + (size_t)row->frame_count);
	free(cells);
	return r;
}

static int send_row(struct codec_rows_writer *writer, const struct statistic *row)
{
	const struct statistics *statistics = writer->statistics;
	int r = send_numbers(writer, row);

	if (r == 0 && writer->with_diff)
		r = append_cells(writer, "diffs", (json_int_t[]){ row->size_diff, row->count_diff }, 2);
	if (r == 0 && statistics->sample_bytes > 0)
		r = append_cells(writer, "errors", (json_int_t[]){ codec_count(row->size_error), codec_count(row->count_error),
								   codec_count(row->samples) }, 3);
	if (r == 0 && statistics->has_churn)
		r = append_cells(writer, "churn", (json_int_t[]){ row->made_size, row->made_count, row->freed_count,
								  row->temporary_count }, 4);
	if (r == 0 && statistics->has_ages)
		r = append_cells(writer, "ages", (json_int_t[]){ codec_count(row->youngest_ns), codec_count(row->oldest_ns) }, 2);
	if (r == 0 && statistics->has_histograms)
		r = send_histogram(writer, row->histogram);
	return r;
}

static json_t *encode_domains(const struct statistics *statistics)
{
	struct domain_set set = { { false } };

	for (size_t i = 0; i < statistics->row_count; i++)
		domain_set_add(&set, statistics->rows[i].domain);
	return codec_domains(&set);
}

static json_t *new_piece(const struct codec_rows_writer *writer)
{
	const struct statistics *statistics = writer->statistics;
	json_t *piece = json_pack("{s:I, s:[], s:[], s:[]}", "rows_size", codec_count(statistics->rows_size), "strings",
				  "frames", "rows");
	bool failed = !piece;

	if (statistics->key == KEY_DOMAIN)
		failed |= json_object_set_new(piece, "domains", encode_domains(statistics));
	if (writer->with_diff)
		failed |= json_object_set_new(piece, "diffs", json_array());
	if (statistics->sample_bytes > 0)
		failed |= json_object_set_new(piece, "errors", json_array());
	if (statistics->has_churn)
		failed |= json_object_set_new(piece, "churn", json_array());
	if (statistics->has_ages)
		failed |= json_object_set_new(piece, "ages", json_array());
	if (statistics->has_histograms)
		failed |= json_object_set_new(piece, "histograms", json_array());
	if (failed) {
		json_decref(piece);
		return NULL;
	}
	return piece;
}

json_t *codec_rows_writer_next(struct codec_rows_writer *writer, bool *ret_last)
{
	const struct statistics *statistics = writer->statistics;
	int r = 0;

	writer->cost = 0;
	writer->piece = new_piece(writer);
	if (!writer->piece)
		return NULL;
	while (r == 0 && writer->row < statistics->row_count && writer->cost < CODEC_PIECE_SIZE) {
		const struct statistic *row = &statistics->rows[writer->row];

		r = send_frames(writer, row);
		if (r == 0)
			r = send_row(writer, row);
		if (r == 0)
			writer->row++;
	}
	if (r < 0) {
		json_decref(writer->piece);
		return NULL;
	}
	*ret_last = writer->row == statistics->row_count;
	return writer->piece;
}

/* --- and back: every value is hostile --- */

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
