/* The stacks of a program that is stopped at its calls of the allocator: ours against libunwind's at the same stop, and some
 * against gdb's.  What is compared are the program counters of all frames, outermost included. */
#ifndef ALLOCWATCH_TESTS_ORACLE_H
#define ALLOCWATCH_TESTS_ORACLE_H

#include "sampler.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct oracle;

struct oracle_counts {
	unsigned compared, distinct, differ, gdb_compared, gdb_differ;
	unsigned cut;                      /* of those gdb was asked about: ours end earlier and say why */
	unsigned guessed;                  /* gdb shows frames beside ours, or fewer */
	unsigned generated;                /* and of those compared down to the first frame in generated code */
	uint64_t frames;
};

struct oracle_options {
	struct sampler_options sampler;
	/* Stacks are written to it: one a line, each frame as its object's path, a tab and its ELF virtual address, and a
	 * tab behind.  NULL: they are not. */
	FILE *record;
	/* libunwind does not find its way there.  gdb alone is asked, at each stop whose stack was not seen before. */
	bool gdb_alone;
	/* The same of a program that runs code that it makes, about which gdb knows nothing: compared down to there.  It is
	 * asked about few stacks that do not go through it. */
	bool generated;
	/* An object of it has no unwind tables: gdb reads there what a function begins with, and mostly shows words of the stack as
	 * frames, or ends.  Ours are among its frames then, or go on from where it ends. */
	bool gdb_guesses;
	bool moving;                       /* its objects come and go */
};

/* Starts the program; NULL with errno. */
struct oracle *oracle_start(const struct oracle_options *options);
void oracle_free(struct oracle *oracle);                     /* and ends the program */
/* Goes on to the next stop and compares there; false when the program has ended. */
bool oracle_next(struct oracle *oracle);
/* The same without comparing. */
bool oracle_pass(struct oracle *oracle);
/* Compares with gdb at the last stop.  Nothing is counted when gdb does not get the process. */
void oracle_ask_gdb(struct oracle *oracle);
pid_t oracle_process(const struct oracle *oracle);
struct oracle_counts oracle_counts(const struct oracle *oracle);

#endif
