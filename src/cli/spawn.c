#define _GNU_SOURCE              /* asprintf, close_range */
#include "cli/spawn.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOCKET_NAME "allocwatch.sock"
#define DAEMON_NAME "allocwatchd"
#define START_TIMEOUT_NS (20 * NSEC_PER_SEC)
#define POLL_MS 10
#define LOG_MAX (1u << 20)

static int explain(char **ret_reason, int result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int explain(char **ret_reason, int result, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (vasprintf(ret_reason, format, args) < 0)
		*ret_reason = NULL;
	va_end(args);
	return result;
}

/* In a folder that others can write to, whoever is first could put a socket of their own there. */
static int check_folder(const char *folder, char **ret_reason)
{
	struct stat st;

	if (lstat(folder, &st) < 0)
		return explain(ret_reason, -errno, "%s: %s", folder, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return explain(ret_reason, -ENOTDIR, "%s is not a folder", folder);
	if (st.st_uid != geteuid())
		return explain(ret_reason, -EPERM, "%s belongs to user %u, not to you", folder, st.st_uid);
	if (st.st_mode & 077)
		return explain(ret_reason, -EPERM, "%s is open to other users; 'chmod 700 %s' closes it", folder,
			       folder);
	return 0;
}

static int path_in(const char *folder, const char *name, char **ret_path)
{
	return asprintf(ret_path, "%s/%s", folder, name) < 0 ? -ENOMEM : 0;
}

static int path_in_temporary(bool make, char **ret_path, char **ret_reason)
{
	const char *tmp = getenv("TMPDIR");
	char *folder;
	int r;

	if (asprintf(&folder, "%s/allocwatch-%u", tmp && *tmp == '/' ? tmp : "/tmp", geteuid()) < 0)
		return -ENOMEM;
	if (make && mkdir(folder, 0700) < 0 && errno != EEXIST)
		r = explain(ret_reason, -errno, "%s cannot be made: %s", folder, strerror(errno));
	else
		r = check_folder(folder, ret_reason);
	if (r == 0)
		r = path_in(folder, SOCKET_NAME, ret_path);
	free(folder);
	return r;
}

int spawn_socket_path(bool make, char **ret_path, char **ret_reason)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	int r;

	*ret_reason = NULL;
	/* After su and sudo the variable may still name another user's folder. */
	if (runtime && *runtime == '/' && check_folder(runtime, ret_reason) == 0) {
		r = path_in(runtime, SOCKET_NAME, ret_path);
	} else {
		free(*ret_reason);
		*ret_reason = NULL;
		r = path_in_temporary(make, ret_path, ret_reason);
	}
	if (r == 0 && strlen(*ret_path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path)) {
		r = explain(ret_reason, -ENAMETOOLONG, "%s is too long for a socket; set TMPDIR to a shorter path",
			    *ret_path);
		free(*ret_path);
	}
	return r;
}

/* In the build tree the daemon lies beside the client; installed, in sbindir. */
static int find_program(char **ret_path)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash, *path;

	if (n > 0) {
		self[n] = '\0';
		slash = strrchr(self, '/');
		if (slash)
			*slash = '\0';
		if (path_in(self, DAEMON_NAME, &path) < 0)
			return -ENOMEM;
		if (access(path, X_OK) == 0) {
			*ret_path = path;
			return 0;
		}
		free(path);
	}
	return path_in(SBINDIR, DAEMON_NAME, ret_path);
}

static void redirect(int fd, int to)
{
	if (dup2(fd, to) < 0)
		_exit(127);
}

/* The daemon must outlive the client and its terminal, and must not hold what it inherits. */
static void become_daemon(const char *program, const char *path, int log_fd)
{
	sigset_t none;
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null_fd < 0 || setsid() < 0 || chdir("/") < 0)
		_exit(127);
	redirect(null_fd, STDIN_FILENO);
	redirect(log_fd, STDOUT_FILENO);
	redirect(log_fd, STDERR_FILENO);
	close_range(STDERR_FILENO + 1, ~0U, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	umask(077);
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_PID");
	unsetenv("WATCHDOG_USEC");
	execl(program, DAEMON_NAME, "--private", "--socket", path, (char *)NULL);
	dprintf(STDERR_FILENO, "%s cannot be started: %s\n", program, strerror(errno));
	_exit(127);
}

