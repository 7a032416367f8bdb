#include "store/tables.h"

#include "model/module.h"
#include "model/stack.h"
#include "store/checksum.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[TABLE_COUNT] = {"string", "module", "frame", "node"};

void tables_fini(struct tables *tables)
{
	for (int i = 0; i < TABLE_COUNT; i++)
		intern_fini(&tables->of[i]);
}

static int add_record(struct db *db, struct tables *tables, enum table table, uint64_t row, const void *record,
		      size_t len)
{
	bool is_new;
	int64_t id = intern_add(&tables->of[table], record, len, &is_new);

	if (id == -ENOMEM)
		return db_fail(db, -ENOMEM, "out of memory");
	if (id < 0 || !is_new || (uint64_t)id != row)
		return db_damaged(db, "%s %llu is not the next one, or is there twice", names[table],
				  (unsigned long long)row);
	return 0;
}

/* A reference to a record of another table; 0 is none. */
static int check_reference(struct db *db, const struct tables *tables, enum table from, uint64_t row,
			   enum table to, uint64_t id)
{
	if (id <= intern_count(&tables->of[to]))
		return 0;
	return db_damaged(db, "%s %llu names %s %llu, and there are %u", names[from], (unsigned long long)row,
			  names[to], (unsigned long long)id, intern_count(&tables->of[to]));
}

static int check_range(struct db *db, const char *what, uint64_t value, uint64_t max)
{
	return value <= max ? 0 : db_damaged(db, "a %s is %llu", what, (unsigned long long)value);
}

typedef int (*read_row)(struct db *db, struct tables *tables, sqlite3_stmt *stmt);

static int read_rows(struct db *db, struct tables *tables, const char *sql, read_row read)
{
	sqlite3_stmt *stmt = NULL;
	int r = db_prepare(db, sql, &stmt);

	while (r == 0 && (r = db_step(db, stmt)) > 0)
		r = read(db, tables, stmt);
	sqlite3_finalize(stmt);
	return r;
}

static int read_string(struct db *db, struct tables *tables, sqlite3_stmt *stmt)
{
	const char *text;
	uint64_t row;
	size_t len;
	int r = db_numbers(db, stmt, 0, 1, 0, &row);

	if (r == 0)
		r = db_text(db, stmt, 1, &text, &len);
	if (r < 0)
		return r;
	if (len == 0)
		return db_damaged(db, "string %llu is empty", (unsigned long long)row);
	return add_record(db, tables, TABLE_STRING, row, text, len);
}

static int read_module(struct db *db, struct tables *tables, sqlite3_stmt *stmt)
{
	struct table_module *module;
	const void *build_id;
	const char *path;
	uint64_t row;
	size_t path_len, build_id_len;
	int r = db_numbers(db, stmt, 0, 1, 0, &row);

	if (r == 0)
		r = db_text(db, stmt, 1, &path, &path_len);
	if (r < 0)
		return r;
	build_id = sqlite3_column_blob(stmt, 2);
	build_id_len = (size_t)sqlite3_column_bytes(stmt, 2);
	if (!path || build_id_len > BUILD_ID_MAX || (build_id_len > 0 && !build_id))
		return db_damaged(db, "module %llu has no path, or no possible build-id", (unsigned long long)row);
	module = malloc(sizeof(*module) + build_id_len + path_len);
	if (!module)
		return db_fail(db, -ENOMEM, "out of memory");
	module->build_id_len = (uint32_t)build_id_len;
	if (build_id_len > 0)
		memcpy(module->bytes, build_id, build_id_len);
	memcpy(module->bytes + build_id_len, path, path_len);
	r = add_record(db, tables, TABLE_MODULE, row, module, sizeof(*module) + build_id_len + path_len);
	free(module);
	return r;
}

static int read_node(struct db *db, struct tables *tables, sqlite3_stmt *stmt)
{
	struct table_node node;
	uint64_t v[3];
	int r = db_numbers(db, stmt, 0, 3, 0, v);

	if (r == 0)
		r = check_reference(db, tables, TABLE_NODE, v[0], TABLE_FRAME, v[2]);
	if (r < 0)
		return r;
	if (v[1] >= v[0])
		return db_damaged(db, "node %llu has no earlier parent", (unsigned long long)v[0]);
	node.parent = (uint32_t)v[1];
	node.frame = (uint32_t)v[2];
	return add_record(db, tables, TABLE_NODE, v[0], &node, sizeof(node));
}

/* --- frames and their locations: two statements side by side --- */

struct frame_reader {
	struct db *db;
	struct tables *tables;
	sqlite3_stmt *frames, *locations;
	bool has_location;             /* `next` is a row of locations not yet used */
	uint64_t next[7];              /* frame, position, function, file, line, offset, inlined */
	struct table_frame *record;
	size_t location_space;
};

static int next_location(struct frame_reader *reader)
{
	int r = db_step(reader->db, reader->locations);

	reader->has_location = r > 0;
	if (r > 0)
		r = db_numbers(reader->db, reader->locations, 0, 7, 1 << 2 | 1 << 3, reader->next);
	return r < 0 ? r : 0;
}

static int reserve_locations(struct frame_reader *reader, size_t count)
{
	size_t space = reader->location_space ? reader->location_space : 4;
	struct table_frame *grown;

	if (reader->record && count <= reader->location_space)
		return 0;
	while (space < count)
		space *= 2;
	grown = realloc(reader->record, table_frame_size(space));
	if (!grown)
		return db_fail(reader->db, -ENOMEM, "out of memory");
	reader->record = grown;
	reader->location_space = space;
	return 0;
}

