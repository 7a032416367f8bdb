/* Statistics, differences and tracebacks as tracemalloc prints them, byte for byte, and the "pretty
 * top" of its documentation.
 *
 * Two things differ on purpose: a frame without line information is written without ":0", and
 * control characters in names become \xNN (a traced program must not steer the reader's terminal).
 * Writes to the stream it is given; write errors are the caller's to ask the stream for. */
#ifndef ALLOCWATCH_EXPORT_TEXT_H
#define ALLOCWATCH_EXPORT_TEXT_H

#include "model/statistics.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Where the text of a source line comes from: the line without the white space around it, NULL or
 * "" when it is not known.  It is borrowed until the next call. */
struct text_source {
	const char *(*line)(void *context, const char *file, uint32_t line);   /* may be NULL */
	void *context;
};

struct text_style {
	bool functions;             /* ", in FUNCTION" behind each line of a traceback */
	bool most_recent_first;
	bool frames_limited;        /* frames_shown is Traceback.format()'s limit */
	int64_t frames_shown;
	struct text_source source;
};

struct text_frame {
	const char *name;           /* tracemalloc's filename */
	const char *function;       /* NULL or "": unknown */
	uint32_t line;
	bool has_line;
};

/* tracemalloc's way to write a size, with a + when `sign` is set: 99 B, 1.5 KiB, 4855 KiB. */
#define TEXT_SIZE_MAX 48
const char *text_size(char text[TEXT_SIZE_MAX], double bytes, bool sign);

/* 0.3 s, 59.9 s, 12 min, 47 h, 3 d. */
#define TEXT_AGE_MAX 32
const char *text_age(char text[TEXT_AGE_MAX], uint64_t ns);

/* "FILE:LINE: size=..., count=..., average=..."; with `diff` the differences in brackets. */
void text_statistic(FILE *out, const struct statistics *statistics, const struct statistic *row,
		    bool diff);
/* "N memory blocks: X KiB" and the traceback; with `diff` the differences in brackets. */
int text_statistic_traceback(FILE *out, const struct statistics *statistics,
			     const struct statistic *row, bool diff, const struct text_style *style);
/* Traceback.format(); frames in tracemalloc's order, most recent last. */
void text_traceback(FILE *out, const struct text_frame *frames, size_t count,
		    const struct text_style *style);
/* Under a row: one line for each step of its histogram that has blocks. */
void text_histogram(FILE *out, const struct statistic *row);
/* The pretty top of at most `limit` rows. */
void text_pretty(FILE *out, const struct statistics *statistics, size_t limit,
		 const struct text_source *source);

#endif
