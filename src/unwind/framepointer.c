#include "unwind/framepointer.h"

#define STUB_MAX 16
/* Longer functions without tables are not gone on from: an honest end, where a wrong caller would be none. */
#define FUNCTION_MAX 4096u

static bool is_return_address(const struct frame_pointer *by, raddr address, bool anonymous)
{
	uint8_t code[ARCH_CALL_MAX];

	if (address < sizeof(code))
		return false;
	if (!module_map_find(by->map, address - 1) && !anonymous)
		return false;
	return stack_copy_code(by->memory, address - sizeof(code), code, sizeof(code)) &&
	       arch_ends_in_call(code, sizeof(code));
}

static bool step_from_top(const struct frame_pointer *by, struct arch_regs *regs)
{
	uint64_t sp = regs->reg[ARCH_DWARF_SP], address;

	if (!stack_copy_word(by->memory, sp, &address) || !is_return_address(by, address, by->anonymous))
		return false;
	regs->reg[ARCH_DWARF_PC] = address;
	regs->reg[ARCH_DWARF_SP] = sp + 8;
	return true;
}

/* Code in an object calls code in none, and is called by it: an interpreter's own, say.  That [bp] is another
 * frame pointer then makes up for what is not known of the caller. */
static bool goes_on(uint64_t bp, uint64_t saved)
{
	return saved % 8 == 0 && saved > bp && saved - bp <= FRAME_POINTER_REACH;
}

/* A call that says where it leads leads to the function of pc, by way of the linker's stub or not.  What is left on a stack by
 * calls that have returned long ago looks like a return address as well.  Interpreters (V8's) jump on from what was called:
 * of those no more is asked than the next frame pointer. */
static bool leads_to(const struct frame_pointer *by, raddr address, raddr pc)
{
	uint8_t code[ARCH_CALL_MAX], stub[STUB_MAX];
	raddr target, pointer;

	if (!stack_copy_code(by->memory, address - sizeof(code), code, sizeof(code)) ||
	    !arch_direct_call(code, sizeof(code), address, &target))
		return true;
	return pc - target < FUNCTION_MAX || (stack_copy_code(by->memory, target, stub, sizeof(stub)) &&
					      arch_decode_import_stub(stub, sizeof(stub), target, &pointer));
}

enum frame_pointer_result frame_pointer_step(const struct frame_pointer *by, struct arch_regs *regs)
{
	uint64_t bp = regs->reg[ARCH_DWARF_BP], sp = regs->reg[ARCH_DWARF_SP], saved, address;

	if (by->innermost && step_from_top(by, regs))
		return FRAME_POINTER_STEP;
	/* psABI, 3.4.1: the outermost frame is marked by a frame pointer of zero. */
	if (bp == 0 && !by->innermost)
		return FRAME_POINTER_END;
	if (bp % 8 != 0 || bp < sp || bp - sp > FRAME_POINTER_REACH)
		return FRAME_POINTER_UNKNOWN;
	if (!stack_copy_word(by->memory, bp, &saved) || !stack_copy_word(by->memory, bp + 8, &address) ||
	    !is_return_address(by, address, by->anonymous || goes_on(bp, saved)) ||
	    !(goes_on(bp, saved) || leads_to(by, address, regs->reg[ARCH_DWARF_PC])))
		return FRAME_POINTER_UNKNOWN;
	regs->reg[ARCH_DWARF_BP] = saved;
	regs->reg[ARCH_DWARF_SP] = bp + 16;
	regs->reg[ARCH_DWARF_PC] = address;
	return FRAME_POINTER_STEP;
}
