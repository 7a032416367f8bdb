/* Stacks, interned as a tree of (parent, frame) nodes: a common prefix is stored once.
 *
 * A stack is the id of its innermost node; following parents leads outwards.  Frames are interned
 * too.  Nothing is ever removed while the table lives.  Adding an element that is there allocates
 * nothing; a table that must grow does so in steps that never take longer than a millisecond. */
#ifndef ALLOCWATCH_MODEL_STACK_H
#define ALLOCWATCH_MODEL_STACK_H

#include <stddef.h>
#include <stdint.h>

#define STACK_ROOT 0u      /* the empty stack; node 0 always exists */
#define FRAME_NONE 0u      /* frame 0: the root's */

enum frame_kind {
	FRAME_CALL = 1,     /* offset is a return address: the call's line is that of offset - 1 */
	FRAME_EXACT = 2,    /* offset is the instruction itself: innermost frame, interrupted code */
	FRAME_TRUNCATED = 3,/* the stack could not be followed further out; offset is the reason */
	FRAME_PYTHON = 4,   /* module is a code object's number, offset a line (later) */
};

enum truncation {
	TRUNCATED_NONE = 0,
	TRUNCATED_LIMIT,       /* frames limit reached */
	TRUNCATED_NO_CFI,      /* code without unwind information */
	TRUNCATED_NO_MODULE,   /* pc in no known object (JIT, wild) */
	TRUNCATED_MEMORY,      /* stack memory unreadable */
	TRUNCATED_LOOP,        /* the CFA did not move outwards: broken chain */
	TRUNCATED_TABLE,       /* the stack table is full */
	TRUNCATED_COUNT
};
/* "frames limit reached", ...: for people. */
const char *truncation_text(enum truncation reason);

struct frame {
	uint32_t module;       /* a module id, MODULE_NONE when in no object */
	uint16_t kind;         /* enum frame_kind */
	uint64_t offset;       /* ELF virtual address in the module; run-time address without one */
};

struct stack_node {
	uint32_t parent, frame;
};

struct stack_table;

/* At most max_nodes nodes and max_nodes frames. */
struct stack_table *stack_table_new(uint32_t max_nodes);
void stack_table_free(struct stack_table *table);            /* accepts NULL */

/* Return ids, or -ENOSPC at the limit, -ENOMEM. */
int64_t stack_table_frame(struct stack_table *table, const struct frame *frame);
int64_t stack_table_push(struct stack_table *table, uint32_t parent, uint32_t frame);
/* Pushes frames[count - 1] upon parent, then the others, down to frames[0]; ret_nodes[i] becomes the node of frames[i].
 * The same as so many single pushes, but their memory is waited for once.  0, or the error of the first that
 * failed: the nodes before it are there. */
int stack_table_push_run(struct stack_table *table, uint32_t parent, const uint32_t *frames, uint32_t count,
			 uint32_t *ret_nodes);

/* Begin to load what stack_table_push_run() upon this parent, stack_table_frame() of this frame will read. */
void stack_table_prefetch_node(const struct stack_table *table, uint32_t parent);
void stack_table_prefetch_frame(const struct stack_table *table, const struct frame *frame);

uint32_t stack_table_node_count(const struct stack_table *table);
uint32_t stack_table_frame_count(const struct stack_table *table);
struct stack_node stack_table_node(const struct stack_table *table, uint32_t node);
struct frame stack_table_get_frame(const struct stack_table *table, uint32_t frame);
size_t stack_table_memory(const struct stack_table *table);   /* bytes */

#endif
