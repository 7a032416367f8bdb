/* A snapshot's tables as pieces of JSON. */
#include "varlink/codec.h"
#include "varlink/domains.h"
#include "varlink/tables.h"

#include "model/hidden_rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct codec_snapshot_writer {
	struct snapshot *snapshot;
	enum codec_table table;      /* where it has come to */
	size_t row;
	bool begun;
};

struct codec_snapshot_writer *codec_snapshot_writer_new(struct snapshot *snapshot)
{
	struct codec_snapshot_writer *writer = calloc(1, sizeof(*writer));

	if (writer)
		writer->snapshot = snapshot_ref(snapshot);
	return writer;
}

void codec_snapshot_writer_free(struct codec_snapshot_writer *writer)
{
	if (!writer)
		return;
	snapshot_put(writer->snapshot);
	free(writer);
}

static json_t *encode_counters(const struct heap_counters *counters)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
			 "live_bytes", codec_count(counters->live_bytes),
			 "live_blocks", codec_count(counters->live_blocks),
			 "peak_bytes", codec_count(counters->peak_bytes),
			 "peak_blocks", codec_count(counters->peak_blocks),
			 "peak_clock", codec_count(counters->peak_ns),
			 "allocations", codec_count(counters->allocations),
			 "frees", codec_count(counters->frees),
			 "before_attach_frees", codec_count(counters->before_attach_frees),
			 "after_clear_frees", codec_count(counters->after_clear_frees),
			 "unknown_frees", codec_count(counters->unknown_frees),
			 "lost_events", codec_count(counters->lost_events));
}

/* What is hidden here beyond what everybody hides. */
static json_t *encode_hidden(void)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < hidden_rules_count(); i++) {
		if (json_array_append_new(list, json_string(hidden_rules_text(i))) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *encode_domains(const struct snapshot *s)
{
	struct domain_set set = { { false } };

	for (size_t i = 0; i < s->traces.count; i++)
		domain_set_add(&set, s->traces.items[i].domain);
	return codec_domains(&set);
}

static json_t *encode_info(const struct snapshot *s)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:b, s:o, s:o, s:o, s:o, s:o*}",
			 "id", codec_bytes(s->id), "name", codec_bytes(s->name),
			 "command", codec_bytes(s->command), "exe", codec_bytes(s->exe),
			 "pid", (json_int_t)s->pid, "start_time", codec_count(s->start_time),
			 "time", codec_count(s->taken_ns), "attached", codec_count(s->attached_ns),
			 "clock", codec_count(s->clock_ns), "frames_limit", (json_int_t)s->frames_limit,
			 "exact", s->exact, "symbolized", s->symbolized, "has_blocks", s->has_blocks,
			 "counters", encode_counters(&s->counters),
			 "unknown", codec_unknown(&s->unknown), "hide", encode_hidden(), "domains", encode_domains(s),
			 "sample_bytes", s->sample_bytes ? json_integer(codec_count(s->sample_bytes)) : NULL);
}

static size_t table_rows(const struct snapshot *s, enum codec_table table)
{
	switch (table) {
	case TABLE_STRINGS:      /* the build-ids come behind the snapshot's own */
		return strtab_count(s->strings) + s->modules.count;
	case TABLE_MODULES:
		return s->modules.count;
	case TABLE_FRAMES:
		return s->frames.count;
	case TABLE_LOCATIONS:
		return s->locations.count;
	case TABLE_NODES:
		return s->nodes.count;
	case TABLE_TRACES:
		return s->traces.count;
	case TABLE_BLOCKS:
		return s->blocks.count;
	case TABLE_SAMPLES:
		return s->sample_bytes > 0 ? s->traces.count : 0;
	case TABLE_COUNT:
		break;
	}
	return 0;
}

static json_int_t high(uint64_t n)
{
	return (json_int_t)(n >> 32);
}

static json_int_t low(uint64_t n)
{
	return (json_int_t)(n & UINT32_MAX);
}

static void frame_cells(const struct snapshot_frame *f, json_int_t *cells)
{
	cells[0] = f->frame.module == MODULE_NONE ? -1 : (json_int_t)f->frame.module;
	cells[1] = f->frame.kind;
	cells[2] = high(f->frame.offset);
	cells[3] = low(f->frame.offset);
	cells[4] = f->first_location;
	cells[5] = f->location_count;
}

static void location_cells(const struct snapshot_location *l, json_int_t *cells)
{
	cells[0] = l->function;
	cells[1] = l->file;
	cells[2] = l->line;
	cells[3] = l->function_offset;
	cells[4] = l->inlined;
}

static void trace_cells(const struct snapshot_trace *t, json_int_t *cells)
{
	cells[0] = t->stack;
	cells[1] = t->domain;
	cells[2] = codec_count(t->live_blocks);
	cells[3] = codec_count(t->live_bytes);
	cells[4] = codec_count(t->total_blocks);
	cells[5] = codec_count(t->total_bytes);
	cells[6] = codec_count(t->temporary_blocks);
	cells[7] = codec_count(t->peak_blocks);
	cells[8] = codec_count(t->peak_bytes);
}

static void block_cells(const struct snapshot_block *b, json_int_t *cells)
{
	cells[0] = high(b->address);
	cells[1] = low(b->address);
	cells[2] = codec_count(b->size);
	cells[3] = b->trace;
	cells[4] = codec_count(b->age_ns);
	cells[5] = b->thread;
}

