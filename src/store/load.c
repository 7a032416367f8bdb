#include "store/load.h"

#include "model/domain_names.h"
#include "store/checksum.h"
#include "store/row.h"
#include "store/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct loader {
	struct db *db;
	uint64_t number;
	uint64_t sum, expected;
	struct tables tables;          /* marks: 1 + the record's index in the snapshot, once it is there */
	struct snapshot *snapshot;
};

static int no_memory(struct loader *loader)
{
	return db_fail(loader->db, -ENOMEM, "out of memory");
}

/* --- process and snapshot --- */

static int load_text(struct loader *loader, sqlite3_stmt *stmt, int column, char **ret)
{
	const char *text;
	size_t len;
	int r = db_text(loader->db, stmt, column, &text, &len);

	if (r < 0)
		return r;
	if (text) {
		free(*ret);
		*ret = strndup(text, len);
		if (!*ret)
			return no_memory(loader);
	}
	return 0;
}

static int load_process(struct loader *loader, sqlite3_stmt *stmt)
{
	uint64_t v[2];
	int r = db_numbers(loader->db, stmt, 0, 2, 0, v);

	if (r == 0)
		r = load_text(loader, stmt, 2, &loader->snapshot->exe);
	if (r < 0)
		return r;
	loader->snapshot->pid = (int64_t)v[0];
	loader->snapshot->start_time = v[1];
	return 0;
}

static int load_row(struct loader *loader, sqlite3_stmt *stmt)
{
	struct snapshot *snapshot = loader->snapshot;
	uint64_t numbers[ROW_NUMBERS] = { 0 };
	int count = row_numbers(loader->db->version);
	int r = db_numbers(loader->db, stmt, 0, 1, 0, &loader->expected);

	if (r == 0)
		r = load_text(loader, stmt, 1, &snapshot->id);
	if (r == 0)
		r = load_text(loader, stmt, 2, &snapshot->name);
	if (r == 0)
		r = load_text(loader, stmt, 3, &snapshot->command);
	if (r == 0)
		r = db_numbers(loader->db, stmt, 4, count, 0, numbers);
	if (r == 0 && !row_set(snapshot, numbers))
		return db_damaged(loader->db, "a number of snapshot %llu is out of range",
				  (unsigned long long)loader->number);
	return r;
}

typedef int (*load_one)(struct loader *loader, sqlite3_stmt *stmt);

/* The row that must be there: of the snapshot when the statement has a parameter. */
static int load_single(struct loader *loader, const char *sql, load_one load)
{
	sqlite3_stmt *stmt = NULL;
	int r = db_prepare(loader->db, sql, &stmt);

	if (r == 0 && sqlite3_bind_parameter_count(stmt) > 0)
		db_bind_number(stmt, 1, loader->number);
	if (r == 0)
		r = db_step(loader->db, stmt);
	if (r > 0)
		r = load(loader, stmt);
	else if (r == 0)
		r = db_damaged(loader->db, "the description of snapshot %llu is missing",
			       (unsigned long long)loader->number);
	sqlite3_finalize(stmt);
	return r;
}

/* --- what the snapshot shares with others: only what its traces need is taken over --- */

static void use(struct loader *loader, enum table table, uint32_t id, size_t index)
{
	*intern_mark(&loader->tables.of[table], id) = (uint32_t)index + 1;
	tables_checksum(&loader->tables, table, id, &loader->sum);
}

static int use_string(struct loader *loader, uint32_t id, uint32_t *ret)
{
	uint32_t *mark;
	const char *text;
	size_t len;
	int64_t string;

	if (id == 0) {
		*ret = 0;
		return 0;
	}
	mark = intern_mark(&loader->tables.of[TABLE_STRING], id);
	if (!*mark) {
		text = intern_get(&loader->tables.of[TABLE_STRING], id, &len);
		string = strtab_add_len(loader->snapshot->strings, text, len);
		if (string < 0)
			return no_memory(loader);
		use(loader, TABLE_STRING, id, (size_t)string);
	}
	*ret = *mark - 1;
	return 0;
}

