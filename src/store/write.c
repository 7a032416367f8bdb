#include "store/write.h"

#include "model/domain_names.h"
#include "model/event.h"
#include "store/checksum.h"
#include "store/row.h"
#include "store/store.h"
#include "store/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct writer {
	struct db *db;
	const struct snapshot *snapshot;
	uint64_t number;               /* of the snapshot in the file */
	uint64_t sum;
	uint64_t done;                 /* rows */
	struct tables tables;
	sqlite3_stmt *insert[TABLE_COUNT], *insert_location;
	uint32_t *frames, *nodes;      /* by the snapshot's own numbers: ids in the file, 0 not known yet */
	uint8_t *node_used;
	VEC_OF(uint64_t) scratch;      /* for one record */
};

static int no_memory(struct writer *writer)
{
	return db_fail(writer->db, -ENOMEM, "out of memory");
}

/* Often enough for who looks. */
#define ROWS_TOLD 1024

static void row_done(struct writer *writer)
{
	const struct store_listener *listener = writer->db->listener;
	const struct snapshot *snapshot = writer->snapshot;

	if (++writer->done % ROWS_TOLD == 0 && listener)
		listener->told(listener->context, writer->done,
			       snapshot->nodes.count + snapshot->traces.count + snapshot->blocks.count);
}

/* --- records that snapshots share --- */

static void bind_reference(sqlite3_stmt *stmt, int index, uint32_t id)
{
	if (id)
		db_bind_number(stmt, index, id);
	else
		sqlite3_bind_null(stmt, index);
}

static void bind_module(sqlite3_stmt *stmt, const struct table_module *module, size_t len)
{
	size_t path_len = len - sizeof(*module) - module->build_id_len;

	db_bind_text(stmt, 2, (const char *)module->bytes + module->build_id_len, path_len);
	if (module->build_id_len > 0)
		sqlite3_bind_blob(stmt, 3, module->bytes, (int)module->build_id_len, SQLITE_STATIC);
	else
		sqlite3_bind_null(stmt, 3);
}

static void bind_frame(sqlite3_stmt *stmt, const struct table_frame *frame)
{
	bind_reference(stmt, 2, frame->module);
	db_bind_number(stmt, 3, frame->kind);
	db_bind_number(stmt, 4, frame->offset);
}

static void bind_node(sqlite3_stmt *stmt, const struct table_node *node)
{
	db_bind_number(stmt, 2, node->parent);
	db_bind_number(stmt, 3, node->frame);
}

static int insert_locations(struct writer *writer, uint32_t id, const struct table_frame *frame, size_t len)
{
	sqlite3_stmt *stmt = writer->insert_location;
	int r = 0;

	for (size_t i = 0; r == 0 && i < table_frame_locations(len); i++) {
		const struct table_location *location = &frame->locations[i];

		db_bind_number(stmt, 1, id);
		db_bind_number(stmt, 2, i);
		bind_reference(stmt, 3, location->function);
		bind_reference(stmt, 4, location->file);
		db_bind_number(stmt, 5, location->line);
		db_bind_number(stmt, 6, location->function_offset);
		db_bind_number(stmt, 7, location->inlined);
		r = db_insert(writer->db, stmt);
	}
	return r;
}

static int insert_record(struct writer *writer, enum table table, uint32_t id)
{
	sqlite3_stmt *stmt = writer->insert[table];
	size_t len;
	const void *record = intern_get(&writer->tables.of[table], id, &len);
	int r;

	db_bind_number(stmt, 1, id);
	switch (table) {
	case TABLE_STRING:
		db_bind_text(stmt, 2, record, len);
		break;
	case TABLE_MODULE:
		bind_module(stmt, record, len);
		break;
	case TABLE_FRAME:
		bind_frame(stmt, record);
		break;
	case TABLE_NODE:
		bind_node(stmt, record);
		break;
	case TABLE_COUNT:
		break;
	}
	r = db_insert(writer->db, stmt);
	if (r == 0 && table == TABLE_FRAME)
		r = insert_locations(writer, id, record, len);
	return r;
}

