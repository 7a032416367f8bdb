/* The little that the daemon itself must know of a process to hand the right one to a tracer. */
#ifndef ALLOCWATCH_DAEMON_PROCESS_H
#define ALLOCWATCH_DAEMON_PROCESS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct process {
	int pidfd;
	uint64_t start_time;        /* field 22 of /proc/PID/stat, clock ticks since boot */
};

/* 0; -ESRCH: there is none, or it has ended and waits for its parent (*ret_zombie); -EINVAL: the
 * number is a thread's, of process *ret_leader; other negative errno.  pidfd and start time are
 * those of one and the same process, however fast numbers are reused. */
int process_open(int pid, struct process *ret, bool *ret_zombie, int *ret_leader);

/* The path of the program that it runs; "" when it has none, or may not be looked at.  A file that was replaced since is
 * still the program. */
void process_program(int pid, char path[PATH_MAX]);

#endif
