#include "varlink/codec_rows.h"

#include "varlink/codec.h"
#include "varlink/domains.h"
#include "varlink/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
