#include "store/schema.h"

#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SNAPSHOT_COLUMNS                                                                                \
	"CREATE TABLE snapshot(number INTEGER PRIMARY KEY, id TEXT, name TEXT, command TEXT, "          \
	"taken_ns INTEGER, attached_ns INTEGER, frames_limit INTEGER, "                                 \
	"exact INTEGER, symbolized INTEGER, has_blocks INTEGER, "                                       \
	"live_bytes INTEGER, live_blocks INTEGER, peak_bytes INTEGER, allocations INTEGER, frees INTEGER, " \
	"heap_before_attach_frees INTEGER, heap_after_clear_frees INTEGER, heap_unknown_frees INTEGER, " \
	"heap_lost_events INTEGER, "                                                                    \
	"unknown_frees INTEGER, before_attach_frees INTEGER, after_clear_frees INTEGER, "               \
	"lost_events INTEGER, truncated_stacks INTEGER, probe_gaps INTEGER"
#define TRACE_COLUMNS                                                                                   \
	"CREATE TABLE trace(id INTEGER PRIMARY KEY, snapshot INTEGER, stack INTEGER, domain INTEGER, "  \
	"live_blocks INTEGER, live_bytes INTEGER, total_blocks INTEGER, total_bytes INTEGER"
#define SNAPSHOT_COLUMNS_2 ", clock_ns INTEGER, peak_blocks INTEGER, peak_ns INTEGER"
#define TRACE_COLUMNS_2 ", temporary_blocks INTEGER, peak_blocks INTEGER, peak_bytes INTEGER"
#define BLOCK_COLUMNS                                                                                   \
	"CREATE TABLE block(id INTEGER PRIMARY KEY, snapshot INTEGER, trace INTEGER, "                  \
	"address INTEGER, size INTEGER, age_ns INTEGER"

/* In files as they stand here; compared with them letter by letter. */
static const struct {
	const char *name, *sql;
	const char *sql_1;       /* as it was in version 1; NULL: the same */
	const char *sql_2;       /* likewise in version 2 */
} tables[] = {
	{"process",
	 "CREATE TABLE process(pid INTEGER, start_time INTEGER, exe TEXT, snapshots INTEGER)", NULL, NULL},
	{"snapshot",
	 SNAPSHOT_COLUMNS SNAPSHOT_COLUMNS_2 ", sample_bytes INTEGER, checksum INTEGER)",
	 SNAPSHOT_COLUMNS ", checksum INTEGER)",
	 SNAPSHOT_COLUMNS SNAPSHOT_COLUMNS_2 ", checksum INTEGER)"},
	{"string", "CREATE TABLE string(id INTEGER PRIMARY KEY, text TEXT)", NULL, NULL},
	{"module", "CREATE TABLE module(id INTEGER PRIMARY KEY, path TEXT, build_id BLOB)", NULL, NULL},
	{"frame",
	 "CREATE TABLE frame(id INTEGER PRIMARY KEY, module INTEGER, kind INTEGER, offset INTEGER)", NULL, NULL},
	{"location",
	 "CREATE TABLE location(frame INTEGER, position INTEGER, function INTEGER, file INTEGER, "
	 "line INTEGER, function_offset INTEGER, inlined INTEGER, "
	 "PRIMARY KEY(frame, position)) WITHOUT ROWID", NULL, NULL},
	{"node", "CREATE TABLE node(id INTEGER PRIMARY KEY, parent INTEGER, frame INTEGER)", NULL, NULL},
	{"trace",
	 TRACE_COLUMNS TRACE_COLUMNS_2 ", samples INTEGER, blocks_deviation INTEGER, bytes_deviation INTEGER)",
	 TRACE_COLUMNS ")",
	 TRACE_COLUMNS TRACE_COLUMNS_2 ")"},
	{"block",
	 BLOCK_COLUMNS ", thread INTEGER)",
	 BLOCK_COLUMNS ")", NULL},
};

#define TABLE_COUNT (sizeof(tables) / sizeof(*tables))

int schema_create(struct db *db)
{
	char pragmas[128];
	int r;

	snprintf(pragmas, sizeof(pragmas), "PRAGMA application_id = %d; PRAGMA user_version = %d",
		 STORE_APPLICATION_ID, STORE_VERSION);
	db->version = STORE_VERSION;
	r = db_run(db, pragmas);
	for (size_t i = 0; r == 0 && i < TABLE_COUNT; i++)
		r = db_run(db, tables[i].sql);
	return r;
}

/* --- the first 100 bytes: sqlite.org/fileformat.html, section 1.3 --- */

