/* Waiting while a process is traced: until a time, its end, or a signal that asks to stop. */
#ifndef ALLOCWATCH_CLI_WAITING_H
#define ALLOCWATCH_CLI_WAITING_H

#include <stdint.h>
#include <sys/types.h>

enum waiting_end { WAITING_ELAPSED, WAITING_INTERRUPTED, WAITING_EXITED };

/* To be called before an attach: a Ctrl-C in the middle of it must still detach.  0 or negative errno. */
int waiting_catch_signals(int *ret_fd);
/* Until `deadline` (CLOCK_MONOTONIC), with progress on a terminal. */
enum waiting_end waiting_for(pid_t pid, const char *name, uint64_t deadline, int signal_fd);

#endif