static int use_module(struct loader *loader, uint32_t id, uint32_t *ret)
{
	const struct table_module *record;
	struct snapshot_module *module;
	size_t len;
	int64_t path;
	uint32_t *mark;

	if (id == 0) {
		*ret = MODULE_NONE;
		return 0;
	}
	mark = intern_mark(&loader->tables.of[TABLE_MODULE], id);
	if (!*mark) {
		record = intern_get(&loader->tables.of[TABLE_MODULE], id, &len);
		path = strtab_add_len(loader->snapshot->strings,
				      (const char *)record->bytes + record->build_id_len,
				      len - sizeof(*record) - record->build_id_len);
		module = vec_push(&loader->snapshot->modules);
		if (path < 0 || !module)
			return no_memory(loader);
		module->path = (uint32_t)path;
		module->build_id_len = record->build_id_len;
		memcpy(module->build_id, record->bytes, record->build_id_len);
		use(loader, TABLE_MODULE, id, loader->snapshot->modules.count - 1);
	}
	*ret = *mark - 1;
	return 0;
}

static int add_location(struct loader *loader, const struct table_location *record)
{
	struct snapshot_location location = {
		.line = record->line,
		.function_offset = record->function_offset,
		.inlined = record->inlined,
	};
	struct snapshot_location *added;
	int r = use_string(loader, record->function, &location.function);

	if (r == 0)
		r = use_string(loader, record->file, &location.file);
	if (r < 0)
		return r;
	added = vec_push(&loader->snapshot->locations);
	if (!added)
		return no_memory(loader);
	*added = location;
	return 0;
}

static int add_frame(struct loader *loader, uint32_t id)
{
	size_t len;
	const struct table_frame *record = intern_get(&loader->tables.of[TABLE_FRAME], id, &len);
	struct snapshot_frame frame = {
		.frame = {.kind = (uint16_t)record->kind, .offset = record->offset},
		.first_location = (uint32_t)loader->snapshot->locations.count,
		.location_count = (uint32_t)table_frame_locations(len),
	};
	struct snapshot_frame *added;
	int r = 0;

	if (record->kind == FRAME_PYTHON)
		frame.frame.module = record->module;
	else
		r = use_module(loader, record->module, &frame.frame.module);
	for (uint32_t i = 0; r == 0 && i < frame.location_count; i++)
		r = add_location(loader, &record->locations[i]);
	if (r < 0)
		return r;
	added = vec_push(&loader->snapshot->frames);
	if (!added)
		return no_memory(loader);
	*added = frame;
	use(loader, TABLE_FRAME, id, loader->snapshot->frames.count - 1);
	return 0;
}

static int use_frame(struct loader *loader, uint32_t id, uint32_t *ret)
{
	int r = 0;

	if (id == 0) {
		*ret = FRAME_NONE;
		return 0;
	}
	if (!*intern_mark(&loader->tables.of[TABLE_FRAME], id))
		r = add_frame(loader, id);
	if (r == 0)
		*ret = *intern_mark(&loader->tables.of[TABLE_FRAME], id) - 1;
	return r;
}

static void mark_nodes(struct loader *loader, uint32_t id)
{
	struct intern *nodes = &loader->tables.of[TABLE_NODE];

	while (id && !*intern_mark(nodes, id)) {
		const struct table_node *node;
		size_t len;

		*intern_mark(nodes, id) = 1;
		node = intern_get(nodes, id, &len);
		id = node->parent;
	}
}

static uint32_t node_index(struct loader *loader, uint32_t id)
{
	return id ? *intern_mark(&loader->tables.of[TABLE_NODE], id) - 1 : STACK_ROOT;
}

static int add_node(struct loader *loader, uint32_t id)
{
	size_t len;
	const struct table_node *record = intern_get(&loader->tables.of[TABLE_NODE], id, &len);
	struct stack_node *node = vec_push(&loader->snapshot->nodes);
	int r;

	if (!node)
		return no_memory(loader);
	node->parent = node_index(loader, record->parent);
	r = use_frame(loader, record->frame, &node->frame);
	if (r == 0)
		use(loader, TABLE_NODE, id, loader->snapshot->nodes.count - 1);
	return r;
}

/* Parents come first in the file, so they do here. */
static int load_nodes(struct loader *loader)
{
	struct snapshot *snapshot = loader->snapshot;
	struct intern *nodes = &loader->tables.of[TABLE_NODE];
	int r = 0;

	for (size_t i = 0; i < snapshot->traces.count; i++)
		mark_nodes(loader, snapshot->traces.items[i].stack);
	for (uint32_t id = 1; r == 0 && id <= intern_count(nodes); id++)
		if (*intern_mark(nodes, id))
			r = add_node(loader, id);
	for (size_t i = 0; r == 0 && i < snapshot->traces.count; i++)
		snapshot->traces.items[i].stack = node_index(loader, snapshot->traces.items[i].stack);
	return r;
}

