/* Tells the jump of a switch from an indirect tail call.  Private to arch/. */
#ifndef ALLOCWATCH_ARCH_X86_64_SWITCH_H
#define ALLOCWATCH_ARCH_X86_64_SWITCH_H

#include "arch/x86_64_insn.h"

struct switch_code {
	const uint8_t *bytes;
	const uint8_t *marks;        /* one per byte: & start_mask, an instruction begins here */
	uint8_t start_mask;
	uint64_t address;            /* of bytes[0] */
};

/* Whether `jump`, the indirect jump at `offset`, takes its target from a table in the way gcc and
 * clang compile a switch.  Only the code before it is looked at; the table itself is not. */
bool switch_recognise(const struct switch_code *code, uint32_t offset, const struct insn *jump);

#endif
