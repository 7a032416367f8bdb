/* Writes the kept images of snapshots: FOLDER/NAME, one for each kind that a tracer hands over. */
#include "model/heap.h"
#include "model/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT_NS 5000000000ull
#define FRAMES 9

struct made {
	struct heap *heap;
	struct stack_table *stacks;
	struct module_map modules;
	uint64_t address;
};

static uint32_t push(struct made *made, uint32_t parent, const struct frame *frame)
{
	return (uint32_t)stack_table_push(made->stacks, parent, (uint32_t)stack_table_frame(made->stacks, frame));
}

static void born(struct made *made, uint64_t size, uint32_t domain, uint32_t stack)
{
	const struct alloc_event event = { .kind = ALLOC_BORN, .tid = 100 + (int32_t)(made->address / 64 % 3), .domain = domain,
					   .stack = stack, .time_ns = AT_NS + made->address * 1000000, .address = made->address,
					   .size = size };

	if (heap_apply(made->heap, &event) < 0)
		abort();
	made->address += 64;
}

static void add_module(struct made *made, const char *path, uint8_t build_id)
{
	struct module module = { .path = (char *)path, .build_id_len = build_id ? 20 : 0 };

	memset(module.build_id, build_id, module.build_id_len);
	if (module_map_add(&made->modules, &module) < 0)
		abort();
}

static void begin(struct made *made)
{
	*made = (struct made){ .heap = heap_new(NULL, true, AT_NS), .stacks = stack_table_new(4096), .address = 64 };
	module_map_init(&made->modules);
	if (!made->heap || !made->stacks)
		abort();
	add_module(made, "/usr/bin/true", 0xab);
	add_module(made, "/usr/lib/libc.so.6", 0);
}

static void fill(struct made *made, unsigned stacks)
{
	uint32_t node = STACK_ROOT;

	for (unsigned i = 0; i < stacks; i++) {
		const struct frame frames[FRAMES] = {
			{ 0, FRAME_CALL, 0x1000 + i }, { 1, FRAME_CALL, 0x2000 }, { 0, FRAME_EXACT, 0x3000 + i },
			{ MODULE_NONE, FRAME_CALL, 0x7f0000000000 }, { 1, FRAME_CALL, 0x4000 }, { 0, FRAME_CALL, 0x1010 },
			{ MODULE_NONE, FRAME_TRUNCATED, TRUNCATED_NO_CFI }, { 3, FRAME_PYTHON, 12 }, { 1, FRAME_CALL, 0x5000 },
		};

		node = push(made, i % 4 == 3 ? STACK_ROOT : node, &frames[i % FRAMES]);
		born(made, 10 + i, i % 4, node);
		born(made, 1000 * i, 0, node);
	}
}

static int write_to(void *context, const void *data, size_t len)
{
	return fwrite(data, 1, len, context) == len ? 0 : -1;
}

static void write_image(const char *folder, const char *name, const struct made *made, bool with_blocks)
{
	const struct snapshot_source source = {
		.heap = made->heap, .stacks = made->stacks, .modules = &made->modules, .command = "true --version",
		.exe = "/usr/bin/true", .pid = 4242, .start_time = 77, .taken_ns = 1700000000000000000, .attached_ns = 1600000000000000000,
		.clock_ns = heap_cut(made->heap, AT_NS * 4), .frames_limit = 25, .exact = true, .with_blocks = with_blocks,
	};
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	if (!f || snapshot_image_write(&source, write_to, f) < 0 || fclose(f) != 0) {
		perror(path);
		exit(1);
	}
}

static void end(struct made *made)
{
	heap_free(made->heap);
	stack_table_free(made->stacks);
	module_map_fini(&made->modules);
}

int main(int argc, char **argv)
{
	static const struct { const char *name; unsigned stacks; bool with_blocks; } kinds[] = {
		{ "empty", 0, false }, { "one", 1, true }, { "plain", 12, false }, { "blocks", 30, true },
	};

	for (size_t i = 0; argc == 2 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct made made;

		begin(&made);
		fill(&made, kinds[i].stacks);
		write_image(argv[1], kinds[i].name, &made, kinds[i].with_blocks);
		end(&made);
	}
	return argc == 2 ? 0 : 2;
}
