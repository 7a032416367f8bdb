#include "unwind/dwarf.h"

#include "unwind/cfi_image.h"
#include "unwind/cfi_program.h"
#include "unwind/expression.h"
#include "unwind/other_stack.h"

#include <dwarf.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

struct dwarf_cfi {
	struct cfi_image image;
	Elf *elf;
	Dwarf *dwarf;                      /* NULL: no .debug_frame */
	Dwarf_CFI *eh_frame, *debug_frame; /* NULL: not there */
	struct cfi_programs programs;      /* of eh_frame */
	struct other_stack other_stack;
};

/* The image keeps its parts 8-aligned. */
static int open_eh_frame(struct dwarf_cfi *cfi)
{
	const struct cfi_image *image = &cfi->image;
	const struct cfi_section section = {
		.bytes = (const uint8_t *)image->bytes + image->eh_frame,
		.size = image->eh_frame_size,
		.address = image->eh_frame_address,
		.eh_frame = true,
	};

	cfi->eh_frame = dwarf_getcfi_elf(cfi->elf);
	return cfi_programs_init(&cfi->programs, &section, (const void *)(image->bytes + image->search_table),
				 image->functions);
}

static void open_debug_frame(struct dwarf_cfi *cfi)
{
	Dwarf_Frame *frame;

	cfi->dwarf = dwarf_begin_elf(cfi->elf, DWARF_C_READ, NULL);
	cfi->debug_frame = cfi->dwarf ? dwarf_getcfi(cfi->dwarf) : NULL;
	/* libdw walks .debug_frame until it finds an address and remembers what it passed: one that is
	 * not there makes it pass everything now. */
	if (cfi->debug_frame && dwarf_cfi_addrframe(cfi->debug_frame, UINT64_MAX - 1, &frame) == 0)
		free(frame);
}

int dwarf_cfi_open(int elf_fd, struct dwarf_cfi **ret_cfi)
{
	struct dwarf_cfi *cfi = calloc(1, sizeof(*cfi));
	int err;

	if (!cfi)
		return -ENOMEM;
	err = cfi_image_make(elf_fd, &cfi->image);
	if (err < 0)
		goto fail;
	err = -ENOMEM;
	cfi->elf = elf_memory(cfi->image.bytes, cfi->image.size);
	if (!cfi->elf)
		goto fail;
	if (cfi->image.has_eh_frame && open_eh_frame(cfi) < 0)
		goto fail;
	if (cfi->image.has_debug_frame)
		open_debug_frame(cfi);
	err = -ENODATA;
	if (!cfi->eh_frame && !cfi->debug_frame)
		goto fail;
	other_stack_find(elf_fd, &cfi->other_stack);
	*ret_cfi = cfi;
	return 0;
fail:
	dwarf_cfi_close(cfi);
	return err;
}

void dwarf_cfi_close(struct dwarf_cfi *cfi)
{
	if (!cfi)
		return;
	cfi_programs_fini(&cfi->programs);
	if (cfi->eh_frame)
		dwarf_cfi_end(cfi->eh_frame);
	if (cfi->dwarf)
		dwarf_end(cfi->dwarf);
	if (cfi->elf)
		elf_end(cfi->elf);
	cfi_image_fini(&cfi->image);
	free(cfi);
}

size_t dwarf_cfi_memory(const struct dwarf_cfi *cfi)
{
	return sizeof(*cfi) + cfi->image.size + cfi_programs_memory(&cfi->programs);
}

enum rule_kind { RULE_SAME, RULE_UNDEFINED, RULE_AT_CFA, RULE_IS_CFA, RULE_OTHER, RULE_BAD };

struct rule {
	enum rule_kind kind;
	int64_t offset;                    /* RULE_AT_CFA: where it is saved; RULE_IS_CFA: added to it */
	Dwarf_Op *ops;
	size_t count;
};

/* What dwarf_frame_register delivers is described in elfutils/libdw.h; `memory` holds ops of short rules. */
static struct rule get_rule(Dwarf_Frame *frame, int number, Dwarf_Op memory[3])
{
	struct rule rule = { .kind = RULE_OTHER };

