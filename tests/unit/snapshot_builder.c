#include "snapshot_builder.h"

#include <stdlib.h>

static void *must(void *pointer)
{
	if (!pointer)
		abort();
	return pointer;
}

static uint32_t string(struct snapshot *snapshot, const char *text)
{
	int64_t id = strtab_add(snapshot->strings, text);

	if (id < 0)
		abort();
	return (uint32_t)id;
}

uint32_t build_module(struct snapshot *snapshot, const char *path)
{
	struct snapshot_module *module = must(vec_push(&snapshot->modules));

	module->path = string(snapshot, path);
	return (uint32_t)snapshot->modules.count - 1;
}

uint32_t build_frame(struct snapshot *snapshot, uint32_t module, uint16_t kind, uint64_t offset)
{
	struct snapshot_frame *frame = must(vec_push(&snapshot->frames));

	frame->frame = (struct frame){ .module = module, .kind = kind, .offset = offset };
	frame->first_location = (uint32_t)snapshot->locations.count;
	return (uint32_t)snapshot->frames.count - 1;
}

void build_location(struct snapshot *snapshot, const char *function, uint32_t function_offset,
		    const char *file, uint32_t line, bool inlined)
{
	struct snapshot_location *location = must(vec_push(&snapshot->locations));

	*location = (struct snapshot_location){
		.function = string(snapshot, function),
		.function_offset = function_offset,
		.file = string(snapshot, file),
		.line = line,
		.inlined = inlined,
	};
	snapshot->frames.items[snapshot->frames.count - 1].location_count++;
}

uint32_t build_line(struct snapshot *snapshot, const char *function, const char *file, uint32_t line)
{
	uint32_t frame = build_frame(snapshot, MODULE_NONE, FRAME_CALL, snapshot->frames.count);

	build_location(snapshot, function, 1, file, line, false);
	return frame;
}

uint32_t build_node(struct snapshot *snapshot, uint32_t parent, uint32_t frame)
{
	struct stack_node *node = must(vec_push(&snapshot->nodes));

	*node = (struct stack_node){ .parent = parent, .frame = frame };
	return (uint32_t)snapshot->nodes.count - 1;
}

uint32_t build_stack(struct snapshot *snapshot, const uint32_t *frames, size_t count)
{
	uint32_t node = STACK_ROOT;

	for (size_t i = 0; i < count; i++)
		node = build_node(snapshot, node, frames[i]);
	return node;
}

void build_trace(struct snapshot *snapshot, uint32_t stack, uint32_t domain, uint64_t blocks,
		 uint64_t bytes)
{
	struct snapshot_trace *trace = must(vec_push(&snapshot->traces));

	*trace = (struct snapshot_trace){
		.stack = stack, .domain = domain, .live_blocks = blocks, .live_bytes = bytes,
		.total_blocks = blocks, .total_bytes = bytes,
	};
}
