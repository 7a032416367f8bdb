/* A victim whose handler of a signal allocates, a thousand times a second. */
#ifndef ALLOCWATCH_TESTS_HANDLERS_H
#define ALLOCWATCH_TESTS_HANDLERS_H

#include <sys/types.h>

struct tool;

/* What it keeps is known by line, and nothing is lost.  option: its own ("--no-altstack"), or NULL. */
void require_handlers_blocks(void (*attach)(struct tool *tool, pid_t pid), const char *option);

#endif
