#include "model/stack.h"

#include "base/hash.h"
#include "model/id_table.h"
#include "model/module.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

/* Most nodes whose places are fetched at a time. */
#define RUN_MAX 32u

struct frame_item {
	uint32_t next, hash;
	struct frame frame;
};

/* The hash is that of the whole path from the root, so those of a run of nodes can be known, and their places
 * asked for, before the first of them is found.  16 bytes: an item lies in one cache line. */
struct node_item {
	uint32_t next, hash;
	struct stack_node node;
};

struct stack_table {
	struct id_table frames, nodes;
	bool expect_known;                 /* the last run had nothing new: perhaps the next one has not, either */
	uint32_t limit;
};

static uint32_t frame_hash(const struct frame *frame)
{
	return (uint32_t)hash_pair(frame->offset, (uint64_t)frame->kind << 32 | frame->module);
}

static uint64_t frame_item_hash(const void *item)
{
	return ((const struct frame_item *)item)->hash;
}

static uint32_t path_hash(uint32_t parent_hash, uint32_t frame)
{
	return (uint32_t)hash_u64((uint64_t)parent_hash << 32 | frame);
}

static uint64_t node_item_hash(const void *item)
{
	return ((const struct node_item *)item)->hash;
}

static int add_roots(struct stack_table *table)
{
	const struct node_item root = { .node = { .parent = STACK_ROOT, .frame = FRAME_NONE } };
	const struct frame none = { .module = MODULE_NONE };

	if (stack_table_frame(table, &none) != FRAME_NONE)
		return -ENOMEM;
	return id_table_add(&table->nodes, &root) == STACK_ROOT ? 0 : -ENOMEM;
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
	struct frame_item new = { .hash = frame_hash(frame), .frame = *frame };

	for (uint32_t id = id_table_first(frames, new.hash); id != ID_NONE;
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

static uint32_t find_node(const struct id_table *nodes, const struct node_item *want)
{
	uint32_t id = id_table_first(nodes, want->hash);

	for (; id != ID_NONE; id = id_table_next(nodes, id)) {
		const struct node_item *have = id_table_at(nodes, id);

		if (have->node.parent == want->node.parent && have->node.frame == want->node.frame)
			break;
	}
	return id;
}

/* What a node hangs on: its place in the table, and whether it is new, as all upon it then are. */
struct branch {
	uint32_t parent;
	bool is_new;
};

static int push_node(struct stack_table *table, struct branch *branch, uint32_t frame, uint32_t hash)
{
	struct id_table *nodes = &table->nodes;
	struct node_item item = { .hash = hash, .node = { .parent = branch->parent, .frame = frame } };
	uint32_t found = branch->is_new ? ID_NONE : find_node(nodes, &item);
	int64_t added;

	if (found != ID_NONE) {
		branch->parent = found;
		return 0;
	}
	if (nodes->count >= table->limit)
		return -ENOSPC;
	assert(frame < table->frames.count);
	added = id_table_add(nodes, &item);
	if (added < 0)
		return (int)added;
	*branch = (struct branch){ .parent = (uint32_t)added, .is_new = true };
	return 0;
}

static const struct stack_node *node_at(const struct id_table *nodes, uint32_t node)
{
	return &((const struct node_item *)id_table_at(nodes, node))->node;
}

/* Whether a node is the last of these frames upon parent; ret_nodes is filled in in any case. */
static bool is_path(const struct id_table *nodes, uint32_t node, uint32_t parent, const uint32_t *frames,
		    uint32_t count, uint32_t *ret_nodes)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct stack_node *at = node_at(nodes, node);

		if (at->frame != frames[i] || node == STACK_ROOT)
			return false;
		ret_nodes[i] = node;
		node = at->parent;
	}
	return node == parent;
}

/* Looks for the whole run by its last node alone: the others, which were mostly added with it, lie beside it. */
static bool find_known(const struct id_table *nodes, uint32_t parent, const uint32_t *frames, uint32_t count,
		       uint32_t *ret_nodes)
{
	uint32_t hash = ((const struct node_item *)id_table_at(nodes, parent))->hash;

	for (uint32_t i = count; i-- > 0;)
		hash = path_hash(hash, frames[i]);
	for (uint32_t id = id_table_first(nodes, hash); id != ID_NONE; id = id_table_next(nodes, id))
		if (((const struct node_item *)id_table_at(nodes, id))->hash == hash &&
		    is_path(nodes, id, parent, frames, count, ret_nodes))
			return true;
	return false;
}

/* The hashes of frames[count - 1] to frames[0] upon a path with this hash; the table's heads are on their way,
 * then the first items are. */
static void prepare(const struct id_table *nodes, uint32_t hash, const uint32_t *frames, uint32_t count,
		    uint32_t hashes[RUN_MAX])
{
	for (uint32_t i = count; i-- > 0;) {
		hash = path_hash(hash, frames[i]);
		hashes[i] = hash;
		id_table_prefetch(nodes, hash);
	}
	for (uint32_t i = count; i-- > 0;)
		id_table_prefetch_first(nodes, hashes[i]);
}

int stack_table_push_run(struct stack_table *table, uint32_t parent, const uint32_t *frames, uint32_t count,
			 uint32_t *ret_nodes)
{
	struct branch branch = { .parent = parent };
	uint32_t hashes[RUN_MAX], hash;

	assert(parent < table->nodes.count);
	if (table->expect_known && find_known(&table->nodes, parent, frames, count, ret_nodes))
		return 0;
	hash = ((const struct node_item *)id_table_at(&table->nodes, parent))->hash;
	while (count > 0) {
		uint32_t part = count < RUN_MAX ? count : RUN_MAX;

		prepare(&table->nodes, hash, frames + count - part, part, hashes);
		for (uint32_t i = part; i-- > 0;) {
			int err = push_node(table, &branch, frames[--count], hashes[i]);

			if (err < 0)
				return err;
			ret_nodes[count] = branch.parent;
		}
		hash = hashes[0];
	}
	table->expect_known = !branch.is_new;
	return 0;
}

int64_t stack_table_push(struct stack_table *table, uint32_t parent, uint32_t frame)
{
	uint32_t node;
	int err = stack_table_push_run(table, parent, &frame, 1, &node);

	return err < 0 ? err : (int64_t)node;
}

void stack_table_prefetch_node(const struct stack_table *table, uint32_t parent)
{
	assert(parent < table->nodes.count);
	__builtin_prefetch(id_table_at(&table->nodes, parent));
}

void stack_table_prefetch_frame(const struct stack_table *table, const struct frame *frame)
{
	id_table_prefetch(&table->frames, frame_hash(frame));
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
	return *node_at(&table->nodes, node);
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