/* The record's id in the file, where it is added when it is new. */
static int put_record(struct writer *writer, enum table table, const void *record, size_t len, uint32_t *ret_id)
{
	struct intern *intern = &writer->tables.of[table];
	bool is_new;
	int64_t id = intern_add(intern, record, len, &is_new);
	uint32_t *mark;
	int r = 0;

	if (id < 0)
		return id == -ENOMEM ? no_memory(writer) : db_fail(writer->db, (int)id, "it would be too large");
	if (is_new)
		r = insert_record(writer, table, (uint32_t)id);
	if (r < 0)
		return r;
	mark = intern_mark(intern, (uint32_t)id);
	if (!*mark) {
		*mark = 1;
		tables_checksum(&writer->tables, table, (uint32_t)id, &writer->sum);
	}
	*ret_id = (uint32_t)id;
	return 0;
}

static void *scratch(struct writer *writer, size_t len)
{
	writer->scratch.count = 0;
	if (vec_reserve(&writer->scratch, len / sizeof(uint64_t) + 1) < 0)
		return NULL;
	return memset(writer->scratch.items, 0, len);
}

static size_t text_length(const char *text)
{
	return text ? strnlen(text, STORE_TEXT_MAX) : 0;
}

static int put_string(struct writer *writer, uint32_t string, uint32_t *ret_id)
{
	const char *text = strtab_get(writer->snapshot->strings, string);

	if (text[0] == '\0') {
		*ret_id = 0;
		return 0;
	}
	return put_record(writer, TABLE_STRING, text, text_length(text), ret_id);
}

static int put_module(struct writer *writer, uint32_t index, uint32_t *ret_id)
{
	const struct snapshot_module *module;
	struct table_module *record;
	const char *path;
	size_t len;

	if (index == MODULE_NONE) {
		*ret_id = 0;
		return 0;
	}
	module = &writer->snapshot->modules.items[index];
	path = strtab_get(writer->snapshot->strings, module->path);
	len = sizeof(*record) + module->build_id_len + text_length(path);
	record = scratch(writer, len);
	if (!record)
		return no_memory(writer);
	record->build_id_len = module->build_id_len;
	memcpy(record->bytes, module->build_id, module->build_id_len);
	memcpy(record->bytes + module->build_id_len, path, text_length(path));
	return put_record(writer, TABLE_MODULE, record, len, ret_id);
}

static int fill_location(struct writer *writer, const struct snapshot_location *location,
			 struct table_location *ret)
{
	int r = put_string(writer, location->function, &ret->function);

	if (r == 0)
		r = put_string(writer, location->file, &ret->file);
	ret->line = location->line;
	ret->function_offset = location->function_offset;
	ret->inlined = location->inlined;
	return r;
}

static int put_frame(struct writer *writer, uint32_t index, uint32_t *ret_id)
{
	const struct snapshot_frame *frame = &writer->snapshot->frames.items[index];
	size_t len = table_frame_size(frame->location_count);
	struct table_frame *record;
	uint32_t module = frame->frame.module;
	int r = 0;

	if (index == FRAME_NONE || writer->frames[index]) {
		*ret_id = writer->frames[index];
		return 0;
	}
	if (frame->frame.kind != FRAME_PYTHON)
		r = put_module(writer, frame->frame.module, &module);
	if (r < 0)
		return r;
	record = scratch(writer, len);
	if (!record)
		return no_memory(writer);
	record->module = module;
	record->kind = frame->frame.kind;
	record->offset = frame->frame.offset;
	for (uint32_t i = 0; r == 0 && i < frame->location_count; i++)
		r = fill_location(writer, &writer->snapshot->locations.items[frame->first_location + i],
				  &record->locations[i]);
	if (r == 0)
		r = put_record(writer, TABLE_FRAME, record, len, ret_id);
	if (r == 0)
		writer->frames[index] = *ret_id;
	return r;
}

static void mark_nodes(struct writer *writer)
{
	const struct snapshot *snapshot = writer->snapshot;

	for (size_t i = 0; i < snapshot->traces.count; i++)
		for (uint32_t node = snapshot->traces.items[i].stack; node && !writer->node_used[node];
		     node = snapshot->nodes.items[node].parent)
			writer->node_used[node] = 1;
}

/* Only the nodes that lead to a trace; parents come before their children. */
static int put_nodes(struct writer *writer)
{
	const struct snapshot *snapshot = writer->snapshot;
	int r = 0;

	mark_nodes(writer);
	for (uint32_t i = 1; r == 0 && i < snapshot->nodes.count; i++) {
		struct table_node record;

		row_done(writer);
		if (!writer->node_used[i])
			continue;
		record.parent = writer->nodes[snapshot->nodes.items[i].parent];
		r = put_frame(writer, snapshot->nodes.items[i].frame, &record.frame);
		if (r == 0)
			r = put_record(writer, TABLE_NODE, &record, sizeof(record), &writer->nodes[i]);
	}
	return r;
}

