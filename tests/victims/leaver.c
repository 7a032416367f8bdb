/* Leaves its memory to a process that shares it: a clone(CLONE_VM) child, which allocates and makes system calls all
 * the time, with dispositions of its own.
 *
 * 'g': says child, its pid; 'e': executes this program anew, which says "R" again and has no child; 'q': ends.  In both
 * cases the child lives on.  At SIGUSR1 it ends; it says bad (system calls with a wrong result, a SIGTRAP handler that
 * is not its own) and rounds. */
#define _GNU_SOURCE
#include "victim.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES (256 * 1024)

static pid_t child;
static long bad, rounds;
static volatile sig_atomic_t over;

static void on_usr1(int sig)
{
	(void)sig;
	over = 1;
}

static int run_child(void *argument)
{
	const struct sigaction usr1 = { .sa_handler = on_usr1 };
	struct sigaction trap;
	pid_t self = (pid_t)syscall(SYS_getpid);

	(void)argument;
	sigaction(SIGUSR1, &usr1, NULL);
	for (; !over; rounds++) {
		free(malloc(64));
		bad += syscall(SYS_getpid) != self;
		bad += syscall(SYS_gettid) != self;
	}
	sigaction(SIGTRAP, NULL, &trap);
	bad += trap.sa_handler != SIG_DFL;
	say("bad=%ld rounds=%ld", bad, rounds);
	_exit(bad != 0);
}

static void start_child(void)
{
	char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (stack == MAP_FAILED)
		die("no stack");
	child = clone(run_child, stack + STACK_BYTES, CLONE_VM | SIGCHLD, NULL);
	if (child < 0)
		die("clone: %s", strerror(errno));
	while (!*(volatile long *)&rounds)
		sched_yield();
}

int main(int argc, char **argv)
{
	int command;

	if (!option_given(argc, argv, "--alone"))
		start_child();
	say("R");
	while ((command = next_command()) != 'q') {
		if (command == 'e')
			execl("/proc/self/exe", "leaver", "--alone", (char *)NULL);
		say("child=%d", (int)child);
	}
	_exit(0);
}