/* --- what belongs to it alone --- */

static bool is_expected(const struct loader *loader, const uint64_t *row, size_t index)
{
	return row[0] == row_first_id(loader->number) + index && row[1] == loader->number;
}

/* A name gets a number of this process's. */
static int take_domain(struct loader *loader, uint64_t value, uint32_t *ret)
{
	uint64_t id = value - ROW_DOMAIN_NAMED;
	uint32_t string;
	int64_t domain;
	int r;

	*ret = (uint32_t)value;
	if (value <= ROW_DOMAIN_NAMED)
		return 0;
	if (id > intern_count(&loader->tables.of[TABLE_STRING]))
		return db_damaged(loader->db, "a domain has no name that is there");
	r = use_string(loader, (uint32_t)id, &string);
	if (r < 0)
		return r;
	if (!domain_name_is_well_formed(strtab_get(loader->snapshot->strings, string)))
		return db_damaged(loader->db, "the name of a domain is malformed");
	domain = domain_of_user(strtab_get(loader->snapshot->strings, string));
	/* There are too many: it stays a number. */
	if (domain >= 0)
		*ret = (uint32_t)domain;
	return 0;
}

static int load_trace(struct loader *loader, sqlite3_stmt *stmt)
{
	size_t index = loader->snapshot->traces.count;
	struct snapshot_trace *trace;
	uint64_t v[ROW_TRACE_NUMBERS] = { 0 };
	int count = row_trace_numbers(loader->db->version);
	int r = db_numbers(loader->db, stmt, 0, count, 0, v);

	if (r < 0)
		return r;
	if (!is_expected(loader, v, index) || v[2] > intern_count(&loader->tables.of[TABLE_NODE]) ||
	    v[3] > UINT32_MAX)
		return db_damaged(loader->db, "trace %zu is missing, or has no stack that is there", index);
	trace = vec_push(&loader->snapshot->traces);
	if (!trace)
		return no_memory(loader);
	trace->stack = (uint32_t)v[2];          /* in the file, until load_nodes */
	r = take_domain(loader, v[3], &trace->domain);
	if (r < 0)
		return r;
	trace->live_blocks = v[4];
	trace->live_bytes = v[5];
	trace->total_blocks = v[6];
	trace->total_bytes = v[7];
	trace->temporary_blocks = v[8];
	trace->peak_blocks = v[9];
	trace->peak_bytes = v[10];
	trace->samples = v[11];
	trace->blocks_deviation = v[12];
	trace->bytes_deviation = v[13];
	checksum_add(&loader->sum, CHECKSUM_TRACE, v, (size_t)count);
	return 0;
}

static int load_block(struct loader *loader, sqlite3_stmt *stmt)
{
	size_t index = loader->snapshot->blocks.count;
	uint64_t v[ROW_BLOCK_NUMBERS] = { 0 }, trace;
	int count = loader->db->version == 1 ? ROW_BLOCK_NUMBERS_1 : ROW_BLOCK_NUMBERS;
	struct snapshot_block *block;
	int r = db_numbers(loader->db, stmt, 0, count, 0, v);

	if (r < 0)
		return r;
	trace = v[2] - row_first_id(loader->number);
	if (!is_expected(loader, v, index) || trace >= loader->snapshot->traces.count || v[6] > UINT32_MAX)
		return db_damaged(loader->db, "block %zu is missing, or has no trace that is there", index);
	block = vec_push(&loader->snapshot->blocks);
	if (!block)
		return no_memory(loader);
	block->trace = (uint32_t)trace;
	block->address = v[3];
	block->size = v[4];
	block->age_ns = v[5];
	block->thread = (uint32_t)v[6];
	checksum_add(&loader->sum, CHECKSUM_BLOCK, v, (size_t)count);
	return 0;
}

static int load_each(struct loader *loader, const char *sql, load_one load)
{
	sqlite3_stmt *stmt = NULL;
	int r = db_prepare(loader->db, sql, &stmt);

	if (r == 0) {
		db_bind_number(stmt, 1, row_first_id(loader->number));
		db_bind_number(stmt, 2, row_first_id(loader->number + 1) - 1);
	}
	while (r == 0 && (r = db_step(loader->db, stmt)) > 0)
		r = load(loader, stmt);
	sqlite3_finalize(stmt);
	return r;
}

