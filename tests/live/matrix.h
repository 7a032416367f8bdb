/* What the rows of make matrix have in common. */
#ifndef ALLOCWATCH_TESTS_MATRIX_H
#define ALLOCWATCH_TESTS_MATRIX_H

#include <stdbool.h>

extern const char *const matrix_engine_names[];         /* by enum matrix_engine */

/* A field of the table, in the row of the case that runs. */
void matrix_cell(const char *engine, const char *column, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Fails when a column of the row has no field yet that this process has said. */
void matrix_require_filled(void);
/* A path in the case's folder. */
const char *matrix_in_folder(const char *name);
/* The text with the case's folder for each @. */
const char *matrix_with_folder(const char *text);
/* An empty folder in its place, for this process and those that it starts; skips where that is not permitted. */
void matrix_mount_own(const char *path);
/* Has a process of its own do it, since what fails with one engine may work with the other; whether it failed. */
bool matrix_fails_apart(void (*look)(const void *context), const void *context);
/* The case of a daemon. */
void matrix_run_daemon(void);

#endif
