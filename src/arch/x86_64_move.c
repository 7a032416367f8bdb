/* Runs of instructions moved elsewhere. */
#include "arch/arch.h"
#include "arch/x86_64_insn.h"

#include <errno.h>
#include <string.h>

struct move {
	const uint8_t *code;
	size_t len;
	uint64_t from, to;
	uint8_t *out;
	struct arch_moved *moved;
	const char *reason;
};

static bool reaches(uint64_t from, uint64_t to, int32_t *ret_distance)
{
	int64_t distance = (int64_t)(to - from);

	if (distance < INT32_MIN || distance > INT32_MAX)
		return false;
	*ret_distance = (int32_t)distance;
	return true;
}

static bool refuse(struct move *move, const char *reason)
{
	move->reason = reason;
	return false;
}

static void put(struct move *move, const void *bytes, size_t len)
{
	memcpy(move->out + move->moved->length, bytes, len);
	move->moved->length += (uint32_t)len;
}

/* The opcode of a branch with a distance of four bytes, and the distance. */
static bool put_branch(struct move *move, const uint8_t *opcode, size_t len, uint64_t target)
{
	uint64_t next = move->to + move->moved->length + len + sizeof(int32_t);
	int32_t distance;

	if (target - move->from < move->len && target != move->from)
		return refuse(move, "it has a branch in among its instructions that would be moved");
	if (!reaches(next, target, &distance))
		return refuse(move, "it has a branch that is out of reach of where it would be moved to");
	put(move, opcode, len);
	put(move, &distance, sizeof(distance));
	return true;
}

static bool put_conditional(struct move *move, const struct insn *insn)
{
	const uint8_t opcode[] = { 0x0f, (uint8_t)(0x80 | (insn->raw.opcode & 0x0f)) };

	if (insn->raw.opcode_map != ZYDIS_OPCODE_MAP_0F && (insn->raw.opcode & 0xf0) != 0x70)
		return refuse(move, "it has a branch that cannot be moved");
	return put_branch(move, opcode, sizeof(opcode), insn->target);
}

/* An rip-relative operand goes on meaning the same place, unless that is moved, too. */
static bool put_copy(struct move *move, const struct insn *insn, uint32_t offset)
{
	const ZydisDecodedOperand *operand = insn_rip_relative(insn);
	uint32_t at = move->moved->length;
	int32_t distance;
	uint64_t means;

	put(move, move->code + offset, insn->length);
	if (!operand)
		return true;
	if (operand->mem.base == ZYDIS_REGISTER_EIP || insn->raw.raw.disp.size != 32)
		return refuse(move, "it has an eip-relative operand");
	means = move->from + offset + insn->length + (uint64_t)insn->raw.raw.disp.value;
	if (means - move->from < move->len)
		return refuse(move, "it reads instructions that would be moved");
	if (!reaches(move->to + at + insn->length, means, &distance))
		return refuse(move, "it has an operand that is out of reach of where it would be moved to");
	memcpy(move->out + at + insn->raw.raw.disp.offset, &distance, sizeof(distance));
	return true;
}

static bool put_insn(struct move *move, const struct insn *insn, uint32_t offset)
{
	static const uint8_t jump = 0xe9;

	if (insn_is_system(insn))
		return refuse(move, "it has a system instruction that would be moved");
	/* Where it returns to would be the copy: no unwinder knows that. */
	if (insn->kind == INSN_CALL)
		return refuse(move, "it has a call that would be moved");
	if (insn->narrow || insn->raw.mnemonic == ZYDIS_MNEMONIC_XBEGIN)
		return refuse(move, "it has a branch that cannot be moved");
	switch (insn->kind) {
	case INSN_JUMP:
		return put_branch(move, &jump, 1, insn->target);
	case INSN_BRANCH:
		return put_conditional(move, insn);
	default:
		return put_copy(move, insn, offset);
	}
}

static bool move_all(struct move *move)
{
	struct insn insn;

	if (move->len > ARCH_WINDOW_MAX)
		return refuse(move, "its instructions that would be moved are too many");
	for (uint32_t offset = 0; offset < move->len; offset += insn.length) {
		struct arch_moved_insn *place = &move->moved->insns[move->moved->count];

		if (!insn_decode(move->code + offset, move->len - offset, move->from + offset, &insn))
			return refuse(move, "it has bytes that are no instruction");
		*place = (struct arch_moved_insn){ (uint8_t)offset, (uint8_t)move->moved->length };
		move->moved->count++;
		if (!put_insn(move, &insn, offset))
			return false;
	}
	return true;
}

int arch_move(const uint8_t *code, size_t len, uint64_t from, uint64_t to, uint8_t out[ARCH_MOVED_MAX],
	      struct arch_moved *ret_moved, const char **ret_reason)
{
	struct arch_moved moved = { 0 };
	uint8_t bytes[ARCH_MOVED_MAX] = { 0 };
	struct move move = { .code = code, .len = len, .from = from, .to = to, .out = bytes, .moved = &moved };

	if (!move_all(&move)) {
		*ret_reason = move.reason;
		return -ENOTSUP;
	}
	memcpy(out, bytes, moved.length);
	*ret_moved = moved;
	return 0;
}

uint64_t arch_moved_to(const struct arch_moved *moved, size_t len, uint64_t from, uint64_t to, uint64_t pc)
{
	if (pc == from + len)
		return to + moved->length;
	for (uint32_t i = 0; i < moved->count; i++)
		if (pc == from + moved->insns[i].from)
			return to + moved->insns[i].to;
	return ARCH_NOWHERE;
}

uint64_t arch_moved_from(const struct arch_moved *moved, size_t len, uint64_t from, uint64_t to, uint64_t pc)
{
	if (pc == to + moved->length)
		return from + len;
	for (uint32_t i = 0; i < moved->count; i++)
		if (pc == to + moved->insns[i].to)
			return from + moved->insns[i].from;
	return ARCH_NOWHERE;
}

bool arch_put_jump(uint64_t from, uint64_t to, uint8_t out[ARCH_JUMP_SIZE])
{
	int32_t distance;

	if (!reaches(from + ARCH_JUMP_SIZE, to, &distance))
		return false;
	out[0] = 0xe9;
	memcpy(out + 1, &distance, sizeof(distance));
	return true;
}
