/* An allocator linked in under names with a prefix, beside libc's.  Built by the test that watches it, with -DPREFIX=je_
 * and the like. */
#include <stdlib.h>
#include <unistd.h>

#define PASTE(prefix, name) prefix##name
#define NAME(prefix, name) PASTE(prefix, name)
#define malloc NAME(PREFIX, malloc)
#define free NAME(PREFIX, free)
#define calloc NAME(PREFIX, calloc)
#define realloc NAME(PREFIX, realloc)

#include "ownmalloc.c"

/* Named like functions of another allocator, and none of it. */
#ifndef WITHOUT_STRANGERS
void *strange_malloc(size_t size) __asm__("tc_calloc");

void *strange_malloc(size_t size)
{
	return (void *)size;
}
#endif

static void *volatile kept;

static void work(void)
{
	kept = malloc(100); /* kept */
	free(malloc(200));
	kept = realloc(calloc(4, 10), 80); /* resized */
#ifndef WITHOUT_STRANGERS
	kept = strange_malloc(300);
#endif
}

int main(void)
{
	char command;

	if (write(STDOUT_FILENO, "R\n", 2) != 2)
		return 1;
	while (read(STDIN_FILENO, &command, 1) == 1 && command != 'q') {
		work();
		if (write(STDOUT_FILENO, "done=1\n", 7) != 7)
			return 1;
	}
	return 0;
}