/* --- what belongs to this snapshot alone --- */

static int insert_numbers(struct writer *writer, sqlite3_stmt *stmt, const uint64_t *numbers, int count)
{
	for (int i = 0; i < count; i++)
		db_bind_number(stmt, 1 + i, numbers[i]);
	return db_insert(writer->db, stmt);
}

/* A domain that a user has named has its name in the file, whose numbers are the daemon's own. */
static int put_domain(struct writer *writer, uint32_t domain, uint64_t *ret)
{
	char text[DOMAIN_TEXT_MAX];
	const char *name = domain_name(domain, text);
	uint32_t id;
	int r;

	*ret = domain;
	if (domain <= DOMAIN_USER || name == text)
		return 0;
	r = put_record(writer, TABLE_STRING, name, strlen(name), &id);
	if (r == 0)
		*ret = (uint64_t)ROW_DOMAIN_NAMED + id;
	return r;
}

static int put_traces(struct writer *writer)
{
	const struct snapshot *snapshot = writer->snapshot;
	sqlite3_stmt *stmt = NULL;
	int r = db_prepare(writer->db, "INSERT INTO trace VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", &stmt);

	for (size_t i = 0; r == 0 && i < snapshot->traces.count; i++) {
		const struct snapshot_trace *trace = &snapshot->traces.items[i];
		struct row_place place = {.snapshot = writer->number, .index = i};
		uint64_t numbers[ROW_TRACE_NUMBERS];

		row_done(writer);
		row_trace_get(trace, place, writer->nodes[trace->stack], numbers);
		r = put_domain(writer, trace->domain, &numbers[3]);
		if (r < 0)
			break;
		checksum_add(&writer->sum, CHECKSUM_TRACE, numbers, ROW_TRACE_NUMBERS);
		r = insert_numbers(writer, stmt, numbers, ROW_TRACE_NUMBERS);
	}
	sqlite3_finalize(stmt);
	return r;
}

static int put_blocks(struct writer *writer)
{
	const struct snapshot *snapshot = writer->snapshot;
	sqlite3_stmt *stmt = NULL;
	int r = db_prepare(writer->db, "INSERT INTO block VALUES(?, ?, ?, ?, ?, ?, ?)", &stmt);

	for (size_t i = 0; r == 0 && i < snapshot->blocks.count; i++) {
		struct row_place place = {.snapshot = writer->number, .index = i};
		uint64_t numbers[ROW_BLOCK_NUMBERS];

		row_done(writer);
		row_block_get(&snapshot->blocks.items[i], place, numbers);
		checksum_add(&writer->sum, CHECKSUM_BLOCK, numbers, ROW_BLOCK_NUMBERS);
		r = insert_numbers(writer, stmt, numbers, ROW_BLOCK_NUMBERS);
	}
	sqlite3_finalize(stmt);
	return r;
}

