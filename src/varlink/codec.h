/* Checked conversion between the project's types and the JSON of org.allocwatch.Tracer.
 * Encoders return a new reference or NULL (no memory); decoders treat their input as hostile. */
#ifndef ALLOCWATCH_VARLINK_CODEC_H
#define ALLOCWATCH_VARLINK_CODEC_H

#include "model/snapshot.h"
#include "model/statistics.h"
#include "model/traceback.h"
#include "model/trend.h"

#include <jansson.h>

/* Of a question about statistics: a daemon takes no more, so a client with more makes the answer itself. */
#define CODEC_FILTERS_MAX 64
/* Attach's ring_wait_ms, and RingWait=. */
#define CODEC_RING_WAIT_MS_MAX 3600000u
/* Attach's ring_readers, and RingReaders=. */
#define CODEC_RING_READERS_MAX 16u

/* A JSON string of arbitrary bytes: what is not UTF-8 is written \xNN, and a backslash as it is unless
 * it would read as one of these; then it is \x5c.  Cut at 64 KiB.  NULL counts as "". */
json_t *codec_bytes(const char *text);

json_t *codec_unknown(const struct snapshot_unknown *unknown);
json_t *codec_snapshot_info(const struct snapshot *snapshot);      /* type SnapshotInfo */
/* Rows [first, first + count) as a list of type Statistic; with_diff adds the *_diff members. */
json_t *codec_statistics_rows(const struct statistics *statistics, size_t first, size_t count,
			      bool with_diff);
/* The whole answer: {"statistics", "key", "total", "exact", "unknown", "rows", "limits_differ"}, and "unnamed" where it is
 * true; at most limit rows (0: all). */
json_t *codec_statistics(const struct statistics *statistics, size_t limit, bool with_diff);
/* The same around rows made before, whose reference it takes (NULL: fails). */
json_t *codec_statistics_frame(const struct statistics *statistics, json_t *rows, bool with_diff);

/* The same of a trend, whose rows also have their growth and their sizes. */
json_t *codec_trend_rows(const struct trend *trend, size_t first, size_t count);
json_t *codec_trend(const struct trend *trend, size_t limit);

/* Rows as interned tables in pieces of about 128 KiB, one at a time: type RowTables.  The writer borrows the statistics. */
struct codec_rows_writer;
struct codec_rows_writer *codec_rows_writer_new(const struct statistics *statistics, bool with_diff);
/* The next piece (a new reference) and whether it is the last; NULL when there is no memory. */
json_t *codec_rows_writer_next(struct codec_rows_writer *writer, bool *ret_last);
void codec_rows_writer_free(struct codec_rows_writer *writer);      /* accepts NULL */
/* And back, of whole replies of Statistics or Compare (0, -EBADMSG, -ENOMEM), then finish; `query` is what was asked. */
struct codec_rows_reader;
struct codec_rows_reader *codec_rows_reader_new(const struct statistics_query *query, bool with_diff);
int codec_rows_reader_feed(struct codec_rows_reader *reader, const json_t *reply);
int codec_rows_reader_finish(struct codec_rows_reader *reader, struct statistics **ret);
void codec_rows_reader_free(struct codec_rows_reader *reader);      /* accepts NULL */

/* A list of type Frame, most recent last. */
json_t *codec_traceback(const struct traceback *traceback);

/* GetSnapshot's tables in pieces of about 128 KiB, one at a time, so that a slow receiver
 * makes nobody wait.  The writer holds a reference to the snapshot. */
struct codec_snapshot_writer;
struct codec_snapshot_writer *codec_snapshot_writer_new(struct snapshot *snapshot);
/* The next piece (a new reference) and whether it is the last; NULL when there is no memory. */
json_t *codec_snapshot_writer_next(struct codec_snapshot_writer *writer, bool *ret_last);
void codec_snapshot_writer_free(struct codec_snapshot_writer *writer);      /* accepts NULL */
/* All of it at once; a non-zero return of `each` (which borrows the piece) ends it. */
int codec_snapshot_send(struct snapshot *snapshot,
			int (*each)(void *context, json_t *tables, bool last), void *context);
/* And back: feed each piece (0, -EBADMSG, -ENOMEM), then finish, which checks the whole (-EBADMSG with
 * *ret_reason, a static text).  Free the reader in any case. */
struct codec_snapshot_reader;
struct codec_snapshot_reader *codec_snapshot_reader_new(void);
int codec_snapshot_reader_feed(struct codec_snapshot_reader *reader, const json_t *tables);
int codec_snapshot_reader_finish(struct codec_snapshot_reader *reader, struct snapshot **ret,
				 const char **ret_reason);
void codec_snapshot_reader_free(struct codec_snapshot_reader *reader);

#endif
