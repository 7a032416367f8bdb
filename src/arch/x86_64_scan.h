/* A function as x86_64_function.c reads it: which of its bytes begin instructions, and how they are reached.
 * Private to arch/. */
#ifndef ALLOCWATCH_ARCH_X86_64_SCAN_H
#define ALLOCWATCH_ARCH_X86_64_SCAN_H

#include "arch/arch.h"
#include "arch/x86_64_insn.h"

/* One byte per byte of code. */
enum mark {
	MARK_FLOW = 1,       /* an instruction begins here, reached from the entry by direct branches */
	MARK_GAP = 2,        /* one begins here, found between those */
	MARK_COVERED = 4,    /* belongs to an instruction */
	MARK_TARGET = 8,     /* a direct branch goes here */
	MARK_STARTS = MARK_FLOW | MARK_GAP,
};

#define ENTRY_REACH 64      /* of the first instructions, among which the entry's stop is */

struct scan {
	const uint8_t *code;
	size_t len;
	uint64_t address;
	uint8_t *marks;
	VEC_OF(uint32_t) pending;            /* offsets still to be followed */
	uint64_t targets;                    /* a bit for each offset below ENTRY_REACH that something branches to */
	bool unsized;                        /* it may end before all of the code */
	bool has_switch;                     /* what it may branch to is not known in full */
	bool has_data;                       /* so what lies between its instructions is not looked at */
	const char *reason;
};

static inline bool scan_decode(const struct scan *scan, uint32_t offset, struct insn *ret)
{
	return insn_decode(scan->code + offset, scan->len - offset, scan->address + offset, ret);
}

/* Fills in the room for jumps at the function's entry, exits and jumps out of it, which are known by then. */
void scan_find_room(const struct scan *scan, struct arch_function *function);

#endif
