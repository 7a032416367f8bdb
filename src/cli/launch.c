#define _GNU_SOURCE              /* pipe2 */
#include "cli/launch.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/proc.h"

#include "cli/failure.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANCESTORS_MAX 64

static const int handled[] = { SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH };

static void handled_set(sigset_t *set)
{
	sigemptyset(set);
	for (size_t i = 0; i < sizeof(handled) / sizeof(handled[0]); i++)
		sigaddset(set, handled[i]);
}

static void wait_for_go(int go_fd)
{
	char byte;
	ssize_t n;

	do {
		n = read(go_fd, &byte, 1);
	} while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(EXIT_FAILED);
}

/* Under yama's ptrace_scope 1 a process is traced by its ancestors only, and the tracer is none.
 * The door is open only while this process waits and has nothing worth seeing yet. */
static void child_main(char **argv, int go_fd, int error_fd, const sigset_t *mask,
		       const struct sigaction *on_child)
{
	int error;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	wait_for_go(go_fd);
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
	sigset_t set, mask;
	int go[2], error[2], r;

	/* Inherited as ignored, SIGCHLD would make the child vanish before its status is read. */
	if (sigaction(SIGCHLD, &plain, &on_child) < 0)
		return -errno;
	handled_set(&set);
	if (sigprocmask(SIG_BLOCK, &set, &mask) < 0)
		return -errno;
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
		child_main(argv, go[0], error[1], &mask, &on_child);
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

static void reap(struct launch *launch)
{
	while (waitpid(launch->pid, &launch->status, 0) < 0 && errno == EINTR)
		;
}

int launch_go(struct launch *launch)
{
	int r = fd_write_all(launch->go_fd, "g", 1);
	int error = 0;
	ssize_t n;

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

	launch->stopped = true;
	/* Already told to go on, perhaps just before the command is. */
	if (sigpending(&pending) == 0 && sigismember(&pending, SIGCONT))
		return;
	sigemptyset(&set);
	sigaddset(&set, sig);
	kill(getpid(), sig);
	sigprocmask(SIG_UNBLOCK, &set, &mask);
	sigprocmask(SIG_SETMASK, &mask, NULL);
}

/* fg and bg continue the whole process group; a command with a group of its own hears of it from us. */
static void continue_alike(struct launch *launch)
{
	int status;

	if (launch->stopped && waitpid(launch->pid, &status, WCONTINUED | WNOHANG) == 0)
		kill(launch->pid, SIGCONT);
	launch->stopped = false;
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

/* What the terminal sends goes to the whole process group and so to the command, too; what a process
 * sends to us alone is meant for the command, as with env(1) or nice(1). */
static void pass_on(struct launch *launch, const siginfo_t *info)
{
	if (info->si_signo == SIGCONT)
		continue_alike(launch);
	else if (info->si_signo != SIGCHLD && info->si_code != SI_KERNEL &&
		 !is_from_command(launch, info->si_pid))
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
			if (!WIFSTOPPED(launch->status))
				return 0;
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
