/* Allocates in two threads while timers' signals come to both, far more often than anybody would have them.
 *
 *   stormed [--usec N] [--alone]     each timer's interval, else 100 microseconds; without the second thread
 *
 *   g   each thread keeps 60 blocks of its own, and frees twice as many others
 *   s   the first one allocates and frees until the next command comes
 *
 * Tally: blocks, bytes, signals, rounds. */
#define _GNU_SOURCE
#include "victim.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES (64 * 1024)
#define ROUND_BLOCKS 60
#define KEPT_BYTES 88

static atomic_long asked, done, signals;
static timer_t timers[2];
static int timer_count = 1;
static long usec, rounds;

static void on_signal(int sig)
{
	(void)sig;
	atomic_fetch_add(&signals, 1);
}

/* To the thread that calls this. */
static timer_t make_timer(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF };
	timer_t timer;

	event._sigev_un._tid = gettid();
	if (timer_create(CLOCK_MONOTONIC, &event, &timer))
		die("timer_create: %s", strerror(errno));
	return timer;
}

static void set_timers(long every_usec)
{
	struct itimerspec when = { .it_value.tv_nsec = every_usec * 1000, .it_interval.tv_nsec = every_usec * 1000 };

	for (int i = 0; i < timer_count; i++) {
		if (timer_settime(timers[i], 0, &when, NULL))
			die("timer_settime: %s", strerror(errno));
	}
}

static __attribute__((noinline)) void keep_one(void)
{
	char *p = malloc(KEPT_BYTES); /* kept */

	if (!p)
		die("malloc failed");
	p[0] = 1;
}

static void work(void)
{
	for (int i = 0; i < ROUND_BLOCKS; i++) {
		keep_one();
		free(realloc(malloc(24), 2000));
	}
}

static void *work_beside(void *nothing)
{
	timers[1] = make_timer();
	atomic_store(&done, 0);
	for (;;) {
		while (atomic_load(&asked) == atomic_load(&done))
			sched_yield();
		work();
		atomic_fetch_add(&done, 1);
	}
	return nothing;
}

static void tell(void)
{
	long kept = timer_count * ROUND_BLOCKS * rounds;

	say("blocks=%ld bytes=%ld signals=%ld rounds=%ld", kept, kept * KEPT_BYTES, atomic_load(&signals), rounds);
}

static void round_of_all(void)
{
	set_timers(usec);
	atomic_fetch_add(&asked, 1);
	work();
	while (timer_count > 1 && atomic_load(&asked) != atomic_load(&done))
		sched_yield();
	set_timers(0);
	rounds++;
	tell();
}

static void allocate_in_the_storm(void)
{
	struct pollfd commands = { .fd = STDIN_FILENO, .events = POLLIN };

	set_timers(usec);
	say("signals=%ld", atomic_load(&signals));
	while (poll(&commands, 1, 0) <= 0) {
		for (int i = 0; i < ROUND_BLOCKS; i++)
			free(malloc(24));
	}
	set_timers(0);
}

static void start_second(void)
{
	atomic_store(&done, -1);
	start_thread(work_beside, NULL, STACK_BYTES);
	while (atomic_load(&done) < 0)
		sched_yield();
	timer_count = 2;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	int command;

	usec = option_number(argc, argv, "--usec", 100);
	if (sigaction(SIGPROF, &action, NULL))
		die("sigaction");
	timers[0] = make_timer();
	if (!option_given(argc, argv, "--alone"))
		start_second();
	say("R");
	while ((command = next_command()) != VICTIM_CLOSED) {
		if (command == 's')
			allocate_in_the_storm();
		else if (command == 'g')
			round_of_all();
		else
			tell();
	}
	return 0;
}
