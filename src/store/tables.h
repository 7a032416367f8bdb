/* The tables of a file that its snapshots share, in memory: strings, modules, frames with their
 * locations, and the nodes of the stack tree.  Record n of a table is row n, counted from 1; 0 stands
 * for none, and for the root.  Private to store/. */
#ifndef ALLOCWATCH_STORE_TABLES_H
#define ALLOCWATCH_STORE_TABLES_H

#include "store/db.h"
#include "store/intern.h"

#include <stdint.h>

/* Records, all fields in units of the file: ids are those of rows. */
struct table_module {
	uint32_t build_id_len;
	uint8_t bytes[];               /* build-id, then the path without NUL */
};

struct table_frame {
	uint32_t module, kind;         /* of a FRAME_PYTHON the number as it is */
	uint64_t offset;
	struct table_location {
		uint32_t function, file, line, function_offset;
		uint64_t inlined;      /* as wide as it is so that no byte is undefined */
	} locations[];                 /* as many as there is room for in the record */
};

struct table_node {
	uint32_t parent, frame;
};

enum table {
	TABLE_STRING,
	TABLE_MODULE,
	TABLE_FRAME,
	TABLE_NODE,
	TABLE_COUNT,
};

struct tables {
	struct intern of[TABLE_COUNT];
};

void tables_fini(struct tables *tables);
/* Reads all of them and checks that each record refers to existing ones, a node to an earlier one. */
int tables_read(struct db *db, struct tables *tables);
/* Adds a record's part to the checksum of a snapshot that uses it. */
void tables_checksum(const struct tables *tables, enum table table, uint32_t id, uint64_t *sum);

static inline size_t table_frame_locations(size_t record_len)
{
	return (record_len - sizeof(struct table_frame)) / sizeof(struct table_location);
}

static inline size_t table_frame_size(size_t locations)
{
	return sizeof(struct table_frame) + locations * sizeof(struct table_location);
}

#endif
