/* The rows of make matrix: programs, how each is built and what is expected of it. */
#ifndef ALLOCWATCH_TESTS_MATRIX_ROWS_H
#define ALLOCWATCH_TESTS_MATRIX_ROWS_H

#include <stdbool.h>
#include <stddef.h>

enum matrix_engine { MATRIX_INT3, MATRIX_RING, MATRIX_ENGINES };

struct matrix_row {
	const char *name;
	/* A shell command in the folder of the case, where it makes `program` of the sources in $S; `reference`, when it makes
	 * that, too, is the same with its debug information in it. */
	const char *build;
	const char *preload;               /* an allocator before libc's; NULL: none */
	const char *wrapper;               /* a command that becomes the program, with its arguments; NULL: none */
	const char *meanwhile;             /* a shell command in the folder once the program runs; NULL: none */
	bool is_short;                     /* also a part of the suite's run */
	bool gdb_alone;                    /* libunwind 1.6 finds no way through its stacks */
	bool may_cut;                      /* its libc has no unwind information: stacks say that they end there */
	bool names_functions_only;         /* no lines are known of it */
	bool needs_own_debug_folder;       /* writes to /usr/lib/debug */
	/* Part of what an engine says that refuses it; NULL: it must not. */
	const char *refusals[MATRIX_ENGINES];
	/* What does not hold yet with an engine, for the table; NULL: all does. */
	const char *faults[MATRIX_ENGINES];
};

/* A program that nobody here wrote, and counts nothing for us. */
struct matrix_daemon {
	const char *name;
	/* Its words, with blanks between and the case's folder for each @; "~" is an empty one. */
	const char *command;
	/* Shell commands in the folder: before it starts, or NULL; what makes it work and fails while it does not answer yet;
	 * what makes it give that back, or NULL. */
	const char *prepare, *work, *undo;
	bool is_short;
	bool gdb_alone;
	bool stacks_elsewhere;             /* they cannot be compared: it runs code that it makes */
};

extern const struct matrix_daemon matrix_daemons[];
extern const size_t matrix_daemon_count;
extern const struct matrix_row matrix_rows[];
extern const size_t matrix_row_count;

#endif
