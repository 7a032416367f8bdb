/* Counts the signals that it gets, in a file that others can map, until it is killed.
 *
 *   tallies FILE [--own-group]
 *
 * All signals but those that cannot be caught, that tell of a fault, and SIGTSTP, SIGTTIN and SIGTTOU without
 * --own-group or --all; the file holds a struct tallies. */
#include "victim.h"

#include "tallies.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct tallies *tallies;

static void count(int sig, siginfo_t *info, void *context)
{
	(void)context;
	__atomic_add_fetch(&tallies->count[sig], 1, __ATOMIC_SEQ_CST);
	tallies->value[sig] = info->si_code == SI_QUEUE ? info->si_value.sival_int : 0;
}

static int is_counted(int sig, int all)
{
	switch (sig) {
	case SIGKILL: case SIGSTOP: case SIGSEGV: case SIGBUS: case SIGFPE: case SIGILL: case SIGTRAP: case SIGSYS:
		return 0;
	case SIGTSTP: case SIGTTIN: case SIGTTOU:
		return all;
	default:
		return 1;
	}
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = count, .sa_flags = SA_SIGINFO | SA_RESTART };
	int own_group = option_given(argc, argv, "--own-group");
	int fd = argc > 1 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;

	if (fd < 0)
		die("no file");
	tallies = mmap(NULL, sizeof(*tallies), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (tallies == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	if (own_group && setpgid(0, 0))
		die("setpgid: %s", strerror(errno));
	for (int sig = 1; sig < TALLIES_SIGNALS; sig++) {
		if (is_counted(sig, own_group || option_given(argc, argv, "--all")))
			sigaction(sig, &action, NULL);
	}
	__atomic_store_n(&tallies->pid, getpid(), __ATOMIC_SEQ_CST);
	for (;;)
		pause();
}