static int put_location(struct frame_reader *reader, size_t position)
{
	const uint64_t *v = reader->next;
	struct table_location *location;
	int r = reserve_locations(reader, position + 1);

	if (r == 0)
		r = check_reference(reader->db, reader->tables, TABLE_FRAME, v[0], TABLE_STRING, v[2]);
	if (r == 0)
		r = check_reference(reader->db, reader->tables, TABLE_FRAME, v[0], TABLE_STRING, v[3]);
	if (r == 0)
		r = check_range(reader->db, "line", v[4], UINT32_MAX);
	if (r == 0)
		r = check_range(reader->db, "function's offset", v[5], UINT32_MAX);
	if (r == 0)
		r = check_range(reader->db, "mark of inlining", v[6], 1);
	if (r < 0)
		return r;
	if (v[1] != position)
		return db_damaged(reader->db, "a location of frame %llu is missing", (unsigned long long)v[0]);
	location = &reader->record->locations[position];
	location->function = (uint32_t)v[2];
	location->file = (uint32_t)v[3];
	location->line = (uint32_t)v[4];
	location->function_offset = (uint32_t)v[5];
	location->inlined = v[6];
	return 0;
}

static int read_frame(struct frame_reader *reader)
{
	size_t locations = 0;
	uint64_t v[4];
	int r = db_numbers(reader->db, reader->frames, 0, 4, 1 << 1, v);

	if (r == 0)
		r = v[2] == FRAME_PYTHON ?
			check_range(reader->db, "code object's number", v[1], UINT32_MAX) :
			check_reference(reader->db, reader->tables, TABLE_FRAME, v[0], TABLE_MODULE, v[1]);
	if (r == 0)
		r = check_range(reader->db, "frame's kind", v[2], UINT16_MAX);
	if (r == 0)
		r = reserve_locations(reader, 0);
	if (r < 0)
		return r;
	reader->record->module = (uint32_t)v[1];
	reader->record->kind = (uint32_t)v[2];
	reader->record->offset = v[3];
	while (r == 0 && reader->has_location && reader->next[0] == v[0]) {
		r = put_location(reader, locations++);
		if (r == 0)
			r = next_location(reader);
	}
	if (r < 0)
		return r;
	return add_record(reader->db, reader->tables, TABLE_FRAME, v[0], reader->record,
			  table_frame_size(locations));
}

static int read_frame_rows(struct frame_reader *reader)
{
	int r = next_location(reader);

	while (r == 0 && (r = db_step(reader->db, reader->frames)) > 0)
		r = read_frame(reader);
	if (r == 0 && reader->has_location)
		return db_damaged(reader->db, "it has locations of frame %llu, which is missing or not the next one",
				  (unsigned long long)reader->next[0]);
	return r;
}

static int read_frames(struct db *db, struct tables *tables)
{
	struct frame_reader reader = {.db = db, .tables = tables};
	int r = db_prepare(db, "SELECT id, module, kind, offset FROM frame ORDER BY id", &reader.frames);

	if (r == 0)
		r = db_prepare(db, "SELECT frame, position, function, file, line, function_offset, inlined "
			       "FROM location ORDER BY frame, position", &reader.locations);
	if (r == 0)
		r = read_frame_rows(&reader);
	free(reader.record);
	sqlite3_finalize(reader.frames);
	sqlite3_finalize(reader.locations);
	return r;
}

int tables_read(struct db *db, struct tables *tables)
{
	int r = read_rows(db, tables, "SELECT id, text FROM string ORDER BY id", read_string);

	if (r == 0)
		r = read_rows(db, tables, "SELECT id, path, build_id FROM module ORDER BY id", read_module);
	if (r == 0)
		r = read_frames(db, tables);
	if (r == 0)
		r = read_rows(db, tables, "SELECT id, parent, frame FROM node ORDER BY id", read_node);
	return r;
}

/* --- checksums --- */

static void checksum_frame(const struct table_frame *frame, size_t len, uint32_t id, uint64_t *sum)
{
	size_t locations = table_frame_locations(len);
	const uint64_t values[] = {id, frame->module, frame->kind, frame->offset, locations};

	checksum_add(sum, CHECKSUM_FRAME, values, 5);
	for (size_t i = 0; i < locations; i++) {
		const struct table_location *location = &frame->locations[i];
		const uint64_t its[] = {id, i, location->function, location->file, location->line,
					location->function_offset, location->inlined};

		checksum_add(sum, CHECKSUM_LOCATION, its, 7);
	}
}

static void checksum_module(const struct table_module *module, size_t len, uint32_t id, uint64_t *sum)
{
	const uint64_t values[] = {id, module->build_id_len,
				   checksum_bytes(module->bytes, len - sizeof(*module))};

	checksum_add(sum, CHECKSUM_MODULE, values, 3);
}

void tables_checksum(const struct tables *tables, enum table table, uint32_t id, uint64_t *sum)
{
	const struct table_node *node;
	size_t len;
	const void *record = intern_get(&tables->of[table], id, &len);

	switch (table) {
	case TABLE_STRING:
		checksum_add(sum, CHECKSUM_STRING, (const uint64_t[]){id, checksum_bytes(record, len)}, 2);
		break;
	case TABLE_MODULE:
		checksum_module(record, len, id, sum);
		break;
	case TABLE_FRAME:
		checksum_frame(record, len, id, sum);
		break;
	case TABLE_NODE:
		node = record;
		checksum_add(sum, CHECKSUM_NODE, (const uint64_t[]){id, node->parent, node->frame}, 3);
		break;
	case TABLE_COUNT:
		break;
	}
}
