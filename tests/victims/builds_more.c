/* The other file of builds.c: what calls across files. */
#include "builds.h"

__attribute__((noinline)) static void *step(void *(*make)(size_t size), size_t size)
{
	char *block = make(size);

	block[0] = 1;
	return block;
}

void *more_call(void *(*make)(size_t size), size_t size)
{
	char *block = step(make, size);

	block[1] = 1;
	return block;
}

void *more_jump(size_t size)
{
	return malloc(size); /* jumped to */
}
