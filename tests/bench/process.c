#define _GNU_SOURCE
#include "process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINE_MAX_BYTES 512
#define ANSWER_MS 600000         /* a million allocations, two stops each, between processors that sleep */
#define ARGUMENTS_MAX 16

struct victim {
	pid_t pid;
	int to, from;
	char line[LINE_MAX_BYTES];
};

void bench_fail(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

const char *bench_path(const char *relative)
{
	if (access(relative, F_OK) < 0)
		bench_fail("%s is not there: run 'make bench', from the top of the build tree", relative);
	return relative;
}

void pin_to(int cpu)
{
	cpu_set_t set;

	if (cpu == CPU_ANY) {
		memset(&set, 0xff, sizeof(set));
	} else {
		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
	}
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		bench_fail("cannot choose CPU %d: %s", cpu, strerror(errno));
}

void two_cpus(int *ret_first, int *ret_second)
{
	int found[2], count = 0;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		bench_fail("cannot read which CPUs there are: %s", strerror(errno));
	for (int cpu = 0; cpu < CPU_SETSIZE && count < 2; cpu++) {
		if (CPU_ISSET(cpu, &set))
			found[count++] = cpu;
	}
	if (count < 2)
		bench_fail("only one CPU may be used: the placements cannot be compared");
	*ret_first = found[0];
	*ret_second = found[1];
}

static void read_line(struct victim *victim)
{
	struct pollfd pollfd = { .fd = victim->from, .events = POLLIN };
	size_t len = 0;

	/* A line is an answer, and an answer one write: there is nothing behind it. */
	do {
		ssize_t n;

		if (poll(&pollfd, 1, ANSWER_MS) == 0)
			bench_fail("process %d gave no answer in %d s", victim->pid, ANSWER_MS / 1000);
		n = read(victim->from, victim->line + len, sizeof(victim->line) - 1 - len);
		if (n <= 0)
			bench_fail("process %d gave no answer: it ended, or closed its output", victim->pid);
		len += (size_t)n;
	} while (victim->line[len - 1] != '\n' && len < sizeof(victim->line) - 1);
	victim->line[len - 1] = '\0';
}

size_t bench_seize_all(pid_t target, pid_t threads[BENCH_THREADS_MAX])
{
	char path[64];
	struct dirent *entry;
	size_t count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", target);
	dir = opendir(path);
	while (dir && count < BENCH_THREADS_MAX && (entry = readdir(dir))) {
		pid_t tid = (pid_t)atoi(entry->d_name);

		if (tid <= 0)
			continue;
		if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
			bench_fail("cannot trace thread %d: %s", tid, strerror(errno));
		threads[count++] = tid;
	}
	if (count == 0)
		bench_fail("process %d has no threads", target);
	closedir(dir);
	return count;
}

struct victim *victim_start_by(int cpu, const char *const *argv)
{
	struct victim *victim = calloc(1, sizeof(*victim));
	const char *program = bench_path(argv[0]);
	int in[2], out[2];

	if (!victim || pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		bench_fail("cannot start %s: %s", program, strerror(errno));
	fflush(stdout);
	victim->pid = fork();
	if (victim->pid == 0) {
		pin_to(cpu);
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execv(program, (char *const *)argv);
		bench_fail("cannot execute %s: %s", program, strerror(errno));
	}
	close(in[0]);
	close(out[1]);
	victim->to = in[1];
	victim->from = out[0];
	read_line(victim);
	if (strcmp(victim->line, "R") != 0)
		bench_fail("%s said '%s' instead of R", program, victim->line);
	return victim;
}

struct victim *victim_start(int cpu, const char *program, ...)
{
	const char *argv[ARGUMENTS_MAX] = { program };
	va_list args;

	va_start(args, program);
	for (size_t n = 1; n < ARGUMENTS_MAX - 1 && (argv[n] = va_arg(args, const char *)); n++)
		;
	va_end(args);
	return victim_start_by(cpu, argv);
}

pid_t victim_pid(const struct victim *victim)
{
	return victim->pid;
}

void victim_send(struct victim *victim, char command)
{
	if (write(victim->to, &command, 1) != 1)
		bench_fail("process %d takes no command: %s", victim->pid, strerror(errno));
}

void victim_command(struct victim *victim, char command)
{
	victim_send(victim, command);
	read_line(victim);
}

long victim_tally(const struct victim *victim, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = victim->line; (p = strstr(p, name)); p += len) {
		if ((p == victim->line || p[-1] == ' ') && p[len] == '=')
			return atol(p + len + 1);
	}
	bench_fail("there is no '%s' in the answer '%s'", name, victim->line);
}

void victim_quit(struct victim *victim)
{
	int status;

	victim_send(victim, 'q');
	if (waitpid(victim->pid, &status, 0) != victim->pid || status != 0)
		bench_fail("process %d ended badly: what was measured was not right", victim->pid);
	close(victim->to);
	close(victim->from);
	free(victim);
}
