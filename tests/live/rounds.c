#include "rounds.h"

#include "live.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define STATUS_FIRST 100       /* others are those of a test that failed by itself */

void round_end(const struct outcomes *outcomes, unsigned outcome, const char *format, ...)
{
	va_list args;

	if (format) {
		printf("# %s: ", outcomes->names[outcome]);
		va_start(args, format);
		vprintf(format, args);
		va_end(args);
		putchar('\n');
	}
	fflush(stdout);
	_exit(STATUS_FIRST + (int)outcome);
}

/* Exits as the round does, and leaves nobody behind whom that has started. */
static void keep_round(void (*play)(const void *), const void *round)
{
	int status = 0;
	pid_t pid;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid = fork();
	if (pid == 0) {
		play(round);
		_exit(1);
	}
	if (pid > 0)
		waitpid(pid, &status, 0);
	live_end_children();
	_exit(pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

unsigned round_play(const struct outcomes *outcomes, void (*play)(const void *), const void *round)
{
	unsigned outcome = outcomes->count - 1;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		live_fail("fork: %s", strerror(errno));
	if (pid == 0)
		keep_round(play, round);
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) >= STATUS_FIRST &&
	    (unsigned)WEXITSTATUS(status) - STATUS_FIRST < outcomes->count)
		outcome = (unsigned)WEXITSTATUS(status) - STATUS_FIRST;
	return outcome;
}
