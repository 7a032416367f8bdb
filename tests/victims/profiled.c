/* Has its stack taken at 1 kHz while it allocates, as a profiler in the process does it, by a handler that calls backtrace().
 *
 * 'g': for a second.  Each keeps one block beside what it frees.
 * Tally (of all): allocations, blocks and bytes; handled (signals) and cut (stacks without main). */
#include "victim.h"

#include <execinfo.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#define MS 1000
#define FRAMES 64
#define KEPT_BYTES 56
#define ROUND 100

/* main's own code. */
extern const char __start_main_code[], __stop_main_code[];

static volatile long handled, cut;
static long allocations, blocks;

static bool reaches_main(void *const *frames, int count)
{
	for (int i = 0; i < count; i++) {
		const char *at = frames[i];

		if (at >= __start_main_code && at <= __stop_main_code)
			return true;
	}
	return false;
}

static void take_stack(int sig)
{
	void *frames[FRAMES];
	int count = backtrace(frames, FRAMES);

	(void)sig;
	handled++;
	cut += !reaches_main(frames, count);
}

static void tick(long us)
{
	const struct itimerval timer = { { 0, us }, { 0, us } };

	if (setitimer(ITIMER_REAL, &timer, NULL) < 0)
		die("setitimer failed");
}

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static __attribute__((noinline)) void turn(void)
{
	long end = now_ms() + MS;

	if (!malloc(KEPT_BYTES))
		die("malloc failed");
	blocks++;
	allocations++;
	tick(1000);
	while (now_ms() < end) {
		for (int i = 0; i < ROUND; i++) {
			void *volatile block = malloc(40);

			free(block);
		}
		allocations += ROUND;
	}
	tick(0);
	say("allocations=%ld blocks=%ld bytes=%ld handled=%ld cut=%ld", allocations, blocks, blocks * KEPT_BYTES, handled, cut);
}

__attribute__((section("main_code"))) int main(void)
{
	const struct sigaction action = { .sa_handler = take_stack, .sa_flags = SA_RESTART };
	void *frames[FRAMES];
	/* The first one loads a library. */
	int count = backtrace(frames, FRAMES);

	if (!reaches_main(frames, count) || sigaction(SIGALRM, &action, NULL) < 0)
		die("no stack can be taken");
	obey(turn);
	return 0;
}
