#include "twins.h"

#include <stdlib.h>

static __attribute__((noinline)) void *make(void)
{
	char *block = malloc(300);

	/* Written to, or the call would be a jump. */
	if (block)
		*block = 1;
	return block;
}

void *twins_other(void)
{
	return make();
}
