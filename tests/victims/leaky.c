/* To be built with a sanitizer: keeps a block at each 'g', and leaks some of 77 bytes at each 'l'.  Ends with status 3
 * when its sanitizer has nothing to say. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *kept[100];
static void *volatile lost;

static __attribute__((noinline)) void leak(void)
{
	for (int i = 0; i < 10; i++)
		lost = malloc(77);
	lost = NULL;
}

/* A stale word of the stack, where leak() stood or below, would keep its last block from being one. */
static __attribute__((noinline)) void forget(void)
{
	volatile char words[32 * 1024];

	for (size_t i = 0; i < sizeof(words); i++)
		words[i] = 0;
}

int main(void)
{
	int count = 0;
	char command;

	if (write(1, "R\n", 2) != 2)
		return 98;
	while (read(0, &command, 1) == 1 && command != 'q') {
		char line[32];

		if (command == 'g' && count < 100)
			kept[count++] = malloc(72);      /* kept block */
		if (command == 'l')
			leak();
		forget();
		if (write(1, line, (size_t)snprintf(line, sizeof(line), "kept=%d\n", count)) < 0)
			return 98;
	}
	return 3;
}
