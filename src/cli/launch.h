/* The command of `allocwatch run`: a child of the client's own, so that terminal, process group, job
 * control, directory and limits are as without us; it waits to be seized and then execs. */
#ifndef ALLOCWATCH_CLI_LAUNCH_H
#define ALLOCWATCH_CLI_LAUNCH_H

#include "cli/witness.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct launch {
	pid_t pid;
	int go_fd;              /* a pid lets it exec, closing it ends it */
	int error_fd;           /* errno when the exec fails, end of file when it works */
	struct witness witness;
	sigset_t mask;          /* as before launch_start() */
	int status;             /* from waitpid, once it has ended */
};

/* Blocks the signals that launch_wait() handles, until the command has ended, and forks.  0 or negative errno. */
int launch_start(struct launch *launch, char **argv);
/* Lets it exec, after it has named `daemon` (0: nobody) to Yama as who may trace it; 0, or the negative errno of its exec (the child has then ended). */
int launch_go(struct launch *launch, pid_t daemon);
/* Ends a child that has not been let go. */
void launch_abandon(struct launch *launch);

/* Waits until it ends, passing on signals that were sent to us alone and stopping whenever it stops; 0, or -ETIME at the deadline
 * (CLOCK_MONOTONIC; UINT64_MAX: none). */
int launch_wait(struct launch *launch, uint64_t deadline_ns);
/* Its exit status as a shell gives it. */
int launch_exit_status(const struct launch *launch);

#endif
