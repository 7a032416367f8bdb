/* Jumps that a debugger's breakpoint behind their first byte does not change.  Debuggers know nothing of a jump of ours, and write
 * an int3 to where an instruction begins in the object's file.  A byte of the jump that is one already they may write, and put back, at
 * any time.  So where such a jump leads is given by what it stands over. */
#include "arch/arch.h"
#include "arch/x86_64_insn.h"

#define ALL_INT3 0xccccccccU           /* each byte; -0x33333334: 820 MiB below */
#define USER_START 0x10000ULL          /* vm.mmap_min_addr */
#define USER_END (1ULL << 47)

/* Of the distance's highest byte; and of the next one, where that must be an int3.  The heap of a program that is not loaded anywhere grows
 * behind it: there last of all.  3 MiB below it there is room. */
static const uint8_t highest[] = { 0xcc, 0xc8, 0xd0, 0xd8, 0xe0, 0xe8, 0xc4, 0xf0, 0xff, 0x20, 0x28, 0x30, 0x38 };
static const uint8_t next[] = { 0xcc, 0xc0, 0xd8, 0xa8, 0xf0, 0x90, 0x70, 0x50, 0x30, 0x10 };

unsigned arch_starts_within(const uint8_t *code, size_t len)
{
	unsigned starts = 0;
	struct insn insn;

	for (size_t at = 0; at < len && at < ARCH_JUMP_SIZE && insn_decode(code + at, len - at, 0, &insn); at += insn.length)
		starts |= at > 0 ? 1U << at : 0;
	return starts;
}

uint64_t arch_spared_target(uint64_t from, unsigned starts, unsigned choice)
{
	uint32_t distance = ALL_INT3;
	uint64_t target;

	if (starts & 1U << 4) {
		if (choice >= (starts & 1U << 3 ? 1 : sizeof(next)))
			return 0;
		distance = (distance & 0xff00ffffU) | (uint32_t)next[choice] << 16;
	} else {
		if (choice >= sizeof(highest))
			return 0;
		distance = (distance & 0x00ffffffU) | (uint32_t)highest[choice] << 24;
	}
	target = from + ARCH_JUMP_SIZE + (uint64_t)(int64_t)(int32_t)distance;
	return target >= USER_START && target < USER_END - ARCH_JUMP_SIZE ? target : ARCH_NOWHERE;
}
