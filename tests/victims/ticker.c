/* A handler that allocates at 1 kHz, on a stack of its own.
 *
 *   ticker [--no-altstack]
 *
 * The main thread takes SIGALRM and never allocates outside the handler (malloc is not for handlers
 * else); a second thread, with the signal blocked, allocates and frees all the time.  A round waits
 * for 50 more ticks.  Tally: ticks, blocks and bytes (kept by the handler, one each 10 ticks),
 * stray (ticks on the wrong stack). */
#include "victim.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#define TICK_USEC 1000
#define ROUND_TICKS 50
#define KEPT_BYTES 56
#define ALTSTACK_BYTES (64 * 1024)
#define STACK_BYTES (64 * 1024)

static atomic_long ticks, blocks, stray;
static char *altstack;
static int use_altstack;

static __attribute__((noinline)) void keep_one(void)
{
	char *p = malloc(KEPT_BYTES); /* kept by the handler */

	if (!p)
		die("malloc failed");
	p[0] = 1;
	atomic_fetch_add(&blocks, 1);
}

static void tick(int signal)
{
	char here;
	int on_altstack = &here >= altstack && &here < altstack + ALTSTACK_BYTES;

	(void)signal;
	if (on_altstack != use_altstack)
		atomic_fetch_add(&stray, 1);
	if (atomic_fetch_add(&ticks, 1) % 10 == 0)
		keep_one();
	else
		free(malloc(24));
}

static void *churn(void *argument)
{
	for (;;)
		free(malloc(200));
	return argument;
}

static void set_up_altstack(void)
{
	stack_t stack = { .ss_size = ALTSTACK_BYTES };

	altstack = mmap(NULL, ALTSTACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (altstack == MAP_FAILED)
		die("no stack");
	stack.ss_sp = altstack;
	if (use_altstack && sigaltstack(&stack, NULL))
		die("sigaltstack failed");
}

static void set_timer(long usec)
{
	struct itimerval timer = { .it_interval.tv_usec = usec, .it_value.tv_usec = usec };

	if (setitimer(ITIMER_REAL, &timer, NULL))
		die("setitimer failed");
}

/* Quiet while it answers: the tally then stands still and can be compared. */
static void count_ticks(void)
{
	long until = atomic_load(&ticks) + ROUND_TICKS;

	set_timer(TICK_USEC);
	while (atomic_load(&ticks) < until)
		;
	set_timer(0);
	say("ticks=%ld blocks=%ld bytes=%ld stray=%ld", atomic_load(&ticks), atomic_load(&blocks),
	    atomic_load(&blocks) * KEPT_BYTES, atomic_load(&stray));
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = tick, .sa_flags = SA_RESTART };
	sigset_t alarm_only;

	use_altstack = !option_given(argc, argv, "--no-altstack");
	if (use_altstack)
		action.sa_flags |= SA_ONSTACK;
	sigemptyset(&alarm_only);
	sigaddset(&alarm_only, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm_only, NULL);
	start_thread(churn, NULL, STACK_BYTES);
	pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
	set_up_altstack();
	sigaction(SIGALRM, &action, NULL);
	obey(count_ticks);
	return 0;
}
