/* Eats memory, and keeps all of it.
 *
 *   e   40 MiB, every page of them touched
 *   s   2 MiB, the same
 *   k   until something ends it
 *   o   10000 bytes at another line
 *
 * Tally: eaten, in KiB. */
#include "victim.h"

#include <stdlib.h>
#include <string.h>

#define BITE ((size_t)64 << 10)

static long eaten;

static void eat_one(void)
{
	void **block = malloc(BITE);    /* eaten block */
	static void *last;

	if (!block)
		die("nothing is left");
	memset(block, 1, BITE);
	*block = last;
	last = block;
	eaten += BITE >> 10;
}

static void eat(size_t mebibytes)
{
	for (size_t bites = (mebibytes << 20) / BITE; bites > 0; bites--)
		eat_one();
}

static void act_on(int command)
{
	static void *other;

	if (command == 'e')
		eat(40);
	else if (command == 's')
		eat(2);
	else if (command == 'o')
		other = malloc(10000);  /* other block */
	while (command == 'k')
		eat_one();
	say("eaten=%ld other=%d", eaten, other != NULL);
}

int main(void)
{
	int command;

	say("R");
	while ((command = next_command()) != VICTIM_CLOSED)
		act_on(command);
	return 0;
}
