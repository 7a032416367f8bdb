/* Which system calls the tracer makes for one event, and how often it asks for memory: counted, not timed.
 * Prints one JSON object a line and judges nothing.
 *
 * The calls are counted by strace on the tracer's tracing thread (which is not itself traced by anybody
 * else), the requests for memory by a preloaded library. */
#include "allocation_counter.h"
#include "driver.h"
#include "process.h"

#include "base/clock.h"
#include "model/engine_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAIRS 4096             /* of a round, over all threads */
#define LIVE 16384             /* blocks */
#define WARM_ROUNDS 40         /* most of the blocks are taken then */
#define COUNTED_ROUNDS 16      /* for the requests for memory */
#define STRACE_LOG "tests/bench/strace.log"
#define COUNTER_FILE "tests/bench/allocation_counter.bin"
#define KINDS_MAX 64
#define DEADLINE_MS 10000

struct kinds {
	struct kind {
		char name[48];
		uint64_t count;
	} items[KINDS_MAX];
	unsigned count;
};

struct run {
	struct victim *victim;
	struct driver *driver;
	const struct allocation_counter *counter;
	unsigned threads, live;        /* live blocks, of all threads */
	struct kinds calls;
	uint64_t call_events;          /* stops served while calls were counted */
	uint64_t memory_events, tracing, others;
	uint64_t memory_ns;
};

static const struct allocation_counter *map_counter(void)
{
	int fd = open(COUNTER_FILE, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	void *p = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, sizeof(struct allocation_counter)) == 0)
		p = mmap(NULL, sizeof(struct allocation_counter), PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		bench_fail("%s: %s", COUNTER_FILE, strerror(errno));
	close(fd);
	return p;
}

/* --- system calls --- */

static bool has_tracer(pid_t pid)
{
	char path[64], line[256];
	int tracer = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "TracerPid: %d", &tracer);
	if (f)
		fclose(f);
	return tracer != 0;
}

static pid_t start_strace(pid_t tracer)
{
	uint64_t deadline_ns = clock_monotonic_ns() + DEADLINE_MS * NSEC_PER_MSEC;
	char text[16];
	pid_t pid;

	snprintf(text, sizeof(text), "%d", tracer);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		execlp("strace", "strace", "-qq", "-o", STRACE_LOG, "-p", text, (char *)NULL);
		bench_fail("cannot execute strace: %s", strerror(errno));
	}
	while (!has_tracer(tracer)) {
		if (clock_passed(deadline_ns) || waitpid(pid, NULL, WNOHANG) == pid)
			bench_fail("strace cannot attach to the tracer");
		usleep(1000);
	}
	return pid;
}

static void stop_strace(pid_t strace)
{
	kill(strace, SIGINT);
	waitpid(strace, NULL, 0);
}

static void count_kind(struct kinds *kinds, const char *name)
{
	unsigned i = 0;

	while (i < kinds->count && strcmp(kinds->items[i].name, name) != 0)
		i++;
	if (i == KINDS_MAX)
		bench_fail("the tracer makes too many kinds of system calls");
	if (i == kinds->count) {
		snprintf(kinds->items[i].name, sizeof(kinds->items[i].name), "%s", name);
		kinds->count++;
	}
	kinds->items[i].count++;
}

/* A line reads "NAME(ARGUMENTS) = RESULT"; ptrace is told apart by its request.  Signals ("--- ...")
 * and the second half of a call that was broken off are no calls. */
static void count_line(struct kinds *kinds, const char *line)
{
	char name[40], request[40], both[48];

	if (sscanf(line, "ptrace(%39[A-Z_]", request) == 1)
		snprintf(both, sizeof(both), "%s", request);
	else if (sscanf(line, "%39[a-z0-9_](", name) == 1)
		snprintf(both, sizeof(both), "%s", name);
	else
		return;
	count_kind(kinds, both);
}

static void read_log(struct kinds *kinds)
{
	FILE *log = fopen(STRACE_LOG, "re");
	char *line = NULL;
	size_t space = 0;

	if (!log)
		bench_fail("%s: %s", STRACE_LOG, strerror(errno));
	while (getline(&line, &space, log) > 0)
		count_line(kinds, line);
	free(line);
	fclose(log);
	unlink(STRACE_LOG);
}

static void count_calls(struct run *run)
{
	struct wire_status before = driver_status(run->driver), after;
	pid_t strace = start_strace(driver_pid(run->driver));

	victim_command(run->victim, 'g');
	stop_strace(strace);
	after = driver_status(run->driver);
	run->call_events = after.events - before.events;
	read_log(&run->calls);
}

/* --- requests for memory --- */

static void count_memory(struct run *run)
{
	struct wire_status before = driver_status(run->driver), after;
	uint64_t tracing = run->counter->tracing, others = run->counter->others;
	uint64_t begun_ns = clock_monotonic_ns();

	for (unsigned i = 0; i < COUNTED_ROUNDS; i++)
		victim_command(run->victim, 'g');
	run->memory_ns = clock_monotonic_ns() - begun_ns;
	run->tracing = run->counter->tracing - tracing;
	run->others = run->counter->others - others;
	after = driver_status(run->driver);
	run->memory_events = after.events - before.events;
}

static void check(const struct run *run)
{
	/* The preloaded library counted something at all, at the attach. */
	if (run->counter->tracing == 0 || run->calls.count == 0)
		bench_fail("nothing was counted");
	if (run->call_events != PAIRS * 3 || run->memory_events != (uint64_t)COUNTED_ROUNDS * PAIRS * 3)
		bench_fail("%" PRIu64 " and %" PRIu64 " stops were served instead of three a pair",
			   run->call_events, run->memory_events);
}

static void print(const struct run *run)
{
	printf("{\"bench\": \"calls\", \"threads\": %u, \"live_blocks\": %u, \"events\": %" PRIu64 ", \"calls\": {",
	       run->threads, run->live, run->call_events);
	for (unsigned i = 0; i < run->calls.count; i++)
		printf("%s\"%s\": %" PRIu64, i ? ", " : "", run->calls.items[i].name, run->calls.items[i].count);
	printf("}, \"memory_events\": %" PRIu64 ", \"memory_requests\": %" PRIu64 ", "
	       "\"memory_requests_of_other_threads\": %" PRIu64 ", \"memory_seconds\": %.2f}\n",
	       run->memory_events, run->tracing, run->others, (double)run->memory_ns / 1e9);
	fflush(stdout);
}

static void measure(unsigned threads, unsigned live)
{
	struct driver_options options = { .counter_file = COUNTER_FILE, .engine = ENGINE_INT3 };
	struct run run = { .threads = threads, .live = live, .counter = map_counter() };
	char thread_text[16], pair_text[16], live_text[16];

	snprintf(thread_text, sizeof(thread_text), "%u", threads);
	snprintf(pair_text, sizeof(pair_text), "%u", PAIRS / threads);
	snprintf(live_text, sizeof(live_text), "%u", live / threads);
	run.victim = victim_start(CPU_ANY, "tests/bench/pairs", "--threads", thread_text, "--pairs", pair_text,
				  "--live", live_text, NULL);
	run.driver = driver_start(&options);
	driver_attach(run.driver, victim_pid(run.victim));
	for (unsigned i = 0; i < WARM_ROUNDS; i++)
		victim_command(run.victim, 'g');
	count_memory(&run);
	count_calls(&run);
	driver_detach(run.driver);
	victim_quit(run.victim);
	check(&run);
	print(&run);
	unlink(COUNTER_FILE);
}

int main(void)
{
	measure(1, 0);
	measure(16, 0);
	measure(16, LIVE);
	return 0;
}
