/* Where in a function a jump can take the place of instructions: they must be run in one piece, so nothing may branch
 * in among them. */
#include "arch/x86_64_scan.h"

#include <string.h>

#define ROOM_NEEDED (ARCH_JUMP_SIZE - 1)     /* beside the one byte that every instruction has */

/* Whether some instruction begins before the offset and ends behind it, as one with a prefix that a branch goes over. */
static bool is_within(const struct scan *scan, uint32_t offset)
{
	for (uint32_t back = 1; back < 15 && back <= offset; back++) {
		struct insn insn;

		if ((scan->marks[offset - back] & MARK_STARTS) && scan_decode(scan, offset - back, &insn) &&
		    insn.length > back)
			return true;
	}
	return false;
}

/* Whether something branches in behind the first byte. */
static bool is_entered(const struct scan *scan, uint32_t start, uint32_t end)
{
	for (uint32_t offset = start + 1; offset < end; offset++)
		if (scan->marks[offset] & MARK_TARGET)
			return true;
	return false;
}

/* The instruction that runs into the one at the offset; false: there is none.  Landing pads and cases of a switch, which
 * no direct branch goes to, begin behind what does not run on, or behind padding. */
static bool find_previous(const struct scan *scan, uint32_t offset, struct insn *ret_insn)
{
	for (uint32_t length = 1; length <= 15 && length <= offset; length++) {
		if (!(scan->marks[offset - length] & MARK_STARTS))
			continue;
		return scan_decode(scan, offset - length, ret_insn) && ret_insn->length == length &&
		       ret_insn->kind == INSN_PLAIN && !ret_insn->padding && !is_within(scan, offset - length) &&
		       !is_entered(scan, offset - length, offset);
	}
	return false;
}

/* A case of a switch may begin where another runs into it. */
static uint8_t room_before(const struct scan *scan, uint32_t offset)
{
	uint32_t start = offset;
	struct insn insn;

	while (offset - start < ROOM_NEEDED && !scan->has_switch && !(scan->marks[start] & MARK_TARGET) &&
	       find_previous(scan, start, &insn))
		start -= insn.length;
	return (uint8_t)(offset - start);
}

/* Padding that is run is code like all other. */
static uint32_t room_behind(const struct scan *scan, uint32_t offset)
{
	uint32_t end = offset;
	struct insn insn;

	while (!scan->has_data && end < scan->len && end - offset < ROOM_NEEDED &&
	       !(scan->marks[end] & (MARK_FLOW | MARK_TARGET)) && scan_decode(scan, end, &insn) && insn.padding)
		end += insn.length;
	return end - offset;
}

static struct arch_room room_at(const struct scan *scan, uint64_t address, uint32_t length, bool goes_on)
{
	uint32_t offset = (uint32_t)(address - scan->address);
	struct arch_room room = { 0 };
	uint32_t behind;

	if (is_within(scan, offset) || is_entered(scan, offset, offset + length))
		return room;
	behind = goes_on ? 0 : room_behind(scan, offset + length);
	room.before = room_before(scan, offset);
	room.behind = (uint8_t)behind;
	room.at_end = !goes_on && offset + length + behind == scan->len;
	return room;
}

/* What follows an instruction that does not run on is another piece of code, or padding. */
static uint32_t entry_room(const struct scan *scan)
{
	uint32_t end = 0;
	struct insn insn;

	while (end < scan->len && (end == 0 || !(scan->marks[end] & MARK_TARGET)) && scan_decode(scan, end, &insn) &&
	       end + insn.length <= ARCH_WINDOW_MAX && !is_entered(scan, end, end + insn.length)) {
		end += insn.length;
		if (insn.kind != INSN_PLAIN && insn.kind != INSN_BRANCH)
			break;
	}
	return end;
}

