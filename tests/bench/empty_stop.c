#define _GNU_SOURCE
#include "empty_stop.h"

#include "process.h"

#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static void do_with_all(const pid_t *threads, size_t count, void (*what)(pid_t tid))
{
	for (size_t i = 0; i < count; i++)
		what(threads[i]);
}

static void interrupt(pid_t tid)
{
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0)
		bench_fail("cannot interrupt thread %d: %s", tid, strerror(errno));
}

static void wait_for(pid_t tid)
{
	struct user_regs_struct regs;
	siginfo_t info;

	if (waitid(P_PID, (id_t)tid, &info, WEXITED | WSTOPPED | WNOWAIT | __WALL) < 0 || info.si_code != CLD_TRAPPED ||
	    ptrace(PTRACE_GETREGS, tid, NULL, &regs) < 0)
		bench_fail("thread %d does not stop: %s", tid, strerror(errno));
}

static void let_go(pid_t tid)
{
	if (ptrace(PTRACE_DETACH, tid, NULL, NULL) < 0)
		bench_fail("cannot let thread %d go: %s", tid, strerror(errno));
}

static uint64_t stop_all(pid_t target)
{
	static pid_t threads[BENCH_THREADS_MAX];
	size_t count = bench_seize_all(target, threads);
	uint64_t begun_ns = clock_monotonic_ns();

	do_with_all(threads, count, interrupt);
	do_with_all(threads, count, wait_for);
	do_with_all(threads, count, let_go);
	return clock_monotonic_ns() - begun_ns;
}

double empty_stop(pid_t target)
{
	int result[2], status;
	uint64_t ns;
	pid_t pid;

	if (pipe(result) < 0)
		bench_fail("pipe: %s", strerror(errno));
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		ns = stop_all(target);
		_exit(write(result[1], &ns, sizeof(ns)) != sizeof(ns));
	}
	close(result[1]);
	if (pid < 0 || read(result[0], &ns, sizeof(ns)) != sizeof(ns) || waitpid(pid, &status, 0) != pid || status != 0)
		bench_fail("the empty stop failed");
	close(result[0]);
	return (double)ns / 1e6;
}
