#include "model/snapshot_image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_SIZE 65536

/* What is used, and its number in the image. */
struct numbering {
	uint32_t *nodes, *frames;              /* new numbers, 0: unused */
	uint32_t node_count, frame_count;      /* of those written */
	uint32_t module_count;
	uint64_t block_count;
};

struct writer {
	const struct snapshot_source *source;
	struct numbering numbers;
	int (*write)(void *context, const void *data, size_t len);
	void *context;
	int error;                             /* the first; then nothing more is written */
	size_t used;
	char buffer[BUFFER_SIZE];
};

static void flush(struct writer *w)
{
	if (w->error == 0 && w->used > 0)
		w->error = w->write(w->context, w->buffer, w->used);
	w->used = 0;
}

static void put(struct writer *w, const void *data, size_t len)
{
	const char *from = data;

	while (len > 0 && w->error == 0) {
		size_t part = BUFFER_SIZE - w->used < len ? BUFFER_SIZE - w->used : len;

		memcpy(w->buffer + w->used, from, part);
		w->used += part;
		from += part;
		len -= part;
		if (w->used == BUFFER_SIZE)
			flush(w);
	}
}

static void put_text(struct writer *w, const char *text, size_t len)
{
	static const char zeros[IMAGE_ALIGN];

	put(w, text, len);
	put(w, zeros, (IMAGE_ALIGN - len % IMAGE_ALIGN) % IMAGE_ALIGN);
}

static const char *text_or_empty(const char *text)
{
	return text ? text : "";
}

/* --- what the traces use --- */

static int mark_trace(void *context, const struct heap_trace *trace)
{
	struct writer *w = context;
	uint32_t node = trace->stack;

	while (node != STACK_ROOT && !w->numbers.nodes[node]) {
		struct stack_node step = stack_table_node(w->source->stacks, node);

		w->numbers.nodes[node] = 1;
		w->numbers.frames[step.frame] = 1;
		node = step.parent;
	}
	return 0;
}

static int count_block(void *context, const struct heap_block *block)
{
	(void)block;
	(*(uint64_t *)context)++;
	return 0;
}

/* The order stays, so parents still come before their children. */
static uint32_t number(uint32_t *marks, uint32_t count)
{
	uint32_t next = 0;

	marks[0] = 0;
	for (uint32_t i = 1; i < count; i++) {
		if (marks[i])
			marks[i] = ++next;
	}
	return next;
}

static bool has_module(const struct writer *w, const struct frame *frame)
{
	return frame->kind != FRAME_PYTHON && frame->module < w->source->modules->modules.count;
}

static void count_modules(struct writer *w)
{
	uint32_t count = stack_table_frame_count(w->source->stacks);

	for (uint32_t i = 1; i < count; i++) {
		struct frame frame = stack_table_get_frame(w->source->stacks, i);

		if (w->numbers.frames[i] && has_module(w, &frame) &&
		    frame.module >= w->numbers.module_count)
			w->numbers.module_count = frame.module + 1;
	}
}

static int number_all(struct writer *w)
{
	const struct stack_table *stacks = w->source->stacks;
	uint32_t nodes = stack_table_node_count(stacks), frames = stack_table_frame_count(stacks);

	w->numbers.nodes = calloc(nodes, sizeof(*w->numbers.nodes));
	w->numbers.frames = calloc(frames, sizeof(*w->numbers.frames));
	if (!w->numbers.nodes || !w->numbers.frames)
		return -ENOMEM;
	heap_each_trace(w->source->heap, mark_trace, w);
	w->numbers.node_count = number(w->numbers.nodes, nodes);
	w->numbers.frame_count = number(w->numbers.frames, frames);
	count_modules(w);
	if (w->source->with_blocks)
		heap_each_block(w->source->heap, count_block, &w->numbers.block_count);
	return 0;
}

/* --- the sections --- */

static void put_head(struct writer *w)
{
	const struct snapshot_source *source = w->source;
	const char *command = text_or_empty(source->command), *exe = text_or_empty(source->exe);
	struct heap_counters counters = heap_counters(source->heap);
	struct image_head head = {
		.magic = IMAGE_MAGIC,
		.version = IMAGE_VERSION,
		.frames_limit = source->frames_limit,
		.pid = source->pid,
		.start_time = source->start_time,
		.taken_ns = source->taken_ns,
		.attached_ns = source->attached_ns,
		.clock_ns = source->clock_ns,
		.sample_bytes = heap_sampling(source->heap),
		.counters = counters,
		.unknown = {
			.unknown_frees = counters.unknown_frees,
			.before_attach_frees = counters.before_attach_frees,
			.after_clear_frees = counters.after_clear_frees,
			.lost_events = counters.lost_events + source->lost_events,
			.truncated_stacks = source->truncated_stacks,
			.probe_gaps = source->probe_gaps,
		},
		.modules = w->numbers.module_count,
		.frames = w->numbers.frame_count,
		.nodes = w->numbers.node_count,
		.traces = heap_trace_count(source->heap),
		.blocks = w->numbers.block_count,
		.command_len = (uint32_t)strlen(command),
		.exe_len = (uint32_t)strlen(exe),
		.exact = source->exact,
		.has_blocks = source->with_blocks,
	};

	put(w, &head, sizeof(head));
	put_text(w, command, head.command_len);
	put_text(w, exe, head.exe_len);
}

