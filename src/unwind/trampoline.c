#include "unwind/trampoline.h"

#include "arch/sigframe.h"

bool trampoline_step(struct stack_copy *memory, struct arch_regs *regs)
{
	uint8_t code[ARCH_RESTORER_SIZE], bytes[ARCH_SIGFRAME_SIZE];
	raddr at = regs->reg[ARCH_DWARF_SP] - sizeof(at);       /* the handler's return has taken its first word */
	struct arch_sigframe frame;

	if (!stack_copy_code(memory, regs->reg[ARCH_DWARF_PC], code, sizeof(code)) || !arch_is_restorer(code) ||
	    !stack_copy_peek(memory, at, bytes, sizeof(bytes)) || !arch_parse_sigframe(bytes, at, &frame))
		return false;
	arch_sigframe_regs(bytes, regs);
	return true;
}
