/* A thread waits for a file system that does not answer, in D state once somebody has disturbed it.
 *
 *   staller PATH
 *
 * 'g' keeps a block of 88 bytes.  Tally: blocks, waiting (0: the call for PATH has ended), error (its errno). */
#include "victim.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define STACK_BYTES (64 * 1024)

static atomic_long waiting = 1, error;
static long blocks;

static void *stall(void *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		atomic_store(&error, errno);
	atomic_store(&waiting, 0);
	for (;;)
		pause();
	return NULL;
}

static void keep_one(void)
{
	char *p = malloc(88); /* kept */

	if (!p)
		die("malloc failed");
	p[0] = 1;
	blocks++;
	say("blocks=%ld waiting=%ld error=%ld", blocks, atomic_load(&waiting), atomic_load(&error));
}

int main(int argc, char **argv)
{
	if (argc != 2)
		die("no path");
	start_thread(stall, argv[1], STACK_BYTES);
	obey(keep_one);
	_exit(0);
}