/* What the daemon before said, and how it ended, stays readable for one more. */
static int keep_old_log(const char *name)
{
	char *old;

	if (asprintf(&old, "%s.old", name) < 0)
		return -ENOMEM;
	rename(name, old);
	free(old);
	return 0;
}

static int open_log(const char *path, int *ret_fd, char **ret_reason)
{
	char *name;
	int fd;

	if (asprintf(&name, "%s.log", path) < 0)
		return -ENOMEM;
	if (keep_old_log(name) < 0) {
		free(name);
		return -ENOMEM;
	}
	fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		int r = explain(ret_reason, -errno, "%s cannot be written: %s", name, strerror(errno));

		free(name);
		return r;
	}
	free(name);
	*ret_fd = fd;
	return 0;
}

/* The last line of the daemon's log, which is where it says why it ended. */
static int last_words(int log_fd, int status, char **ret_reason)
{
	char *text, *line;
	size_t len;
	int r;

	if (lseek(log_fd, 0, SEEK_SET) < 0 || fd_read_text(log_fd, LOG_MAX, &text, &len) < 0)
		return explain(ret_reason, -ECHILD, "it ended at once");
	while (len > 0 && text[len - 1] == '\n')
		text[--len] = '\0';
	line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	if (*line)
		r = explain(ret_reason, -ECHILD, "it ended at once and said: %s", line);
	else if (WIFSIGNALED(status))
		r = explain(ret_reason, -ECHILD, "it ended at once by signal %d (%s)", WTERMSIG(status),
			    strsignal(WTERMSIG(status)));
	else
		r = explain(ret_reason, -ECHILD, "it ended at once with status %d", WEXITSTATUS(status));
	free(text);
	return r;
}

static int wait_until_it_answers(pid_t pid, const char *path, int log_fd, struct varlink_client **ret_client,
				 char **ret_reason)
{
	uint64_t deadline = clock_monotonic_ns() + START_TIMEOUT_NS;
	int status;

	while (varlink_client_open(path, ret_client) < 0) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return last_words(log_fd, status, ret_reason);
		if (clock_passed(deadline)) {
			kill(pid, SIGTERM);
			return explain(ret_reason, -ETIMEDOUT, "it did not answer on %s in 20 seconds; its log is %s.log",
				       path, path);
		}
		poll(NULL, 0, POLL_MS);
	}
	return 0;
}

static int start(const char *path, struct varlink_client **ret_client, char **ret_reason)
{
	char *program;
	int log_fd, r;
	pid_t pid;

	r = find_program(&program);
	if (r < 0)
		return r;
	r = open_log(path, &log_fd, ret_reason);
	if (r < 0)
		goto out_program;
	pid = fork();
	if (pid == 0)
		become_daemon(program, path, log_fd);
	if (pid < 0)
		r = explain(ret_reason, -errno, "no process can be made: %s", strerror(errno));
	else
		r = wait_until_it_answers(pid, path, log_fd, ret_client, ret_reason);
	fd_close(&log_fd);
out_program:
	free(program);
	return r;
}

int spawn_daemon(const char *path, struct varlink_client **ret_client, char **ret_reason)
{
	char *lock;
	int fd, r;

	*ret_reason = NULL;
	if (asprintf(&lock, "%s.lock", path) < 0)
		return -ENOMEM;
	fd = open(lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		r = explain(ret_reason, -errno, "%s cannot be locked: %s", lock, strerror(errno));
	else if (varlink_client_open(path, ret_client) == 0)
		r = 0;                  /* another client was faster */
	else
		r = start(path, ret_client, ret_reason);
	fd_close(&fd);
	free(lock);
	return r;
}