#define HEADER_SIZE 100
#define HEADER_MAGIC "SQLite format 3"
#define HEADER_PAGE_SIZE 16
#define HEADER_WRITE_VERSION 18
#define HEADER_READ_VERSION 19
#define HEADER_PAGE_COUNT 28
#define HEADER_USER_VERSION 60
#define HEADER_APPLICATION_ID 68

static uint32_t big_endian(const uint8_t *bytes, unsigned count)
{
	uint32_t value = 0;

	for (unsigned i = 0; i < count; i++)
		value = value << 8 | bytes[i];
	return value;
}

int schema_check_size(struct db *db)
{
	uint8_t header[HEADER_SIZE];
	uint64_t page_size, pages, size;
	int r = db_read_raw(db, header, sizeof(header));

	if (r == 0)
		r = db_file_size(db, &size);
	if (r < 0)
		return r;
	page_size = big_endian(header + HEADER_PAGE_SIZE, 2);
	pages = big_endian(header + HEADER_PAGE_COUNT, 4);
	if (page_size == 1)            /* 65536 does not fit */
		page_size = 65536;
	if (size < page_size * pages)
		return db_damaged(db, "its end is missing, it has %llu of %llu bytes",
				  (unsigned long long)size, (unsigned long long)(page_size * pages));
	return 0;
}

static int check_kind(struct db *db, const uint8_t *header)
{
	uint64_t size;
	int r = db_file_size(db, &size);

	if (r < 0)
		return r;
	if (size == 0)
		return db_fail(db, -EMEDIUMTYPE, "it is empty, no snapshot file of allocwatch");
	if (memcmp(header, HEADER_MAGIC, sizeof(HEADER_MAGIC)) != 0)
		return db_fail(db, -EMEDIUMTYPE, "it is no snapshot file of allocwatch");
	if (big_endian(header + HEADER_APPLICATION_ID, 4) != STORE_APPLICATION_ID)
		return db_fail(db, -EMEDIUMTYPE, "it is an SQLite database, but no snapshot file of allocwatch");
	return 0;
}

int schema_check_header(struct db *db)
{
	uint8_t header[HEADER_SIZE];
	uint32_t version;
	int r = db_read_raw(db, header, sizeof(header));

	if (r == 0)
		r = check_kind(db, header);
	if (r < 0)
		return r;
	version = big_endian(header + HEADER_USER_VERSION, 4);
	if (version > STORE_VERSION)
		return db_fail(db, -EPROTONOSUPPORT, "it has version %u of the format, and this allocwatch "
			       "knows versions up to %u; use a newer one", version, STORE_VERSION);
	if (version == 0)
		return db_damaged(db, "it has no version");
	/* Reading a file in WAL mode would make files beside it. */
	if (header[HEADER_WRITE_VERSION] != 1 || header[HEADER_READ_VERSION] != 1)
		return db_damaged(db, "its journal mode was changed");
	db->version = version;
	return 0;
}

/* --- tables --- */

static const char *definition(size_t table, uint32_t version)
{
	const char *old = version == 1 ? tables[table].sql_1 : version == 2 ? tables[table].sql_2 : NULL;

	return old ? old : tables[table].sql;
}

static bool is_ours(const struct db *db, const char *type, const char *name, const char *sql)
{
	if (!type || !name || !sql || strcmp(type, "table") != 0)
		return false;
	for (size_t i = 0; i < TABLE_COUNT; i++)
		if (strcmp(tables[i].name, name) == 0)
			return strcmp(definition(i, db->version), sql) == 0;
	return false;
}

static int check_objects(struct db *db, sqlite3_stmt *stmt)
{
	size_t count = 0;
	int r;

	while ((r = db_step(db, stmt)) > 0) {
		const char *name = (const char *)sqlite3_column_text(stmt, 1);

		if (!is_ours(db, (const char *)sqlite3_column_text(stmt, 0), name,
			     (const char *)sqlite3_column_text(stmt, 2)))
			return db_damaged(db, "%.40s is none of its tables", name ? name : "a nameless object");
		count++;
	}
	if (r < 0)
		return r;
	/* SQLite itself refuses two of one name, when it parses the definitions. */
	return count == TABLE_COUNT ? 0 : db_damaged(db, "a table is missing");
}

int schema_check_tables(struct db *db)
{
	sqlite3_stmt *stmt = NULL;
	int r = db_prepare(db, "SELECT type, name, sql FROM sqlite_master", &stmt);

	if (r == 0)
		r = check_objects(db, stmt);
	sqlite3_finalize(stmt);
	return r;
}
