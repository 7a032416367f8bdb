#include "unwind/unwind.h"

#include "unwind/cfi_rows.h"
#include "unwind/dwarf.h"
#include "unwind/framepointer.h"
#include "unwind/libunwind.h"
#include "unwind/stack_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_MAX 65600u          /* most frames of one stack, whatever the caller asks for */
#define FRAMES_FIRST 256u
/* Stacks one unwind may pass through: alternate signal stacks, coroutines called from coroutines. */
#define SEGMENTS_MAX 16u
/* A caller further out than this is taken to be on another stack. */
#define SAME_STACK_REACH (1u << 20)

/* The last stack pushed, outermost first.  The next one usually shares most of it. */
struct path {
	uint32_t *frames, *nodes;
	uint32_t count;
};

struct unwinder {
	const struct module_map *map;
	struct stack_table *stacks;
	struct cfi_rows rows;
	struct stack_copy memory;
	struct libunwind *libunwind;       /* NULL: left out */
	VEC_OF(struct dwarf_cfi *) modules;/* by module id, NULL: no CFI */
	uint32_t *frames;                  /* of the present stack, innermost first */
	uint32_t frames_space;
	struct path path;
	uint32_t reason_frames[TRUNCATED_COUNT], reason_nodes[TRUNCATED_COUNT];
	raddr (*translate)(void *context, raddr pc);
	void *translate_context;
	struct unwind_counters counters;
};

/* One unwind under way. */
struct walk {
	struct unwinder *unwinder;
	struct arch_regs regs;             /* of the present frame */
	bool exact;                        /* its pc is no return address */
	uint32_t count, max;               /* frames */
	/* Pieces of stacks passed through, [start, end); the last one is the present one and has no end yet. */
	struct segment { raddr start, end; } segments[SEGMENTS_MAX];
	unsigned int segment_count;
	raddr first_end;                   /* how far out the first of them was needed */
};

/* A slot that is not in the cache: code in no module. */
static const struct cfi_row no_module_row = { .module = MODULE_NONE, .kind = CFI_ROW_FRAME_POINTER };

static int reserve_frames(struct unwinder *unwinder, uint32_t want)
{
	uint32_t space = unwinder->frames_space ? unwinder->frames_space : FRAMES_FIRST;
	uint32_t *frames, *path_frames, *path_nodes;

	while (space < want)
		space *= 2;
	if (space == unwinder->frames_space)
		return 0;
	frames = malloc(space * sizeof(*frames));
	path_frames = malloc(space * sizeof(*path_frames));
	path_nodes = malloc(space * sizeof(*path_nodes));
	if (!frames || !path_frames || !path_nodes) {
		free(frames);
		free(path_frames);
		free(path_nodes);
		return -ENOMEM;
	}
	free(unwinder->frames);
	free(unwinder->path.frames);
	free(unwinder->path.nodes);
	unwinder->frames = frames;
	unwinder->path = (struct path){ .frames = path_frames, .nodes = path_nodes };
	unwinder->frames_space = space;
	return 0;
}

/* Made at the start: when the table is full later, there must be something to return. */
static int intern_reasons(struct unwinder *unwinder)
{
	for (unsigned int reason = TRUNCATED_NONE + 1; reason < TRUNCATED_COUNT; reason++) {
		const struct frame frame = {
			.module = MODULE_NONE,
			.kind = FRAME_TRUNCATED,
			.offset = reason,
		};
		int64_t id = stack_table_frame(unwinder->stacks, &frame);
		int64_t node = id < 0 ? id : stack_table_push(unwinder->stacks, STACK_ROOT, (uint32_t)id);

		if (node < 0)
			return (int)node;
		unwinder->reason_frames[reason] = (uint32_t)id;
		unwinder->reason_nodes[reason] = (uint32_t)node;
	}
	return 0;
}

struct unwinder *unwinder_new(const struct module_map *map, struct stack_table *stacks, pid_t pid)
{
	struct unwinder *unwinder = calloc(1, sizeof(*unwinder));

