#include "synthetic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODULES 50
#define FRAMES 30000
#define DEPTH_MOST 10          /* stacks that stand on each other */
#define FRAMES_PER_STACK 3     /* that it shares with those that stand on it only */
#define BIRTHS_NS 600000000000ULL

/* The first three modules and frames are the runtime's. */
enum { FRAME_MALLOC = 1, FRAME_NEW, FRAME_VECTOR, FRAME_USER };

struct maker {
	struct snapshot *snapshot;
	uint64_t random;
};

static uint32_t below(struct maker *maker, uint32_t limit)
{
	maker->random ^= maker->random << 13;
	maker->random ^= maker->random >> 7;
	maker->random ^= maker->random << 17;
	return (uint32_t)(maker->random % limit);
}

static void *sure(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static uint32_t text(struct maker *maker, const char *format, uint32_t number)
{
	char name[128];
	int64_t id;

	snprintf(name, sizeof(name), "%s%u", format, number);
	id = strtab_add(maker->snapshot->strings, name);
	if (id < 0)
		abort();
	return (uint32_t)id;
}

static void add_module(struct maker *maker, const char *path, uint32_t number)
{
	struct snapshot_module *module = sure(vec_push(&maker->snapshot->modules));

	module->path = text(maker, path, number);
	module->build_id_len = 20;
}

static void add_frame(struct maker *maker, struct frame frame, const struct snapshot_location *location)
{
	struct snapshot *snapshot = maker->snapshot;
	struct snapshot_frame *new = sure(vec_push(&snapshot->frames));

	new->frame = frame;
	new->first_location = (uint32_t)snapshot->locations.count;
	new->location_count = 1;
	*(struct snapshot_location *)sure(vec_push(&snapshot->locations)) = *location;
}

static void add_runtime(struct maker *maker)
{
	add_module(maker, "/usr/lib/x86_64-linux-gnu/libc.so.", 6);
	add_module(maker, "/usr/lib/x86_64-linux-gnu/libstdc++.so.", 6);
	add_frame(maker, (struct frame){ .module = 0, .kind = FRAME_EXACT, .offset = 4096 },
		  &(struct snapshot_location){ .function = text(maker, "malloc", 0) });
	add_frame(maker, (struct frame){ .module = 1, .kind = FRAME_CALL, .offset = 8192 },
		  &(struct snapshot_location){ .function = text(maker, "operator new(unsigned long)", 0) });
	add_frame(maker, (struct frame){ .module = 2, .kind = FRAME_CALL, .offset = 12288 },
		  &(struct snapshot_location){ .function = text(maker, "std::vector<int>::push_back(int const&)#", 0),
					       .file = text(maker, "/usr/include/c++/12/bits/stl_vector.h#", 0),
					       .line = 1287 });
}

static void add_code(struct maker *maker)
{
	add_runtime(maker);
	for (uint32_t i = 2; i < MODULES; i++)
		add_module(maker, "/usr/lib/x86_64-linux-gnu/libsomething.so.", i);
	for (uint32_t i = 0; i < FRAMES; i++) {
		struct frame frame = { .module = 2 + below(maker, MODULES - 2), .kind = FRAME_CALL,
				       .offset = below(maker, 1 << 24) };
		struct snapshot_location location = {
			.function = text(maker, "some_function_of_a_usual_length_", i / 4),
			.file = text(maker, "/usr/src/program-1.0/src/file.c.", i / 50),
			.line = 1 + below(maker, 5000),
		};

		add_frame(maker, frame, &location);
	}
}

static uint32_t add_node(struct maker *maker, uint32_t parent, uint32_t frame)
{
	struct snapshot *snapshot = maker->snapshot;
	struct stack_node *node = sure(vec_push(&snapshot->nodes));

	*node = (struct stack_node){ .parent = parent, .frame = frame };
	return (uint32_t)snapshot->nodes.count - 1;
}

static uint32_t add_leaf(struct maker *maker, uint32_t parent)
{
	if (below(maker, 2)) {
		if (below(maker, 2))
			parent = add_node(maker, parent, FRAME_VECTOR);
		parent = add_node(maker, parent, FRAME_NEW);
	}
	return add_node(maker, parent, FRAME_MALLOC);
}

/* The leaves, where traces are. */
static uint32_t *add_stacks(struct maker *maker, uint32_t count)
{
	uint32_t *depths = sure(calloc(count, sizeof(*depths)));
	uint32_t *stacks = sure(calloc(count, sizeof(*stacks)));
	uint32_t *leaves = sure(calloc(count, sizeof(*leaves)));

	for (uint32_t i = 0; i < count; i++) {
		uint32_t base = i ? below(maker, i) : 0;

		if (i > 0 && depths[base] < DEPTH_MOST) {
			depths[i] = depths[base] + 1;
			stacks[i] = stacks[base];
		}
		for (int frame = 0; frame < FRAMES_PER_STACK; frame++)
			stacks[i] = add_node(maker, stacks[i], FRAME_USER + below(maker, FRAMES));
		leaves[i] = add_leaf(maker, stacks[i]);
	}
	free(depths);
	free(stacks);
	return leaves;
}

static void list_blocks(struct maker *maker, const struct snapshot_trace *trace, uint32_t number)
{
	uint64_t rest = trace->live_bytes;

	for (uint64_t i = trace->live_blocks; i > 0; i--) {
		struct snapshot_block *block = sure(vec_push(&maker->snapshot->blocks));

		block->address = 0x7f0000000000 + maker->snapshot->blocks.count * 65536;
		block->size = rest / i;
		block->trace = number;
		block->thread = 4242;
		block->age_ns = below(maker, 1000) * (BIRTHS_NS / 1000);
		rest -= block->size;
	}
}

static void set_counts(struct maker *maker, struct snapshot_trace *trace, const struct synthetic *wanted)
{
	uint32_t blocks = 1 + below(maker, wanted->blocks_most), bytes = below(maker, 100000);
	uint32_t change = below(maker, 100);

	if (wanted->moment > 1 && change < 10) {
		blocks += wanted->moment;
		bytes += wanted->moment * 100;
	}
	if (wanted->moment > 1 && change == 99)
		blocks = bytes = 0;
	trace->live_blocks = blocks;
	trace->live_bytes = bytes;
	trace->total_blocks = blocks * 2;
	trace->total_bytes = bytes * 2;
}

static void add_traces(struct maker *maker, const uint32_t *leaves, const struct synthetic *wanted)
{
	struct snapshot *snapshot = maker->snapshot;

	for (uint32_t i = 0; i < wanted->traces; i++) {
		struct snapshot_trace *trace = sure(vec_push(&snapshot->traces));

		trace->stack = leaves[i % wanted->stacks];
		trace->domain = i / wanted->stacks;
		set_counts(maker, trace, wanted);
		snapshot->counters.live_blocks += trace->live_blocks;
		snapshot->counters.live_bytes += trace->live_bytes;
		if (wanted->with_blocks)
			list_blocks(maker, trace, i);
	}
	snapshot->counters.peak_blocks = snapshot->counters.live_blocks;
	snapshot->counters.peak_bytes = snapshot->counters.live_bytes;
}

static void set_identity(struct snapshot *snapshot, const struct synthetic *wanted)
{
	snapshot->pid = 4242;
	snapshot->start_time = 1;
	snapshot->attached_ns = 1700000000000000000;
	snapshot->taken_ns = snapshot->attached_ns + wanted->moment * BIRTHS_NS;
	snapshot->clock_ns = wanted->moment * BIRTHS_NS;
	snapshot->frames_limit = 40;
	snapshot->exact = snapshot->symbolized = true;
	snapshot->has_blocks = wanted->with_blocks;
	free(snapshot->command);
	free(snapshot->exe);
	snapshot->command = sure(strdup("synthetic"));
	snapshot->exe = sure(strdup("/usr/bin/synthetic"));
}

struct snapshot *synthetic_snapshot(const struct synthetic *wanted)
{
	struct maker maker = { sure(snapshot_new()), 88172645463325252ULL };
	const char *reason;
	uint32_t *leaves;

	add_code(&maker);
	leaves = add_stacks(&maker, wanted->stacks);
	add_traces(&maker, leaves, wanted);
	free(leaves);
	set_identity(maker.snapshot, wanted);
	if (snapshot_check(maker.snapshot, &reason) < 0) {
		fprintf(stderr, "the synthetic snapshot is wrong: %s\n", reason);
		abort();
	}
	return maker.snapshot;
}
