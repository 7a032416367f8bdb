/* Stacks of real programs, taken while they run: ours against libunwind's at the same stop, and a sample of
 * them against gdb's.  What is compared are the program counters of all frames, outermost included. */
#include "live.h"

#include "oracle.h"
#include "workload.h"

#include <errno.h>
#include <string.h>

#define STACKS 1500                    /* of each program */
#define STACKS_LONG 3500
#define GDB_STACKS 4

static void watch(const char *name)
{
	struct workload workload;
	struct oracle_options options = { .sampler = { .every = 3, .max_steps = 40 } };
	struct oracle *oracle;
	struct oracle_counts counts;
	unsigned int stacks = live_rounds(STACKS, STACKS_LONG);
	const char *source = live_text("%s/src/probe/engine_int3.c", live_source());
	int r = workload_prepare(&workload, name, live_folder(), source);

	if (r < 0)
		live_fail("%s: %s", name, strerror(-r));
	options.sampler.argv = workload.argv;
	oracle = oracle_start(&options);
	if (!oracle)
		live_fail("%s does not start: %s", name, strerror(errno));
	require_equal(workload_start_client(&workload), 0);
	while (oracle_counts(oracle).compared < stacks && oracle_next(oracle)) {
		if (oracle_counts(oracle).compared % (stacks / GDB_STACKS) == 0)
			oracle_ask_gdb(oracle);
	}
	counts = oracle_counts(oracle);
	live_note("%s: %u stacks (%u distinct) of %.1f frames compared with libunwind, %u differ; %u with gdb, %u differ",
		  name, counts.compared, counts.distinct, counts.compared ? (double)counts.frames / counts.compared : 0,
		  counts.differ, counts.gdb_compared, counts.gdb_differ);
	require_at_least(counts.compared, stacks);
	require_at_least(counts.gdb_compared, 1);
	require_equal(counts.differ, 0);
	require_equal(counts.gdb_differ, 0);
	oracle_free(oracle);
	workload_fini(&workload);
}

static void stacks_of_redis_are_those_of_libunwind_and_gdb(void)
{
	watch("redis");
}

static void stacks_of_python3_are_those_of_libunwind_and_gdb(void)
{
	watch("python3");
}

static void stacks_of_cc1_are_those_of_libunwind_and_gdb(void)
{
	watch("cc1");
}

static const struct live_case cases[] = {
	LIVE_CASE(stacks_of_redis_are_those_of_libunwind_and_gdb),
	LIVE_CASE(stacks_of_python3_are_those_of_libunwind_and_gdb),
	LIVE_CASE(stacks_of_cc1_are_those_of_libunwind_and_gdb),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
