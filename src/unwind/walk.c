#include "unwind/walk.h"

#include "unwind/by_code.h"
#include "unwind/framepointer.h"
#include "unwind/libunwind.h"
#include "unwind/lookup.h"
#include "unwind/trampoline.h"

#include <errno.h>

/* A caller further out than this is taken to be on another stack. */
#define SAME_STACK_REACH (1u << 20)
#define SIGNAL_REGISTERS 256u          /* of a signal's frame (x86-64: 192), from the stack pointer of its trampoline */

enum step { STEP_OUT, STEP_END, STEP_NO_MEMORY, STEP_NO_CFI, STEP_BROKEN };

static inline uint64_t plain_cfa(const struct cfi_row *row, uint64_t sp, uint64_t bp)
{
	return (sp ^ ((sp ^ bp) & -(uint64_t)row->from_bp)) + (uint64_t)(int64_t)row->cfa_offset;
}

static enum step step_plain(struct walk *walk, const struct cfi_row *row)
{
	uint64_t *reg = walk->regs.reg;
	uint64_t cfa = plain_cfa(row, reg[ARCH_DWARF_SP], reg[ARCH_DWARF_BP]);
	const uint8_t *bytes = stack_copy_at(&walk->unwinder->memory, cfa - row->depth, row->depth);

	if (!bytes)
		return STEP_NO_MEMORY;
	bytes += row->depth;
	for (unsigned int i = 0; i < ARCH_CALLEE_SAVED; i++)
		if (row->saved_mask >> i & 1)
			reg[arch_callee_saved[i]] = stack_copy_load(bytes + row->saved[i]);
	reg[ARCH_DWARF_PC] = stack_copy_load(bytes - 8);
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

static enum step step_trampoline(struct walk *walk)
{
	enum libunwind_result result = LIBUNWIND_SIGNAL_STEP;
	struct unwinder *unwinder = walk->unwinder;

	if (!trampoline_step(&unwinder->memory, &walk->regs))
		result = libunwind_step(unwinder->libunwind, &unwinder->memory, &walk->regs);
	if (result == LIBUNWIND_UNKNOWN)
		return STEP_NO_CFI;
	unwinder->counters.trampoline_steps++;
	walk->exact = true;
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

/* That a stack ends there is said by its tables, too, of the pc alone. */
static enum cfi_row_kind kind_after(enum step step)
{
	if (step == STEP_END)
		return CFI_ROW_END;
	return step == STEP_NO_CFI ? CFI_ROW_FRAME_POINTER : CFI_ROW_TRAMPOLINE;
}

/* Also the innermost: the stop at an allocator function's entry is mostly behind its first instruction, which has pushed a register. */
static enum step step_by_code(struct walk *walk, struct cfi_row *row)
{
	struct unwinder *unwinder = walk->unwinder;
	struct cfi_row found = *row;

	if (row->kind != CFI_ROW_NONE || !by_code_row(unwinder, &walk->regs, &found))
		return STEP_NO_CFI;
	lookup_set_kind(unwinder, walk->regs.reg[ARCH_DWARF_PC], walk->exact, &found, CFI_ROW_PLAIN);
	unwinder->counters.code_rows++;
	return step_plain(walk, &found);
}

/* A trampoline first, and whether it is one is remembered. */
static enum step step_without_cfi(struct walk *walk, const struct cfi_row *row)
{
	struct unwinder *unwinder = walk->unwinder;
	struct cfi_row copy = *row;        /* lookup_set_kind may move the rows */
	raddr pc = walk->regs.reg[ARCH_DWARF_PC];
	bool exact = walk->exact;
	enum step step = step_trampoline(walk);

