#include "probe/view.h"

#include "probe/probe.h"

/* A frame is no larger: what lies between two that are further apart are two stacks. */
#define FRAME_MAX (1u << 20)
#define RETURN_ADDRESS_SIZE 8

void view_look(struct view *view, struct unwinder *unwinder, const struct reader *reader,
	       const struct arch_regs *regs)
{
	view->looked = true;
	view->unwinder = unwinder;
	view->reader = reader;
	view->chain.count = unwinder_chain(unwinder, regs, reader, UINT64_MAX, view->chain.frames,
					   &view->chain.whole);
}

static bool has_code_at(const struct probe *probe, raddr pc)
{
	for (size_t i = 0; i < probe->parts.count; i++) {
		const struct code_part *part = &probe->parts.items[i];

		if (part->size == 0 ? pc >= part->address : pc - part->address < part->size)
			return true;
	}
	return false;
}

bool view_returns_to(const struct probe *probe, raddr return_address)
{
	return has_code_at(probe, return_address - 1);
}

/* Whether a call of this probe may be at pc, where it has come to by jumps. */
static bool runs_at(const struct view *view, const struct probe *probe, raddr pc)
{
	if (has_code_at(probe, pc))
		return true;
	for (size_t i = 0; probe->tails_to_import && i < view->probe_count; i++) {
		if (has_code_at(view->probes[i], pc))
			return true;
	}
	return false;
}

/* The number of the caller's frame; 0: the call is not in this chain. */
static uint32_t find_caller(const struct view *view, const struct call *call)
{
	const struct unwind_frame *frames = view->chain.frames;

	for (uint32_t i = 1; i < view->chain.count; i++) {
		raddr pc = frames[i - 1].pc - (i > 1 && !frames[i - 1].interrupted);

		if (call->kind == CALL_SIGNAL ? frames[i].interrupted && frames[i].sp == call->sp :
		    frames[i].sp == call->sp + RETURN_ADDRESS_SIZE && !frames[i].interrupted &&
		    runs_at(view, call->probe, pc))
			return i;
	}
	return 0;
}

static bool is_interrupted(const struct view *view, uint32_t caller)
{
	for (uint32_t i = 1; i < caller; i++) {
		if (view->chain.frames[i].interrupted)
			return true;
	}
	return false;
}

/* Its place lies in other calls' frames, or was left free when they were entered. */
static bool is_passed_over(const struct chain *chain, raddr sp)
{
	for (uint32_t i = 1; i < chain->count; i++) {
		raddr from = chain->frames[i - 1].sp, to = chain->frames[i].sp;

		if (from <= sp && sp < to && to - from <= FRAME_MAX)
			return true;
	}
	return false;
}

static bool share_a_frame(const struct chain *a, const struct chain *b)
{
	for (uint32_t i = 1; i < a->count; i++) {
		for (uint32_t k = 1; k < b->count; k++) {
			if (a->frames[i].sp == b->frames[k].sp)
				return true;
		}
	}
	return false;
}

/* On the stack of the record, but free by now. */
static bool is_below(const struct view *view, raddr sp)
{
	return view->recorded && sp >= view->stack_start && sp < view->chain.frames[0].sp;
}

/* Of a record, likewise; on another stack its own callers cannot be looked at any more, and as long as it may go on there it does. */
static enum call_standing elsewhere_than_recorded(const struct view *view, const struct call *call)
{
	if (is_below(view, call->sp))
		return CALL_LEFT;
	return view->chain.whole ? CALL_SUSPENDED : CALL_UNKNOWN;
}

/* It is not among the callers.  On the same stack, which its own callers show, it is gone; on another it may go on. */
static enum call_standing elsewhere(const struct view *view, const struct call *call)
{
	struct arch_regs regs = { 0 };
	struct chain chain;

	regs.reg[ARCH_DWARF_PC] = call->probe->address;
	regs.reg[ARCH_DWARF_SP] = call->sp;
	regs.reg[ARCH_DWARF_BP] = call->bp;
	chain.count = unwinder_chain(view->unwinder, &regs, view->reader, UINT64_MAX, chain.frames, &chain.whole);
	if (share_a_frame(&view->chain, &chain))
		return CALL_LEFT;
	if (!view->chain.whole)
		return CALL_UNKNOWN;
	return chain.whole && chain.count > 2 ? CALL_SUSPENDED : CALL_LEFT;
}

enum call_standing view_standing(const struct view *view, const struct call *call)
{
	uint32_t caller = find_caller(view, call);

	if (caller > 0)
		return is_interrupted(view, caller) ? CALL_INTERRUPTED : CALL_STANDS;
	if (is_passed_over(&view->chain, call->sp))
		return CALL_LEFT;
	if (call->kind == CALL_SIGNAL)
		return view->chain.whole || is_below(view, call->sp) ? CALL_LEFT : CALL_UNKNOWN;
	return view->recorded ? elsewhere_than_recorded(view, call) : elsewhere(view, call);
}
