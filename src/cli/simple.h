/* Commands that name a process and ask the daemon for one thing. */
#ifndef ALLOCWATCH_CLI_SIMPLE_H
#define ALLOCWATCH_CLI_SIMPLE_H

#include "cli/options.h"

#include <jansson.h>
#include <sys/types.h>

/* what: "cannot clear the traces of"; the PID is put behind it.  The exit status; with EXIT_DONE *ret_reply is the caller's. */
int simple_ask(const struct options *options, const char *command, const char *pid_text, const char *method,
	       const char *what, pid_t *ret_pid, json_t **ret_reply);
/* The same for what has no answer; --json shows the PID. */
int simple_call(const struct options *options, const char *command, const char *pid_text, const char *method,
		const char *what);

#endif
