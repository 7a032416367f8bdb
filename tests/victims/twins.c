/* Two static functions of one name, in this file and in twins_other.c.
 *
 *   a   1000 bytes by this file's, kept
 *   b   300 bytes by the other's, kept
 *
 * Tally: blocks of each. */
#include "twins.h"
#include "victim.h"

#include <stdlib.h>

static __attribute__((noinline)) void *make(void)
{
	char *block = malloc(1000);

	/* Written to, or the call would be a jump. */
	if (block)
		*block = 1;
	return block;
}

int main(void)
{
	int command;
	long own = 0, others = 0;
	static void *last;

	say("R");
	while ((command = next_command()) != VICTIM_CLOSED) {
		if (command == 'a') {
			last = make();
			own += last != NULL;
		} else if (command == 'b') {
			last = twins_other();
			others += last != NULL;
		}
		say("own=%ld others=%ld", own, others);
	}
	return 0;
}
