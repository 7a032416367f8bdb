/* Commands that name a process and ask the daemon for one thing that has no answer. */
#ifndef ALLOCWATCH_CLI_SIMPLE_H
#define ALLOCWATCH_CLI_SIMPLE_H

#include "cli/options.h"

/* what: "cannot clear the traces of"; the PID is put behind it. */
int simple_call(const struct options *options, const char *command, const char *pid_text, const char *method,
		const char *what);

#endif
