/* What statistics and differences of large snapshots cost by themselves, without files, sockets and JSON: prints one
 * JSON object a line and judges nothing.
 *
 *	bench_statistics [STACKS]              default 100000
 *
 * The first question about a snapshot makes its index, which the others find: how long that takes is printed by itself,
 * and what a question takes that makes an index and throws it away, as the commands do on files.
 *
 *	bench_statistics --write FOLDER [STACKS]
 *
 * The second form writes the two snapshots that it would ask, s1 and s2, as a daemon's state. */
#include "base/clock.h"
#include "model/index.h"
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
	{ "stats --by lineno --limit 100", false, { .key = KEY_LINENO, .limit = 100 } },
	{ "stats --by traceback --limit 100", false, { .key = KEY_TRACEBACK, .limit = 100 } },
	{ "diff --by lineno --limit 100", true, { .key = KEY_LINENO, .limit = 100 } },
	{ "diff --by traceback --limit 100", true, { .key = KEY_TRACEBACK, .limit = 100 } },
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

static void begin(struct cost *now)
{
	now->wall_ns = clock_monotonic_ns();
	now->cpu_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void end(const struct cost *began, struct cost *least)
{
	uint64_t wall_ns = clock_monotonic_ns() - began->wall_ns;
	uint64_t cpu_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - began->cpu_ns;

	if (wall_ns < least->wall_ns)
		least->wall_ns = wall_ns;
	if (cpu_ns < least->cpu_ns)
		least->cpu_ns = cpu_ns;
}

static void print_cost(const char *question, const char *indexes, uint32_t stacks, const struct cost *least)
{
	printf("{\"bench\": \"statistics\", \"question\": \"%s\", \"index\": \"%s\", \"stacks\": %u, \"rows\": %zu, "
	       "\"ms\": %.2f, \"cpu_ms\": %.2f}\n", question, indexes, stacks, least->rows, (double)least->wall_ns / 1e6,
	       (double)least->cpu_ns / 1e6);
	fflush(stdout);
}

static void ask(const struct question *question, const struct snapshot *older, const struct snapshot *newer,
		struct cost *least)
{
	struct statistics *statistics;
	const char *reason;
	struct cost began;
	int r;

	begin(&began);
	if (question->diff)
		r = statistics_compare(older, newer, &question->query, &statistics, &reason);
	else
		r = statistics_make(older, &question->query, &statistics, &reason);
	if (r < 0)
		abort();
	least->rows = statistics->row_count;
	statistics_free(statistics);
	end(&began, least);
}

static void ask_all(const struct snapshot *older, const struct snapshot *newer, const char *indexes, uint32_t stacks)
{
	for (size_t i = 0; i < sizeof(questions) / sizeof(*questions); i++) {
		struct cost least = { UINT64_MAX, UINT64_MAX, 0 };

		for (int round = 0; round < ROUNDS; round++)
			ask(&questions[i], older, newer, &least);
		print_cost(questions[i].name, indexes, stacks, &least);
	}
}

static void keep_index(struct snapshot *snapshot, uint32_t stacks)
{
	struct cost least = { UINT64_MAX, UINT64_MAX, 0 };

	for (int round = 0; round < ROUNDS; round++) {
		struct cost began;

		snapshot_index_drop(snapshot);
		begin(&began);
		if (snapshot_index_keep(snapshot) < 0)
			abort();
		end(&began, &least);
	}
	least.rows = snapshot->traces.count;
	print_cost("make the index", "made", stacks, &least);
}

static void measure(uint32_t stacks)
{
	struct snapshot *older = make(stacks, 1), *newer = make(stacks, 2);

	ask_all(older, newer, "made and thrown away", stacks);
	keep_index(older, stacks);
	keep_index(newer, stacks);
	printf("{\"bench\": \"statistics-memory\", \"stacks\": %u, \"snapshot_bytes\": %zu, \"index_bytes\": %zu}\n", stacks,
	       snapshot_memory(older), snapshot_index_memory(snapshot_index_kept(older)));
	ask_all(older, newer, "kept", stacks);
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
