#include "subject.h"

#include "../victims/tallies.h"

#include "base/clock.h"
#include "live.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_MS 90000
#define ARGUMENTS_MAX 16

struct tallies *subject_tallies(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct tallies *tallies = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, sizeof(*tallies)) == 0)
		tallies = mmap(NULL, sizeof(*tallies), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (tallies == MAP_FAILED)
		live_fail("%s: %s", path, strerror(errno));
	close(fd);
	return tallies;
}

void become_user(uid_t uid)
{
	if (uid == geteuid())
		return;
	if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		_exit(126);
}

struct subject *subject_start(uid_t uid, const char *const *argv)
{
	struct subject *subject = calloc(1, sizeof(*subject));
	int in[2], out[2];

	if (!subject || pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		live_fail("starting %s: %s", argv[0], strerror(errno));
	fflush(stdout);
	subject->pid = fork();
	if (subject->pid < 0)
		live_fail("fork: %s", strerror(errno));
	if (subject->pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		setenv("HOME", live_folder(), 1);
		signal(SIGPIPE, SIG_DFL);
		become_user(uid);
		execvp(argv[0], (char *const *)argv);
		fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	subject->to = in[1];
	subject->from = out[0];
	return subject;
}

static struct subject *start_victim(uid_t uid, const char *program, va_list args)
{
	const char *argv[ARGUMENTS_MAX] = { program };
	struct subject *subject;
	size_t n = 1;

	while (n < ARGUMENTS_MAX - 1 && (argv[n] = va_arg(args, const char *)))
		n++;
	subject = subject_start(uid, argv);
	if (strcmp(subject_line(subject), "R"))
		live_fail("%s said '%s' instead of R", program, subject->line);
	return subject;
}

struct subject *victim_start(const char *path, ...)
{
	struct subject *subject;
	va_list args;

	va_start(args, path);
	subject = start_victim(geteuid(), live_text("%s/%s", live_build(), path), args);
	va_end(args);
	return subject;
}

struct subject *victim_start_ordinary(const char *path, ...)
{
	struct subject *subject;
	va_list args;

	va_start(args, path);
	subject = start_victim(ORDINARY_UID, public_copy(path), args);
	va_end(args);
	return subject;
}

struct subject *victim_start_as(uid_t uid, const char *program, ...)
{
	struct subject *subject;
	va_list args;

	va_start(args, program);
	subject = start_victim(uid, program, args);
	va_end(args);
	return subject;
}

void subject_send(struct subject *subject, char command)
{
	if (write(subject->to, &command, 1) != 1)
		live_fail("process %d takes no command '%c': %s", subject->pid, command, strerror(errno));
}

static bool take_line(struct subject *subject)
{
	char *end = memchr(subject->rest, '\n', subject->rest_len);
	size_t len;

	if (!end)
		return false;
	len = (size_t)(end - subject->rest);
	memcpy(subject->line, subject->rest, len);
	subject->line[len] = '\0';
	subject->rest_len -= len + 1;
	memmove(subject->rest, end + 1, subject->rest_len);
	return true;
}

static const char *describe_end(struct subject *subject)
{
	int status;

	if (waitpid(subject->pid, &status, WNOHANG) != subject->pid)
		return "it closed its output";
	if (WIFSIGNALED(status))
		return live_text("it died by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	return live_text("it exited with status %d", WEXITSTATUS(status));
}

const char *subject_line(struct subject *subject)
{
	uint64_t deadline = clock_monotonic_ns() + ANSWER_MS * NSEC_PER_MSEC;
	struct pollfd pollfd = { .fd = subject->from, .events = POLLIN };

	while (!take_line(subject)) {
		uint64_t now = clock_monotonic_ns();
		ssize_t n;

		if (now >= deadline || poll(&pollfd, 1, (int)((deadline - now) / NSEC_PER_MSEC) + 1) == 0)
			live_fail("process %d gave no answer in %d s", subject->pid, ANSWER_MS / 1000);
		n = read(subject->from, subject->rest + subject->rest_len,
			 sizeof(subject->rest) - subject->rest_len);
		if (n <= 0)
			live_fail("process %d gave no answer: %s", subject->pid, describe_end(subject));
		subject->rest_len += (size_t)n;
	}
	return subject->line;
}

bool subject_speaks(struct subject *subject, int ms)
{
	struct pollfd pollfd = { .fd = subject->from, .events = POLLIN };

	return subject->rest_len > 0 || poll(&pollfd, 1, ms) != 0;
}

const char *subject_command(struct subject *subject, char command)
{
	subject_send(subject, command);
	return subject_line(subject);
}

long subject_tally(const struct subject *subject, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = subject->line; (p = strstr(p, name)); p += len) {
		if ((p == subject->line || p[-1] == ' ') && p[len] == '=')
			return atol(p + len + 1);
	}
	live_fail("there is no '%s' in: %s", name, subject->line);
}

pid_t subject_child_of(pid_t pid)
{
	FILE *children = fopen(live_text("/proc/%d/task/%d/children", pid, pid), "r");
	int child = 0;

	if (!children || fscanf(children, "%d", &child) != 1)
		child = 0;
	if (children)
		fclose(children);
	return child;
}

void subject_enter(struct subject *subject)
{
	pid_t child;

	subject->outer = subject->pid;
	while ((child = subject_child_of(subject->pid)))
		subject->pid = child;
	if (subject->pid == subject->outer)
		live_fail("process %d has started nothing", subject->outer);
}

int subject_wait(struct subject *subject)
{
	pid_t pid = subject->outer ? subject->outer : subject->pid;
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd pollfd = { .fd = pidfd, .events = POLLIN };
	int status;

	if (pidfd >= 0 && poll(&pollfd, 1, ANSWER_MS) != 1)
		live_fail("process %d does not end", pid);
	if (waitpid(pid, &status, 0) != pid)
		live_fail("waiting for process %d: %s", pid, strerror(errno));
	close(pidfd);
	return status;
}

void subject_quit(struct subject *subject)
{
	int status;

	subject_send(subject, 'q');
	status = subject_wait(subject);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		live_fail("process %d ended with wait status 0x%x, untraced it exits with 0", subject->pid,
			  (unsigned)status);
}

void subject_kill(struct subject *subject)
{
	kill(subject->pid, SIGKILL);
	subject_wait(subject);
}

static void copy_file(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	ssize_t n = 0;

	if (in < 0 || out < 0)
		live_fail("copying %s to %s: %s", from, to, strerror(errno));
	while ((n = sendfile(out, in, NULL, 1 << 20)) > 0)
		;
	if (n < 0 || fchmod(out, 0755))
		live_fail("copying %s to %s: %s", from, to, strerror(errno));
	close(in);
	close(out);
}

const char *public_copy(const char *path)
{
	const char *name = strrchr(path, '/');

	return public_copy_as(path, name ? name + 1 : path);
}

const char *public_copy_as(const char *path, const char *name)
{
	const char *copy = live_text("%s/%s", live_folder(), name);

	if (access(copy, F_OK))
		copy_file(*path == '/' ? path : live_text("%s/%s", live_build(), path), copy);
	return copy;
}
