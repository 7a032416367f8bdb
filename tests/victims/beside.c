/* Its malloc and free (beside_code.S) have int3s of their own, which its handler counts: two in an allocation, one in a
 * free.  Each 'g' allocates three blocks and frees two.
 *
 * Tally: blocks (live), and caught. */
#include "victim.h"

#include <signal.h>
#include <stdlib.h>

static volatile long blocks, caught;
static void *volatile last;

static void catch(int signal)
{
	(void)signal;
	caught++;
}

static void turn(void)
{
	void *p = malloc(24), *q = malloc(25);

	last = malloc(26);                       /* kept block */
	blocks++;
	free(p);
	free(q);
	say("blocks=%ld caught=%ld", blocks, caught);
}

int main(void)
{
	struct sigaction action = { .sa_handler = catch };

	sigaction(SIGTRAP, &action, NULL);
	obey(turn);
	return 0;
}
