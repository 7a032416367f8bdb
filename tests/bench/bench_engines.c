/* What a malloc+free pair costs the program, by the ring engine, by the int3 engine and by heaptrack, which the program is
 * started with: prints one JSON object a line and judges nothing.
 *
 *	bench_engines [REPETITIONS]
 *
 * Taken in turn, again and again; the smallest of each counts, since what disturbs only ever adds.  The program has one CPU
 * and the tracer the other.  heaptrack writes to /dev/null: what else it does with its data is not counted. */
#include "driver.h"
#include "process.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REPETITIONS 7
#define SHORT_PAIRS 1024       /* of all threads: they have room in the ring */
#define LONG_PAIRS 200000      /* of all threads: the ring is filled many times over */
#define SETTLING 20            /* rounds before those that count: call sites are learned, all pages of the ring touched */
#define ROUNDS 5
#define HEAPTRACK "/usr/lib/heaptrack/libheaptrack_preload.so"

enum tool { UNTRACED, RING, INT3, HEAPTRACKED, TOOLS };

static const char *const tool_names[TOOLS] = { "untraced", "ring", "int3", "heaptrack" };

struct cost {
	double clock_ns, cpu_ns;       /* a pair; the least */
};

struct run {
	unsigned threads, pairs;       /* a round, of all threads */
	struct cost cost[TOOLS];
	uint64_t lost;                 /* events, by the ring engine */
	int victim_cpu, tracer_cpu;
};

static void play_round(struct run *run, struct victim *victim, struct cost *cost)
{
	double clock_ns, cpu_ns;

	victim_command(victim, 'g');
	clock_ns = (double)victim_tally(victim, "ns") / run->pairs;
	cpu_ns = (double)victim_tally(victim, "cpu") / run->pairs;
	cost->clock_ns = clock_ns < cost->clock_ns ? clock_ns : cost->clock_ns;
	cost->cpu_ns = cpu_ns < cost->cpu_ns ? cpu_ns : cost->cpu_ns;
}

static struct victim *start(const struct run *run, bool with_heaptrack)
{
	char threads[16], pairs[16];
	struct victim *victim;

	if (with_heaptrack) {
		setenv("LD_PRELOAD", HEAPTRACK, 1);
		setenv("DUMP_HEAPTRACK_OUTPUT", "/dev/null", 1);
	}
	snprintf(threads, sizeof(threads), "%u", run->threads);
	snprintf(pairs, sizeof(pairs), "%u", run->pairs / run->threads);
	victim = victim_start(run->threads == 1 ? run->victim_cpu : CPU_ANY, "tests/bench/pairs", "--threads", threads, "--pairs",
			      pairs, NULL);
	unsetenv("LD_PRELOAD");
	unsetenv("DUMP_HEAPTRACK_OUTPUT");
	return victim;
}

static void play_alone(struct run *run, enum tool tool)
{
	struct cost settling = { 1e9, 1e9 };
	struct victim *victim = start(run, tool == HEAPTRACKED);

	for (unsigned i = 0; i < SETTLING; i++)
		play_round(run, victim, &settling);
	for (unsigned i = 0; i < ROUNDS; i++)
		play_round(run, victim, &run->cost[tool]);
	victim_quit(victim);
}

/* A figure of work that was not recorded would be a small one. */
static void check_work(struct run *run, enum tool tool, const struct wire_status *before, const struct wire_status *after)
{
	uint64_t pairs = (uint64_t)ROUNDS * run->pairs, lost = after->counters.lost_events - before->counters.lost_events;

	if (tool == RING && after->engine != ENGINE_RING)
		bench_fail("the ring engine does not serve: %s", after->engine_reason);
	if (tool == RING)
		run->lost += lost;
	if (after->counters.allocations - before->counters.allocations != pairs && lost == 0)
		bench_fail("of %" PRIu64 " allocations the tracer saw %" PRIu64, pairs,
			   after->counters.allocations - before->counters.allocations);
}

static void play_traced(struct run *run, enum tool tool)
{
	char placement[16];
	struct driver_options options = {
		.placement = run->threads == 1 ? placement : NULL,
		.engine = tool == RING ? ENGINE_RING : ENGINE_INT3,
		.ring_wait_ms = 10000,
	};
	struct cost settling = { 1e9, 1e9 };
	struct victim *victim = start(run, false);
	struct wire_status before, after;
	struct driver *driver;

	snprintf(placement, sizeof(placement), "cpu:%d", run->tracer_cpu);
	driver = driver_start(&options);
	driver_attach(driver, victim_pid(victim));
	for (unsigned i = 0; i < SETTLING; i++) {
		play_round(run, victim, &settling);
		before = driver_status(driver);
	}
	/* The answer to a status comes when the ring has been read up to its end. */
	for (unsigned i = 0; i < ROUNDS; i++) {
		play_round(run, victim, &run->cost[tool]);
		after = driver_status(driver);
	}
	check_work(run, tool, &before, &after);
	driver_detach(driver);
	victim_quit(victim);
}

static void print(const struct run *run)
{
	printf("{\"bench\": \"engines\", \"threads\": %u, \"pairs_per_round\": %u, \"frames\": %d, \"lost\": %" PRIu64, run->threads,
	       run->pairs, BENCH_FRAMES, run->lost);
	for (enum tool tool = 0; tool < TOOLS; tool++)
		printf(", \"%s\": {\"clock_ns\": %.1f, \"cpu_ns\": %.1f}", tool_names[tool], run->cost[tool].clock_ns,
		       run->cost[tool].cpu_ns);
	printf("}\n");
	fflush(stdout);
}

/* The int3 engine takes a hundred times as long: of the long rounds it plays none. */
static void measure(unsigned threads, unsigned pairs, unsigned repetitions)
{
	struct run run = { .threads = threads, .pairs = pairs };

	two_cpus(&run.victim_cpu, &run.tracer_cpu);
	for (enum tool tool = 0; tool < TOOLS; tool++)
		run.cost[tool] = (struct cost){ 1e9, 1e9 };
	for (unsigned i = 0; i < repetitions; i++) {
		play_alone(&run, UNTRACED);
		play_traced(&run, RING);
		if (pairs == SHORT_PAIRS)
			play_traced(&run, INT3);
		else
			run.cost[INT3] = (struct cost){ 0, 0 };
		play_alone(&run, HEAPTRACKED);
	}
	print(&run);
}

int main(int argc, char **argv)
{
	unsigned repetitions = argc > 1 ? (unsigned)atoi(argv[1]) : REPETITIONS;

	if (repetitions < 1 || repetitions > REPETITIONS)
		bench_fail("usage: bench_engines [REPETITIONS, at most %d]", REPETITIONS);
	if (access(HEAPTRACK, F_OK) < 0)
		bench_fail("%s is not there: run 'contrib/install-deps --bench'", HEAPTRACK);
	measure(1, SHORT_PAIRS, repetitions);
	measure(1, LONG_PAIRS, repetitions);
	measure(4, LONG_PAIRS, repetitions);
	return 0;
}
