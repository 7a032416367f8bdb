/* Keeps a block more at each 'g', and frees the oldest at each 'f'; after 'w' it works by itself, a hundred
 * allocations and frees in a millisecond, until 'i'.
 *
 * Tally: kept, and freed. */
#include "victim.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>

#define KEPT_MAX 1000
#define STACK_BYTES (64 * 1024)

static void *kept[KEPT_MAX];
static int oldest, youngest;
static atomic_bool works;
static atomic_long turns;

static void keep(void)
{
	if (youngest == KEPT_MAX)
		die("too many");
	kept[youngest++] = malloc(72);          /* kept block */
	free(malloc(3000));
}

static void let_one_go(void)
{
	if (oldest < youngest)
		free(kept[oldest++]);
}

static void *work(void *nothing)
{
	for (;;) {
		for (int i = 0; works && i < 100; i++) {
			free(malloc(200));
			atomic_fetch_add(&turns, 1);
		}
		poll(NULL, 0, 1);
	}
	return nothing;
}

int main(void)
{
	int command;

	start_thread(work, NULL, STACK_BYTES);
	say("R");
	while ((command = next_command()) != VICTIM_CLOSED) {
		if (command == 'g')
			keep();
		else if (command == 'f')
			let_one_go();
		else if (command == 'w' || command == 'i')
			works = command == 'w';
		say("kept=%d freed=%d turns=%ld", youngest - oldest, oldest, atomic_load(&turns));
	}
	return 0;
}
