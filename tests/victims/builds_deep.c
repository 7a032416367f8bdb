/* For builds.c: a recursion 100,000 deep. */
#include "builds.h"

#define DEEP 100000

static volatile long seen;

/* What it does after the call keeps it a real recursion. */
static __attribute__((noinline)) void descend(long depth)
{
	if (depth == 0)
		keep(malloc(1300), 1300); /* deeper than any limit */
	else
		descend(depth - 1);
	seen++;
}

void more_shapes(void)
{
	descend(DEEP);
}
