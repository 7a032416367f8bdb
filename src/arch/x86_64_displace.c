/* Out-of-line copies of single instructions. */
#include "arch/arch.h"
#include "arch/x86_64_insn.h"

#include <errno.h>
#include <string.h>

#define JUMP_NEAR 5             /* jmp rel32 */
#define JUMP_FAR 14             /* jmp *0(%rip) and the address behind it */
#define LOOP_MAX (ARCH_SLOT_SIZE - 2 * JUMP_FAR)  /* loop and jrcxz are copied with their prefixes */

/* The code of a slot while it is written, and the places where a thread may be found in it. */
struct slot {
	uint8_t *out;
	uint64_t to;
	uint32_t length;
	uint32_t place_count;
	struct {
		uint32_t offset;
		uint64_t resume;
	} places[3];
};

static bool reaches(uint64_t from, uint64_t to, int32_t *ret_distance)
{
	int64_t distance = (int64_t)(to - from);

	if (distance < INT32_MIN || distance > INT32_MAX)
		return false;
	*ret_distance = (int32_t)distance;
	return true;
}

static void put(struct slot *slot, const void *bytes, size_t len)
{
	memcpy(slot->out + slot->length, bytes, len);
	slot->length += (uint32_t)len;
}

static void put_byte(struct slot *slot, uint8_t byte)
{
	put(slot, &byte, 1);
}

static void put_place(struct slot *slot, uint64_t resume)
{
	slot->places[slot->place_count].offset = slot->length;
	slot->places[slot->place_count].resume = resume;
	slot->place_count++;
}

static void put_jump(struct slot *slot, uint64_t target)
{
	static const uint8_t far_jump[] = {0xff, 0x25, 0, 0, 0, 0};
	int32_t distance;

	if (reaches(slot->to + slot->length + JUMP_NEAR, target, &distance)) {
		put_byte(slot, 0xe9);
		put(slot, &distance, sizeof(distance));
		return;
	}
	put(slot, far_jump, sizeof(far_jump));
	put(slot, &target, sizeof(target));
}

static bool is_jcc(const struct insn *insn)
{
	return insn->raw.opcode_map == ZYDIS_OPCODE_MAP_0F || (insn->raw.opcode & 0xf0) == 0x70;
}

/* A conditional branch: over the jump that goes on behind it, to a jump to its target.  jcc with a
 * target in reach goes there by itself.  loop and jrcxz know only short distances. */
static void put_branch(struct slot *slot, const struct insn *insn, const uint8_t *bytes, uint64_t from)
{
	uint8_t opcode = insn->raw.opcode;
	int32_t distance;
	uint32_t at_distance;

	if (is_jcc(insn) && reaches(slot->to + 6, insn->target, &distance)) {
		put_byte(slot, 0x0f);
		put_byte(slot, 0x80 | (opcode & 0x0f));
		put(slot, &distance, sizeof(distance));
		put_place(slot, from + insn->length);
		put_jump(slot, from + insn->length);
		return;
	}
	if (is_jcc(insn))
		put_byte(slot, 0x70 | (opcode & 0x0f));
	else
		put(slot, bytes, insn->length - 1);
	at_distance = slot->length;
	put_byte(slot, 0);
	put_place(slot, from + insn->length);
	put_jump(slot, from + insn->length);
	slot->out[at_distance] = (uint8_t)(slot->length - at_distance - 1);
	put_place(slot, insn->target);
	put_jump(slot, insn->target);
}

/* Copies an instruction; an rip-relative operand goes on meaning the same place. */
static const char *put_copy(struct slot *slot, const struct insn *insn, const uint8_t *bytes, uint64_t from)
{
	const ZydisDecodedOperand *operand = insn_rip_relative(insn);
	int32_t distance;
	uint64_t means;

	put(slot, bytes, insn->length);
	if (!operand)
		return NULL;
	if (operand->mem.base == ZYDIS_REGISTER_EIP || insn->raw.raw.disp.size != 32)
		return "its first instruction has an eip-relative operand";
	means = from + insn->length + (uint64_t)insn->raw.raw.disp.value;
	if (!reaches(slot->to + insn->length, means, &distance))
		return "its first instruction has an rip-relative operand out of reach of the slot";
	memcpy(slot->out + insn->raw.raw.disp.offset, &distance, sizeof(distance));
	return NULL;
}

static const char *why_not(const struct insn *insn)
{
	if (insn_is_system(insn))
		return "its first instruction is a system instruction";
	if (insn->kind == INSN_CALL)
		return "its first instruction is a call";
	if (insn->raw.mnemonic == ZYDIS_MNEMONIC_XBEGIN)
		return "its first instruction begins a transaction";
	if (insn->narrow)
		return "its first instruction is a branch with an operand-size prefix";
	if (insn->kind == INSN_BRANCH && !is_jcc(insn) && insn->length > LOOP_MAX)
		return "its first instruction is a loop with too many prefixes";
	return NULL;
}

static const char *fill_slot(struct slot *slot, const struct insn *insn, const uint8_t *bytes, uint64_t from)
{
	const char *reason = why_not(insn);

	if (reason)
		return reason;
	put_place(slot, from);
	switch (insn->kind) {
	case INSN_JUMP:
		put_jump(slot, insn->target);
		return NULL;
	case INSN_BRANCH:
		put_branch(slot, insn, bytes, from);
		return NULL;
	case INSN_RET:
	case INSN_INDIRECT:
		return put_copy(slot, insn, bytes, from);
	default:
		reason = put_copy(slot, insn, bytes, from);
		if (reason)
			return reason;
		put_place(slot, from + insn->length);
		put_jump(slot, from + insn->length);
		return NULL;
	}
}

static const char *make_slot(const uint8_t *bytes, size_t len, uint64_t from, struct slot *slot)
{
	struct insn insn;

	if (!insn_decode(bytes, len, from, &insn))
		return "its first instruction cannot be decoded";
	return fill_slot(slot, &insn, bytes, from);
}

int arch_displace(const uint8_t *insn, size_t len, uint64_t from, uint64_t to,
		  uint8_t out[ARCH_SLOT_SIZE], uint32_t *ret_length, uint32_t *ret_jump,
		  const char **ret_reason)
{
	uint8_t code[ARCH_SLOT_SIZE] = {0};
	struct slot slot = {.out = code, .to = to};
	const char *reason = make_slot(insn, len, from, &slot);

	if (reason) {
		*ret_reason = reason;
		return -ENOTSUP;
	}
	memcpy(out, code, sizeof(code));
	*ret_length = slot.length;
	*ret_jump = slot.place_count > 1 ? slot.places[1].offset : slot.length;
	return 0;
}

raddr arch_slot_resume(const uint8_t *insn, size_t len, uint64_t from, uint64_t to, raddr pc)
{
	uint8_t code[ARCH_SLOT_SIZE] = {0};
	struct slot slot = {.out = code, .to = to};

	if (make_slot(insn, len, from, &slot))
		return ARCH_NOWHERE;
	for (uint32_t i = 0; i < slot.place_count; i++)
		if (pc == to + slot.places[i].offset)
			return slot.places[i].resume;
	return ARCH_NOWHERE;
}
