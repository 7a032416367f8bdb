#define _GNU_SOURCE              /* pipe2 */
#include "cli/launch.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/proc.h"

#include "cli/failure.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANCESTORS_MAX 64

/* What tells of a fault of our own, and what the terminal has to say about our own reads and writes. */
static const int ours[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGPIPE, SIGTTIN, SIGTTOU };

static void handled_set(sigset_t *set)
{
	sigfillset(set);
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		sigdelset(set, ours[i]);
}

static pid_t wait_for_go(int go_fd)
{
	pid_t daemon;
	ssize_t n;

	do {
		n = read(go_fd, &daemon, sizeof(daemon));
	} while (n < 0 && errno == EINTR);
	if (n != sizeof(daemon))
		_exit(EXIT_FAILED);
	return daemon;
}

/* Under yama's ptrace_scope 1 a process is traced by its ancestors only, and the tracer is none.
 * The door is open to all only while this process waits and has nothing worth seeing yet; then to the daemon, whose
 * tracers may come again: after a detach, or to heal it. */
static void child_main(char **argv, int go_fd, int error_fd, const sigset_t *mask,
		       const struct sigaction *on_child)
{
	pid_t daemon;
	int error;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	daemon = wait_for_go(go_fd);
	if (prctl(PR_SET_PTRACER, daemon, 0, 0, 0) < 0)
		prctl(PR_SET_PTRACER, 0, 0, 0, 0);
	sigaction(SIGCHLD, on_child, NULL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	error = errno;
	if (write(error_fd, &error, sizeof(error)) != sizeof(error))
		_exit(EXIT_FAILED);
	_exit(error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXECUTE);
}

int launch_start(struct launch *launch, char **argv)
{
	struct sigaction plain = { .sa_handler = SIG_DFL }, on_child;
	sigset_t set;
	int go[2], error[2], r;

	/* Inherited as ignored, SIGCHLD would make the child vanish before its status is read. */
	if (sigaction(SIGCHLD, &plain, &on_child) < 0)
		return -errno;
	handled_set(&set);
	if (sigprocmask(SIG_BLOCK, &set, &launch->mask) < 0)
		return -errno;
	launch->witness = (struct witness){ .sock = -1 };
	if (pipe2(go, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(error, O_CLOEXEC) < 0) {
		r = -errno;
		goto out_go;
	}
	launch->pid = fork();
	if (launch->pid < 0) {
		r = -errno;
		goto out_error;
	}
	if (launch->pid == 0) {
		close(go[1]);
		close(error[0]);
		child_main(argv, go[0], error[1], &launch->mask, &on_child);
	}
	close(go[0]);
	close(error[1]);
	launch->go_fd = go[1];
	launch->error_fd = error[0];
	return 0;
out_error:
	close(error[0]);
	close(error[1]);
out_go:
	close(go[0]);
	close(go[1]);
	return r;
}

/* Until it may go the command has all signals blocked, and what is pending there has come to it, too.  (What had come
 * before it was born has not.) */
static void start_witness(struct launch *launch)
{
	unsigned long pending;

	/* Without one the sender must do. */
	if (witness_start(&launch->witness) < 0 ||
	    proc_status_numbers(launch->pid, "\nShdPnd:", 16, &pending, 1) < 0)
		return;
	for (int sig = 1; sig <= 64; sig++) {
		if (pending >> (sig - 1) & 1)
			witness_note(&launch->witness, sig);
	}
}

/* What came for the command has come too late, and what comes from now on is for us. */
static void finish(struct launch *launch)
{
	const struct timespec now = { 0, 0 };
	sigset_t set;

	witness_end(&launch->witness);
	handled_set(&set);
	while (sigtimedwait(&set, NULL, &now) > 0)
		;
	sigprocmask(SIG_SETMASK, &launch->mask, NULL);
}

static void reap(struct launch *launch)
{
	while (waitpid(launch->pid, &launch->status, 0) < 0 && errno == EINTR)
		;
	finish(launch);
}

int launch_go(struct launch *launch, pid_t daemon)
{
	int error = 0, r;
	ssize_t n;

	start_witness(launch);
	r = fd_write_all(launch->go_fd, &daemon, sizeof(daemon));
	fd_close(&launch->go_fd);
	do {
		n = read(launch->error_fd, &error, sizeof(error));
	} while (n < 0 && errno == EINTR);
	fd_close(&launch->error_fd);
	if (r == 0 && n == 0)
		return 0;
	reap(launch);
	return n == sizeof(error) ? -error : -EIO;
}

void launch_abandon(struct launch *launch)
{
	fd_close(&launch->go_fd);
	fd_close(&launch->error_fd);
	reap(launch);
}

/* The shell watches us, not the command: when that stops, by Ctrl-Z or by itself, we stop in the same way, and
 * not before, since it may still have its terminal to put in order. */
static void stop_alike(struct launch *launch)
{
	int sig = WSTOPSIG(launch->status);
	sigset_t pending, set, mask;

	/* Already told to go on, perhaps just before the command is. */
	if (sigpending(&pending) == 0 && sigismember(&pending, SIGCONT))
		return;
	sigemptyset(&set);
	sigaddset(&set, sig);
	kill(getpid(), sig);
	sigprocmask(SIG_UNBLOCK, &set, &mask);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	/* One of the kind that was pending was part of that. */
	witness_forget(&launch->witness, sig);
}

/* An editor stops its whole process group, kill(0, SIGTSTP), and we are in that. */
static bool is_from_command(const struct launch *launch, pid_t sender)
{
	for (int i = 0; i < ANCESTORS_MAX && sender > 1; i++) {
		if (sender == launch->pid)
			return true;
		sender = proc_parent(sender);
	}
	return false;
}

/* What was sent to the whole process group has come to the command, too, unless it has a group of its own by now; what
 * was sent to us alone is meant for it, as with env(1) or nice(1). */
static bool has_come_to_command(struct launch *launch, const siginfo_t *info)
{
	bool shared = witness_is_there(&launch->witness) ?
		      witness_saw(&launch->witness, info->si_signo) : info->si_code == SI_KERNEL;

	return shared && getpgid(launch->pid) == getpgrp();
}

static void pass_on(struct launch *launch, siginfo_t *info)
{
	/* The one takes back the other where it is still pending. */
	if (info->si_signo == SIGCONT)
		witness_forget(&launch->witness, SIGTSTP);
	else if (info->si_signo == SIGTSTP)
		witness_forget(&launch->witness, SIGCONT);
	if (info->si_signo == SIGCHLD || has_come_to_command(launch, info) ||
	    (info->si_code != SI_KERNEL && is_from_command(launch, info->si_pid)))
		return;
	if (info->si_code == SI_QUEUE)
		sigqueue(launch->pid, info->si_signo, info->si_value);
	else
		kill(launch->pid, info->si_signo);
}

static struct timespec time_until(uint64_t deadline_ns)
{
	uint64_t now = clock_monotonic_ns();
	uint64_t rest = now < deadline_ns ? deadline_ns - now : 0;
	struct timespec ts = { (time_t)(rest / NSEC_PER_SEC), (long)(rest % NSEC_PER_SEC) };

	return ts;
}

int launch_wait(struct launch *launch, uint64_t deadline_ns)
{
	sigset_t set;

	handled_set(&set);
	for (;;) {
		struct timespec rest = time_until(deadline_ns);
		siginfo_t info;

		if (waitpid(launch->pid, &launch->status, WNOHANG | WUNTRACED) == launch->pid) {
			if (!WIFSTOPPED(launch->status)) {
				finish(launch);
				return 0;
			}
			stop_alike(launch);
		}
		if (clock_passed(deadline_ns))
			return -ETIME;
		if (sigtimedwait(&set, &info, deadline_ns == UINT64_MAX ? NULL : &rest) > 0)
			pass_on(launch, &info);
	}
}

int launch_exit_status(const struct launch *launch)
{
	if (WIFSIGNALED(launch->status))
		return 128 + WTERMSIG(launch->status);
	return WEXITSTATUS(launch->status);
}
