#include "arch/x86_64_switch.h"

#define LOOK_BACK 24            /* instructions */
#define INSN_MAX 15             /* bytes */

/* Registers whose values the jump's target is made of, while going backwards. */
struct wanted {
	ZydisRegister regs[4];
	unsigned count;
	bool sum;                   /* the target is a sum: table entries are distances */
};

static bool is_wanted(const struct wanted *wanted, ZydisRegister reg)
{
	for (unsigned i = 0; i < wanted->count; i++)
		if (wanted->regs[i] == reg)
			return true;
	return false;
}

static void want(struct wanted *wanted, ZydisRegister reg)
{
	if (reg != ZYDIS_REGISTER_NONE && !is_wanted(wanted, reg) && wanted->count < 4)
		wanted->regs[wanted->count++] = reg;
}

static void forget(struct wanted *wanted, ZydisRegister reg)
{
	for (unsigned i = 0; i < wanted->count; i++)
		if (wanted->regs[i] == reg)
			wanted->regs[i] = wanted->regs[--wanted->count];
}

/* table(,%index,8): absolute addresses, in code that is not position independent. */
static bool is_absolute_entry(const ZydisDecodedOperand *operand)
{
	return operand->type == ZYDIS_OPERAND_TYPE_MEMORY && operand->mem.base == ZYDIS_REGISTER_NONE &&
	       operand->mem.index != ZYDIS_REGISTER_NONE && operand->mem.scale == 8 &&
	       operand->mem.segment == ZYDIS_REGISTER_DS;
}

/* (%table,%index,4) and the like: distances from the table. */
static bool is_relative_entry(const ZydisDecodedOperand *operand)
{
	return operand->type == ZYDIS_OPERAND_TYPE_MEMORY && operand->mem.base != ZYDIS_REGISTER_NONE &&
	       operand->mem.index != ZYDIS_REGISTER_NONE && operand->size <= 32;
}

static bool is_entry_load(const struct wanted *wanted, const struct insn *insn)
{
	if (!is_wanted(wanted, insn_register(insn, 0)) || insn->raw.operand_count < 2)
		return false;
	switch (insn->raw.mnemonic) {
	case ZYDIS_MNEMONIC_MOVSXD:
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVZX:
		return wanted->sum && is_relative_entry(&insn->operands[1]);
	case ZYDIS_MNEMONIC_MOV:
		return !wanted->sum && is_absolute_entry(&insn->operands[1]);
	default:
		return false;
	}
}

static void step_back(struct wanted *wanted, const struct insn *insn)
{
	ZydisRegister to = insn_register(insn, 0);
	const ZydisDecodedOperand *from = &insn->operands[1];

	if (!is_wanted(wanted, to) || !(insn->operands[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		return;
	switch (insn->raw.mnemonic) {
	case ZYDIS_MNEMONIC_ADD:
		want(wanted, insn_register(insn, 1));
		wanted->sum = true;
		return;
	case ZYDIS_MNEMONIC_LEA:
		forget(wanted, to);
		if (from->mem.index != ZYDIS_REGISTER_NONE) {
			want(wanted, from->mem.base);
			want(wanted, from->mem.index);
			wanted->sum = true;
		}
		return;
	case ZYDIS_MNEMONIC_MOV:
		forget(wanted, to);
		want(wanted, insn_register(insn, 1));
		return;
	default:
		forget(wanted, to);
	}
}

/* The instruction that ends where the one at offset begins, if there is one that goes on here. */
static bool previous(const struct switch_code *code, uint32_t offset, struct insn *ret, uint32_t *ret_offset)
{
	for (uint32_t length = 1; length <= INSN_MAX && length <= offset; length++) {
		uint32_t at = offset - length;

		if (!(code->marks[at] & code->start_mask))
			continue;
		if (!insn_decode(code->bytes + at, length, code->address + at, ret) || ret->length != length)
			continue;
		*ret_offset = at;
		return ret->kind == INSN_PLAIN || ret->kind == INSN_BRANCH;
	}
	return false;
}

static bool comes_from_table(const struct switch_code *code, uint32_t offset, ZydisRegister target)
{
	struct wanted wanted = {0};
	struct insn insn;

	want(&wanted, target);
	for (unsigned i = 0; i < LOOK_BACK && wanted.count > 0; i++) {
		if (!previous(code, offset, &insn, &offset))
			return false;
		if (is_entry_load(&wanted, &insn))
			return true;
		step_back(&wanted, &insn);
	}
	return false;
}

bool switch_recognise(const struct switch_code *code, uint32_t offset, const struct insn *jump)
{
	/* With CET only the jumps of switches are exempt from landing on endbr64. */
	if (jump->notrack)
		return true;
	if (jump->operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY)
		return is_absolute_entry(&jump->operands[0]);
	return comes_from_table(code, offset, insn_register(jump, 0));
}
