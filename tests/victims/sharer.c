/* Processes that share the memory and stay: one by clone(CLONE_VM), one by vfork, which keeps its parent waiting.
 *
 * 'g': the clone allocates some blocks and gives some back.  Tally: child (the clone), blocks and bytes (kept),
 * own (whether who answers has a SIGTRAP handler).  At the end the exit codes are looked at.
 *
 *   sharer [vfork]        with vfork: the main thread waits in vfork, its child obeys in its place */
#define _GNU_SOURCE
#include "victim.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_BYTES (256 * 1024)
#define BLOCK_BYTES 136
#define PER_ROUND 5
#define GOOD 11

static long blocks;
static volatile int asked, done;
static pid_t clone_pid;

static __attribute__((noinline)) void allocate_round(void)
{
	for (int i = 0; i < PER_ROUND; i++) {
		char *p = malloc(BLOCK_BYTES); /* shared block */

		if (!p)
			_exit(1);
		p[0] = 1;
		free(malloc(50));
		blocks++;
	}
}

static void pause_briefly(void)
{
	const struct timespec ts = { 0, 200000 };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

static int run_clone(void *argument)
{
	(void)argument;
	while (asked >= 0) {
		if (done < asked) {
			allocate_round();
			done++;
		}
		pause_briefly();
	}
	_exit(GOOD);
}

static long own_handler(void)
{
	struct sigaction action;

	sigaction(SIGTRAP, NULL, &action);
	return action.sa_handler == SIG_DFL ? 0 : 1;
}

static void turn(void)
{
	asked++;
	while (done < asked)
		pause_briefly();
	say("child=%d blocks=%ld bytes=%ld own=%ld", (int)clone_pid, blocks, blocks * BLOCK_BYTES, own_handler());
}

static void vfork_and_obey(void)
{
	pid_t pid = vfork();
	int status;

	if (pid == 0) {
		obey(turn);
		_exit(GOOD);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != GOOD)
		die("the child of vfork did not end well");
}

int main(int argc, char **argv)
{
	char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status;

	if (stack == MAP_FAILED)
		die("no stack");
	clone_pid = clone(run_clone, stack + STACK_BYTES, CLONE_VM | SIGCHLD, NULL);
	if (clone_pid < 0)
		die("clone failed");
	if (argc > 1)
		vfork_and_obey();
	else
		obey(turn);
	asked = -1;
	if (waitpid(clone_pid, &status, 0) != clone_pid || !WIFEXITED(status) || WEXITSTATUS(status) != GOOD)
		die("the child of clone did not end well");
	(void)argv;
	return 0;
}