static void row_cells(const struct snapshot *s, enum codec_table table, size_t row, json_int_t *cells)
{
	switch (table) {
	case TABLE_MODULES:
		cells[0] = s->modules.items[row].path;
		cells[1] = (json_int_t)(strtab_count(s->strings) + row);
		break;
	case TABLE_FRAMES:
		frame_cells(&s->frames.items[row], cells);
		break;
	case TABLE_LOCATIONS:
		location_cells(&s->locations.items[row], cells);
		break;
	case TABLE_NODES:
		cells[0] = s->nodes.items[row].parent;
		cells[1] = s->nodes.items[row].frame;
		break;
	case TABLE_TRACES:
		trace_cells(&s->traces.items[row], cells);
		break;
	case TABLE_BLOCKS:
		block_cells(&s->blocks.items[row], cells);
		break;
	case TABLE_SAMPLES:
		cells[0] = codec_count(s->traces.items[row].samples);
		cells[1] = codec_count(s->traces.items[row].blocks_deviation);
		cells[2] = codec_count(s->traces.items[row].bytes_deviation);
		break;
	case TABLE_STRINGS:
	case TABLE_COUNT:
		break;
	}
}

static size_t digits(json_int_t n)
{
	size_t count = n < 0 ? 2 : 1;

	while (n >= 10) {
		n /= 10;
		count++;
	}
	return count;
}

static json_t *encode_cells(const json_int_t *cells, size_t columns, size_t *cost)
{
	json_t *row = json_array();

	for (size_t i = 0; row && i < columns; i++) {
		*cost += digits(cells[i]) + 1;
		if (json_array_append_new(row, json_integer(cells[i])) < 0) {
			json_decref(row);
			return NULL;
		}
	}
	*cost += 2;
	return row;
}

/* The longest that a text can get in JSON: "\u001f", "\\" or "\\xff" for one byte. */
static size_t text_cost(const char *text)
{
	size_t cost = 3;

	for (size_t i = 0; i < CODEC_TEXT_MAX && text[i]; i++) {
		unsigned char c = (unsigned char)text[i];

		cost += c < 0x20 ? 6 : c >= 0x80 ? 5 : c == '"' || c == '\\' ? 2 : 1;
	}
	return cost;
}

static json_t *encode_string(const struct snapshot *s, size_t row, size_t *cost)
{
	char hex[BUILD_ID_MAX * 2 + 1] = "";
	const char *text = hex;

	if (row < strtab_count(s->strings)) {
		text = strtab_get(s->strings, (uint32_t)row);
	} else {
		const struct snapshot_module *module = &s->modules.items[row - strtab_count(s->strings)];

		for (uint32_t i = 0; i < module->build_id_len; i++)
			sprintf(hex + i * 2, "%02x", module->build_id[i]);
	}
	*cost += text_cost(text);
	return codec_bytes(text);
}

static json_t *encode_row(const struct snapshot *s, enum codec_table table, size_t row, size_t *cost)
{
	json_int_t cells[CODEC_COLUMNS_MAX];

	if (table == TABLE_STRINGS)
		return encode_string(s, row, cost);
	row_cells(s, table, row, cells);
	return encode_cells(cells, codec_tables[table].columns, cost);
}

/* Rows of the current table into the piece until one of both is full. */
static int fill_table(struct codec_snapshot_writer *writer, json_t *piece, size_t *cost)
{
	size_t rows = table_rows(writer->snapshot, writer->table);
	json_t *list;

	if (writer->row == rows)
		return 0;
	list = json_array();
	if (json_object_set_new(piece, codec_tables[writer->table].name, list) < 0)
		return -1;
	while (writer->row < rows && *cost < CODEC_PIECE_SIZE) {
		json_t *row = encode_row(writer->snapshot, writer->table, writer->row, cost);

		if (json_array_append_new(list, row) < 0)
			return -1;
		writer->row++;
	}
	return 0;
}

json_t *codec_snapshot_writer_next(struct codec_snapshot_writer *writer, bool *ret_last)
{
	json_t *piece = json_object();
	size_t cost = 0;

	if (!piece)
		return NULL;
	if (!writer->begun && json_object_set_new(piece, "info", encode_info(writer->snapshot)) < 0)
		goto no_memory;
	writer->begun = true;
	while (writer->table < TABLE_COUNT) {
		if (fill_table(writer, piece, &cost) < 0)
			goto no_memory;
		if (writer->row < table_rows(writer->snapshot, writer->table))
			break;
		writer->table++;
		writer->row = 0;
	}
	*ret_last = writer->table == TABLE_COUNT;
	return piece;
no_memory:
	json_decref(piece);
	return NULL;
}

int codec_snapshot_send(struct snapshot *snapshot,
			int (*each)(void *context, json_t *tables, bool last), void *context)
{
	struct codec_snapshot_writer *writer = codec_snapshot_writer_new(snapshot);
	bool last = false;
	int r = 0;

	if (!writer)
		return -ENOMEM;
	while (r == 0 && !last) {
		json_t *piece = codec_snapshot_writer_next(writer, &last);

		r = piece ? each(context, piece, last) : -ENOMEM;
		json_decref(piece);
	}
	codec_snapshot_writer_free(writer);
	return r;
}
