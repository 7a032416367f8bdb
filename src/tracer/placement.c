#define _GNU_SOURCE
#include "tracer/placement.h"

#include "target/process.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define STOPS_PER_LOOK 2048            /* some 20 ms at full speed; a look costs 10 us */

/* "follow" (default), "free", or "cpu:N" for benchmarks. */
#define PLACEMENT_VARIABLE "ALLOCWATCH_PLACEMENT"

static void set_cpu(struct placement *placement, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		return;
	placement->pinned = true;
	placement->cpu = cpu;
}

static void set_free(struct placement *placement)
{
	cpu_set_t set;

	/* The kernel cuts the mask to the CPUs that the cpuset allows. */
	memset(&set, 0xff, sizeof(set));
	if (sched_setaffinity(0, sizeof(set), &set) == 0)
		placement->pinned = false;
}

static void read_environment(struct placement *placement)
{
	const char *text = getenv(PLACEMENT_VARIABLE);

	placement->read_environment = true;
	if (!text)
		return;
	placement->off = strcmp(text, "follow") != 0;
	if (strncmp(text, "cpu:", 4) == 0)
		set_cpu(placement, atoi(text + 4));
}

void placement_note(struct placement *placement, const struct target *target, const struct task *task)
{
	int cpu;

	if (task->tid != placement->last_tid) {
		placement->last_tid = task->tid;
		placement->changes++;
	}
	if (++placement->stops < STOPS_PER_LOOK)
		return;
	if (!placement->read_environment)
		read_environment(placement);
	if (!placement->off) {
		bool one = placement->changes < STOPS_PER_LOOK / 64;

		if (one && process_last_cpu(target->pid, task->tid, &cpu) == 0 &&
		    (!placement->pinned || cpu != placement->cpu))
			set_cpu(placement, cpu);
		else if (!one && placement->pinned)
			set_free(placement);
	}
	placement->stops = placement->changes = 0;
}