	if (dwarf_frame_register(frame, number, memory, &rule.ops, &rule.count) < 0) {
		rule.kind = RULE_BAD;
		return rule;
	}
	if (rule.count == 0) {
		rule.kind = rule.ops ? RULE_UNDEFINED : RULE_SAME;
		return rule;
	}
	if (rule.ops[0].atom != DW_OP_call_frame_cfa || rule.ops != memory)
		return rule;
	if (rule.count > 1 && rule.ops[1].atom == DW_OP_plus_uconst)
		rule.offset = (int64_t)rule.ops[1].number;
	rule.kind = rule.ops[rule.count - 1].atom == DW_OP_stack_value ? RULE_IS_CFA : RULE_AT_CFA;
	return rule;
}

/* CFA = rsp or rbp + offset into the row; false when it is anything else. */
static bool plain_cfa(Dwarf_Frame *frame, struct cfi_row *row)
{
	Dwarf_Op *ops;
	size_t count;
	int64_t offset;

	if (dwarf_frame_cfa(frame, &ops, &count) < 0 || count != 1 || ops[0].atom != DW_OP_bregx)
		return false;
	offset = (int64_t)ops[0].number2;
	if (offset > INT_MAX || offset < INT_MIN)
		return false;
	if (ops[0].number != ARCH_DWARF_SP && ops[0].number != ARCH_DWARF_BP)
		return false;
	row->from_bp = ops[0].number == ARCH_DWARF_BP;
	row->cfa_offset = (int32_t)offset;
	return true;
}

static bool plain_saved(Dwarf_Frame *frame, unsigned int i, struct cfi_row *row)
{
	Dwarf_Op memory[3];
	struct rule rule = get_rule(frame, arch_callee_saved[i], memory);

	row->saved[i] = -8;
	/* An undefined register is left as it is: nobody may ask for it, and libdw calls rbx undefined
	 * when nothing is said about it (elfutils 0.188 takes it for register 0). */
	if (rule.kind == RULE_SAME || rule.kind == RULE_UNDEFINED)
		return true;
	if (rule.kind != RULE_AT_CFA || rule.offset > -8 || rule.offset < -CFI_PLAIN_DEPTH_MAX)
		return false;
	row->saved[i] = (int16_t)rule.offset;
	row->saved_mask |= (uint8_t)(1u << i);
	if (-rule.offset > row->depth)
		row->depth = (uint16_t)-rule.offset;
	return true;
}

static bool plain_row(Dwarf_Frame *frame, struct cfi_row *row)
{
	Dwarf_Op memory[3];
	struct rule rule;

	if (!plain_cfa(frame, row))
		return false;
	rule = get_rule(frame, ARCH_DWARF_SP, memory);
	if (rule.kind != RULE_IS_CFA || rule.offset != 0)
		return false;
	rule = get_rule(frame, ARCH_DWARF_PC, memory);
	if (rule.kind != RULE_AT_CFA || rule.offset != -8)
		return false;
	row->depth = 8;
	for (unsigned int i = 0; i < ARCH_CALLEE_SAVED; i++)
		if (!plain_saved(frame, i, row))
			return false;
	return true;
}

/* Which kind of row it is; false when it says nothing of use. */
static bool classify(Dwarf_Frame *frame, struct cfi_row *row)
{
	Dwarf_Op memory[3];
	struct rule rule;
	bool signal_frame;
	int return_register = dwarf_frame_info(frame, NULL, NULL, &signal_frame);

	if (return_register < 0 || return_register >= ARCH_DWARF_REGS)
		return false;
	rule = get_rule(frame, return_register, memory);
	if (rule.kind == RULE_BAD || (rule.kind == RULE_SAME && return_register == ARCH_DWARF_PC))
		return false;
	*row = (struct cfi_row){ .kind = CFI_ROW_END };
	if (rule.kind == RULE_UNDEFINED)
		return true;
	if (!signal_frame && return_register == ARCH_DWARF_PC && plain_row(frame, row)) {
		row->kind = CFI_ROW_PLAIN;
		return true;
	}
	*row = (struct cfi_row){ .kind = CFI_ROW_FULL };
	return true;
}

/* Takes over the frame; *ret_frame is NULL unless the row is evaluated from it. */
static int row_of_frame(Dwarf_Frame *frame, struct cfi_row *ret_row, Dwarf_Frame **ret_frame)
{
	if (!classify(frame, ret_row)) {
		free(frame);
		return -ENOENT;
	}
	if (ret_row->kind != CFI_ROW_FULL) {
		free(frame);
		frame = NULL;
	}
	*ret_frame = frame;
	return 0;
}

