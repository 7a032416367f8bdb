#include "daemon/heartbeat.h"

#include "base/clock.h"
#include "base/proc.h"
#include "daemon/limits.h"
#include "model/engine_kind.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#define STAT_PATH_MAX 48
#define LOOKS_LEAST 3          /* before it is said of one that it was silent */
#define THREADS_LOOKED_AT 8    /* of a tracer, which has two, and helpers of its ring's reader */
#define LOOKS_STOPPED 4        /* somebody who stops and continues it is not waited for any longer */
/* Whose threads wait for a processor by turns, between which they sleep, is not always found waiting for one. */
#define LOOKS_IDLE 4
#define LOOKS_STILL 8          /* two seconds in one and the same wait, whatever it did before */
/* One that ran for less of its silence was kept from running. */
#define BUSY_PERCENT 25

/* Of the thread that traces: the other one keeps time and speaks to us, whatever happens to this one. */
static void stat_path(pid_t tracer, char path[STAT_PATH_MAX])
{
	snprintf(path, STAT_PATH_MAX, "/proc/%d/task/%d/stat", tracer, tracer);
}

/* It waits, and has done nothing else since the last look.  Ticks of CPU time would be too coarse for that. */
static bool is_still(struct heartbeat *heartbeat, pid_t tracer)
{
	char path[STAT_PATH_MAX];
	uint64_t turns;
	bool still;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", tracer, tracer);
	turns = proc_schedstat_turns(path);
	still = turns != 0 && turns == heartbeat->turns;
	heartbeat->turns = turns;
	return still;
}

static uint64_t cpu_time(pid_t tracer)
{
	char path[STAT_PATH_MAX];

	stat_path(tracer, path);
	return proc_stat_cpu(path);
}

void heartbeat_heard(struct heartbeat *heartbeat, pid_t tracer, uint32_t patience_ms)
{
	*heartbeat = (struct heartbeat){ .heard_ns = clock_monotonic_ns(), .heard_cpu = cpu_time(tracer),
					 .patience_ms = patience_ms };
}

uint64_t heartbeat_silence_ms(const struct heartbeat *heartbeat)
{
	return (clock_monotonic_ns() - heartbeat->heard_ns) / NSEC_PER_MSEC;
}

static uint64_t used_ms(const struct heartbeat *heartbeat, pid_t tracer)
{
	return (cpu_time(tracer) - heartbeat->heard_cpu) * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

/* The other one keeps time, and says what this one does: while it waits for a CPU, or for a page from a disk, nothing is heard of
 * one that waits for a stop as it should.  state: of this one; who hangs in the kernel itself is excused by no disk.  Those who help to
 * read a ring say nothing of this one. */
static bool another_thread_would_run(pid_t tracer, char state)
{
	char path[STAT_PATH_MAX];
	unsigned looked = 0;
	bool would = false;
	char other;
	pid_t tid;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", tracer);
	dir = opendir(path);
	while (dir && !would && looked < THREADS_LOOKED_AT && proc_next(dir, &tid) > 0) {
		if (tid == tracer)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", tracer, tid);
		if (proc_stat_is_named(path, ENGINE_HELPER_NAME))
			continue;
		other = proc_stat_state(path);
		would = other == 'R' || (other == 'D' && state == 'S');
		looked++;
	}
	if (dir)
		closedir(dir);
	return would;
}

/* One that runs, or has run, may be slow, on a machine that is slow or has much to do. */
static const char *judge_runner(const struct heartbeat *heartbeat, pid_t tracer, uint64_t silence_ms)
{
	if (silence_ms >= heartbeat->patience_ms + STARVED_MS)
		return "is too slow, or gets no time on a CPU";
	if (silence_ms >= heartbeat->patience_ms + SLOW_MS &&
	    used_ms(heartbeat, tracer) * 100 >= silence_ms * BUSY_PERCENT)
		return "is busy with something that does not end";
	return NULL;
}

const char *heartbeat_outlives_kill(pid_t tracer)
{
	char path[STAT_PATH_MAX];

	stat_path(tracer, path);
	return proc_stat_state(path) == 'R' || another_thread_would_run(tracer, 'D') ? "it was killed, and gets no time on a CPU to end" :
	       "it hangs in the kernel, where nothing ends it";
}

const char *heartbeat_look(struct heartbeat *heartbeat, pid_t tracer)
{
	uint64_t silence_ms = heartbeat_silence_ms(heartbeat);
	char path[STAT_PATH_MAX], state;
	bool waits;

	stat_path(tracer, path);
	state = proc_stat_state(path);
	heartbeat->looks++;
	heartbeat->stopped_looks = state == 'T' ? heartbeat->stopped_looks + 1 : 0;
	waits = state == 'S' || state == 'D';
	heartbeat->still_looks = is_still(heartbeat, tracer) && waits ? heartbeat->still_looks + 1 : 0;
	heartbeat->idle_looks = waits && !another_thread_would_run(tracer, state) ? heartbeat->idle_looks + 1 : 0;
	if (heartbeat->stopped_looks >= LOOKS_STOPPED)
		return "is stopped";
	if (silence_ms < heartbeat->patience_ms || heartbeat->looks < LOOKS_LEAST)
		return NULL;
	switch (state) {
	case 'S':
	case 'D':
		if ((used_ms(heartbeat, tracer) > 0 && heartbeat->still_looks < LOOKS_STILL) || heartbeat->idle_looks < LOOKS_IDLE)
			return judge_runner(heartbeat, tracer, silence_ms);
		return state == 'D' ? "hangs in the kernel" : "waits for something that does not come";
	case 'T':
	case 't':              /* a debugger has it */
		return "is stopped";
	case 'R':
		return judge_runner(heartbeat, tracer, silence_ms);
	default:
		return NULL;       /* it has ended, which is told elsewhere */
	}
}
