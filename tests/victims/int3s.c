/* Has int3s of its own: executes one at each 'g'; 'h' sets a handler for them, without which the first is the end.
 *
 * Tally: met and caught. */
#include "victim.h"

#include <signal.h>
#include <stdlib.h>

static volatile long met, caught;

static void catch(int signal)
{
	(void)signal;
	caught++;
}

static __attribute__((noinline)) void meet(void)
{
	met++;
	free(malloc(100));
	__asm__ volatile("int3" ::: "memory");
}

int main(void)
{
	struct sigaction action = { .sa_handler = catch };
	int command;

	say("R");
	while ((command = next_command()) != VICTIM_CLOSED) {
		if (command == 'h')
			sigaction(SIGTRAP, &action, NULL);
		else if (command == 'g')
			meet();
		say("met=%ld caught=%ld", met, caught);
	}
	return 0;
}