static int put_row(struct writer *writer)
{
	const struct snapshot *snapshot = writer->snapshot;
	uint64_t numbers[ROW_NUMBERS];
	sqlite3_stmt *stmt = NULL;
	int r = db_prepare(writer->db, "INSERT INTO snapshot(number, id, name, command, checksum, " ROW_COLUMNS
			   ") VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			   &stmt);

	if (r == 0) {
		row_get(snapshot, numbers);
		row_checksum(snapshot, writer->number, STORE_VERSION, &writer->sum);
		db_bind_number(stmt, 1, writer->number);
		db_bind_text(stmt, 2, snapshot->id, text_length(snapshot->id));
		db_bind_text(stmt, 3, snapshot->name, text_length(snapshot->name));
		db_bind_text(stmt, 4, snapshot->command, text_length(snapshot->command));
		db_bind_number(stmt, 5, writer->sum);
		for (int i = 0; i < ROW_NUMBERS; i++)
			db_bind_number(stmt, 6 + i, numbers[i]);
		r = db_insert(writer->db, stmt);
	}
	sqlite3_finalize(stmt);
	return r;
}

/* --- the process --- */

static bool is_same_text(const char *a, size_t a_len, const char *b)
{
	if (!a || !b)
		return !a && !b;
	return a_len == text_length(b) && memcmp(a, b, a_len) == 0;
}

/* The file's one row for its process, and how many snapshots there are. */
static int check_process(struct writer *writer, sqlite3_stmt *stmt)
{
	const struct snapshot *snapshot = writer->snapshot;
	const char *exe;
	uint64_t v[3];
	size_t len;
	int r = db_numbers(writer->db, stmt, 0, 3, 0, v);

	if (r == 0)
		r = db_text(writer->db, stmt, 3, &exe, &len);
	if (r < 0)
		return r;
	if (v[0] != (uint64_t)snapshot->pid || v[1] != snapshot->start_time ||
	    !is_same_text(exe, len, snapshot->exe))
		return db_fail(writer->db, -EINVAL, "it holds snapshots of another process (pid %lld, %.*s)",
			       (long long)v[0], (int)len, exe ? exe : "");
	if (v[2] >= INT32_MAX)
		return db_damaged(writer->db, "it counts %llu snapshots", (unsigned long long)v[2]);
	writer->number = v[2] + 1;
	return 0;
}

static int insert_process(struct writer *writer)
{
	const struct snapshot *snapshot = writer->snapshot;
	sqlite3_stmt *stmt = NULL;
	int r = db_prepare(writer->db, "INSERT INTO process VALUES(?, ?, ?, 1)", &stmt);

	writer->number = 1;
	if (r == 0) {
		db_bind_number(stmt, 1, (uint64_t)snapshot->pid);
		db_bind_number(stmt, 2, snapshot->start_time);
		db_bind_text(stmt, 3, snapshot->exe, text_length(snapshot->exe));
		r = db_insert(writer->db, stmt);
	}
	sqlite3_finalize(stmt);
	return r;
}

static int put_process(struct writer *writer)
{
	sqlite3_stmt *stmt = NULL;
	int r = db_prepare(writer->db, "SELECT pid, start_time, snapshots, exe FROM process", &stmt), found = 0;

	if (r == 0)
		r = found = db_step(writer->db, stmt);
	if (r > 0)
		r = check_process(writer, stmt);
	sqlite3_finalize(stmt);
	if (r < 0)
		return r;
	return found ? db_run(writer->db, "UPDATE process SET snapshots = snapshots + 1") :
		       insert_process(writer);
}

/* --- */

static int writer_init(struct writer *writer)
{
	static const char *const inserts[TABLE_COUNT] = {
		"INSERT INTO string VALUES(?, ?)",
		"INSERT INTO module VALUES(?, ?, ?)",
		"INSERT INTO frame VALUES(?, ?, ?, ?)",
		"INSERT INTO node VALUES(?, ?, ?)",
	};
	int r = 0;

	writer->frames = calloc(writer->snapshot->frames.count, sizeof(*writer->frames));
	writer->nodes = calloc(writer->snapshot->nodes.count, sizeof(*writer->nodes));
	writer->node_used = calloc(writer->snapshot->nodes.count, 1);
	if (!writer->frames || !writer->nodes || !writer->node_used)
		return no_memory(writer);
	for (int i = 0; r == 0 && i < TABLE_COUNT; i++)
		r = db_prepare(writer->db, inserts[i], &writer->insert[i]);
	if (r == 0)
		r = db_prepare(writer->db, "INSERT INTO location VALUES(?, ?, ?, ?, ?, ?, ?)",
			       &writer->insert_location);
	return r;
}

static void writer_fini(struct writer *writer)
{
	for (int i = 0; i < TABLE_COUNT; i++)
		sqlite3_finalize(writer->insert[i]);
	sqlite3_finalize(writer->insert_location);
	tables_fini(&writer->tables);
	vec_fini(&writer->scratch);
	free(writer->frames);
	free(writer->nodes);
	free(writer->node_used);
}

int write_snapshot(struct db *db, const struct snapshot *snapshot)
{
	struct writer writer = {.db = db, .snapshot = snapshot};
	int r = writer_init(&writer);

	if (r == 0)
		r = put_process(&writer);
	if (r == 0 && writer.number > 1)
		r = tables_read(db, &writer.tables);
	if (r == 0)
		r = put_nodes(&writer);
	if (r == 0)
		r = put_traces(&writer);
	if (r == 0)
		r = put_blocks(&writer);
	if (r == 0)
		r = put_row(&writer);
	writer_fini(&writer);
	return r;
}
