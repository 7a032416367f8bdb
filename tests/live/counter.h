/* What counter.so counts, in a file that the test maps, too. */
#ifndef ALLOCWATCH_TESTS_COUNTER_H
#define ALLOCWATCH_TESTS_COUNTER_H

struct counter {
	long blocks, bytes, allocations, frees;
	long unknown;                   /* frees of what was never seen */
};

#endif
