/* Checked conversion between the project's types and the JSON of org.allocwatch.Tracer.
 * Encoders return a new reference or NULL (no memory); decoders treat their input as hostile. */
#ifndef ALLOCWATCH_VARLINK_CODEC_H
#define ALLOCWATCH_VARLINK_CODEC_H

#include "model/snapshot.h"
#include "model/statistics.h"

#include <jansson.h>

/* A JSON string of arbitrary bytes: what is not UTF-8 is written \xNN (and a backslash as it is). */
json_t *codec_bytes(const char *text);

json_t *codec_unknown(const struct snapshot_unknown *unknown);
json_t *codec_snapshot_info(const struct snapshot *snapshot);      /* type SnapshotInfo */
/* Rows [first, first + count) as a list of type Statistic; with_diff adds the *_diff members. */
json_t *codec_statistics_rows(const struct statistics *statistics, size_t first, size_t count,
			      bool with_diff);
/* The whole answer: {"statistics", "total", "exact", "unknown"}; at most limit rows (0: all). */
json_t *codec_statistics(const struct statistics *statistics, size_t limit, bool with_diff);

/* GetSnapshot's tables in pieces of at most about 512 KiB; a non-zero return of `each` ends it. */
int codec_snapshot_send(const struct snapshot *snapshot,
			int (*each)(void *context, json_t *tables, bool last), void *context);
/* And back: feed each piece, then finish, which checks the whole. */
struct codec_snapshot_reader;
struct codec_snapshot_reader *codec_snapshot_reader_new(void);
int codec_snapshot_reader_feed(struct codec_snapshot_reader *reader, const json_t *tables);
int codec_snapshot_reader_finish(struct codec_snapshot_reader *reader, struct snapshot **ret,
				 const char **ret_reason);
void codec_snapshot_reader_free(struct codec_snapshot_reader *reader);

#endif
