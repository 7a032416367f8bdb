#define _GNU_SOURCE              /* close_range */
#include "cli/witness.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_MS 1000
#define SIGNALS 65
#define INFOS 16

struct question {
	int sig;
	int change;             /* of how many it has seen of it, before it answers */
};

/* --- the witness itself --- */

static void count(int signal_fd, unsigned counts[SIGNALS])
{
	struct signalfd_siginfo infos[INFOS];
	ssize_t n;

	while ((n = read(signal_fd, infos, sizeof(infos))) > 0) {
		for (size_t i = 0; i < (size_t)n / sizeof(infos[0]); i++) {
			if (infos[i].ssi_signo < SIGNALS)
				counts[infos[i].ssi_signo]++;
		}
	}
}

static bool answer(int sock, unsigned counts[SIGNALS])
{
	struct question question;
	unsigned seen;

	if (recv(sock, &question, sizeof(question), 0) != (ssize_t)sizeof(question) || question.sig <= 0 ||
	    question.sig >= SIGNALS)
		return false;
	seen = counts[question.sig] += (unsigned)question.change;
	return send(sock, &seen, sizeof(seen), MSG_NOSIGNAL) == (ssize_t)sizeof(seen);
}

/* Until the other end closes.  No stop signal holds it (but SIGSTOP, which holds us, too), so that what came is known
 * as soon as anybody asks. */
static void look_on(int sock)
{
	unsigned counts[SIGNALS] = { 0 };
	sigset_t all;
	int signal_fd;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	while (signal_fd >= 0) {
		struct pollfd fds[] = { { signal_fd, POLLIN, 0 }, { sock, POLLIN, 0 } };

		if (poll(fds, 2, -1) < 0)
			break;
		count(signal_fd, counts);
		if (fds[1].revents && !answer(sock, counts))
			break;
	}
}

/* Nothing of ours is held open by it: whoever waits for the end of our output waits for us alone. */
static void become_witness(pid_t parent, int sock)
{
	int kept = fcntl(sock, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (kept < 0 || getppid() != parent || dup2(kept, STDIN_FILENO) < 0)
		_exit(1);
	close_range(STDIN_FILENO + 1, ~0U, 0);
	look_on(STDIN_FILENO);
	_exit(0);
}

/* --- our side --- */

int witness_start(struct witness *witness)
{
	pid_t parent = getpid(), pid;
	int socks[2];

	*witness = (struct witness){ .sock = -1 };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		become_witness(parent, socks[1]);
	close(socks[1]);
	if (pid < 0) {
		int r = -errno;

		close(socks[0]);
		return r;
	}
	witness->pid = pid;
	witness->sock = socks[0];
	return 0;
}

bool witness_is_there(const struct witness *witness)
{
	return witness->sock >= 0;
}

/* How many it has seen, after that change. */
static unsigned ask(struct witness *witness, int sig, int change)
{
	const struct question question = { .sig = sig, .change = change };
	struct pollfd answered = { .fd = witness->sock, .events = POLLIN };
	unsigned seen;

	if (witness->sock < 0)
		return 0;
	if (send(witness->sock, &question, sizeof(question), MSG_NOSIGNAL) == (ssize_t)sizeof(question) &&
	    poll(&answered, 1, ANSWER_MS) > 0 && recv(witness->sock, &seen, sizeof(seen), 0) == (ssize_t)sizeof(seen))
		return seen;
	/* A late answer would be taken for that to another question. */
	fd_close(&witness->sock);
	return 0;
}

/* What the witness has seen has come to us as well after this: the kernel sends a signal to a group under the lock that
 * this call takes for writing. */
static void let_senders_finish(void)
{
	setpgid(0, getpgrp());
}

static bool is_pending(int sig)
{
	sigset_t pending;

	return sigpending(&pending) == 0 && sigismember(&pending, sig);
}

bool witness_saw(struct witness *witness, int sig)
{
	const uint64_t bit = 1ULL << (sig - 1);
	bool doubtful = witness->doubtful & bit, again;
	unsigned seen = ask(witness, sig, 0);

	witness->doubtful &= ~bit;
	if (seen == 0 && sig == SIGTSTP) {
		/* A SIGCONT just behind it takes it back wherever it is still pending: at the witness, and at whoever it
		 * was meant for. */
		let_senders_finish();
		return doubtful || is_pending(SIGCONT);
	}
	if (seen == 0)
		return doubtful;
	let_senders_finish();
	again = is_pending(sig);
	/* One signal here may stand for several that it took singly ... */
	ask(witness, sig, again ? -1 : -(int)seen);
	/* ... or one there for two of ours.  (Two at the same moment may be one for the command as well.) */
	if (again && sig < SIGRTMIN)
		witness->doubtful |= bit;
	return true;
}

void witness_note(struct witness *witness, int sig)
{
	if (ask(witness, sig, 0) == 0)
		ask(witness, sig, 1);
}

void witness_forget(struct witness *witness, int sig)
{
	unsigned seen = ask(witness, sig, 0);

	if (seen == 0)
		return;
	let_senders_finish();
	if (!is_pending(sig))
		ask(witness, sig, -(int)seen);
}

void witness_end(struct witness *witness)
{
	fd_close(&witness->sock);
	if (witness->pid <= 0)
		return;
	kill(witness->pid, SIGKILL);
	while (waitpid(witness->pid, NULL, 0) < 0 && errno == EINTR)
		;
	witness->pid = 0;
}
