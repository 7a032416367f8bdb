/* The corners of realloc, one step per round, with what must be live after each.
 *
 * Tally: step, blocks and bytes live, peak (the true one since the "R"). */
#include "victim.h"

#include <stdint.h>
#include <stdlib.h>

#define KEPT_BYTES 500

static volatile size_t too_much = PTRDIFF_MAX;
static long blocks, bytes, peak;
static char *kept, *grown;

static void account(long more_blocks, long more_bytes)
{
	blocks += more_blocks;
	bytes += more_bytes;
	if (bytes > peak)
		peak = bytes;
}

static void allocate_kept(void)
{
	kept = malloc(KEPT_BYTES); /* kept */
	if (!kept)
		die("malloc failed");
	kept[0] = 'k';
	account(1, KEPT_BYTES);
}

static void fail_to_resize(void)
{
	char *p = realloc(kept, too_much);

	if (p)
		die("realloc of PTRDIFF_MAX bytes succeeded");
	if (kept[0] != 'k')
		die("the block changed");
}

static void fail_to_allocate(void)
{
	if (malloc(too_much) || calloc(too_much, 4) || reallocarray(NULL, too_much, 8))
		die("an impossible allocation succeeded");
}

static void resize_nothing(void)
{
	grown = realloc(NULL, 1024); /* grown from nothing */
	if (!grown)
		die("realloc failed");
	account(1, 1024);
}

static void grow_to_a_megabyte(void)
{
	for (size_t size = 1024; size < 1024 * 1024; size *= 2) {
		char *p = realloc(grown, size * 2); /* grown */

		if (!p)
			die("realloc failed");
		grown = p;
		account(0, (long)size);
	}
}

static void resize_to_zero(void)
{
	char *p = malloc(64), *q;

	if (!p)
		die("malloc failed");
	account(1, 64);
	q = realloc(p, 0);
	account(-1, -64);
	if (q) /* not glibc: a new block of no bytes */
		account(1, 0);
}

static void free_all(void)
{
	free(kept);
	free(grown);
	free(NULL);
	account(-2, -KEPT_BYTES - 1024 * 1024);
}

static void (*const steps[])(void) = {
	allocate_kept, fail_to_resize, fail_to_allocate, resize_nothing,
	grow_to_a_megabyte, resize_to_zero, free_all,
};

static void next_step(void)
{
	static size_t step;

	if (step == sizeof(steps) / sizeof(steps[0]))
		die("there is no further step");
	steps[step++]();
	say("step=%zu blocks=%ld bytes=%ld peak=%ld", step, blocks, bytes, peak);
}

int main(void)
{
	obey(next_step);
	return 0;
}
