/* See builds.c. */
#ifndef ALLOCWATCH_TESTS_BUILDS_H
#define ALLOCWATCH_TESTS_BUILDS_H

#include <stddef.h>
#include <stdlib.h>

/* Notes a block to be freed at 'f'; ends the program when there is none. */
void *keep(void *block, size_t size);

/* builds_more.c: calls back from two levels below. */
void *more_call(void *(*make)(size_t size), size_t size);
/* Ends in a jump to malloc where it is optimised. */
void *more_jump(size_t size);

/* -DMORE_SHAPES: the third file's. */
void more_shapes(void);

__attribute__((always_inline)) static inline void *inlined_get(size_t size)
{
	return keep(malloc(size), size); /* inlined from a header */
}

#endif
