/* The rows of make matrix: programs, how each is built and what is expected of it. */
#ifndef ALLOCWATCH_TESTS_MATRIX_ROWS_H
#define ALLOCWATCH_TESTS_MATRIX_ROWS_H

#include "model/stack.h"

#include <stdbool.h>
#include <stddef.h>

enum matrix_engine { MATRIX_INT3, MATRIX_RING, MATRIX_ENGINES };

struct matrix_row {
	const char *name;
	/* A shell command in the folder of the case, where it makes `program` of the sources in $S; `reference`, when it makes
	 * that, too, is the same with its debug information in it, and reference-NAME its library NAME. */
	const char *build;
	const char *preload;               /* an allocator before libc's; NULL: none */
	const char *wrapper;               /* a command that becomes the program, with its arguments, @: as below; NULL: none */
	const char *meanwhile;             /* a shell command in the folder once the program runs; NULL: none */
	bool is_short;                     /* also a part of the suite's run */
	bool gdb_alone;                    /* libunwind 1.6 finds no way through its stacks */
	bool gdb_guesses;                  /* an object of it has no unwind tables */
	bool moving;                       /* its objects come and go */
	enum truncation cut;               /* why some of its stacks end early, and say so; TRUNCATED_NONE: none does */
	bool all_are_cut;
	bool own_pid_namespace;            /* it is the first process of one */
	bool is_contained;                 /* the wrapper starts it and waits for it */
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
	/* Another command where its stacks are compared, which reads the file "input" and ends; NULL: the same, at work. */
	const char *alone;
	const char *user;                  /* whom it runs as; NULL: as the test */
	/* A shell command in the folder that prints the PIDs to attach to, at least two; NULL: the one that was started. */
	const char *processes;
	/* Shell commands in the folder: before it starts, or NULL; what makes it work and fails while it does not answer yet;
	 * what makes it give that back, or NULL; after its end, NULL: removes its socket. */
	const char *prepare, *work, *undo, *tidy;
	/* What reaches it while its calls stop, which its children do not live through; NULL: the work does. */
	const char *serves;
	const char *no_live;               /* why its live bytes say nothing; NULL: the same work again takes no more, or undo */
	int end_signal;                    /* 0: SIGTERM */
	unsigned stacks;                   /* as many are compared; 0: the usual number */
	bool is_short;
	const char *own_folders[2];        /* that it writes to: empty ones in their place; NULL: none */
	const char *connected;             /* its stream socket: without somebody there it ends by itself; NULL: it does not */
	bool generated;                    /* it runs code that it makes: stacks are compared down to there, with gdb's */
};

extern const struct matrix_daemon matrix_daemons[];
extern const size_t matrix_daemon_count;
extern const struct matrix_row matrix_rows[];
extern const size_t matrix_row_count;

#endif
