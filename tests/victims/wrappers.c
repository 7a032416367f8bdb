/* Asks for memory by wrappers of its own: a function, and one that is inlined from wrappers.h.
 * Built by the test that watches it, with optimisation. */
#include "wrappers.h"

#include <unistd.h>

static void *volatile kept;

__attribute__((noinline)) static void *xmalloc(size_t size)
{
	void *p = malloc(size); /* wrapped */

	if (!p)
		abort();
	return p;
}

__attribute__((noinline)) static void work(void)
{
	for (int i = 0; i < 100; i++) {
		kept = xmalloc(1000); /* by the function */
		kept = pool_get(2000); /* inlined */
	}
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
