/* A tree of forked children, depth 3, that allocate and exit at once.
 *
 * Each child checks its children's exit codes and exits with its own.  Tally: children, bad (exit
 * codes that were not the expected ones), blocks (left alive by the root itself, one a round), first_bad (the
 * first wait status of a child of the root that was not the expected one). */
#include "victim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEPTH 3
#define FANOUT 3
#define CHILD_BLOCKS 20
#define ROOT_BLOCK_BYTES 72

static long children, bad, blocks, first_bad;

static int expected_status(int depth, int index)
{
	return 10 + depth * FANOUT + index;
}

/* What a child that exits at once does: blocks of its own, and none given back. */
static void allocate_some(void)
{
	for (int i = 0; i < CHILD_BLOCKS; i++) {
		char *p = malloc((size_t)i + 100);

		if (!p)
			_exit(1);
		memset(p, i, 100);
		if (i % 2)
			free(p);
	}
}

static int plant_tree(int depth)
{
	pid_t pid[FANOUT];
	int wrong = 0;

	if (depth == 0)
		return 0;
	for (int i = 0; i < FANOUT; i++) {
		pid[i] = fork();
		if (pid[i] < 0)
			die("fork: %s", strerror(errno));
		if (pid[i] == 0) {
			allocate_some();
			_exit(plant_tree(depth - 1) ? 1 : expected_status(depth, i));
		}
	}
	for (int i = 0; i < FANOUT; i++) {
		int status = -1;

		if (waitpid(pid[i], &status, 0) == pid[i] && WIFEXITED(status) &&
		    WEXITSTATUS(status) == expected_status(depth, i))
			continue;
		wrong++;
		if (first_bad == 0)
			first_bad = status;
	}
	return wrong;
}

static void plant(void)
{
	char *p = malloc(ROOT_BLOCK_BYTES); /* root block */

	if (!p)
		die("malloc failed");
	p[0] = 1;
	blocks++;
	bad += plant_tree(DEPTH);
	children += FANOUT + FANOUT * FANOUT + FANOUT * FANOUT * FANOUT;
	say("children=%ld bad=%ld blocks=%ld bytes=%ld first_bad=%ld", children, bad, blocks, blocks * ROOT_BLOCK_BYTES, first_bad);
}

int main(void)
{
	obey(plant);
	return 0;
}
