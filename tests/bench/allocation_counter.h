/* What allocation_counter.so counts, in a file that the benchmark maps, too. */
#ifndef ALLOCWATCH_BENCH_ALLOCATION_COUNTER_H
#define ALLOCWATCH_BENCH_ALLOCATION_COUNTER_H

#include <stdatomic.h>

struct allocation_counter {
	atomic_ulong tracing;           /* requests for memory by the thread that does the tracing */
	atomic_ulong others;            /* and by all others */
};

#endif
