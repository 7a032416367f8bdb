/* What a malloc+free pair costs under the tracer, as a multiple of what three bare stops cost: prints one
 * JSON object a line and judges nothing.
 *
 *	bench_stops [REPETITIONS]
 *
 * Both are taken of the same process, one after the other, again and again, by the process's own clock;
 * the smallest of each counts, since what disturbs only ever adds.  Where everything is told its CPU, all
 * run with real-time priority if that is permitted, so that other processes disturb less; where the
 * scheduler chooses the CPUs, it does so as usual. */
#include "driver.h"
#include "floor.h"
#include "process.h"

#include "model/engine_kind.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAIRS 2048             /* of a round, over all threads */
#define STOPS_A_PAIR 3
#define ROUNDS 8               /* of each kind between two changes */
#define REPETITIONS 6
#define ROUNDS_MAX (ROUNDS * REPETITIONS)

struct placing {
	const char *name;
	bool real_time;
	int victim_cpu;
	const char *tracer;            /* ALLOCWATCH_PLACEMENT; NULL: the tracer's policy */
	struct floor_placement floor;
};

struct series {
	double pair_us[ROUNDS_MAX];
	unsigned count;
};

struct run {
	struct victim *victim;
	const struct placing *placing;
	unsigned threads;
	bool real_time;                /* permitted */
	struct series untraced, bare, traced;
	char tracer_cpus[64];          /* where the tracer was allowed to be at the end */
};

static void play(struct run *run, struct series *series, char command)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		victim_command(run->victim, command);
		series->pair_us[series->count++] = (double)victim_tally(run->victim, "ns") / 1e3 /
						   (double)victim_tally(run->victim, "pairs");
	}
}

static void play_bare(struct run *run)
{
	pid_t floor = floor_start(victim_pid(run->victim), (uint64_t)ROUNDS * PAIRS * STOPS_A_PAIR,
				  &run->placing->floor);

	play(run, &run->bare, 'b');
	floor_finish(floor);
}

static void note_tracer_cpus(struct run *run, pid_t tracer)
{
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", tracer);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "Cpus_allowed_list: %63s", run->tracer_cpus);
	if (f)
		fclose(f);
}

/* A figure of work that was not done would be a small one. */
static void check_work(const struct wire_status *before, const struct wire_status *after)
{
	const uint64_t pairs = (uint64_t)ROUNDS * PAIRS;

	if (after->counters.allocations - before->counters.allocations != pairs ||
	    after->counters.frees - before->counters.frees != pairs ||
	    after->events - before->events != pairs * STOPS_A_PAIR || !after->exact)
		bench_fail("of %" PRIu64 " pairs the tracer saw %" PRIu64 " allocations, %" PRIu64
			   " frees and %" PRIu64 " stops", pairs,
			   after->counters.allocations - before->counters.allocations,
			   after->counters.frees - before->counters.frees, after->events - before->events);
}

static void play_traced(struct run *run)
{
	struct driver_options options = { .placement = run->placing->tracer, .engine = ENGINE_INT3 };
	struct driver *driver = driver_start(&options);
	struct wire_status before, after;

	driver_attach(driver, victim_pid(run->victim));
	before = driver_status(driver);
	play(run, &run->traced, 'g');
	after = driver_status(driver);
	check_work(&before, &after);
	note_tracer_cpus(run, driver_pid(driver));
	driver_detach(driver);
}

static double smallest(const struct series *series)
{
	double smallest = series->pair_us[0];

	for (unsigned i = 1; i < series->count; i++) {
		if (series->pair_us[i] < smallest)
			smallest = series->pair_us[i];
	}
	return smallest;
}

static void print_series(const char *name, const struct series *series)
{
	printf("\"%s\": [", name);
	for (unsigned i = 0; i < series->count; i++)
		printf("%s%.3f", i ? ", " : "", series->pair_us[i]);
	printf("], ");
}

static void print(const struct run *run)
{
	printf("{\"bench\": \"stops\", \"threads\": %u, \"placement\": \"%s\", \"scheduling\": \"%s\", "
	       "\"frames\": %d, "
	       "\"pairs_per_round\": %d, \"rounds\": %u, \"tracer_cpus\": \"%s\", ", run->threads,
	       run->placing->name, run->real_time ? "real-time" : "usual", BENCH_FRAMES, PAIRS, run->traced.count, run->tracer_cpus);
	print_series("untraced_rounds_us", &run->untraced);
	print_series("bare_rounds_us", &run->bare);
	print_series("traced_rounds_us", &run->traced);
	printf("\"untraced_pair_us\": %.3f, \"bare_pair_us\": %.3f, \"traced_pair_us\": %.3f, "
	       "\"multiple\": %.3f}\n", smallest(&run->untraced), smallest(&run->bare),
	       smallest(&run->traced), smallest(&run->traced) / smallest(&run->bare));
	fflush(stdout);
}

static bool set_real_time(bool wanted)
{
	struct sched_param priority = { .sched_priority = wanted ? 1 : 0 };

	return sched_setscheduler(0, wanted ? SCHED_FIFO : SCHED_OTHER, &priority) == 0 && wanted;
}

static void measure(const struct placing *placing, unsigned threads, unsigned repetitions)
{
	struct run run = { .placing = placing, .threads = threads };
	char thread_text[16], pair_text[16];

	run.real_time = set_real_time(placing->real_time);
	snprintf(thread_text, sizeof(thread_text), "%u", threads);
	snprintf(pair_text, sizeof(pair_text), "%u", PAIRS / threads);
	run.victim = victim_start(placing->victim_cpu, "tests/bench/pairs", "--threads", thread_text,
				  "--pairs", pair_text, NULL);
	for (unsigned i = 0; i < repetitions; i++) {
		play(&run, &run.untraced, 'g');
		play_bare(&run);
		play_traced(&run);
	}
	victim_quit(run.victim);
	print(&run);
}

int main(int argc, char **argv)
{
	static const unsigned threads[] = { 1, 16 };
	unsigned repetitions = argc > 1 ? (unsigned)atoi(argv[1]) : REPETITIONS;
	char same[16], other[16];
	int first, second;

	if (repetitions < 1 || repetitions > REPETITIONS)
		bench_fail("usage: bench_stops [REPETITIONS, at most %d]", REPETITIONS);
	two_cpus(&first, &second);
	snprintf(same, sizeof(same), "cpu:%d", first);
	snprintf(other, sizeof(other), "cpu:%d", second);
	for (unsigned t = 0; t < sizeof(threads) / sizeof(*threads); t++) {
		const struct placing placings[] = {
			{ "same core", true, first, same, { first, false } },
			{ "other core", true, first, other, { second, false } },
			{ "policy", false, CPU_ANY, NULL, { CPU_ANY, true } },
		};

		for (unsigned p = 0; p < sizeof(placings) / sizeof(*placings); p++)
			measure(&placings[p], threads[t], repetitions);
	}
	return 0;
}
