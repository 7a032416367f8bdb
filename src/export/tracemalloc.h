/* A snapshot as a pickle that Python's tracemalloc.Snapshot.load() reads.
 *
 * tracemalloc has one trace for each block.  Of a snapshot with blocks each has its own size, else the
 * sizes of a group's blocks are made up: as equal as whole bytes can be, with the exact sum and number.
 * A name that is no UTF-8 becomes what Python makes of such a file name (surrogateescape).  A frame
 * without line information is named OBJECT(FUNCTION+0xOFF) and has line 0. */
#ifndef ALLOCWATCH_EXPORT_TRACEMALLOC_H
#define ALLOCWATCH_EXPORT_TRACEMALLOC_H

#include "model/filter.h"
#include "model/traceback.h"

#include <stdio.h>

/* More blocks would not fit into any Python's memory; hostile files claim any number. */
#define TRACEMALLOC_BLOCKS_MAX 200000000u

struct tracemalloc_options {
	struct traceback_options traceback;
	const struct filter *filters;       /* only traces that pass these */
	size_t filter_count;
	bool triples;                       /* for Python before 3.9: traces without their number of frames */
};

/* 0, -ENOMEM, or -E2BIG with too many blocks, before anything is written; write errors are the caller's to
 * ask the stream for. */
int tracemalloc_write(FILE *out, const struct snapshot *snapshot, const struct tracemalloc_options *options);

#endif