	if (!unwinder)
		return NULL;
	unwinder->map = map;
	unwinder->stacks = stacks;
	if (cfi_rows_init(&unwinder->rows) < 0)
		goto free_unwinder;
	if (stack_copy_init(&unwinder->memory) < 0)
		goto free_rows;
	if (reserve_frames(unwinder, FRAMES_FIRST) < 0 || intern_reasons(unwinder) < 0)
		goto free_all;
	if (pid > 0) {
		unwinder->libunwind = libunwind_new(pid);
		if (!unwinder->libunwind)
			goto free_all;
	}
	return unwinder;
free_all:
	unwinder_free(unwinder);
	return NULL;
free_rows:
	cfi_rows_fini(&unwinder->rows);
free_unwinder:
	free(unwinder);
	return NULL;
}

void unwinder_free(struct unwinder *unwinder)
{
	if (!unwinder)
		return;
	libunwind_free(unwinder->libunwind);
	cfi_rows_fini(&unwinder->rows);
	for (size_t i = 0; i < unwinder->modules.count; i++)
		dwarf_cfi_close(unwinder->modules.items[i]);
	vec_fini(&unwinder->modules);
	stack_copy_fini(&unwinder->memory);
	free(unwinder->frames);
	free(unwinder->path.frames);
	free(unwinder->path.nodes);
	free(unwinder);
}

int unwinder_add_module(struct unwinder *unwinder, uint32_t module, int elf_fd)
{
	struct dwarf_cfi *cfi;
	int err;

	if (module >= MODULES_MAX)
		return -EINVAL;
	while (unwinder->modules.count <= module)
		if (!vec_push(&unwinder->modules))
			return -ENOMEM;
	err = dwarf_cfi_open(elf_fd, &cfi);
	if (err < 0)
		return err;
	unwinder_remove_module(unwinder, module);
	unwinder->modules.items[module] = cfi;
	return 0;
}

void unwinder_remove_module(struct unwinder *unwinder, uint32_t module)
{
	cfi_rows_remove_module(&unwinder->rows, module);
	if (module >= unwinder->modules.count)
		return;
	dwarf_cfi_close(unwinder->modules.items[module]);
	unwinder->modules.items[module] = NULL;
}

void unwinder_set_translation(struct unwinder *unwinder, raddr (*translate)(void *, raddr pc),
			      void *context)
{
	unwinder->translate = translate;
	unwinder->translate_context = context;
}

struct unwind_counters unwinder_counters(const struct unwinder *unwinder)
{
	return unwinder->counters;
}

size_t unwinder_memory(const struct unwinder *unwinder)
{
	size_t bytes = sizeof(*unwinder) + cfi_rows_memory(&unwinder->rows) +
		       STACK_WINDOWS * (size_t)STACK_WINDOW_MAX +
		       3 * sizeof(uint32_t) * (size_t)unwinder->frames_space +
		       unwinder->modules.space * sizeof(*unwinder->modules.items);

	for (size_t i = 0; i < unwinder->modules.count; i++)
		if (unwinder->modules.items[i])
			bytes += dwarf_cfi_memory(unwinder->modules.items[i]);
	return bytes;
}

/* --- rows that are not cached yet --- */

/* The row of an address in a module, made from its CFI. */
static int64_t make_row(struct unwinder *unwinder, uint32_t module, uint64_t address)
{
	struct dwarf_cfi *cfi = module < unwinder->modules.count ? unwinder->modules.items[module] : NULL;
	Dwarf_Frame *frame = NULL;
	struct cfi_row row;
	int64_t id;

	unwinder->counters.row_misses++;
	if (!cfi || dwarf_cfi_row(cfi, address, &row, &frame) < 0)
		row = (struct cfi_row){ .kind = CFI_ROW_NONE };
	row.module = module;
	id = cfi_rows_intern(&unwinder->rows, &row, frame);
	if (id != -ENOSPC)
		return id;
	cfi_rows_restart(&unwinder->rows);
	if (row.kind == CFI_ROW_FULL && dwarf_cfi_row(cfi, address, &row, &frame) < 0)
		return -ENOENT;
	row.module = module;
	return cfi_rows_intern(&unwinder->rows, &row, frame);
}

static int64_t intern_frame(struct unwinder *unwinder, uint32_t module, bool exact, uint64_t offset)
{
	const struct frame frame = {
		.module = module,
		.kind = exact ? FRAME_EXACT : FRAME_CALL,
		.offset = offset,
	};

	return stack_table_frame(unwinder->stacks, &frame);
}