/* A module keeps its id, so that the ELF files that the tracer handed over find it; those before
 * the last one that are not used are left empty. */
static void put_modules(struct writer *w)
{
	uint32_t count = w->numbers.module_count, frames = stack_table_frame_count(w->source->stacks);
	bool *used = calloc(count ? count : 1, sizeof(*used));

	if (!used) {
		w->error = -ENOMEM;
		return;
	}
	for (uint32_t i = 1; i < frames; i++) {
		struct frame frame = stack_table_get_frame(w->source->stacks, i);

		if (w->numbers.frames[i] && has_module(w, &frame))
			used[frame.module] = true;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct module *module = &w->source->modules->modules.items[i];
		const char *path = used[i] ? text_or_empty(module->path) : "";
		struct image_module image = { .path_len = (uint32_t)strlen(path) };

		if (used[i]) {
			image.build_id_len = module->build_id_len;
			memcpy(image.build_id, module->build_id, module->build_id_len);
		}
		put(w, &image, sizeof(image));
		put_text(w, path, image.path_len);
	}
	free(used);
}

static void put_frames(struct writer *w)
{
	uint32_t count = stack_table_frame_count(w->source->stacks);

	for (uint32_t i = 1; i < count; i++) {
		struct frame frame = stack_table_get_frame(w->source->stacks, i);
		struct image_frame image = { frame.offset, frame.module, frame.kind, 0 };

		if (frame.kind != FRAME_PYTHON && !has_module(w, &frame))
			image.module = MODULE_NONE;
		if (w->numbers.frames[i])
			put(w, &image, sizeof(image));
	}
}

static void put_nodes(struct writer *w)
{
	uint32_t count = stack_table_node_count(w->source->stacks);

	for (uint32_t i = 1; i < count; i++) {
		struct stack_node node = stack_table_node(w->source->stacks, i);
		struct stack_node image = { w->numbers.nodes[node.parent], w->numbers.frames[node.frame] };

		if (w->numbers.nodes[i])
			put(w, &image, sizeof(image));
	}
}

static int put_trace(void *context, const struct heap_trace *trace)
{
	struct writer *w = context;
	struct snapshot_trace image = {
		.stack = w->numbers.nodes[trace->stack],
		.domain = trace->domain,
		.live_blocks = trace->live_blocks,
		.live_bytes = trace->live_bytes,
		.total_blocks = trace->total_blocks,
		.total_bytes = trace->total_bytes,
		.temporary_blocks = trace->temporary_blocks,
		.peak_blocks = trace->peak_blocks,
		.peak_bytes = trace->peak_bytes,
		.samples = trace->samples,
		.blocks_deviation = trace->blocks_deviation,
		.bytes_deviation = trace->bytes_deviation,
	};

	put(w, &image, sizeof(image));
	return w->error;
}

static int put_block(void *context, const struct heap_block *block)
{
	struct writer *w = context;
	uint64_t now_ns = w->source->clock_ns;
	struct snapshot_block image = {
		.address = block->address,
		.size = block->size,
		.trace = (uint32_t)heap_trace_index(w->source->heap, block->stack, block->domain),
		.thread = block->thread,
		.age_ns = now_ns > block->born_ns ? now_ns - block->born_ns : 0,
	};

	put(w, &image, sizeof(image));
	return w->error;
}

static int put_all(struct writer *w)
{
	put_head(w);
	put_modules(w);
	put_frames(w);
	put_nodes(w);
	heap_each_trace(w->source->heap, put_trace, w);
	if (w->source->with_blocks)
		heap_each_block(w->source->heap, put_block, w);
	flush(w);
	return w->error;
}

int snapshot_image_write(const struct snapshot_source *source,
			 int (*write)(void *context, const void *data, size_t len), void *context)
{
	struct writer *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->source = source;
	w->write = write;
	w->context = context;
	r = number_all(w);
	if (r == 0)
		r = put_all(w);
	free(w->numbers.nodes);
	free(w->numbers.frames);
	free(w);
	return r;
}
