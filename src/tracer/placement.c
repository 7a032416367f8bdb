#define _GNU_SOURCE
#include "tracer/placement.h"

#include "target/process.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define STOPS_PER_LOOK 2048            /* some 20 ms at full speed; a look costs 10 us */

/* "follow" (default), "free", or "cpu:N" for benchmarks. */
#define PLACEMENT_VARIABLE "ALLOCWATCH_PLACEMENT"

/* Where this process may run by the will of others, from before its first choice of its own. */
static cpu_set_t permitted;
static bool permitted_known;

static bool is_permitted(int cpu)
{
	if (!permitted_known)
		permitted_known = sched_getaffinity(0, sizeof(permitted), &permitted) == 0;
	return permitted_known && CPU_ISSET((size_t)cpu, &permitted);
}

static void set_cpu(struct placement *placement, int cpu)
{
	cpu_set_t set;

	if (!is_permitted(cpu))
		return;
	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		return;
	placement->pinned = true;
	placement->cpu = cpu;
}

void placement_release(void)
{
	if (permitted_known)
		sched_setaffinity(0, sizeof(permitted), &permitted);
}

static void set_free(struct placement *placement)
{
	placement_release();
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
