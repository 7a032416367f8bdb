/* The main thread is gone (pthread_exit), two others live on: one obeys, one allocates.
 *
 * Tally: blocks and bytes, kept one a round by the thread that obeys. */
#include "victim.h"

#include <stdlib.h>
#include <unistd.h>

#define STACK_BYTES (64 * 1024)
#define KEPT_BYTES 104

static long blocks;
static pthread_t main_thread;

static void *churn(void *argument)
{
	for (;;)
		free(malloc(64));
	return argument;
}

static void keep_one(void)
{
	char *p = malloc(KEPT_BYTES); /* kept */

	if (!p)
		die("malloc failed");
	p[0] = 1;
	blocks++;
	say("blocks=%ld bytes=%ld", blocks, blocks * KEPT_BYTES);
}

static void *obey_alone(void *argument)
{
	pthread_join(main_thread, NULL);
	obey(keep_one);
	_exit(0);
	return argument;
}

int main(void)
{
	main_thread = pthread_self();
	start_thread(churn, NULL, STACK_BYTES);
	start_thread(obey_alone, NULL, STACK_BYTES);
	pthread_exit(NULL);
}