/* A row and a frame for a pc that cfi_rows_find does not know.  Returns the row, NULL with *ret_reason. */
static const struct cfi_row *miss(struct unwinder *unwinder, raddr pc, bool exact, uint32_t *ret_frame,
				  enum truncation *ret_reason)
{
	const struct module_range *range = module_map_find(unwinder->map, exact ? pc : pc - 1);
	uint32_t module = range ? range->module : MODULE_NONE;
	raddr bias = range ? unwinder->map->modules.items[module].bias : 0;
	int64_t frame = intern_frame(unwinder, module, exact, pc - bias), row;

	*ret_reason = TRUNCATED_TABLE;
	if (frame < 0)
		return NULL;
	*ret_frame = (uint32_t)frame;
	if (!range)
		return &no_module_row;
	*ret_reason = TRUNCATED_NO_CFI;
	row = make_row(unwinder, module, (exact ? pc : pc - 1) - bias);
	if (row < 0)
		return NULL;
	cfi_rows_set(&unwinder->rows, cfi_key(pc, exact), (uint32_t)frame, (uint32_t)row);
	return &unwinder->rows.rows.items[row];
}

/* Another kind of the same row, once it is known what to do where the CFI says nothing. */
static void set_kind(struct unwinder *unwinder, raddr pc, bool exact, const struct cfi_row *row,
		     enum cfi_row_kind kind)
{
	const struct cfi_slot *slot = cfi_rows_find(&unwinder->rows, cfi_key(pc, exact));
	struct cfi_row changed = *row;
	int64_t id;

	changed.kind = (uint8_t)kind;
	id = cfi_rows_intern(&unwinder->rows, &changed, NULL);
	if (slot && id >= 0)
		cfi_rows_set(&unwinder->rows, slot->key, slot->frame, (uint32_t)id);
}

/* --- steps --- */

enum step { STEP_OUT, STEP_END, STEP_NO_MEMORY, STEP_NO_CFI };

/* The usual step.  Every register is loaded and then chosen, without a branch: what is saved differs
 * from function to function, and a branch guessed wrong costs more than six loads. */
static inline enum step step_plain(struct walk *walk, const struct cfi_row *row)
{
	uint64_t *reg = walk->regs.reg;
	uint64_t cfa = reg[row->cfa_register] + (uint64_t)(int64_t)row->cfa_offset;
	size_t len = (size_t)-row->lowest * 8;
	const uint8_t *bytes = stack_copy_at(&walk->unwinder->memory, cfa - len, len);

	if (!bytes)
		return STEP_NO_MEMORY;
	bytes += len;
	for (unsigned int i = 0; i < ARCH_CALLEE_SAVED; i++) {
		uint64_t chosen = -(uint64_t)(row->saved_mask >> i & 1), word;

		memcpy(&word, bytes + row->saved[i] * 8, sizeof(word));
		reg[arch_callee_saved[i]] = (word & chosen) | (reg[arch_callee_saved[i]] & ~chosen);
	}
	memcpy(&reg[ARCH_DWARF_PC], bytes + row->return_address * 8, sizeof(uint64_t));
	reg[ARCH_DWARF_SP] = cfa;
	walk->exact = false;
	return STEP_OUT;
}

static enum step step_full(struct walk *walk, const struct cfi_row *row)
{
	struct unwinder *unwinder = walk->unwinder;
	raddr bias = unwinder->map->modules.items[row->module].bias;
	struct dwarf_step step;
	int err;

	unwinder->counters.expression_steps++;
	err = dwarf_frame_step(unwinder->rows.full.items[row->full].frame, bias, &unwinder->memory,
			       &walk->regs, &step);
	if (err < 0)
		return err == -EFAULT ? STEP_NO_MEMORY : STEP_NO_CFI;
	walk->exact = step.signal_frame;
	return step.end ? STEP_END : STEP_OUT;
}

static enum step step_libunwind(struct walk *walk)
{
	struct unwinder *unwinder = walk->unwinder;
	enum libunwind_result result =
		libunwind_step(unwinder->libunwind, &unwinder->memory, walk->exact, &walk->regs);

