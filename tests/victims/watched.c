/* For Yama's modes: says who may trace it, and looks at itself where others may not.
 *
 * Besides 'g', which keeps a block:
 *   f   forks a child that allocates, looks at its own text and its action for SIGTRAP, and ends with 7 when both are as
 *       they should be
 *   e   becomes this program anew, which says "R" again
 *   t   compares its own text with its files: compared and different, in bytes; and action, SIGTRAP's: 0 is the default
 *   n   names the process whose number comes next, ended by a dot, as who may trace it (0: nobody, -1: anybody)
 * Tally: pid, blocks and bytes (of this image), status (of the child). */
#include "victim.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT_BYTES 120
#define GOOD 7

static long blocks;
static int status;

static void tell(void)
{
	say("pid=%d blocks=%ld bytes=%ld status=%d", (int)getpid(), blocks, blocks * KEPT_BYTES,
	    WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

static void keep_one(void)
{
	char *p = malloc(KEPT_BYTES); /* kept */

	if (!p)
		die("malloc failed");
	p[0] = 1;
	blocks++;
}

static int has_default_action(void)
{
	struct sigaction action;

	return sigaction(SIGTRAP, NULL, &action) == 0 && action.sa_handler == SIG_DFL;
}

static void live_and_end(void)
{
	long compared, different;

	for (size_t i = 1; i < 50; i++) {
		volatile char *p = malloc(i);

		if (!p)
			_exit(1);
		p[0] = 1;
		free((char *)p);
	}
	compare_text(&compared, &different);
	_exit(compared < 1000000 ? 2 : different != 0 ? 3 : !has_default_action() ? 4 : GOOD);
}

static void fork_one(void)
{
	pid_t child = fork();

	if (child < 0)
		die("no child");
	if (child == 0)
		live_and_end();
	if (waitpid(child, &status, 0) != child)
		die("no child to wait for");
}

static void tell_text(void)
{
	long compared, different;

	compare_text(&compared, &different);
	say("compared=%ld different=%ld action=%d", compared, different, !has_default_action());
}

static void name_tracer(void)
{
	char number[16];
	size_t n = 0;
	int c;

	while ((c = next_command()) != '.' && n < sizeof(number) - 1)
		number[n++] = (char)c;
	number[n] = '\0';
	if (prctl(PR_SET_PTRACER, atol(number), 0, 0, 0))
		die("PR_SET_PTRACER: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	(void)argc;
	say("R");
	for (;;) {
		switch (next_command()) {
		case 'g':
			keep_one();
			tell();
			break;
		case 'f':
			fork_one();
			tell();
			break;
		case 'n':
			name_tracer();
			tell();
			break;
		case 't':
			tell_text();
			break;
		case 'e':
			execl("/proc/self/exe", argv[0], (char *)NULL);
			die("exec: %s", strerror(errno));
		case 'q':
			return 0;
		default:
			die("unknown command");
		}
	}
}
