#include "model/stack.h"

#include "base/hash.h"
#include "model/id_table.h"
#include "model/module.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

struct frame_item {
	uint32_t next;
	struct frame frame;
};

struct node_item {
	uint32_t next;
	struct stack_node node;
};

struct stack_table {
	struct id_table frames, nodes;
	uint32_t limit;
};

static uint64_t frame_hash(const struct frame *frame)
{
	return hash_pair(frame->offset, (uint64_t)frame->kind << 32 | frame->module);
}

static uint64_t frame_item_hash(const void *item)
{
	return frame_hash(&((const struct frame_item *)item)->frame);
}

static uint64_t node_hash(uint32_t parent, uint32_t frame)
{
	return hash_u64((uint64_t)parent << 32 | frame);
}

static uint64_t node_item_hash(const void *item)
{
	const struct node_item *node = item;

	return node_hash(node->node.parent, node->node.frame);
}

static int add_roots(struct stack_table *table)
{
	struct frame none = { .module = MODULE_NONE };

	if (stack_table_frame(table, &none) != FRAME_NONE)
		return -ENOMEM;
	return stack_table_push(table, STACK_ROOT, FRAME_NONE) == STACK_ROOT ? 0 : -ENOMEM;
}

struct stack_table *stack_table_new(uint32_t max_nodes)
{
	struct stack_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->limit = max_nodes > 0 ? max_nodes : 1;
	id_table_init(&table->frames, sizeof(struct frame_item), frame_item_hash);
	id_table_init(&table->nodes, sizeof(struct node_item), node_item_hash);
	if (add_roots(table) < 0) {
		stack_table_free(table);
		return NULL;
	}
	return table;
}

void stack_table_free(struct stack_table *table)
{
	if (!table)
		return;
	id_table_fini(&table->frames);
	id_table_fini(&table->nodes);
	free(table);
}

int64_t stack_table_frame(struct stack_table *table, const struct frame *frame)
{
	struct id_table *frames = &table->frames;
	struct frame_item new = { .frame = *frame };

	for (uint32_t id = id_table_first(frames, frame_hash(frame)); id != ID_NONE;
	     id = id_table_next(frames, id)) {
		const struct frame_item *have = id_table_at(frames, id);

		if (have->frame.offset == frame->offset && have->frame.module == frame->module &&
		    have->frame.kind == frame->kind)
			return id;
	}
	if (frames->count >= table->limit)
		return -ENOSPC;
	return id_table_add(frames, &new);
}

int64_t stack_table_push(struct stack_table *table, uint32_t parent, uint32_t frame)
{
	struct id_table *nodes = &table->nodes;
	struct node_item new = { .node = { .parent = parent, .frame = frame } };

	for (uint32_t id = id_table_first(nodes, node_hash(parent, frame)); id != ID_NONE;
	     id = id_table_next(nodes, id)) {
		const struct node_item *have = id_table_at(nodes, id);

		if (have->node.parent == parent && have->node.frame == frame)
			return id;
	}
	if (nodes->count >= table->limit)
		return -ENOSPC;
	assert(frame < table->frames.count);
	assert(parent < nodes->count || nodes->count == 0);
	return id_table_add(nodes, &new);
}

uint32_t stack_table_node_count(const struct stack_table *table)
{
	return table->nodes.count;
}

uint32_t stack_table_frame_count(const struct stack_table *table)
{
	return table->frames.count;
}

struct stack_node stack_table_node(const struct stack_table *table, uint32_t node)
{
	assert(node < table->nodes.count);
	return ((const struct node_item *)id_table_at(&table->nodes, node))->node;
}

struct frame stack_table_get_frame(const struct stack_table *table, uint32_t frame)
{
	assert(frame < table->frames.count);
	return ((const struct frame_item *)id_table_at(&table->frames, frame))->frame;
}

size_t stack_table_memory(const struct stack_table *table)
{
	return sizeof(*table) + id_table_memory(&table->frames) + id_table_memory(&table->nodes);
}

const char *truncation_text(enum truncation reason)
{
	switch (reason) {
	case TRUNCATED_NONE:
		return "complete";
	case TRUNCATED_LIMIT:
		return "frames limit reached";
	case TRUNCATED_NO_CFI:
		return "code without unwind information";
	case TRUNCATED_NO_MODULE:
		return "code outside of every known object";
	case TRUNCATED_MEMORY:
		return "stack memory could not be read";
	case TRUNCATED_LOOP:
		return "stack frames do not lead outwards";
	case TRUNCATED_TABLE:
		return "table of stacks is full";
	case TRUNCATED_COUNT:
		break;
	}
	return "unknown reason";
}
