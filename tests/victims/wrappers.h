/* A pool as a header: what is inlined from here is no user's line. */
#include <stdlib.h>
#include <string.h>

static inline void *pool_get(size_t size)
{
	char *p = malloc(size);

	if (!p)
		abort();
	return memset(p, 1, size);
}
