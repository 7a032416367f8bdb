/* What the writer and the reader of a snapshot's tables share; see type Tables of the interface.
 * Private to src/varlink. */
#ifndef ALLOCWATCH_VARLINK_TABLES_H
#define ALLOCWATCH_VARLINK_TABLES_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* Longer texts are cut: even wholly escaped one fits into a piece. */
#define CODEC_TEXT_MAX 65536u
/* About the length of a piece's text: made in one go, so what all other clients wait for. */
#define CODEC_PIECE_SIZE (128u << 10)
#define CODEC_COLUMNS_MAX 9

enum codec_table {
	TABLE_STRINGS,
	TABLE_MODULES,
	TABLE_FRAMES,
	TABLE_LOCATIONS,
	TABLE_NODES,
	TABLE_TRACES,
	TABLE_BLOCKS,
	TABLE_SAMPLES,
	TABLE_COUNT
};

struct codec_table_form {
	const char *name;
	size_t columns;          /* 0: texts */
};
extern const struct codec_table_form codec_tables[TABLE_COUNT];

json_t *codec_bytes_max(const char *text, size_t max);
/* The bytes that codec_bytes() made a JSON string of; to be freed, NULL when there is no memory. */
char *codec_text(const char *json_text);
/* 0 or -EBADMSG. */
struct snapshot_unknown;
int codec_take_unknown(const json_t *json, struct snapshot_unknown *unknown);
/* JSON has no unsigned integers of 64 bits: more than INT64_MAX reads INT64_MAX. */
static inline json_int_t codec_count(uint64_t n)
{
	return n > INT64_MAX ? INT64_MAX : (json_int_t)n;
}

#endif
