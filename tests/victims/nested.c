/* Two threads allocate by a malloc of the program's own, which asks the real one, while signals come in.
 *
 * SIGUSR1 has a handler that does nothing, SIGWINCH none.  The threads go on for ever; 'g' only answers.
 * Tally: rounds. */
#define _GNU_SOURCE
#include "victim.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define STACK_BYTES (64 * 1024)
#define WORKERS 2

static void *(*real_malloc)(size_t size);
static atomic_long rounds, asked;

/* More than a jump: it must be a call within a call. */
void *malloc(size_t size)
{
	void *p;

	if (!real_malloc)
		*(void **)&real_malloc = dlsym(RTLD_NEXT, "malloc");
	p = real_malloc(size);
	atomic_fetch_add(&asked, 1);
	return p;
}

static void nothing(int signal)
{
	(void)signal;
}

static void *churn(void *argument)
{
	for (;;) {
		char *p = malloc(200);

		if (!p)
			die("malloc failed");
		p[0] = 1;
		free(p);
		atomic_fetch_add(&rounds, 1);
	}
	return argument;
}

static void answer(void)
{
	say("rounds=%ld", atomic_load(&rounds));
}

int main(void)
{
	struct sigaction action = { .sa_handler = nothing, .sa_flags = SA_RESTART };

	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < WORKERS; i++)
		start_thread(churn, NULL, STACK_BYTES);
	obey(answer);
	_exit(0);
}
