/* A handler that allocates where a signal finds the thread in the vdso, which is no file.
 *
 * Tally: blocks and bytes. */
#define _GNU_SOURCE
#include "victim.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

#define KEPT_A_ROUND 20
#define KEPT_BYTES 717
#define PERIOD_US 500
#define VDSO_BYTES 8192UL              /* at least where its code lies */
#define PATIENCE_NS 30000000000ULL

static volatile long blocks, wanted;
static volatile sig_atomic_t asking;

static int is_in_vdso(const ucontext_t *context)
{
	unsigned long start = getauxval(AT_SYSINFO_EHDR), pc = (unsigned long)context->uc_mcontext.gregs[REG_RIP];

	return pc >= start && pc < start + VDSO_BYTES;
}

/* Nothing else allocates meanwhile. */
static void handle(int number, siginfo_t *info, void *context)
{
	char *block;

	(void)number, (void)info;
	if (!asking || blocks == wanted || !is_in_vdso(context))
		return;
	block = malloc(KEPT_BYTES); /* above the vdso */
	if (!block)
		die("malloc failed");
	block[0] = 1;
	blocks++;
}

static __attribute__((noinline)) void ask(void)
{
	struct timespec now;

	asking = 1;
	for (int i = 0; i < 1000; i++)
		clock_gettime(CLOCK_MONOTONIC, &now); /* asks the time */
	asking = 0;
}

static void round_of(void)
{
	const struct itimerval period = { { 0, PERIOD_US }, { 0, PERIOD_US } }, never = { { 0, 0 }, { 0, 0 } };
	uint64_t deadline_ns = now_ns() + PATIENCE_NS;

	wanted = blocks + KEPT_A_ROUND;
	setitimer(ITIMER_REAL, &period, NULL);
	while (blocks < wanted) {
		ask();
		if (now_ns() > deadline_ns)
			die("no signal finds it in the vdso");
	}
	setitimer(ITIMER_REAL, &never, NULL);
	say("blocks=%ld bytes=%ld", blocks, blocks * KEPT_BYTES);
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_RESTART };

	if (sigaction(SIGALRM, &action, NULL))
		die("sigaction");
	obey(round_of);
	return 0;
}
