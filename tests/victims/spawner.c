/* Starts programs by vfork, posix_spawn, system and clone(CLONE_VM), children that allocate first.
 *
 *   spawner [--round N] [--no-fork]    N of each kind per round (default 3), and not those of fork
 *
 * What vfork's child executes first is not there, so it allocates once more.  A vfork child and a clone(CLONE_VM) child share the parent's memory: what they allocate is the
 * parent's.  Tally: spawned, bad (exit codes), blocks and bytes (of its own; those of system() and
 * posix_spawn() are given back by libc), first_bad (the first wait status that was bad, or a negative errno) and
 * expected (the exit code that it should have had). */
#define _GNU_SOURCE
#include "victim.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_BLOCK_BYTES 88
#define CHILD_STACK_BYTES (64 * 1024)

extern char **environ;

static long per_round, spawned, bad, blocks, first_bad, first_expected;
static int no_fork;
static char *clone_stack;

static void count_bad(int status, int expected)
{
	if (bad++ > 0)
		return;
	first_bad = status;
	first_expected = expected;
}

static void expect_status(pid_t pid, int expected)
{
	int status = 0;
	pid_t waited = pid < 0 ? 0 : waitpid(pid, &status, __WALL);

	spawned++;
	if (waited != pid || pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != expected)
		count_bad(waited != pid || pid < 0 ? -errno : status, expected);
}

static __attribute__((noinline)) void allocate_in_child(void)
{
	char *p = malloc(CHILD_BLOCK_BYTES); /* child block */

	if (!p)
		_exit(1);
	p[0] = 1;
	free(malloc(40));
	blocks++;
}

static void by_vfork(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		allocate_in_child();
		execl("/dev/null/false", "false", (char *)NULL);
		allocate_in_child();
		execl("/bin/false", "false", (char *)NULL);
		_exit(127);
	}
	expect_status(pid, 1);
}

static void by_posix_spawn(void)
{
	static char shell[] = "sh", option[] = "-c", command[] = "exit 7";
	char *argv[] = { shell, option, command, NULL };
	pid_t pid;

	if (posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ))
		pid = -1;
	expect_status(pid, 7);
}

static void by_system(void)
{
	int status = system("exit 5");

	spawned++;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 5)
		count_bad(status == -1 ? -errno : status, 5);
}

static void by_fork(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		for (int i = 0; i < 50; i++) {
			char *p = malloc(100);

			if (p)
				p[0] = 1;
		}
		execl("/bin/true", "true", (char *)NULL);
		_exit(127);
	}
	expect_status(pid, 0);
}

static int run_clone(void *argument)
{
	(void)argument;
	allocate_in_child();
	_exit(9);
}

static void by_clone(void)
{
	expect_status(clone(run_clone, clone_stack + CHILD_STACK_BYTES, CLONE_VM | SIGCHLD, NULL), 9);
}

static void spawn_all(void)
{
	for (long i = 0; i < per_round; i++) {
		by_vfork();
		by_posix_spawn();
		by_system();
		if (!no_fork)
			by_fork();
		by_clone();
	}
	say("spawned=%ld bad=%ld blocks=%ld bytes=%ld first_bad=%ld expected=%ld", spawned, bad, blocks,
	    blocks * CHILD_BLOCK_BYTES, first_bad, first_expected);
}

int main(int argc, char **argv)
{
	per_round = option_number(argc, argv, "--round", 3);
	no_fork = option_given(argc, argv, "--no-fork");
	clone_stack = mmap(NULL, CHILD_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	if (clone_stack == MAP_FAILED)
		die("no stack");
	obey(spawn_all);
	return 0;
}
