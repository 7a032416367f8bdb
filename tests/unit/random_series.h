/* Random series of snapshots of, mostly, one process, with all that is known of blocks, and the same as a document for
 * an oracle.  The same in every run. */
#ifndef ALLOCWATCH_TESTS_RANDOM_SERIES_H
#define ALLOCWATCH_TESTS_RANDOM_SERIES_H

#include "model/snapshot.h"

#include <jansson.h>

enum { SERIES_MAX = 6, SERIES_POOL = 12, SERIES_DEPTH = 6 };

/* A physical frame, and what it shows: calls inlined into each other, the innermost first. */
struct physical {
	unsigned object;
	uint64_t offset;
	unsigned count;
	struct {
		const char *file, *function;     /* NULL: not known */
		unsigned line, offset;
	} shown[3];
};

struct series {
	size_t count;
	struct snapshot *snapshots[SERIES_MAX];
	json_t *documents;        /* of each snapshot, what is meant */
	struct physical pool[SERIES_POOL];
	unsigned builds[2];       /* of the snapshot at hand: of the program and the library; the one's sources tell */
	uint64_t unit;            /* of times and ages, so that many of them meet */
};

unsigned pick(unsigned below);
/* $ORACLE_SERIES, fewer under sanitizers; else 320. */
unsigned series_rounds(void);
json_t *hex_or_null(const char *text);

void series_make(struct series *series);
void series_free(struct series *series);

#endif
