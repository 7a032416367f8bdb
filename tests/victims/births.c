/* A thread is born every 200 us, allocates, and dies.
 *
 * Each keeps one block of 40 bytes and gives one of 1000 back.  A round bears 200 threads and waits
 * until all are gone.  Commands besides g and q: 'r' bears threads until 's'.
 * Tally: births, round_births (of the last 'g'), blocks (kept by the threads of 'g' rounds). */
#include "victim.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INTERVAL_NS 200000
#define ROUND_THREADS 200
#define KEPT_BYTES 40

static long births, blocks;

static __attribute__((noinline)) void *live_in_round(void *argument)
{
	char *p = malloc(KEPT_BYTES); /* kept in a round */

	(void)argument;
	if (!p)
		die("malloc failed");
	p[0] = 1;
	free(malloc(1000));
	return NULL;
}

static __attribute__((noinline)) void *live(void *argument)
{
	char *p = malloc(KEPT_BYTES); /* kept */

	(void)argument;
	if (!p)
		die("malloc failed");
	p[0] = 1;
	free(malloc(1000));
	return NULL;
}

static void bear(void *(*run)(void *))
{
	uint64_t next = now_ns() + INTERVAL_NS;
	pthread_t thread;
	int r = pthread_create(&thread, NULL, run, NULL);

	if (r)
		die("pthread_create: %s", strerror(r));
	pthread_join(thread, NULL);
	births++;
	while (now_ns() < next)
		;
}

static void bear_round(void)
{
	for (int i = 0; i < ROUND_THREADS; i++)
		bear(live_in_round);
	blocks += ROUND_THREADS;
	say("births=%ld round_births=%d blocks=%ld bytes=%ld", births, ROUND_THREADS, blocks,
	    blocks * KEPT_BYTES);
}

static int command_waits(void)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&input, 1, 0) > 0;
}

static void bear_until_told(void)
{
	while (!command_waits())
		bear(live);
}

int main(void)
{
	int command;

	say("R");
	while ((command = next_command()) != 'q') {
		switch (command) {
		case 'g': bear_round(); break;
		case 'r': bear_until_told(); break;
		case 's': say("births=%ld", births); break;
		default: die("unknown command '%c'", command);
		}
	}
	_exit(0);
}
