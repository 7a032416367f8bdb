/* `allocwatch top --json`: the same figures for programs, one document a refresh and a line, without a terminal. */
#ifndef ALLOCWATCH_CLI_TOP_JSON_H
#define ALLOCWATCH_CLI_TOP_JSON_H

#include "cli/session.h"
#include "cli/top_model.h"

#include <sys/types.h>

struct top_json {
	struct session *session;
	struct top *top;
	pid_t pid;
	int signals;                    /* of top_loop_catch_signals() */
	uint64_t interval_ns;
	uint64_t refreshes_max;         /* 0: until a signal or the end of the process */
};

/* An exit status; *ret_signal is the signal that ended it, or 0. */
int top_json_run(struct top_json *json, int *ret_signal);

#endif
