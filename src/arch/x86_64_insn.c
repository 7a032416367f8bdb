#include "arch/x86_64_insn.h"

static bool has_prefix(const ZydisDecodedInstruction *raw, uint8_t value)
{
	for (unsigned i = 0; i < raw->raw.prefix_count; i++)
		if (raw->raw.prefixes[i].value == value)
			return true;
	return false;
}

static enum insn_kind classify(const ZydisDecodedInstruction *raw)
{
	bool far = raw->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;

	switch (raw->mnemonic) {
	case ZYDIS_MNEMONIC_RET:
		return far ? INSN_FAR : INSN_RET;
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_SYSEXIT:
	case ZYDIS_MNEMONIC_UIRET:
		return INSN_FAR;
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
		return INSN_STOP;
	case ZYDIS_MNEMONIC_CALL:
		return INSN_CALL;
	case ZYDIS_MNEMONIC_JMP:
		if (far)
			return INSN_FAR;
		return raw->raw.imm[0].is_relative ? INSN_JUMP : INSN_INDIRECT;
	case ZYDIS_MNEMONIC_XBEGIN:
		return INSN_BRANCH;
	default:
		return raw->meta.category == ZYDIS_CATEGORY_COND_BR ? INSN_BRANCH : INSN_PLAIN;
	}
}

bool insn_decode(const uint8_t *code, size_t len, uint64_t address, struct insn *ret)
{
	const ZydisDecodedInstruction *raw = &ret->raw;
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, len, &ret->raw, ret->operands)))
		return false;
	ret->kind = classify(raw);
	ret->length = raw->length;
	ret->has_target = raw->raw.imm[0].is_relative != 0 && ret->kind != INSN_PLAIN;
	ret->target = address + raw->length + (uint64_t)raw->raw.imm[0].value.s;
	ret->narrow = ret->kind != INSN_PLAIN && ret->kind != INSN_CALL && has_prefix(raw, 0x66);
	ret->notrack = (raw->attributes & ZYDIS_ATTRIB_HAS_NOTRACK) != 0;
	ret->padding = raw->mnemonic == ZYDIS_MNEMONIC_NOP || raw->mnemonic == ZYDIS_MNEMONIC_INT3;
	return true;
}

ZydisRegister insn_register(const struct insn *insn, unsigned i)
{
	if (i >= insn->raw.operand_count || insn->operands[i].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return ZYDIS_REGISTER_NONE;
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
						insn->operands[i].reg.value);
}

const ZydisDecodedOperand *insn_rip_relative(const struct insn *insn)
{
	for (unsigned i = 0; i < insn->raw.operand_count; i++) {
		const ZydisDecodedOperand *operand = &insn->operands[i];

		if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    (operand->mem.base == ZYDIS_REGISTER_RIP || operand->mem.base == ZYDIS_REGISTER_EIP))
			return operand;
	}
	return NULL;
}

bool insn_is_system(const struct insn *insn)
{
	if (insn->kind == INSN_FAR || insn->kind == INSN_STOP || insn->raw.mnemonic == ZYDIS_MNEMONIC_CLI ||
	    insn->raw.mnemonic == ZYDIS_MNEMONIC_STI)
		return true;
	switch (insn->raw.meta.category) {
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_IO:
	case ZYDIS_CATEGORY_IOSTRINGOP:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET:
		return true;
	default:
		return (insn->raw.attributes & ZYDIS_ATTRIB_IS_PRIVILEGED) != 0 ||
		       insn->raw.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
	}
}
