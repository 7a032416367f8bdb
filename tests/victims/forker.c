/* A child that stays: a 'g' forks it, the next one lets it allocate, give back and end.
 *
 *   forker [--threads N]   beside N threads that allocate and free all the time
 *
 * Before each fork one block more is kept.  Tally: child (its pid), blocks and bytes (kept), or status (its exit
 * code, 7 when all was well there) and bad (how many had another one). */
#include "victim.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef PADDING
__asm__(".text\n.space 2048");          /* where the text ends in its last page decides what fits behind it */
#endif

#define GOOD 7
#define KEPT_BYTES 104
#define STACK_BYTES (256 * 1024)

static pid_t child;
static long blocks, bad;

static __attribute__((noinline)) void keep_one(void)
{
	char *p = malloc(KEPT_BYTES); /* kept */

	if (!p)
		die("malloc failed");
	p[0] = 1;
	blocks++;
}

static __attribute__((noinline)) void keep_some_more(void)
{
	for (int i = 0; i < 3; i++) {
		char *p = malloc(KEPT_BYTES); /* the child's own */

		if (!p)
			_exit(1);
		p[0] = 1;
	}
}

static void live_on(void)
{
	sigset_t usr1;
	int sig;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigwait(&usr1, &sig);
	for (int i = 0; i < 1000; i++) {
		char *p = malloc((size_t)i + 1);

		if (!p)
			_exit(1);
		memset(p, i, (size_t)i + 1);
		free(p);
	}
	keep_some_more();
	_exit(GOOD);
}

static void fork_one(void)
{
	sigset_t usr1;

	keep_one();
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	child = fork();
	if (child < 0)
		die("fork failed");
	if (child == 0)
		live_on();
	sigprocmask(SIG_UNBLOCK, &usr1, NULL);
	say("child=%d blocks=%ld bytes=%ld", (int)child, blocks, blocks * KEPT_BYTES);
}

static void let_it_end(void)
{
	int status;

	kill(child, SIGUSR1);
	if (waitpid(child, &status, 0) != child)
		die("waitpid failed");
	bad += !WIFEXITED(status) || WEXITSTATUS(status) != GOOD;
	say("status=%d bad=%ld", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), bad);
}

static void turn(void)
{
	static int turns;

	if (turns++ % 2 == 0)
		fork_one();
	else
		let_it_end();
}

static void *churn(void *argument)
{
	for (;;)
		free(malloc(64));
	return argument;
}

int main(int argc, char **argv)
{
	for (long i = option_number(argc, argv, "--threads", 0); i > 0; i--)
		start_thread(churn, NULL, STACK_BYTES);
	obey(turn);
	return 0;
}
