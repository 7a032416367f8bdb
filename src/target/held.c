#define _GNU_SOURCE
#include "target/held.h"

#include "base/clock.h"
#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define SLEPT_NS (300 * NSEC_PER_USEC) /* it is worth while to ask how much of a wait was one for a processor */
#define SCHEDSTAT_MAX 96

void held_runs(struct task *task, uint64_t ns)
{
	task->running_ns = ns;
}

void held_ends(struct task *task)
{
	struct target *target = task->target;
	uint64_t now_ns = clock_monotonic_ns();
	uint64_t since_ns = task->running_ns > target->none_held_ns ? task->running_ns : target->none_held_ns;

	if (now_ns > since_ns) {
		target->held_ns += now_ns - since_ns;
		if (now_ns - since_ns > target->longest_stop_ns)
			target->longest_stop_ns = now_ns - since_ns;
	}
	task->running_ns = now_ns;
}

void held_none_since(struct target *target, uint64_t ns)
{
	if (ns > target->none_held_ns)
		target->none_held_ns = ns;
}

/* How long this thread has been waiting for a processor since the last call; forked processes have their own. */
static uint64_t waited_for_processor_ns(void)
{
	static uint64_t before_ns;
	static pid_t whose;
	static int fd = -1;
	unsigned long long ns = 0;
	char text[SCHEDSTAT_MAX];
	uint64_t since_ns;
	ssize_t n;

	if (whose != getpid()) {
		fd_close(&fd);
		fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
		whose = getpid();
		before_ns = 0;
	}
	n = fd >= 0 ? pread(fd, text, sizeof(text) - 1, 0) : 0;
	text[n > 0 ? n : 0] = '\0';
	if (sscanf(text, "%*u %llu", &ns) != 1 || ns < before_ns)
		return 0;
	since_ns = ns - before_ns;
	before_ns = ns;
	return since_ns;
}

void held_waited(struct target *target, uint64_t began_ns)
{
	uint64_t now_ns = clock_monotonic_ns(), took_ns = now_ns - began_ns, late_ns;

	if (took_ns <= SLEPT_NS)
		return;
	late_ns = waited_for_processor_ns();
	held_none_since(target, now_ns - (late_ns < took_ns ? late_ns : took_ns));
}
