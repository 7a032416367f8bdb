/* Receives queued real-time signals that carry sequence numbers, while two threads allocate.
 *
 *   rtsignals [--own-group]         in a process group of its own
 *
 * Whoever sends uses sigqueue(SIGRTMIN + 1) with the values 0, 1, 2, ...  'g' only answers.
 * Tally: received, bad (out of sequence: lost, doubled or turned round), next. */
#include "victim.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define STACK_BYTES (64 * 1024)
#define WORKERS 2

static atomic_long received, bad, next;

static void receive(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	if (info->si_code != SI_QUEUE || info->si_value.sival_int != atomic_load(&next))
		atomic_fetch_add(&bad, 1);
	atomic_store(&next, info->si_value.sival_int + 1);
	atomic_fetch_add(&received, 1);
}

static void *churn(void *argument)
{
	for (;;)
		free(malloc(128));
	return argument;
}

static void answer(void)
{
	say("received=%ld bad=%ld next=%ld", atomic_load(&received), atomic_load(&bad), atomic_load(&next));
}

/* Reading the commands must not be disturbed: SA_RESTART, and the workers block the signal so that
 * one thread takes them all in order. */
int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = receive, .sa_flags = SA_SIGINFO | SA_RESTART };
	sigset_t set;

	if (option_given(argc, argv, "--own-group") && setpgid(0, 0))
		die("no process group of its own");
	sigaction(SIGRTMIN + 1, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (int i = 0; i < WORKERS; i++)
		start_thread(churn, NULL, STACK_BYTES);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	obey(answer);
	_exit(0);
}
