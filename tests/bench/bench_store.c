/* What writing, adding and reading a snapshot file costs: prints one JSON object a line and judges
 * nothing.
 *
 *	bench_store FILE [TRACES]     default 1000000; the file is written and removed
 *
 * One trace in ten has a stack of its own, and a stack shares all but its last frames. */
#include "base/clock.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODULES 50
#define FRAMES 30000
#define TRACES_PER_STACK 10
#define FRAMES_PER_STACK 3     /* that it shares with no other */

static uint64_t random_state = 88172645463325252ULL;

static uint32_t below(uint32_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state % limit);
}

static void *sure(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static uint32_t text(struct snapshot *snapshot, const char *format, uint32_t number)
{
	char name[128];
	int64_t id;

	snprintf(name, sizeof(name), "%s%u", format, number);
	id = strtab_add(snapshot->strings, name);
	if (id < 0)
		abort();
	return (uint32_t)id;
}

static void add_code(struct snapshot *snapshot)
{
	for (uint32_t i = 0; i < MODULES; i++) {
		struct snapshot_module *module = vec_push(&snapshot->modules);

		sure(module);
		module->path = text(snapshot, "/usr/lib/x86_64-linux-gnu/libsomething.so.", i);
		module->build_id_len = 20;
	}
	for (uint32_t i = 0; i < FRAMES; i++) {
		struct snapshot_frame *frame = vec_push(&snapshot->frames);
		struct snapshot_location *location = vec_push(&snapshot->locations);

		sure(frame);
		sure(location);
		frame->frame.module = below(MODULES);
		frame->frame.kind = FRAME_CALL;
		frame->frame.offset = below(1 << 24);
		frame->first_location = i;
		frame->location_count = 1;
		location->function = text(snapshot, "some_function_of_a_usual_length_", i / 4);
		location->file = text(snapshot, "/usr/src/program-1.0/src/file.c.", i / 50);
		location->line = below(5000);
	}
}

static uint32_t add_stack(struct snapshot *snapshot, uint32_t parent)
{
	for (int i = 0; i < FRAMES_PER_STACK; i++) {
		struct stack_node *node = vec_push(&snapshot->nodes);

		sure(node);
		node->parent = parent;
		node->frame = 1 + below(FRAMES);
		parent = (uint32_t)snapshot->nodes.count - 1;
	}
	return parent;
}

static struct snapshot *make_snapshot(uint32_t traces)
{
	struct snapshot *snapshot = sure(snapshot_new());
	uint32_t count = traces / TRACES_PER_STACK + 1;
	uint32_t *depths = sure(calloc(count, sizeof(*depths)));
	uint32_t *stacks = sure(calloc(count, sizeof(*stacks)));

	add_code(snapshot);
	for (uint32_t i = 1; i < count; i++) {
		uint32_t parent = below(i);

		if (depths[parent] > 10)
			parent = 0;
		depths[i] = depths[parent] + 1;
		stacks[i] = add_stack(snapshot, stacks[parent]);
	}
	for (uint32_t i = 0; i < traces; i++) {
		struct snapshot_trace *trace = vec_push(&snapshot->traces);

		sure(trace);
		trace->stack = stacks[i % count];
		trace->domain = i / count;
		trace->live_blocks = 1 + below(100);
		trace->live_bytes = below(100000);
		trace->total_blocks = trace->live_blocks * 2;
		trace->total_bytes = trace->live_bytes * 2;
	}
	free(depths);
	free(stacks);
	return snapshot;
}

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
	struct snapshot *snapshot;

	if (argc < 2) {
		fprintf(stderr, "usage: bench_store FILE [TRACES]\n");
		return 2;
	}
	snapshot = make_snapshot(argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1000000);
	measure(argv[1], snapshot);
	snapshot_put(snapshot);
	return 0;
}
