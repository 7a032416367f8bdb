/* `allocwatch top` while it is shown: keyboard, daemon, signals and the clock, none of which waits for another. */
#ifndef ALLOCWATCH_CLI_TOP_LOOP_H
#define ALLOCWATCH_CLI_TOP_LOOP_H

#include "cli/top_fetch.h"
#include "cli/top_model.h"
#include "cli/top_screen.h"
#include "cli/tracing.h"

struct top_loop {
	struct top *top;
	struct top_fetch *fetch;
	struct screen *screen;
	pid_t pid;
	char name[TRACING_NAME_MAX];    /* "4242 (httpd)" */
	int signals;                    /* a signalfd of those below, which are blocked */
	uint64_t refreshes_max;         /* leave after so many; 0: stay */
	uint64_t refreshes;
};

/* INT, TERM, HUP, TSTP, CONT, WINCH, from here to the end of the program.  0 or negative errno. */
int top_loop_catch_signals(int *ret_fd);
/* Until the user leaves.  0, the number of a signal that asked for the end, or negative errno. */
int top_loop_run(struct top_loop *loop);

#endif
