/* Sets a SIGTRAP handler of its own at the first command, that is, after the attach.
 *
 *   trapper
 *
 * Each 'g' raises SIGTRAP once, here and in a forked child.  Tally: raised, caught and child (how many
 * children caught theirs).  'w' raises it, and the handler, which says "in", waits for any command.
 * By system calls of its own, which no function of the C library makes: 'b' blocks SIGTRAP, 'u' unblocks it, 'i' ignores
 * it, 'd' sets the default action, 'h' a handler, 'o' what was set before these; it says "done" and allocates nothing.
 * 'r' raises SIGTRAP and allocates; 'm' allocates for two and a half seconds and says "done". */
#define _GNU_SOURCE
#include "victim.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* As the system calls have them. */
struct kernel_action {
	uint64_t handler, flags, restorer, mask;
};
#define KERNEL_SET_BYTES 8
#define ALLOCATES_MS 2500

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

static void mask_by_call(int how)
{
	uint64_t set = 1ULL << (SIGTRAP - 1);

	if (syscall(SYS_rt_sigprocmask, how, &set, NULL, KERNEL_SET_BYTES))
		die("rt_sigprocmask");
}

static void act_by_call(const struct kernel_action *action, struct kernel_action *ret_old)
{
	if (syscall(SYS_rt_sigaction, SIGTRAP, action, ret_old, KERNEL_SET_BYTES))
		die("rt_sigaction");
}

static void raise_and_allocate(void)
{
	raise(SIGTRAP);
	atomic_fetch_add(&raised, 1);
	free(malloc(100));
	say("raised=%ld caught=%ld", atomic_load(&raised), atomic_load(&caught));
}

static void allocate_for_a_while(void)
{
	struct timespec began, now;

	clock_gettime(CLOCK_MONOTONIC, &began);
	do {
		free(malloc(100));
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - began.tv_sec) * 1000 + (now.tv_nsec - began.tv_nsec) / 1000000 < ALLOCATES_MS);
	say("done");
}

/* Its way back from a handler is the C library's, which sets one for another signal. */
static void handle_by_call(struct kernel_action *ret_old)
{
	struct sigaction action = { .sa_handler = catch, .sa_flags = SA_RESTART }, before;
	struct kernel_action made;

	if (sigaction(SIGUSR1, &action, &before) || syscall(SYS_rt_sigaction, SIGUSR1, NULL, &made, KERNEL_SET_BYTES) ||
	    sigaction(SIGUSR1, &before, NULL))
		die("sigaction");
	act_by_call(&made, ret_old);
}

static void make_call(int command)
{
	static struct kernel_action before;
	const struct kernel_action ignored = { .handler = (uintptr_t)SIG_IGN }, none = { .handler = (uintptr_t)SIG_DFL };

	switch (command) {
	case 'b': mask_by_call(SIG_BLOCK); break;
	case 'u': mask_by_call(SIG_UNBLOCK); break;
	case 'i': act_by_call(&ignored, &before); break;
	case 'd': act_by_call(&none, &before); break;
	case 'h': handle_by_call(&before); break;
	case 'o': act_by_call(&before, NULL); break;
	}
	say("done");
}

int main(void)
{
	int command;

	say("R");
	while ((command = next_command()) != 'q') {
		if (command == 'w')
			wait_in_handler();
		else if (command == 'r')
			raise_and_allocate();
		else if (command == 'm')
			allocate_for_a_while();
		else if (strchr("buidho", command))
			make_call(command);
		else
			answer();
	}
	return 0;
}
