/* Becomes another program image again and again.
 *
 * 'g' execs itself, which then says "R" again; 'a' keeps one block of 208 bytes.
 * Tally (of 'a'): execs, blocks and bytes of this image. */
#include "victim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT_BYTES 208

static long execs, blocks;

static void exec_self(void)
{
	char count[32];

	snprintf(count, sizeof(count), "%ld", execs + 1);
	execl("/proc/self/exe", "execer", "--execs", count, (char *)NULL);
	die("exec: %s", strerror(errno));
}

static void keep_one(void)
{
	char *p = malloc(KEPT_BYTES); /* kept */

	if (!p)
		die("malloc failed");
	p[0] = 1;
	blocks++;
	say("execs=%ld blocks=%ld bytes=%ld", execs, blocks, blocks * KEPT_BYTES);
}

int main(int argc, char **argv)
{
	int command;

	execs = option_number(argc, argv, "--execs", 0);
	say("R");
	while ((command = next_command()) != 'q') {
		if (command == 'g')
			exec_self();
		else
			keep_one();
	}
	return 0;
}
