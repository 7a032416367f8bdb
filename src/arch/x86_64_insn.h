/* One x86-64 instruction as the rest of arch/ needs it: what it does to the flow of control.
 * Private to arch/: nobody else sees the decoder's types. */
#ifndef ALLOCWATCH_ARCH_X86_64_INSN_H
#define ALLOCWATCH_ARCH_X86_64_INSN_H

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum insn_kind {
	INSN_PLAIN,        /* goes on with the next one */
	INSN_CALL,         /* comes back behind itself, or never */
	INSN_JUMP,         /* direct, unconditional */
	INSN_BRANCH,       /* direct, conditional: jcc, loop, jrcxz, xbegin */
	INSN_INDIRECT,     /* jump through a register or memory */
	INSN_RET,
	INSN_STOP,         /* never goes on: ud2, hlt, int3 */
	INSN_FAR,          /* leaves by a far or system return */
};

struct insn {
	enum insn_kind kind;
	uint32_t length;
	bool has_target;         /* direct: target is known */
	bool narrow;             /* a branch or ret with an operand-size prefix: CPUs differ in where it goes */
	bool notrack;
	bool padding;            /* a nop or int3, as fills the space between functions */
	uint64_t target;
	ZydisDecodedInstruction raw;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

/* Decodes the instruction that begins code[0..len) and runs at `address`; false when there is none. */
bool insn_decode(const uint8_t *code, size_t len, uint64_t address, struct insn *ret);

/* The full register (rax for eax, ...) that operand i names, or ZYDIS_REGISTER_NONE. */
ZydisRegister insn_register(const struct insn *insn, unsigned i);
/* Its rip-relative memory operand, or NULL. */
const ZydisDecodedOperand *insn_rip_relative(const struct insn *insn);

/* Whether it calls the system or stops the processor, needs rights that programs lack, or goes to another code segment:
 * such an instruction acts otherwise, or not at all, at another place. */
bool insn_is_system(const struct insn *insn);

#endif
