/* What is done only when somebody looks: colours and progress. */
#ifndef ALLOCWATCH_CLI_TERMINAL_H
#define ALLOCWATCH_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

#define COLOUR_RED "\033[1;31m"
#define COLOUR_BOLD "\033[1m"
#define COLOUR_OFF "\033[0m"

bool terminal_is(FILE *stream);
/* A terminal, and neither NO_COLOR nor TERM=dumb asks for none (see no-color.org). */
bool terminal_colours(FILE *stream);

/* One line on stderr that replaces the one before, on a terminal only. */
void progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void progress_clear(void);

#endif
