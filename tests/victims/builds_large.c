/* For builds.c: called back from functions of a library that has much debug information (tests/bench/large_object). */
#include "builds.h"

#include <stddef.h>

#define SIZE 1600

void *unit0_call(void *(*make)(size_t size), size_t size);
void *unit19_call(void *(*make)(size_t size), size_t size);
void *unit47_call(void *(*make)(size_t size), size_t size);
void *unit71_call(void *(*make)(size_t size), size_t size);
void *unit95_call(void *(*make)(size_t size), size_t size);

static void *make(size_t size)
{
	char *block = keep(malloc(size), size); /* below a large library */

	block[2] = 1;
	return block;
}

/* From one unit into another. */
static void *make_further(size_t size)
{
	char *block = unit95_call(make, size);

	block[4] = 1;
	return block;
}

void more_shapes(void)
{
	unit0_call(make, SIZE);
	unit19_call(make_further, SIZE);
	unit47_call(make, SIZE);
	unit71_call(make_further, SIZE);
	unit95_call(make, SIZE);
}
