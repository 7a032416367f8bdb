/* An object for builds_objects.c.  -DOWN_MALLOC: it exports a malloc and a free on libc's, and calls them itself. */
#include <stdlib.h>

#ifdef OWN_MALLOC
void *__libc_malloc(size_t size);
void __libc_free(void *block);

__attribute__((noinline)) void *malloc(size_t size)
{
	char *block = __libc_malloc(size);

	if (block)
		block[0] = 1;
	return block;
}

__attribute__((noinline)) void free(void *block)
{
	if (block)
		*(char *)block = 2;
	__libc_free(block);
}
#endif

void *object_get(size_t size);

void *object_get(size_t size)
{
	char *block = malloc(size); /* by an object */

	free(malloc(10));
	block[1] = 1;
	return block;
}
