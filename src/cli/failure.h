/* What the client says when something fails, and how it ends. */
#ifndef ALLOCWATCH_CLI_FAILURE_H
#define ALLOCWATCH_CLI_FAILURE_H

#include <jansson.h>

enum exit_status {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_INEXACT = 3,
	EXIT_CANNOT_EXECUTE = 126,
	EXIT_NOT_FOUND = 127,
};

/* Each prints one line on stderr, "allocwatch: " and the text, and returns its exit status. */
int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
int fail_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
int fail_memory(void);
/* A typed error of the daemon's; what: "cannot attach to process 4242". */
int fail_remote(const char *what, const json_t *error);
/* A snapshot file's; what: "cannot read the snapshot file", unless reason, which is freed, says it
 * all. */
int fail_file(const char *what, const char *path, int result, char *reason);
/* One line that is no failure. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
