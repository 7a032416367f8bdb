/* The innermost of three levels that end up inlined into one function, each from its own file. */
#ifndef DEEPEST_H
#define DEEPEST_H

void *take(unsigned long size);

static inline __attribute__((always_inline)) void *deepest(unsigned long size)
{
	void *p = take(size + 1);

	return p ? p : take(1);
}

#endif