	/* A signal's trampoline is called by nobody, either. */
	if (step == STEP_NO_CFI && !exact && (lookup_is_bottom(unwinder, copy.module, pc) || by_code_is_bottom(unwinder, pc)))
		step = STEP_END;
	if (step == STEP_NO_CFI && step_by_code(walk, &copy) == STEP_OUT)
		return STEP_OUT;
	if (copy.kind == CFI_ROW_NONE)
		lookup_set_kind(unwinder, pc, exact, &copy, kind_after(step));
	return step == STEP_NO_CFI ? step_frame_pointer(walk, &copy) : step;
}

static enum step step_slow(struct walk *walk, const struct cfi_row *row)
{
	switch (row->kind) {
	case CFI_ROW_END:
		return STEP_END;
	case CFI_ROW_OTHER_STACK:
		return STEP_BROKEN;
	case CFI_ROW_FULL:
		return step_full(walk, row);
	case CFI_ROW_NONE:
	case CFI_ROW_TRAMPOLINE:
		return step_without_cfi(walk, row);
	default:
		return step_frame_pointer(walk, row);
	}
}

/* The caller's frame is on another stack: a signal handler's alternate one, a coroutine's.  False when
 * it has been there before, or too often: then the chain is broken and would go round for ever. */
static bool change_stack(struct walk *walk, raddr from, raddr to)
{
	struct walk_segments *segments = walk->segments;

	/* vfork keeps its return address in a register for a while: its frame is empty then. */
	if (to == from && walk->count == 1)
		return true;
	if (segments->count == WALK_SEGMENTS_MAX)
		return to > from;
	segments->items[segments->count - 1].end = from;
	for (unsigned int i = 0; i < segments->count; i++)
		if (to >= segments->items[i].start && to <= segments->items[i].end)
			return false;
	segments->items[segments->count++].start = to;
	return true;
}

/* Sets the registers that the steps of walk_plain passed over: each was saved last by the outermost
 * frame that saved it. */
static void restore_saved(struct walk *walk, uint32_t first, const struct stack_window *window)
{
	const struct cfi_row *rows = walk->unwinder->rows.rows.items;
	raddr cfa = walk->regs.reg[ARCH_DWARF_SP];
	unsigned int wanted = (1u << ARCH_CALLEE_SAVED) - 1;

	for (uint32_t step = walk->count; step-- > first && wanted != 0;) {
		const struct passed *passed = &walk->unwinder->passed[step];
		const struct cfi_row *row = &rows[passed->row];

		for (unsigned int i = 0; i < ARCH_CALLEE_SAVED; i++)
			if (row->saved_mask & wanted & 1u << i)
				walk->regs.reg[arch_callee_saved[i]] =
					stack_copy_load(window->bytes + (cfa - window->start) + row->saved[i]);
		wanted &= ~(unsigned int)row->saved_mask;
		cfa = passed->sp;
	}
}

/* As many steps as need nothing but what is at hand: cached plain rows of callers, bytes in the current
 * window.  Ends early where it meets the trail of the last stack and that still holds: walk->joined.
 * Otherwise walk_stack goes on from there and finds out why.  Of the callee-saved registers only the frame
 * pointer decides where these steps lead; the others are fetched at the end, when the row to come may ask
 * for them. */
static void walk_plain(struct walk *walk)
{
	struct unwinder *unwinder = walk->unwinder;
	const struct stack_window window = *unwinder->memory.current;
	const struct cfi_table table = unwinder->rows.table;
	const struct cfi_row *rows = unwinder->rows.rows.items, *row;
	const struct trail_frame *met = &walk->trail->frames[walk->trail->count];
	struct passed *passed = unwinder->passed;
	uint32_t *frames = unwinder->frames;
	uint64_t pc = walk->regs.reg[ARCH_DWARF_PC], sp = walk->regs.reg[ARCH_DWARF_SP];
	uint64_t bp = walk->regs.reg[ARCH_DWARF_BP], caller_bp, cfa, offset;
	uint32_t count = walk->count, first = count;
	const struct cfi_slot *slot;

	for (; count < walk->max && cfi_is_key(pc); count++) {
		while (met->sp < sp)
			met--;
		if (met->sp == sp && met->pc == pc && met->bp == bp) {
			uint32_t joined = (uint32_t)(met - walk->trail->frames);

			stack_table_prefetch_node(unwinder->stacks, met->node);
			if (joined <= walk->max - count && trail_holds(walk->trail, joined, &window)) {
				walk->joined = joined;
				break;
			}
			met = &walk->trail->frames[0];
		}
		slot = cfi_table_find(&table, cfi_key(pc, false));
		row = &rows[slot->row];
		cfa = plain_cfa(row, sp, bp);
		offset = cfa - window.start;
		if (row->kind != CFI_ROW_PLAIN || offset - row->depth >= window.len || offset > window.len ||
		    cfa - sp - 1 >= SAME_STACK_REACH)
			break;
		frames[count] = slot->frame;
		passed[count] = (struct passed){ .sp = sp, .pc = pc, .bp = bp, .row = slot->row };
		pc = stack_copy_load(window.bytes + offset - 8);
		caller_bp = stack_copy_load(window.bytes + offset + row->saved[ARCH_CALLEE_SAVED_BP]);
		bp ^= (bp ^ caller_bp) & -(uint64_t)(row->saved_mask >> ARCH_CALLEE_SAVED_BP & 1);
		sp = cfa;
	}
	walk->regs.reg[ARCH_DWARF_PC] = pc;
	walk->regs.reg[ARCH_DWARF_SP] = sp;
	walk->count = count;
	if (!walk->joined)
		restore_saved(walk, first, &window);
}

/* The outermost frame is the last of the run that led there. */
static void pass_end(struct walk *walk)
{
	const uint64_t *reg = walk->regs.reg;

	walk->unwinder->passed[walk->count - 1] = (struct passed){
		.sp = reg[ARCH_DWARF_SP],
		.pc = reg[ARCH_DWARF_PC],
		.bp = reg[ARCH_DWARF_BP],
	};
	walk->plain_to_end = true;
}

static int read_stack(void *context, raddr at, void *buf, size_t len)
{
	const uint8_t *bytes = stack_copy_at(context, at, len);

	if (!bytes)
		return -EFAULT;
	memcpy(buf, bytes, len);
	return 0;
}

static void translate(struct walk *walk)
{
	struct unwinder *unwinder = walk->unwinder;
	const struct reader stack = { .read = read_stack, .context = &unwinder->memory };

	if (walk->exact && unwinder->translate)
		unwinder->translate(unwinder->translate_context, &walk->regs, &stack);
}

/* Records the present frame and finds its row. */
static const struct cfi_row *record(struct walk *walk, enum truncation *ret_reason)
{
	struct unwinder *unwinder = walk->unwinder;
	const struct cfi_row *row;
	uint32_t frame;

	translate(walk);
	row = lookup_pc(unwinder, walk->regs.reg[ARCH_DWARF_PC], walk->exact, &frame, ret_reason);
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
	if (step == STEP_BROKEN)
		return TRUNCATED_LOOP;
	return module == MODULE_NONE ? TRUNCATED_NO_MODULE : TRUNCATED_NO_CFI;
}

/* One step of any kind; false when it was the last, with *ret_reason. */
static bool step_once(struct walk *walk, enum truncation *ret_reason)
{
	raddr sp = walk->regs.reg[ARCH_DWARF_SP], caller_sp;
	const struct cfi_row *row = record(walk, ret_reason);
	uint32_t module;
	enum step step;

	if (!row)
		return false;
	module = row->module;              /* a step without CFI may move the rows */
	if (row->kind == CFI_ROW_END && !walk->exact)
		pass_end(walk);
	step = row->kind == CFI_ROW_PLAIN ? step_plain(walk, row) : step_slow(walk, row);
	if (step != STEP_OUT) {
		*ret_reason = why_stopped(step, module);
		return false;
	}
	caller_sp = walk->regs.reg[ARCH_DWARF_SP];
	if (caller_sp - sp - 1 < SAME_STACK_REACH || change_stack(walk, sp, caller_sp))
		return true;
	*ret_reason = TRUNCATED_LOOP;
	return false;
}

enum truncation walk_stack(struct walk *walk)
{
	enum truncation reason;

