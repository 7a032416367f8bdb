/* Threads with masks of their own, which allocate; each knows its mask, and a child can be made by each.
 *
 *   masks [--births]      with --births one thread makes and joins threads all the time
 *
 * A third of the threads blocks SIGTRAP, a third every signal, a third nothing.  Commands: 'r' work on until 's'; 'f' each
 * thread forks a child, which waits to be killed.  Tally: threads, allocations, children. */
#define _GNU_SOURCE
#include "victim.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define THREADS 12

static atomic_bool works, bears;
static atomic_long allocations, children;
static atomic_uint begun, forks_due, forks_done;

static void set_mask(long index)
{
	sigset_t set;

	sigemptyset(&set);
	if (index % 3 == 1)
		sigaddset(&set, SIGTRAP);
	else if (index % 3 == 2)
		sigfillset(&set);
	if (pthread_sigmask(SIG_SETMASK, &set, NULL))
		die("pthread_sigmask");
	begun++;
}

static void allocate(void)
{
	char *p = malloc(100);

	if (!p)
		die("malloc");
	memset(p, 1, 100);
	free(p);
	allocations++;
}

static void make_child(void)
{
	pid_t child = fork();

	if (child < 0)
		die("fork");
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	children++;
}

static void *work(void *context)
{
	unsigned forks = 0;

	set_mask((long)context);
	for (;;) {
		if (works)
			allocate();
		if (forks != forks_due) {
			forks = forks_due;
			make_child();
			forks_done++;
		}
		if (!works)
			usleep(500);
	}
	return NULL;
}

static void *be_born(void *context)
{
	allocate();
	return context;
}

static void *bear(void *context)
{
	set_mask(0);
	for (;;) {
		pthread_t thread;

		bears = true;
		if (works && pthread_create(&thread, NULL, be_born, NULL) == 0)
			pthread_join(thread, NULL);
		bears = false;
		if (!works)
			usleep(500);
	}
	return context;
}

static void tell(void)
{
	say("threads=%d allocations=%ld children=%ld", THREADS, (long)allocations, (long)children);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int command;
	unsigned births;

	for (long i = 0; i < THREADS; i++) {
		if (pthread_create(&thread, NULL, work, (void *)i))
			die("pthread_create");
	}
	births = argc > 1 && !strcmp(argv[1], "--births");
	if (births && pthread_create(&thread, NULL, bear, NULL))
		die("pthread_create");
	while (begun < THREADS + births)
		usleep(500);
	say("R");
	while ((command = next_command()) != VICTIM_CLOSED) {
		if (command == 'r') {
			works = true;
			continue;
		}
		if (command == 's') {
			works = false;
			while (bears)
				usleep(100);
		}
		if (command == 'f') {
			forks_done = 0;
			forks_due++;
			while (forks_done < THREADS)
				usleep(500);
		}
		tell();
	}
	_exit(0);
}
