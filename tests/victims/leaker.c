/* One that leaks, one that churns and one that grows, each at a line of its own.
 *
 *   l   leaks a block of 100 bytes
 *   c   fifty blocks of 1000 bytes, each freed at once
 *   s   a session of 300 bytes takes the place of the one before: there is always one, and it is young
 *   b   a buffer of 64 bytes becomes twice as large, at each command
 *   w   does s every millisecond and l every ten, by itself, until i
 *
 * Ten blocks of 40 bytes are there from the start.  Tally: leaked, sessions, churned, buffer (bytes). */
#include "victim.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#define LEAKED_MAX 100000
#define STACK_BYTES (64 * 1024)

static void *start[10], *leaked[LEAKED_MAX], *session, *buffer;
static int leaks, sessions, churned;
static size_t buffer_size = 32;
static atomic_bool works;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void leak(void)
{
	if (leaks == LEAKED_MAX)
		die("too many");
	leaked[leaks++] = malloc(100);          /* leaked block */
}

static void churn(void)
{
	for (int i = 0; i < 50; i++, churned++) {
		void *volatile block = malloc(1000);    /* churned block */

		free(block);
	}
}

static void change_session(void)
{
	free(session);
	session = malloc(300);                  /* session block */
	sessions++;
}

static void enlarge(void)
{
	buffer_size *= 2;
	buffer = realloc(buffer, buffer_size);  /* buffer block */
}

static void *work(void *nothing)
{
	for (unsigned turn = 0;; turn++) {
		poll(NULL, 0, 1);
		if (!works)
			continue;
		pthread_mutex_lock(&lock);
		change_session();
		if (turn % 10 == 0)
			leak();
		pthread_mutex_unlock(&lock);
	}
	return nothing;
}

static void act_on(int command)
{
	pthread_mutex_lock(&lock);
	if (command == 'l')
		leak();
	else if (command == 'c')
		churn();
	else if (command == 's')
		change_session();
	else if (command == 'b')
		enlarge();
	else if (command == 'w' || command == 'i')
		works = command == 'w';
	say("leaked=%d sessions=%d churned=%d buffer=%zu", leaks, sessions, churned, buffer_size);
	pthread_mutex_unlock(&lock);
}

int main(void)
{
	int command;

	for (int i = 0; i < 10; i++)
		start[i] = malloc(40);
	start_thread(work, NULL, STACK_BYTES);
	say("R");
	while ((command = next_command()) != VICTIM_CLOSED)
		act_on(command);
	return start[0] == NULL;
}
