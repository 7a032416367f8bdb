/* Sets a SIGTRAP handler of its own at the first command, that is, after the attach.
 *
 *   trapper
 *
 * Each 'g' raises SIGTRAP once, here and in a forked child.  Tally: raised, caught and child (how many
 * children caught theirs).  'w' raises it, and the handler, which says "in", waits for any command. */
#include "victim.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_long raised, caught, child;
static atomic_bool waits;

static void catch(int signal)
{
	(void)signal;
	atomic_fetch_add(&caught, 1);
	if (atomic_exchange(&waits, false)) {
		say("in");
		next_command();
	}
}

static void raise_in_child(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		long before = atomic_load(&caught);

		raise(SIGTRAP);
		_exit(atomic_load(&caught) == before + 1 ? 0 : 1);
	}
	if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0)
		atomic_fetch_add(&child, 1);
}

static void set_handler(void)
{
	struct sigaction action = { .sa_handler = catch, .sa_flags = SA_RESTART };

	if (raised == 0)
		sigaction(SIGTRAP, &action, NULL);
}

static void answer(void)
{
	set_handler();
	free(malloc(100));
	raise(SIGTRAP);
	atomic_fetch_add(&raised, 1);
	raise_in_child();
	say("raised=%ld caught=%ld child=%ld", atomic_load(&raised), atomic_load(&caught), atomic_load(&child));
}

static void wait_in_handler(void)
{
	set_handler();
	atomic_store(&waits, true);
	raise(SIGTRAP);
	atomic_fetch_add(&raised, 1);
	say("raised=%ld caught=%ld", atomic_load(&raised), atomic_load(&caught));
}

int main(void)
{
	int command;

	say("R");
	while ((command = next_command()) != 'q') {
		if (command == 'w')
			wait_in_handler();
		else
			answer();
	}
	return 0;
}
