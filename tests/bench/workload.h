/* Real programs at work, for tests and benchmarks of the unwinder: redis-server with a client, python3, and
 * cc1 compiling C. */
#ifndef ALLOCWATCH_TESTS_WORKLOAD_H
#define ALLOCWATCH_TESTS_WORKLOAD_H

#include <sys/types.h>

#define WORKLOAD_ARGS_MAX 12

struct workload {
	const char *name;
	char *argv[WORKLOAD_ARGS_MAX + 1];
	pid_t client;                      /* 0: none */
};

/* Prepares in a folder what "redis", "python3" or "cc1" needs, and fills in the command to run.  redis and
 * python3 never end by themselves.  source: a C file for cc1.  0; -ENOENT: not installed; -EINVAL: no such
 * workload. */
int workload_prepare(struct workload *workload, const char *name, const char *folder, const char *source);
/* Starts the client of a program that has one; it waits for the program.  0 or negative errno. */
int workload_start_client(struct workload *workload);
/* Ends the client.  The folder is the caller's. */
void workload_fini(struct workload *workload);

#endif
