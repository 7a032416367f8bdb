/* Has no memory but what brk gives it.  Its heap begins right behind it, as without address randomization.
 * A round grows it by GROWN_MIB, and has malloc make a block as well.  Tally: grown_mib. */
#define _GNU_SOURCE
#include "victim.h"

#include <stdlib.h>
#include <sys/personality.h>
#include <unistd.h>

#ifdef PADDING
__asm__(".text\n.space 2048");          /* where the text ends in its last page decides what fits behind it */
#endif

#define GROWN_MIB 64

static long grown_mib;
static void *volatile kept;

static void grow(void)
{
	if (sbrk((intptr_t)GROWN_MIB << 20) == (void *)-1)
		die("the heap has %ld MiB, and gets no more", grown_mib);
	grown_mib += GROWN_MIB;
	kept = malloc(100);
	say("grown_mib=%ld", grown_mib);
}

int main(int argc, char **argv)
{
	int now = personality(0xffffffff);

	(void)argc;
	if (now < 0 || personality((unsigned long)now | ADDR_NO_RANDOMIZE) < 0)
		die("no personality");
	if (!(now & ADDR_NO_RANDOMIZE))
		execv("/proc/self/exe", argv);
	obey(grow);
	return 0;
}
