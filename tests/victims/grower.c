/* Has as many blocks, on as many call paths, as it is told.
 *
 *   g   keeps 2000 more blocks of 16 to 79 bytes, each call path one of 4096
 *   f   frees every second one
 *   0   frees all
 *   t   20 threads, one after another, each keep a block and end
 *   r   frees a block and makes it anew, 2000 times
 *
 * Tally: blocks, bytes. */
#include "victim.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#define BLOCKS_MAX 2000000
#define STEP 2000
#define DEPTH 12
#define THREADS 20
#define STACK_BYTES (64 * 1024)

static struct {
	void *p;
	unsigned size;
} kept[BLOCKS_MAX];
static long blocks, bytes;
static atomic_int lived;
static uint64_t random_state = 88172645463325252ULL;

static void *left(unsigned path, unsigned depth, size_t size);

static __attribute__((noinline)) void *right(unsigned path, unsigned depth, size_t size)
{
	void *p = depth == 0 ? malloc(size) : path & 1 ? right(path >> 1, depth - 1, size) :
							 left(path >> 1, depth - 1, size);

	if (!p)
		die("malloc failed");
	return p;
}

static __attribute__((noinline)) void *left(unsigned path, unsigned depth, size_t size)
{
	void *p = depth == 0 ? malloc(size) : path & 1 ? right(path >> 1, depth - 1, size) :
							 left(path >> 1, depth - 1, size);

	if (!p)
		die("malloc failed");
	return p;
}

static void keep(void)
{
	unsigned random = (unsigned)(random_next(&random_state) >> 32), size = 16 + random % 64;

	if (blocks == BLOCKS_MAX)
		die("too many blocks");
	kept[blocks].p = left(random >> 8, DEPTH, size);
	kept[blocks++].size = size;
	bytes += size;
}

static void let_go(long index)
{
	free(kept[index].p);
	bytes -= kept[index].size;
	kept[index] = kept[--blocks];
}

static void *live_shortly(void *nothing)
{
	keep();
	atomic_fetch_add(&lived, 1);
	return nothing;
}

static void bear_threads(void)
{
	for (int i = 0; i < THREADS; i++) {
		int before = atomic_load(&lived);

		start_thread(live_shortly, NULL, STACK_BYTES);
		while (atomic_load(&lived) == before)
			sched_yield();
	}
}

static void act_on(int command)
{
	for (int i = 0; command == 'g' && i < STEP; i++)
		keep();
	for (long i = blocks - 1; command == 'f' && i >= 0; i -= 2)
		let_go(i);
	while (command == '0' && blocks > 0)
		let_go(blocks - 1);
	for (int i = 0; command == 'r' && blocks > 0 && i < STEP; i++) {
		let_go((long)(random_next(&random_state) >> 33) % blocks);
		keep();
	}
	if (command == 't')
		bear_threads();
	say("blocks=%ld bytes=%ld", blocks, bytes);
}

int main(void)
{
	int command;

	say("R");
	while ((command = next_command()) != VICTIM_CLOSED)
		act_on(command);
	return 0;
}
