#include "unwind/unwind.h"

#include "unwind/unwinder.h"
#include "unwind/walk.h"

#include <errno.h>
#include <stdlib.h>

#define FRAMES_FIRST UNWIND_CHAIN_MAX

static int reserve_frames(struct unwinder *unwinder, uint32_t want)
{
	uint32_t space = unwinder->frames_space ? unwinder->frames_space : FRAMES_FIRST;
	struct passed *passed;
	uint32_t *frames, *nodes;

	while (space < want)
		space *= 2;
	if (space == unwinder->frames_space)
		return 0;
	frames = malloc(space * sizeof(*frames));
	nodes = malloc(space * sizeof(*nodes));
	passed = malloc(space * sizeof(*passed));
	if (!frames || !nodes || !passed) {
		free(frames);
		free(nodes);
		free(passed);
		return -ENOMEM;
	}
	free(unwinder->frames);
	free(unwinder->nodes);
	free(unwinder->passed);
	unwinder->frames = frames;
	unwinder->nodes = nodes;
	unwinder->passed = passed;
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
		unwinder->reason_nodes[reason] = (uint32_t)node;
	}
	return 0;
}

const struct stack_table *unwinder_stacks(const struct unwinder *unwinder)
{
	return unwinder->stacks;
}

struct unwinder *unwinder_new(const struct module_map *map, struct stack_table *stacks)
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
	if (trails_init(&unwinder->trails) < 0)
		goto free_memory;
	if (reserve_frames(unwinder, FRAMES_FIRST) < 0 || intern_reasons(unwinder) < 0)
		goto free_all;
	unwinder->libunwind = libunwind_new();
	if (!unwinder->libunwind)
		goto free_all;
	return unwinder;
free_all:
	unwinder_free(unwinder);
	return NULL;
free_memory:
	stack_copy_fini(&unwinder->memory);
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
	vec_fini(&unwinder->known);
	endings_fini(&unwinder->endings);
	trails_fini(&unwinder->trails);
	stack_copy_fini(&unwinder->memory);
	free(unwinder->frames);
	free(unwinder->nodes);
	free(unwinder->passed);
	free(unwinder);
}

static int read_tables(struct unwinder *unwinder, uint32_t module, int elf_fd)
{
	struct dwarf_cfi *cfi;
	int err;

	err = endings_add(&unwinder->endings, module, elf_fd);
	if (err == 0)
		err = dwarf_cfi_open(elf_fd, &cfi);
	if (err < 0)
		return err;
	if (unwinder->tables + dwarf_cfi_memory(cfi) > UNWIND_TABLES_MAX) {
		dwarf_cfi_close(cfi);
		return -ENOSPC;
	}
	unwinder->tables += dwarf_cfi_memory(cfi);
	unwinder->modules.items[module] = cfi;
	return 0;
}

static int reserve_module(struct unwinder *unwinder, uint32_t module)
{
	while (unwinder->modules.count <= module) {
		if (!vec_push(&unwinder->modules))
			return -ENOMEM;
	}
	while (unwinder->known.count <= module) {
		if (!vec_push(&unwinder->known))
			return -ENOMEM;
	}
	return 0;
}

int unwinder_add_module(struct unwinder *unwinder, uint32_t module, int elf_fd)
{
	int err = module < MODULES_MAX ? reserve_module(unwinder, module) : -EINVAL;

	if (err < 0)
		return err;
	unwinder_remove_module(unwinder, module);
	err = read_tables(unwinder, module, elf_fd);
	unwinder->known.items[module] = (struct unwind_module){ .since = ++unwinder->generation, .error = err };
	return err;
}

void unwinder_remove_module(struct unwinder *unwinder, uint32_t module)
{
	trails_forget(&unwinder->trails);
	cfi_rows_remove_module(&unwinder->rows, module);
	endings_drop(&unwinder->endings, module);
	unwinder->generation++;
	if (module < unwinder->known.count)
		unwinder->known.items[module] = (struct unwind_module){ .since = 0 };
	if (module >= unwinder->modules.count || !unwinder->modules.items[module])
		return;
	unwinder->tables -= dwarf_cfi_memory(unwinder->modules.items[module]);
	dwarf_cfi_close(unwinder->modules.items[module]);
	unwinder->modules.items[module] = NULL;
}

void unwinder_set_translation(struct unwinder *unwinder, unwind_translate *translate, void *context)
{
	unwinder->translate = translate;
	unwinder->translate_context = context;
}

uint64_t unwinder_generation(const struct unwinder *unwinder)
{
	return unwinder->generation;
}

struct unwind_module unwinder_module(const struct unwinder *unwinder, uint32_t module)
{
	return module < unwinder->known.count ? unwinder->known.items[module] : (struct unwind_module){ .since = 0 };
}

bool unwinder_knows_all_endings(const struct unwinder *unwinder)
{
	return unwinder->endings.items.count < ENDINGS_MAX;
}

enum truncation unwinder_last_reason(const struct unwinder *unwinder)
{
	return unwinder->last_reason;
}

struct unwind_counters unwinder_counters(const struct unwinder *unwinder)
{
	return unwinder->counters;
}

