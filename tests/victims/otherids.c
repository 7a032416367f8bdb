/* One memory, two users: by a thread, or a process that shares it, with other ids than the main thread.  Started by root.
 *
 *   otherids UID OTHER [process]      'g': both allocate, one after the other.  Tally: blocks, bytes (kept by both),
 *                                     other (the number of the second) */
#define _GNU_SOURCE
#include "victim.h"

#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_BYTES (256 * 1024)
#define BLOCK_BYTES 184
#define PER_ROUND 4

static long blocks, other_uid;
static volatile int asked, done;
static volatile pid_t other;

static __attribute__((noinline)) void allocate(void)
{
	for (int i = 0; i < PER_ROUND; i++) {
		char *p = malloc(BLOCK_BYTES); /* either's block */

		if (!p)
			die("no memory");
		p[0] = 1;
		free(malloc(40));
		blocks++;
	}
}

/* libc would do so for all threads. */
static void become(long id)
{
	if (syscall(SYS_setgroups, 0, NULL) || syscall(SYS_setresgid, id, id, id) || syscall(SYS_setresuid, id, id, id))
		die("cannot become another user");
}

static void serve(void)
{
	become(other_uid);
	other = (pid_t)syscall(SYS_gettid);
	for (;;) {
		while (asked == done)
			sched_yield();
		allocate();
		done = asked;
	}
}

static void *serve_as_thread(void *argument)
{
	serve();
	return argument;
}

static int serve_as_process(void *argument)
{
	(void)argument;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	serve();
	return 0;
}

static void round_of_both(void)
{
	allocate();
	asked++;
	while (done != asked)
		sched_yield();
	say("blocks=%ld bytes=%ld other=%ld", blocks, blocks * BLOCK_BYTES, (long)other);
}

int main(int argc, char **argv)
{
	char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (argc < 3 || stack == MAP_FAILED)
		die("two uids are wanted");
	other_uid = atol(argv[2]);
	if (argc == 3)
		start_thread(serve_as_thread, NULL, STACK_BYTES);
	else if (clone(serve_as_process, stack + STACK_BYTES, CLONE_VM | SIGCHLD, NULL) < 0)
		die("no process");
	while (!other)
		sched_yield();
	become(atol(argv[1]));
	/* Changing ids has closed the memory to other users; this one opens it again. */
	prctl(PR_SET_DUMPABLE, 1);
	obey(round_of_both);
	if (argc > 3)
		kill(other, SIGKILL);
	return 0;
}
