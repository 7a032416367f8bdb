/* What writing, adding and reading a snapshot file costs: prints one JSON object a line and judges
 * nothing.
 *
 *	bench_store FILE [TRACES]     default 1000000; the file is written and removed
 *
 * One trace in ten has a stack of its own; see synthetic.h. */
#include "base/clock.h"
#include "store/store.h"
#include "synthetic.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRACES_PER_STACK 10

struct moment {
	uint64_t wall_ns, cpu_ns;
};

static struct moment now(void)
{
	return (struct moment){clock_monotonic_ns(), clock_read_ns(CLOCK_PROCESS_CPUTIME_ID)};
}

static void print_phase(const char *phase, const struct snapshot *snapshot, struct moment begun, const char *path)
{
	struct moment ended = now();
	struct stat st;

	if (stat(path, &st) < 0)
		abort();
	printf("{\"bench\": \"store\", \"phase\": \"%s\", \"traces\": %zu, \"nodes\": %zu, "
	       "\"seconds\": %.3f, \"cpu_seconds\": %.3f, \"file_bytes\": %lld}\n", phase,
	       snapshot->traces.count, snapshot->nodes.count, (double)(ended.wall_ns - begun.wall_ns) / 1e9,
	       (double)(ended.cpu_ns - begun.cpu_ns) / 1e9, (long long)st.st_size);
	fflush(stdout);
}

static void check(int r, const char *reason)
{
	if (r < 0) {
		fprintf(stderr, "bench_store: %s\n", reason);
		exit(1);
	}
}

static void measure(const char *path, struct snapshot *snapshot)
{
	struct moment begun = now();
	struct snapshot *loaded;
	char *reason = NULL;

	check(store_save(path, snapshot, &reason), reason);
	print_phase("save", snapshot, begun, path);
	begun = now();
	check(store_load(path, 0, &loaded, &reason), reason);
	print_phase("load", loaded, begun, path);
	snapshot_put(loaded);
	begun = now();
	check(store_append(path, snapshot, &reason), reason);
	print_phase("append", snapshot, begun, path);
	unlink(path);
}

int main(int argc, char **argv)
{
	struct synthetic wanted = { .traces = 1000000, .blocks_most = 100, .moment = 1 };
	struct snapshot *snapshot;

	if (argc < 2) {
		fprintf(stderr, "usage: bench_store FILE [TRACES]\n");
		return 2;
	}
	if (argc > 2)
		wanted.traces = (uint32_t)strtoul(argv[2], NULL, 10);
	wanted.stacks = wanted.traces / TRACES_PER_STACK;
	if (wanted.stacks == 0)
		return 2;
	snapshot = synthetic_snapshot(&wanted);
	measure(argv[1], snapshot);
	snapshot_put(snapshot);
	return 0;
}
