/* Waits in vfork, uninterruptibly, for a child that ends when it is told to.
 *
 * Commands besides g and q: 'v' says "in vfork" by the child, which then waits for one more byte; the
 * parent answers after its end.  'g' keeps a block of 72 bytes.  Tally: rounds, status (of the last
 * child), blocks. */
#include "victim.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_STATUS 7

static long rounds, blocks;

static void wait_in_vfork(void)
{
	int status;
	pid_t child = vfork();

	if (child < 0)
		die("vfork failed");
	if (child == 0) {
		static const char text[] = "in vfork\n";
		char byte;

		if (write(STDOUT_FILENO, text, sizeof(text) - 1) < 0)
			_exit(1);
		/* Not again after EINTR: nobody may break it off. */
		_exit(read(STDIN_FILENO, &byte, 1) == 1 ? CHILD_STATUS : errno);
	}
	if (waitpid(child, &status, 0) != child)
		die("waitpid failed");
	rounds++;
	say("rounds=%ld status=%d blocks=%ld", rounds, WIFEXITED(status) ? WEXITSTATUS(status) : -1, blocks);
}

static void keep_one(void)
{
	char *p = malloc(72); /* kept */

	if (!p)
		die("malloc failed");
	p[0] = 1;
	blocks++;
	say("rounds=%ld status=0 blocks=%ld", rounds, blocks);
}

int main(void)
{
	int command;

	say("R");
	while ((command = next_command()) != VICTIM_CLOSED) {
		switch (command) {
		case 'v': wait_in_vfork(); break;
		case 'g': keep_one(); break;
		default: die("unknown command '%c'", command);
		}
	}
	_exit(0);
}