uint32_t arch_entry_room(const struct arch_function *function, uint32_t *ret_offset, uint32_t *ret_sp_below)
{
	const struct arch_entry *entry = &function->entry;

	*ret_offset = *ret_sp_below = 0;
	if (function->first_length >= ARCH_JUMP_SIZE)
		return function->entry_room;
	/* What is stored may be below the stack pointer, where the record is written from. */
	if (entry->offset == 0 || entry->stores || function->entry_room <= entry->offset)
		return 0;
	*ret_offset = entry->offset;
	*ret_sp_below = entry->sp_below;
	return function->entry_room - entry->offset;
}

void scan_find_room(const struct scan *scan, struct arch_function *function)
{
	function->entry_room = entry_room(scan);
	for (size_t i = 0; i < function->exits.count; i++) {
		struct arch_exit *exit = &function->exits.items[i];

		exit->room = room_at(scan, exit->address, exit->length, false);
	}
	for (size_t i = 0; i < function->jumps.count; i++) {
		struct arch_jump *jump = &function->jumps.items[i];

		jump->room = room_at(scan, jump->address, jump->length, jump->conditional);
	}
}

uint32_t arch_padding(const uint8_t *code, size_t len, uint64_t address)
{
	uint32_t end = 0;
	struct insn insn;

	/* Functions begin at multiples of 16, and may begin with such an instruction themselves. */
	while ((address + end) % 16 != 0 && insn_decode(code + end, len - end, address + end, &insn) &&
	       insn.padding && address % 16 + end + insn.length <= 16)
		end += insn.length;
	return end;
}

uint32_t arch_window_length(const uint8_t *code, size_t room, uint64_t address)
{
	uint32_t length = 0;
	struct insn insn;

	while (length < ARCH_JUMP_SIZE && length < room &&
	       insn_decode(code + length, room - length, address + length, &insn))
		length += insn.length;
	return length >= ARCH_JUMP_SIZE && length <= room ? length : 0;
}

uint32_t arch_long_instruction(const uint8_t *code, size_t len, uint64_t address, uint32_t *ret_offset)
{
	uint32_t offset = 0;
	struct insn insn;

	if (!insn_decode(code, len, address, &insn))
		return 0;
	if (insn.raw.mnemonic == ZYDIS_MNEMONIC_ENDBR64) {
		offset = insn.length;
		if (!insn_decode(code + offset, len - offset, address + offset, &insn))
			return 0;
	}
	*ret_offset = offset;
	return insn.kind == INSN_PLAIN && insn.length >= ARCH_JUMP_SIZE ? insn.length : 0;
}

uint32_t arch_empty_function(const uint8_t *code, size_t len, uint64_t address)
{
	uint32_t length = 0;
	struct insn insn;

	if (!insn_decode(code, len, address, &insn))
		return 0;
	if (insn.raw.mnemonic == ZYDIS_MNEMONIC_ENDBR64) {
		length = insn.length;
		if (!insn_decode(code + length, len - length, address + length, &insn))
			return 0;
	}
	length += insn.length;
	return insn.kind == INSN_RET && length + arch_padding(code + length, len - length, address + length) >= ARCH_JUMP_SIZE ?
	       length : 0;
}

void arch_each_branch_into(const uint8_t *code, size_t len, uint64_t address, uint64_t start, uint64_t end,
			   void (*found)(void *context, uint64_t target), void *context)
{
	for (size_t at = 1; at + sizeof(int32_t) <= len; at++) {
		bool jump = (code[at - 1] & 0xfe) == 0xe8;
		bool branch = at > 1 && code[at - 2] == 0x0f && (code[at - 1] & 0xf0) == 0x80;
		int32_t distance;
		uint64_t target;

		if (!jump && !branch)
			continue;
		memcpy(&distance, code + at, sizeof(distance));
		target = address + at + sizeof(distance) + (uint64_t)distance;
		if (target > start && target < end)
			found(context, target);
	}
}

static void note_found(void *context, uint64_t target)
{
	bool *found = context;

	(void)target;
	*found = true;
}

bool arch_may_branch_into(const uint8_t *code, size_t len, uint64_t address, uint64_t start, uint64_t end)
{
	bool found = false;

	arch_each_branch_into(code, len, address, start, end, note_found, &found);
	return found;
}