	do {
		if (!walk->exact) {
			walk->plain_from = walk->count;
			walk_plain(walk);
			walk->plain_to_end = walk->joined != 0;
			if (walk->joined)
				return TRUNCATED_NONE;
		}
		if (walk->regs.reg[ARCH_DWARF_PC] == 0)
			return TRUNCATED_NONE;
		if (walk->count == walk->max)
			return TRUNCATED_LIMIT;
	} while (step_once(walk, &reason));
	return reason;
}

uint32_t walk_chain(struct walk *walk, raddr until, struct unwind_frame *frames, bool *ret_whole)
{
	enum truncation reason = TRUNCATED_LIMIT;
	uint32_t count = 0;

	while (count < walk->max) {
		const uint64_t *reg = walk->regs.reg;

		translate(walk);
		frames[count] = (struct unwind_frame){ .pc = reg[ARCH_DWARF_PC], .sp = reg[ARCH_DWARF_SP],
						       .interrupted = walk->exact && count > 0 };
		count++;
		if (reg[ARCH_DWARF_SP] > until)
			break;
		if (reg[ARCH_DWARF_PC] == 0)
			reason = TRUNCATED_NONE;
		if (reg[ARCH_DWARF_PC] == 0 || !step_once(walk, &reason))
			break;
	}
	*ret_whole = reason == TRUNCATED_NONE;
	return count;
}

static uint32_t bytes_between(raddr start, raddr end)
{
	if (end < start)
		return 0;
	return end - start > UINT32_MAX ? UINT32_MAX : (uint32_t)(end - start);
}

static raddr end_of_segment(const struct walk *walk, unsigned int number)
{
	if (number + 1 < walk->segments->count)
		return walk->segments->items[number].end;
	return walk->joined ? walk->trail->frames[1].sp : walk->regs.reg[ARCH_DWARF_SP];
}

uint32_t walk_used_bytes(const struct walk *walk)
{
	return bytes_between(walk->segments->items[0].start, end_of_segment(walk, 0));
}

struct unwind_reach walk_reach(const struct walk *walk)
{
	struct unwind_reach reach = { .bytes = walk_used_bytes(walk) };

	if (walk->segments->count == 1)
		return reach;
	reach.bytes = reach.bytes > UINT32_MAX - SIGNAL_REGISTERS ? UINT32_MAX : reach.bytes + SIGNAL_REGISTERS;
	reach.other_start = walk->segments->items[1].start;
	reach.other_bytes = bytes_between(reach.other_start, end_of_segment(walk, 1));
	return reach;
}