int dwarf_cfi_row_by_libdw(struct dwarf_cfi *cfi, uint64_t address, struct cfi_row *ret_row,
			   Dwarf_Frame **ret_frame)
{
	Dwarf_Frame *frame;

	if (cfi->eh_frame && dwarf_cfi_addrframe(cfi->eh_frame, address, &frame) == 0)
		return row_of_frame(frame, ret_row, ret_frame);
	if (cfi->debug_frame && dwarf_cfi_addrframe(cfi->debug_frame, address, &frame) == 0)
		return row_of_frame(frame, ret_row, ret_frame);
	return -ENOENT;
}

int dwarf_cfi_row(struct dwarf_cfi *cfi, uint64_t address, struct cfi_row *ret_row,
		  Dwarf_Frame **ret_frame)
{
	*ret_frame = NULL;
	if (other_stack_has(&cfi->other_stack, address)) {
		*ret_row = (struct cfi_row){ .kind = CFI_ROW_OTHER_STACK };
		return 0;
	}
	if (!cfi->eh_frame || cfi_programs_row(&cfi->programs, address, ret_row) < 0)
		return dwarf_cfi_row_by_libdw(cfi, address, ret_row, ret_frame);
	return 0;
}

bool dwarf_cfi_begins(const struct dwarf_cfi *cfi, uint64_t address)
{
	const struct cfi_start *function =
		cfi->eh_frame ? cfi_functions_find(&cfi->programs.functions, address) : NULL;

	return function && function->start == address;
}

void dwarf_cfi_prefetch(const struct dwarf_cfi *cfi, uint64_t address)
{
	if (cfi->eh_frame)
		cfi_programs_prefetch(&cfi->programs, address);
}

static int evaluate_cfa(Dwarf_Frame *frame, struct expression_context *context)
{
	enum expression_kind kind;
	Dwarf_Op *ops;
	size_t count;

	if (dwarf_frame_cfa(frame, &ops, &count) < 0 || count == 0)
		return -EINVAL;
	return expression_evaluate(ops, count, context, &kind, &context->cfa);
}

/* The caller's value of one register; *ret_known is false where it is undefined. */
static int evaluate_register(Dwarf_Frame *frame, int number, const struct expression_context *context,
			     uint64_t *ret_value, bool *ret_known)
{
	Dwarf_Op memory[3];
	struct rule rule = get_rule(frame, number, memory);
	enum expression_kind kind;
	uint64_t value;
	int err;

	*ret_known = rule.kind != RULE_UNDEFINED;
	if (rule.kind == RULE_BAD)
		return -EINVAL;
	if (rule.kind == RULE_SAME || rule.kind == RULE_UNDEFINED) {
		*ret_value = context->regs->reg[number];
		return 0;
	}
	err = expression_evaluate(rule.ops, rule.count, context, &kind, &value);
	if (err < 0)
		return err;
	if (kind == EXPRESSION_ADDRESS && !stack_copy_word(context->memory, value, &value))
		return -EFAULT;
	*ret_value = value;
	return 0;
}

int dwarf_frame_step(Dwarf_Frame *frame, uint64_t bias, struct stack_copy *memory, struct arch_regs *regs,
		     struct dwarf_step *ret_step)
{
	struct expression_context context = { .regs = regs, .memory = memory, .bias = bias };
	struct arch_regs caller;
	struct dwarf_step step = { 0 };
	int return_register = dwarf_frame_info(frame, NULL, NULL, &step.signal_frame);
	int err = evaluate_cfa(frame, &context);
	bool known;

	if (err < 0)
		return err;
	for (int i = 0; i < ARCH_DWARF_REGS; i++) {
		err = evaluate_register(frame, i, &context, &caller.reg[i], &known);
		if (err < 0 && (i == return_register || i == ARCH_DWARF_SP))
			return err;
		if (err < 0)
			caller.reg[i] = regs->reg[i];
		if (i == return_register)
			step.end = !known;
	}
	caller.reg[ARCH_DWARF_PC] = caller.reg[return_register];
	*regs = caller;
	*ret_step = step;
	return 0;
}
