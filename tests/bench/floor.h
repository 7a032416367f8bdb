/* The floor: what no tracer by int3 can do without.  The smallest loop of trap, look (waitid with
 * WNOWAIT), get registers, set registers, continue. */
#ifndef ALLOCWATCH_BENCH_FLOOR_H
#define ALLOCWATCH_BENCH_FLOOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct floor_placement {
	int cpu;                        /* or CPU_ANY */
	bool by_policy;                 /* placed by the tracer's own policy instead */
};

/* Seizes all threads of a process, in a new process that serves just so many stops and ends, which
 * lets the threads go.  Returns when they are seized; the new process. */
pid_t floor_start(pid_t target, uint64_t stops, const struct floor_placement *placement);
/* Waits for its end. */
void floor_finish(pid_t floor);

#endif
