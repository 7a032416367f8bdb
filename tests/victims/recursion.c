/* Allocates under 100,000 frames of one recursion, on a thread with room for them.
 *
 *   recursion [--first DEPTH] [--undumpable]   under so many on the first thread, whose stack grows; by PR_SET_DUMPABLE
 *
 * Tally: depth, blocks and bytes (one kept a round). */
#include "victim.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define DEPTH 100000
#define KEPT_BYTES 616
#define STACK_BYTES (64UL << 20)

static long blocks, wanted_depth = DEPTH;
static volatile long frames_seen;
static atomic_int main_waits;

static __attribute__((noinline)) void keep_one(void)
{
	char *p = malloc(KEPT_BYTES); /* kept */

	if (!p)
		die("malloc failed");
	p[0] = 1;
	blocks++;
}

/* What it does after the call keeps it a real recursion. */
static __attribute__((noinline)) void descend(long depth)
{
	if (depth == 0)
		keep_one();
	else
		descend(depth - 1);
	frames_seen++;
}

static void dive(void)
{
	frames_seen = 0;
	descend(wanted_depth);
	say("depth=%ld blocks=%ld bytes=%ld", frames_seen - 1, blocks, blocks * KEPT_BYTES);
}

/* While it creates a thread, the main thread blocks every signal: not ready before that is over. */
static void *obey_deep(void *argument)
{
	while (!atomic_load(&main_waits))
		sched_yield();
	obey(dive);
	_exit(0);
	return argument;
}

int main(int argc, char **argv)
{
	wanted_depth = option_number(argc, argv, "--first", DEPTH);
	if (option_given(argc, argv, "--undumpable") && prctl(PR_SET_DUMPABLE, 0))
		die("PR_SET_DUMPABLE failed");
	if (option_given(argc, argv, "--first")) {
		obey(dive);
		return 0;
	}
	start_thread(obey_deep, NULL, STACK_BYTES);
	atomic_store(&main_waits, 1);
	for (;;)
		pause();
}
