/* For builds.c: 1,000 more threads, each with a block. */
#include "builds.h"

#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#define THREADS 1000
#define STACK_BYTES (64UL * 1024)

static sem_t turns[THREADS], done;

static void *work(void *turn)
{
	for (;;) {
		while (sem_wait(turn))
			;
		keep(malloc(1400), 1400); /* by one of many */
		sem_post(&done);
	}
	return NULL;
}

static void start(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	sem_init(&done, 0, 0);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	for (int i = 0; i < THREADS; i++) {
		sem_init(&turns[i], 0, 0);
		if (pthread_create(&thread, &attributes, work, &turns[i]))
			_exit(98);
	}
	pthread_attr_destroy(&attributes);
}

void more_shapes(void)
{
	static int started;

	if (!started++)
		start();
	for (int i = 0; i < THREADS; i++) {
		sem_post(&turns[i]);
		while (sem_wait(&done))
			;
	}
}