size_t unwinder_memory(const struct unwinder *unwinder)
{
	size_t bytes = sizeof(*unwinder) + cfi_rows_memory(&unwinder->rows) + trails_memory() +
		       STACK_WINDOWS * (size_t)STACK_WINDOW_MAX +
		       (2 * sizeof(uint32_t) + sizeof(struct passed)) * unwinder->frames_space +
		       vec_memory(&unwinder->modules) + vec_memory(&unwinder->known) + vec_memory(&unwinder->endings.items) + libunwind_memory();

	for (size_t i = 0; i < unwinder->modules.count; i++)
		if (unwinder->modules.items[i])
			bytes += dwarf_cfi_memory(unwinder->modules.items[i]);
	return bytes;
}

/* Keeps frame i of the walk, whose stack is `node`, as the next one of the trail.  False when there is no
 * room, or when it keeps its caller's registers outside of itself, which only broken tables say. */
static bool keep(const struct walk *walk, uint32_t i)
{
	const struct unwinder *unwinder = walk->unwinder;
	const struct passed *passed = &unwinder->passed[i];
	const struct cfi_row *row = &unwinder->rows.rows.items[passed->row];
	const struct trail_frame *caller = &walk->trail->frames[walk->trail->count];
	struct trail_frame frame = { .sp = passed->sp, .pc = passed->pc, .bp = passed->bp,
				     .node = unwinder->nodes[i] };

	if (walk->trail->count == TRAIL_FRAMES_MAX)
		return false;
	if (row->saved_mask >> ARCH_CALLEE_SAVED_BP & 1)
		frame.bp_offset = row->saved[ARCH_CALLEE_SAVED_BP];
	if (walk->trail->count > 0 && (caller->sp - 8 < frame.sp ||
				       caller->sp + (uint64_t)(int64_t)frame.bp_offset < frame.sp))
		return false;
	walk->trail->frames[++walk->trail->count] = frame;
	return true;
}

/* Pushes the frames of a walk from the outermost inwards, upon what it has in common with the last one or
 * upon the reason why it is short; when there is no room for them, that is the reason. */
static uint32_t push_frames(struct walk *walk, enum truncation *reason)
{
	struct unwinder *unwinder = walk->unwinder;
	uint32_t node = *reason == TRUNCATED_NONE ? STACK_ROOT : unwinder->reason_nodes[*reason];

	walk->trail->count = walk->joined;
	if (walk->joined)
		node = walk->trail->frames[walk->joined].node;
	if (walk->count == 0)
		return node;
	if (stack_table_push_run(unwinder->stacks, node, unwinder->frames, walk->count, unwinder->nodes) < 0) {
		*reason = TRUNCATED_TABLE;
		return unwinder->reason_nodes[TRUNCATED_TABLE];
	}
	for (uint32_t i = walk->count; walk->plain_to_end && !unwinder->memory.unknown && i-- > walk->plain_from;)
		if (!keep(walk, i))
			break;
	return unwinder->nodes[0];
}

uint32_t unwinder_unwind(struct unwinder *unwinder, const struct arch_regs *regs,
			 const struct reader *reader, uint32_t max_frames, struct unwind_reach *ret_reach)
{
	raddr sp = regs->reg[ARCH_DWARF_SP];
	struct walk_segments segments;
	struct walk walk = {
		.unwinder = unwinder,
		.regs = *regs,
		.exact = true,
		.max = max_frames < UNWIND_FRAMES_MAX ? max_frames : UNWIND_FRAMES_MAX,
		.trail = trails_find(&unwinder->trails, sp),
		.segments = &segments,
	};
	enum truncation reason;
	uint32_t node;

	if (walk.max > unwinder->frames_space && reserve_frames(unwinder, walk.max) < 0)
		walk.max = unwinder->frames_space;
	segments.items[0].start = sp;
	segments.count = 1;
	stack_copy_begin(&unwinder->memory, reader, sp);
	reason = walk_stack(&walk);
	stack_copy_learn(&unwinder->memory, sp + walk_used_bytes(&walk));
	if (ret_reach)
		*ret_reach = walk_reach(&walk);
	unwinder->counters.stacks++;
	unwinder->counters.frames += walk.count + walk.joined;
	node = push_frames(&walk, &reason);
	unwinder->last_reason = reason;
	if (reason != TRUNCATED_NONE)
		unwinder->counters.truncated[reason]++;
	return node;
}

uint32_t unwinder_chain(struct unwinder *unwinder, const struct arch_regs *regs, const struct reader *reader,
			raddr until, struct unwind_frame *frames, bool *ret_whole)
{
	raddr sp = regs->reg[ARCH_DWARF_SP];
	struct walk_segments segments;
	struct walk walk = {
		.unwinder = unwinder,
		.regs = *regs,
		.exact = true,
		.max = UNWIND_CHAIN_MAX,       /* no more than FRAMES_FIRST */
		.segments = &segments,
	};

	segments.items[0].start = sp;
	segments.count = 1;
	stack_copy_begin(&unwinder->memory, reader, sp);
	return walk_chain(&walk, until, frames, ret_whole);
}
