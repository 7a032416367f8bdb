/* Arbitrary bytes as code: finding a function's exits, displacing one instruction. */
#include "fuzz.h"
#include "tracer.h"

#include "arch/arch.h"

#include <errno.h>
#include <string.h>

#define PLACES 64        /* instructions that are displaced, at most */

/* The slot is code of its own: whole, and a thread in it has one place that it belongs to. */
static void displace(const uint8_t *insn, size_t len, uint64_t from, uint64_t to)
{
	uint8_t slot[ARCH_SLOT_SIZE + 16];
	uint32_t length = 0, jump = 0;
	const char *reason = NULL;
	int r;

	memset(slot, 0xa5, sizeof(slot));
	r = arch_displace(insn, len, from, to, slot, &length, &jump, &reason);
	for (size_t i = ARCH_SLOT_SIZE; i < sizeof(slot); i++)
		MUST(slot[i] == 0xa5);
	if (r < 0) {
		MUST(r == -ENOTSUP && reason && *reason);
		return;
	}
	fuzz_reached(1);
	MUST(length > 0 && length <= ARCH_SLOT_SIZE && jump <= length);
	MUST(arch_slot_resume(insn, len, from, to, to) == from);
	for (uint64_t pc = to; pc < to + length; pc++)
		arch_slot_resume(insn, len, from, to, pc);
	MUST(arch_slot_resume(insn, len, from, to, to + ARCH_SLOT_SIZE) == ARCH_NOWHERE);
}

static void check_function(const struct arch_function *function, const uint8_t *code, size_t len, uint64_t address)
{
	MUST(function->first_length >= 1 && function->first_length <= 15 && function->first_length <= len);
	MUST(function->entry.offset < len);
	for (size_t i = 0; i < function->exits.count; i++) {
		const struct arch_exit *exit = &function->exits.items[i];

		MUST(exit->address - address < len && exit->length >= 1 && exit->length <= 15);
		MUST(i == 0 || exit[-1].address < exit->address);
		displace(code + (exit->address - address), len - (exit->address - address), exit->address, address + 0x10000);
	}
	for (size_t i = 1; i < function->tail_calls.count; i++)
		MUST(function->tail_calls.items[i - 1] < function->tail_calls.items[i]);
	for (size_t i = 0; i < function->jumps.count; i++) {
		const struct arch_jump *jump = &function->jumps.items[i];

		MUST(jump->address - address < len);
		MUST(i == 0 || jump[-1].address <= jump->address);
	}
}

static void decode(const uint8_t *code, size_t len, uint64_t address)
{
	struct arch_function function;
	const char *reason = NULL;
	int r = arch_decode_function(code, len, address, &function, &reason);

	if (r < 0) {
		MUST(r == -ENOTSUP && reason && *reason);
		return;
	}
	fuzz_reached(2);
	check_function(&function, code, len, address);
	arch_function_fini(&function);
}

/* Two bytes say where the code and its copies run: near, far, at the ends of the address space. */
void fuzz_code_run(const uint8_t *data, size_t len)
{
	static const uint64_t places[] = { 0x1000, 0x555555554000, 0x7ffff7df0000, 0, ~0xfffull, 0x7fffffff, 1ull << 63 };
	struct fuzz_bytes bytes = { data, len };
	uint64_t address = places[fuzz_take_number(&bytes, 1) % 7] + 16, copy = fuzz_take_number(&bytes, 1), pointer;

	copy = copy & 1 ? address + (copy << 24) : places[copy / 2 % 7];
	if (bytes.left == 0)
		return;
	fuzz_reached(0);
	decode(bytes.at, bytes.left, address);
	arch_decode_import_stub(bytes.at, bytes.left, address, &pointer);
	arch_ends_in_call(bytes.at, bytes.left < ARCH_CALL_MAX ? bytes.left : ARCH_CALL_MAX);
	for (size_t at = 0; at < bytes.left && at < PLACES; at++)
		displace(bytes.at + at, bytes.left - at, address + at, copy);
}
