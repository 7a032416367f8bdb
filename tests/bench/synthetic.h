/* Snapshots of a large program that there is not: as many stacks as wanted, with names, always the same. */
#ifndef ALLOCWATCH_BENCH_SYNTHETIC_H
#define ALLOCWATCH_BENCH_SYNTHETIC_H

#include "model/snapshot.h"

struct synthetic {
	uint32_t stacks, traces;        /* the traces are spread over the stacks, by domain */
	uint32_t blocks_most;           /* live ones of a trace */
	uint32_t moment;                /* 1, 2...: the same process later, one trace in ten having changed, one in
					 * a hundred being gone */
	bool with_blocks;               /* each listed */
};

/* A stack has two or three frames that no other one has, up to 30 that it shares, and in front of them the
 * allocator's own, with or without a C++ runtime's, which tracebacks hide. */
struct snapshot *synthetic_snapshot(const struct synthetic *wanted);

#endif