/* A fuzzer would get no further than the checksum; who means harm computes it. */
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
static const bool is_fuzzed = true;
#else
static const bool is_fuzzed;
#endif

static int check_loaded(struct loader *loader)
{
	const char *reason;

	row_checksum(loader->snapshot, loader->number, loader->db->version, &loader->sum);
	if (!is_fuzzed && loader->sum != loader->expected)
		return db_damaged(loader->db, "the checksum of snapshot %llu does not agree",
				  (unsigned long long)loader->number);
	if (snapshot_check(loader->snapshot, &reason) < 0)
		return db_damaged(loader->db, "snapshot %llu: %s", (unsigned long long)loader->number, reason);
	return 0;
}

/* With the columns that a version has more than the first one. */
#define SELECT_SNAPSHOT(columns) "SELECT checksum, id, name, command, " columns " FROM snapshot WHERE number = ?"
#define TRACE_MORE_2 ", temporary_blocks, peak_blocks, peak_bytes"
#define SELECT_TRACES(more)                                                                             \
	"SELECT id, snapshot, stack, domain, live_blocks, live_bytes, total_blocks, total_bytes" more   \
	" FROM trace WHERE id BETWEEN ? AND ? ORDER BY id"
#define SELECT_BLOCKS(more)                                                                             \
	"SELECT id, snapshot, trace, address, size, age_ns" more                                        \
	" FROM block WHERE id BETWEEN ? AND ? ORDER BY id"

static int load_identity(struct loader *loader)
{
	int r = load_single(loader, "SELECT pid, start_time, exe FROM process", load_process);

	if (r == 0)
		r = load_single(loader, loader->db->version == 1 ? SELECT_SNAPSHOT(ROW_COLUMNS_1) :
				loader->db->version == 2 ? SELECT_SNAPSHOT(ROW_COLUMNS_2) : SELECT_SNAPSHOT(ROW_COLUMNS),
				load_row);
	return r;
}

static int load_all(struct loader *loader)
{
	int r = load_identity(loader);

	if (r == 0)
		r = tables_read(loader->db, &loader->tables);
	if (r == 0)
		r = load_each(loader, loader->db->version == 1 ? SELECT_TRACES("") :
			      loader->db->version == 2 ? SELECT_TRACES(TRACE_MORE_2) :
			      SELECT_TRACES(TRACE_MORE_2 ", samples, blocks_deviation, bytes_deviation"), load_trace);
	if (r == 0)
		r = load_nodes(loader);
	if (r == 0)
		r = load_each(loader, loader->db->version == 1 ? SELECT_BLOCKS("") : SELECT_BLOCKS(", thread"),
			      load_block);
	if (r == 0)
		r = check_loaded(loader);
	return r;
}

static int load_with(struct db *db, unsigned which, int (*load)(struct loader *loader),
		     struct snapshot **ret_snapshot)
{
	struct loader loader = {.db = db, .number = which};
	int r;

	loader.snapshot = snapshot_new();
	if (!loader.snapshot)
		return no_memory(&loader);
	r = load(&loader);
	tables_fini(&loader.tables);
	if (r < 0) {
		snapshot_put(loader.snapshot);
		return r;
	}
	*ret_snapshot = loader.snapshot;
	return 0;
}

int load_snapshot(struct db *db, unsigned which, struct snapshot **ret_snapshot)
{
	return load_with(db, which, load_all, ret_snapshot);
}

int load_description(struct db *db, unsigned which, struct snapshot **ret_snapshot)
{
	return load_with(db, which, load_identity, ret_snapshot);
}

int load_count(struct db *db, unsigned *ret_count)
{
	sqlite3_stmt *stmt = NULL;
	uint64_t count = 0;
	int r = db_prepare(db, "SELECT snapshots FROM process", &stmt);

	if (r == 0)
		r = db_step(db, stmt);
	if (r > 0)
		r = db_numbers(db, stmt, 0, 1, 0, &count);
	sqlite3_finalize(stmt);
	if (r < 0)
		return r;
	if (count == 0 || count > INT32_MAX)
		return db_damaged(db, "it counts %llu snapshots", (unsigned long long)count);
	*ret_count = (unsigned)count;
	return 0;
}
