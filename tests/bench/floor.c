#define _GNU_SOURCE
#include "floor.h"

#include "process.h"

#include "target/target.h"
#include "tracer/placement.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static void serve(uint64_t stops, struct placement *placement, const struct target *target)
{
	while (stops-- > 0) {
		struct user_regs_struct regs;
		siginfo_t info;
		struct task task;

		if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOWAIT | __WALL) < 0)
			bench_fail("waiting for a stop: %s", strerror(errno));
		if (info.si_code != CLD_TRAPPED || info.si_status != SIGTRAP)
			bench_fail("thread %d stopped for something else than its int3", info.si_pid);
		if (ptrace(PTRACE_GETREGS, info.si_pid, NULL, &regs) < 0 ||
		    ptrace(PTRACE_SETREGS, info.si_pid, NULL, &regs) < 0 ||
		    ptrace(PTRACE_CONT, info.si_pid, NULL, NULL) < 0)
			bench_fail("serving a stop of thread %d: %s", info.si_pid, strerror(errno));
		if (placement) {
			task.tid = info.si_pid;
			placement_note(placement, target, &task);
		}
	}
}

pid_t floor_start(pid_t target, uint64_t stops, const struct floor_placement *where)
{
	struct target known = { .pid = target };
	struct placement placement = { 0 };
	static pid_t threads[BENCH_THREADS_MAX];
	int ready[2];
	pid_t pid;
	char byte;

	if (pipe(ready) < 0)
		bench_fail("pipe: %s", strerror(errno));
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		pin_to(where->cpu);
		bench_seize_all(target, threads);
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		serve(stops, where->by_policy ? &placement : NULL, &known);
		_exit(0);
	}
	close(ready[1]);
	if (pid < 0 || read(ready[0], &byte, 1) != 1)
		bench_fail("the bare loop could not be started");
	close(ready[0]);
	return pid;
}

void floor_finish(pid_t floor)
{
	int status;

	if (waitpid(floor, &status, 0) != floor || status != 0)
		bench_fail("the bare loop failed");
}
