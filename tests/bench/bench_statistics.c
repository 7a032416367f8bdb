/* What statistics and differences of large snapshots cost by themselves, without files, sockets and JSON: prints one
 * JSON object a line and judges nothing.
 *
 *	bench_statistics [STACKS]              default 100000
 *	bench_statistics --write FOLDER [STACKS]
 *
 * The second form writes the two snapshots that it would ask, s1 and s2, as a daemon's state. */
#include "base/clock.h"
#include "model/statistics.h"
#include "store/store.h"
#include "synthetic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STACKS 100000
#define ROUNDS 9
#define BLOCKS_MOST 3

static const struct question {
	const char *name;
	bool diff;
	struct statistics_query query;
} questions[] = {
	{ "stats --by lineno", false, { .key = KEY_LINENO } },
	{ "stats --by filename", false, { .key = KEY_FILENAME } },
	{ "stats --by function", false, { .key = KEY_FUNCTION } },
	{ "stats --by traceback", false, { .key = KEY_TRACEBACK } },
	{ "stats --by lineno --cumulative", false, { .key = KEY_LINENO, .cumulative = true } },
	{ "stats --by lineno --older-than 60s", false,
	  { .key = KEY_LINENO, .ages = { .given = true, .least_ns = 60000000001, .below_ns = UINT64_MAX } } },
	{ "diff --by lineno", true, { .key = KEY_LINENO } },
	{ "diff --by traceback", true, { .key = KEY_TRACEBACK } },
};

static struct snapshot *make(uint32_t stacks, uint32_t moment)
{
	return synthetic_snapshot(&(struct synthetic){ .stacks = stacks, .traces = stacks, .blocks_most = BLOCKS_MOST,
						       .moment = moment, .with_blocks = true });
}

struct cost {
	uint64_t wall_ns, cpu_ns;
	size_t rows;
};

static void ask(const struct question *question, const struct snapshot *older, const struct snapshot *newer,
		struct cost *least)
{
	uint64_t wall_ns = clock_monotonic_ns(), cpu_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	struct statistics *statistics;
	const char *reason;
	int r;

	if (question->diff)
		r = statistics_compare(older, newer, &question->query, &statistics, &reason);
	else
		r = statistics_make(older, &question->query, &statistics, &reason);
	if (r < 0)
		abort();
	least->rows = statistics->row_count;
	statistics_free(statistics);
	wall_ns = clock_monotonic_ns() - wall_ns;
	cpu_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	if (wall_ns < least->wall_ns)
		least->wall_ns = wall_ns;
	if (cpu_ns < least->cpu_ns)
		least->cpu_ns = cpu_ns;
}

static void measure(uint32_t stacks)
{
	struct snapshot *older = make(stacks, 1), *newer = make(stacks, 2);

	for (size_t i = 0; i < sizeof(questions) / sizeof(*questions); i++) {
		struct cost least = { UINT64_MAX, UINT64_MAX, 0 };

		for (int round = 0; round < ROUNDS; round++)
			ask(&questions[i], older, newer, &least);
		printf("{\"bench\": \"statistics\", \"question\": \"%s\", \"stacks\": %u, \"rows\": %zu, "
		       "\"ms\": %.2f, \"cpu_ms\": %.2f}\n", questions[i].name, stacks, least.rows,
		       (double)least.wall_ns / 1e6, (double)least.cpu_ns / 1e6);
		fflush(stdout);
	}
	snapshot_put(older);
	snapshot_put(newer);
}

static int write_as(const char *folder, const char *name, struct snapshot *snapshot)
{
	char path[4096], *reason = NULL;
	int r;

	snapshot->id = strdup(name);
	if (!snapshot->id || snprintf(path, sizeof(path), "%s/%s.allocwatch", folder, name) >= (int)sizeof(path))
		return 1;
	r = store_save(path, snapshot, &reason);
	if (r < 0)
		fprintf(stderr, "bench_statistics: %s\n", reason ? reason : strerror(-r));
	free(reason);
	snapshot_put(snapshot);
	return r < 0;
}

int main(int argc, char **argv)
{
	bool writes = argc > 2 && strcmp(argv[1], "--write") == 0;
	int at = writes ? 3 : 1;
	uint32_t stacks = argc > at ? (uint32_t)strtoul(argv[at], NULL, 10) : STACKS;

	if (stacks == 0)
		return 2;
	if (writes)
		return write_as(argv[2], "s1", make(stacks, 1)) || write_as(argv[2], "s2", make(stacks, 2));
	measure(stacks);
	return 0;
}