	if (result == LIBUNWIND_UNKNOWN)
		return STEP_NO_CFI;
	unwinder->counters.libunwind_steps++;
	walk->exact = result == LIBUNWIND_SIGNAL_STEP;
	return result == LIBUNWIND_END ? STEP_END : STEP_OUT;
}

static enum step step_frame_pointer(struct walk *walk, const struct cfi_row *row)
{
	struct unwinder *unwinder = walk->unwinder;
	const struct frame_pointer by = {
		.map = unwinder->map,
		.memory = &unwinder->memory,
		.anonymous = row->module == MODULE_NONE,
		.innermost = walk->count == 1,
	};

	switch (frame_pointer_step(&by, &walk->regs)) {
	case FRAME_POINTER_STEP:
		unwinder->counters.frame_pointer_steps++;
		walk->exact = false;
		return STEP_OUT;
	case FRAME_POINTER_END:
		return STEP_END;
	default:
		return STEP_NO_CFI;
	}
}

/* libunwind first, and whether it helped is remembered. */
static enum step step_without_cfi(struct walk *walk, const struct cfi_row *row)
{
	struct unwinder *unwinder = walk->unwinder;
	struct cfi_row copy = *row;        /* set_kind may move the rows */
	raddr pc = walk->regs.reg[ARCH_DWARF_PC];
	bool exact = walk->exact;
	enum step step = STEP_NO_CFI;

	if (unwinder->libunwind)
		step = step_libunwind(walk);
	if (copy.kind == CFI_ROW_NONE)
		set_kind(unwinder, pc, exact, &copy,
			 step == STEP_NO_CFI ? CFI_ROW_FRAME_POINTER : CFI_ROW_LIBUNWIND);
	return step == STEP_NO_CFI ? step_frame_pointer(walk, &copy) : step;
}

static enum step step_slow(struct walk *walk, const struct cfi_row *row)
{
	switch (row->kind) {
	case CFI_ROW_END:
		return STEP_END;
	case CFI_ROW_FULL:
		return step_full(walk, row);
	case CFI_ROW_NONE:
	case CFI_ROW_LIBUNWIND:
		return step_without_cfi(walk, row);
	default:
		return step_frame_pointer(walk, row);
	}
}

/* --- the walk --- */

/* The caller's frame is on another stack: a signal handler's alternate one, a coroutine's.  False when
 * it has been there before, or too often: then the chain is broken and would go round for ever. */
static bool change_stack(struct walk *walk, raddr from, raddr to)
{
	/* vfork keeps its return address in a register for a while: its frame is empty then. */
	if (to == from && walk->count == 1)
		return true;
	if (walk->segment_count == SEGMENTS_MAX)
		return to > from;
	if (walk->segment_count == 1)
		walk->first_end = from;
	walk->segments[walk->segment_count - 1].end = from;
	for (unsigned int i = 0; i < walk->segment_count; i++)
		if (to >= walk->segments[i].start && to <= walk->segments[i].end)
			return false;
	walk->segments[walk->segment_count++].start = to;
	return true;
}

/* The row of the present frame, which is recorded. */
static inline const struct cfi_row *record(struct walk *walk, enum truncation *ret_reason)
{
	struct unwinder *unwinder = walk->unwinder;
	const struct cfi_slot *slot = NULL;
	const struct cfi_row *row;
	uint32_t frame;
	raddr pc;

	if (walk->exact && unwinder->translate)
		walk->regs.reg[ARCH_DWARF_PC] = unwinder->translate(unwinder->translate_context,
								    walk->regs.reg[ARCH_DWARF_PC]);
	pc = walk->regs.reg[ARCH_DWARF_PC];
	if (__builtin_expect(cfi_is_key(pc), 1))
		slot = cfi_rows_find(&unwinder->rows, cfi_key(pc, walk->exact));
	if (__builtin_expect(slot != NULL, 1)) {
		unwinder->frames[walk->count++] = slot->frame;
		return &unwinder->rows.rows.items[slot->row];
	}
	row = miss(unwinder, pc, walk->exact, &frame, ret_reason);
	if (row)
		unwinder->frames[walk->count++] = frame;
	return row;
}

static enum truncation why_stopped(enum step step, uint32_t module)
{
	if (step == STEP_END)
		return TRUNCATED_NONE;
	if (step == STEP_NO_MEMORY)
		return TRUNCATED_MEMORY;
	return module == MODULE_NONE ? TRUNCATED_NO_MODULE : TRUNCATED_NO_CFI;
}

static enum truncation walk_stack(struct walk *walk)
{
	while (walk->regs.reg[ARCH_DWARF_PC] != 0) {
		raddr sp = walk->regs.reg[ARCH_DWARF_SP], caller_sp;
		enum truncation reason;
		const struct cfi_row *row;
		uint32_t module;
		enum step step;

		if (walk->count == walk->max)
			return TRUNCATED_LIMIT;
		row = record(walk, &reason);
		if (!row)
			return reason;
		module = row->module;      /* a step without CFI may move the rows */
		step = row->kind == CFI_ROW_PLAIN ? step_plain(walk, row) : step_slow(walk, row);
		if (__builtin_expect(step != STEP_OUT, 0))
			return why_stopped(step, module);
		caller_sp = walk->regs.reg[ARCH_DWARF_SP];
		if (__builtin_expect(caller_sp - sp - 1 >= SAME_STACK_REACH, 0) &&
		    !change_stack(walk, sp, caller_sp))
			return TRUNCATED_LOOP;
	}
	return TRUNCATED_NONE;
}

/* --- the result --- */

/* Pushes unwinder->frames[0, count) upon the node of `reason`, from the outermost inwards.  Nodes are
 * never removed, so what the last stack had in common need not be looked up again. */
static uint32_t push_frames(struct unwinder *unwinder, uint32_t count, enum truncation reason)
{
	struct path *path = &unwinder->path;
	uint32_t node = reason == TRUNCATED_NONE ? STACK_ROOT : unwinder->reason_nodes[reason];
	uint32_t i = 0;

	if (path->count > 0 && path->nodes[0] == node) {
		for (i = 1; i < path->count && i <= count; i++)
			if (path->frames[i] != unwinder->frames[count - i])
				break;
		node = path->nodes[i - 1];
	} else {
		path->nodes[0] = node;
		i = 1;
	}
	path->count = i;
	for (; i <= count; i++) {
		uint32_t frame = unwinder->frames[count - i];
		int64_t pushed = stack_table_push(unwinder->stacks, node, frame);

		if (pushed < 0) {
			unwinder->counters.truncated[TRUNCATED_TABLE]++;
			return unwinder->reason_nodes[TRUNCATED_TABLE];
		}
		node = (uint32_t)pushed;
		path->frames[i] = frame;
		path->nodes[i] = node;
		path->count = i + 1;
	}
	return node;
}

static uint32_t stack_end(const struct walk *walk)
{
	raddr end = walk->segment_count > 1 ? walk->first_end : walk->regs.reg[ARCH_DWARF_SP];
	raddr start = walk->segments[0].start;

	if (end < start)
		return 0;
	return end - start > UINT32_MAX ? UINT32_MAX : (uint32_t)(end - start);
}

uint32_t unwinder_unwind(struct unwinder *unwinder, const struct arch_regs *regs,
			 const struct reader *reader, uint32_t max_frames, uint32_t *ret_read_bytes)
{
	raddr sp = regs->reg[ARCH_DWARF_SP];
	struct walk walk = {
		.unwinder = unwinder,
		.regs = *regs,
		.exact = true,
		.max = max_frames < FRAMES_MAX ? max_frames : FRAMES_MAX,
		.segment_count = 1,
	};
	enum truncation reason;

	/* One place is for the root. */
	if (walk.max >= unwinder->frames_space && reserve_frames(unwinder, walk.max + 1) < 0)
		walk.max = unwinder->frames_space - 1;
	walk.segments[0].start = sp;
	stack_copy_begin(&unwinder->memory, reader, sp);
	reason = walk_stack(&walk);
	stack_copy_learn(&unwinder->memory, sp + stack_end(&walk));
	unwinder->counters.stacks++;
	unwinder->counters.frames += walk.count;
	if (reason != TRUNCATED_NONE)
		unwinder->counters.truncated[reason]++;
	if (ret_read_bytes)
		*ret_read_bytes = stack_end(&walk);
	return push_frames(unwinder, walk.count, reason);
}
