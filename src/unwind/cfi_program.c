#include "unwind/cfi_program.h"

#include "unwind/cfi_section.h"

#include <errno.h>
#include <limits.h>

/* Rows of larger factors are left to libdw, so that no product here can overflow unnoticed. */
#define CODE_ALIGN_MAX 16u
#define DATA_ALIGN_MAX 16

enum rule { RULE_NONE, RULE_SAME, RULE_UNDEFINED, RULE_AT_CFA, RULE_OTHER };

struct run {
	const struct cfi_head *head;
	bool in_head;                      /* its own program is run, initial is not known yet */
	uint64_t at, wanted;               /* addresses of code */
	struct cfi_cursor c;
	struct cfi_state state;
	struct cfi_state remembered[CFI_REMEMBER_MAX];
	unsigned int depth;
};

/* The place of a register in a state, -1: it decides nothing here.  In the order of arch_callee_saved. */
static int tracked(uint64_t number)
{
	static const int8_t places[ARCH_DWARF_REGS] = {
		-1, -1, -1, 0, -1, -1, ARCH_CALLEE_SAVED_BP, CFI_TRACKED_SP,
		-1, -1, -1, -1, 2, 3, 4, 5, CFI_TRACKED_PC,
	};

	return number < ARCH_DWARF_REGS ? places[number] : -1;
}

static void set_rule(struct run *run, uint64_t number, enum rule rule)
{
	int place = tracked(number);

	if (place >= 0) {
		run->state.rule[place] = (uint8_t)rule;
		run->state.offset[place] = 0;
	}
}

static void set_saved(struct run *run, uint64_t number, int64_t factored)
{
	int place = tracked(number);
	int64_t offset;

	if (place < 0)
		return;
	run->state.rule[place] = RULE_OTHER;
	run->state.offset[place] = 0;
	if (__builtin_mul_overflow(factored, run->head->cie.data_align, &offset) || offset != (int32_t)offset)
		return;
	run->state.rule[place] = RULE_AT_CFA;
	run->state.offset[place] = (int32_t)offset;
}

static bool restore(struct run *run, uint64_t number)
{
	int place = tracked(number);

	if (run->in_head)
		return false;
	if (place >= 0) {
		run->state.rule[place] = run->head->initial.rule[place];
		run->state.offset[place] = run->head->initial.offset[place];
	}
	return true;
}

static bool has_cfa(const struct run *run)
{
	return run->state.cfa_register != UINT64_MAX;
}

static bool set_cfa(struct run *run, uint64_t number, int64_t offset)
{
	run->state.cfa_register = number;
	run->state.cfa_offset = offset;
	return true;
}

static bool factored_cfa(struct run *run, uint64_t number, int64_t factored)
{
	int64_t offset;

	if (__builtin_mul_overflow(factored, run->head->cie.data_align, &offset))
		return false;
	return set_cfa(run, number, offset);
}

static bool remember(struct run *run)
{
	if (run->in_head || run->depth == CFI_REMEMBER_MAX)
		return false;
	run->remembered[run->depth++] = run->state;
	return true;
}

static bool restore_state(struct run *run)
{
	if (run->depth == 0)
		return false;
	run->state = run->remembered[--run->depth];
	return true;
}

/* Of an expression nothing is kept but that there is one. */
static bool skip_expression(struct run *run)
{
	uint64_t len = take_uleb128(&run->c);

	return len <= cursor_left(&run->c) && take(&run->c, (size_t)len);
}

/* The instructions that stand for themselves; false when libdw must say what they mean. */
static bool run_other(struct run *run, uint8_t opcode)
{
	struct cfi_cursor *c = &run->c;
	uint64_t number;

	switch (opcode) {
	case DW_CFA_nop:
		return true;
	case DW_CFA_GNU_args_size:
		take_uleb128(c);
		return true;
	case DW_CFA_def_cfa:
		number = take_uleb128(c);
		return set_cfa(run, number, (int64_t)take_uleb128(c));
	case DW_CFA_def_cfa_sf:
		number = take_uleb128(c);
		return factored_cfa(run, number, take_sleb128(c));
	case DW_CFA_def_cfa_register:
		return has_cfa(run) && set_cfa(run, take_uleb128(c), run->state.cfa_offset);
	case DW_CFA_def_cfa_offset:
		return has_cfa(run) && set_cfa(run, run->state.cfa_register, (int64_t)take_uleb128(c));
	case DW_CFA_def_cfa_offset_sf:
		return has_cfa(run) && factored_cfa(run, run->state.cfa_register, take_sleb128(c));
	case DW_CFA_def_cfa_expression:
		run->state.cfa_register = UINT64_MAX;
		return skip_expression(run);
	case DW_CFA_offset_extended:
		number = take_uleb128(c);
		set_saved(run, number, (int64_t)take_uleb128(c));
		return true;
	case DW_CFA_offset_extended_sf:
		number = take_uleb128(c);
		set_saved(run, number, take_sleb128(c));
		return true;
	case DW_CFA_undefined:
		set_rule(run, take_uleb128(c), RULE_UNDEFINED);
		return true;
	case DW_CFA_same_value:
		set_rule(run, take_uleb128(c), RULE_SAME);
		return true;
	case DW_CFA_restore_extended:
		return restore(run, take_uleb128(c));
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
	case DW_CFA_register:
		set_rule(run, take_uleb128(c), RULE_OTHER);
		take_uleb128(c);
		return true;
	case DW_CFA_expression:
	case DW_CFA_val_expression:
		set_rule(run, take_uleb128(c), RULE_OTHER);
		return skip_expression(run);
	case DW_CFA_remember_state:
		return remember(run);
	case DW_CFA_restore_state:
		return restore_state(run);
	default:
		return false;
	}
}

/* Bytes of the operand of an advance_loc1, 2 or 4; 0 for any other instruction. */
static size_t advance_size(uint8_t opcode)
{
	switch (opcode) {
	case DW_CFA_advance_loc1:
		return 1;
	case DW_CFA_advance_loc2:
		return 2;
	case DW_CFA_advance_loc4:
		return 4;
	default:
		return 0;
	}
}

/* Runs up to the last row that begins at or before the wanted address; false: libdw must say. */
static bool run_program(struct run *run)
{
	struct cfi_cursor *c = &run->c;

	while (c->at < c->end && !c->failed) {
		uint8_t opcode = take_u8(c), low = opcode & 0x3f;
		size_t wide = advance_size(opcode);

		if (wide != 0 || (opcode & 0xc0) == DW_CFA_advance_loc) {
			uint64_t delta = wide != 0 ? take_unsigned(c, wide) : low;

			if (run->in_head)
				return false;
			run->at += delta * run->head->cie.code_align;
			if (run->at > run->wanted)
				break;
		} else if ((opcode & 0xc0) == DW_CFA_offset) {
			set_saved(run, low, (int64_t)take_uleb128(c));
		} else if ((opcode & 0xc0) == DW_CFA_restore) {
			if (!restore(run, low))
				return false;
		} else if (!run_other(run, opcode)) {
			return false;
		}
	}
	return !c->failed;
}

static bool run_head(struct cfi_head *head)
{
	const struct cfi_cie *cie = &head->cie;
	struct run run = { .head = head, .in_head = true, .c = cie->program };

	if (cie->signal_frame || cie->return_register != ARCH_DWARF_PC || cie->code_align > CODE_ALIGN_MAX ||
	    cie->data_align > DATA_ALIGN_MAX || cie->data_align < -DATA_ALIGN_MAX)
		return false;
	run.state.cfa_register = UINT64_MAX;
	if (!run_program(&run))
		return false;
	head->initial = run.state;
	return true;
}

/* The CIE at an offset, or NULL when there is none. */
static const struct cfi_head *find_head(struct cfi_programs *programs, uint64_t offset)
{
	struct cfi_head *head = &programs->heads[offset / 8 % CFI_HEADS];
	struct cfi_entry entry = { 0 };
	bool broken = false;

	if (head->known && head->cie.offset == offset)
		return head;
	head->known = false;
	if (offset >= programs->section.size ||
	    !cfi_entry_next(&programs->section, &(uint64_t){ offset }, &entry, &broken) || !entry.is_cie ||
	    !cfi_cie_read(&programs->section, &entry, &head->cie))
		return NULL;
	head->plain = run_head(head);
	head->known = true;
	return head;
}

static bool plain_saved(const struct cfi_state *state, unsigned int i, struct cfi_row *row)
{
	int32_t offset = state->offset[i];

	row->saved[i] = -8;
	switch (state->rule[i]) {
	case RULE_AT_CFA:
		break;
	case RULE_OTHER:
		return false;
	default:                           /* nobody may ask for one that is undefined */
		return true;
	}
	if (offset > -8 || offset < -CFI_PLAIN_DEPTH_MAX)
		return false;
	row->saved[i] = (int16_t)offset;
	row->saved_mask |= (uint8_t)(1u << i);
	if (-offset > row->depth)
		row->depth = (uint16_t)-offset;
	return true;
}

static int row_of_state(const struct cfi_state *state, struct cfi_row *ret_row)
{
	struct cfi_row row = { .kind = CFI_ROW_PLAIN, .depth = 8 };

	if (state->rule[CFI_TRACKED_PC] == RULE_UNDEFINED) {
		*ret_row = (struct cfi_row){ .kind = CFI_ROW_END };
		return 0;
	}
	if (state->cfa_register != ARCH_DWARF_SP && state->cfa_register != ARCH_DWARF_BP)
		return -ENOTSUP;
	if (state->cfa_offset > INT_MAX || state->cfa_offset < INT_MIN)
		return -ENOTSUP;
	if (state->rule[CFI_TRACKED_SP] != RULE_NONE || state->rule[CFI_TRACKED_PC] != RULE_AT_CFA ||
	    state->offset[CFI_TRACKED_PC] != -8)
		return -ENOTSUP;
	row.from_bp = state->cfa_register == ARCH_DWARF_BP;
	row.cfa_offset = (int32_t)state->cfa_offset;
	for (unsigned int i = 0; i < ARCH_CALLEE_SAVED; i++)
		if (!plain_saved(state, i, &row))
			return -ENOTSUP;
	*ret_row = row;
	return 0;
}

int cfi_programs_row(struct cfi_programs *programs, uint64_t address, struct cfi_row *ret_row)
{
	const struct cfi_start *function = cfi_functions_find(&programs->functions, address);
	uint64_t offset = function ? function->entry - programs->section.address : UINT64_MAX;
	const struct cfi_head *head;
	struct cfi_fde_body body;
	struct cfi_entry entry = { 0 };
	bool broken = false;
	struct run run;

	if (offset >= programs->section.size ||
	    !cfi_entry_next(&programs->section, &offset, &entry, &broken) || entry.is_cie)
		return -ENOTSUP;
	head = find_head(programs, entry.cie_offset);
	if (!head || !head->plain || !cfi_fde_read(&programs->section, &head->cie, &entry, &body))
		return -ENOTSUP;
	if (address - body.start >= body.size)
		return -ENOTSUP;
	run.head = head;
	run.in_head = false;
	run.at = body.start;
	run.wanted = address;
	run.c = body.program;
	run.state = head->initial;
	run.depth = 0;
	return run_program(&run) ? row_of_state(&run.state, ret_row) : -ENOTSUP;
}

void cfi_programs_prefetch(const struct cfi_programs *programs, uint64_t address)
{
	const struct cfi_start *function = cfi_functions_find(&programs->functions, address);
	uint64_t offset = function ? function->entry - programs->section.address : UINT64_MAX;

	if (offset >= programs->section.size)
		return;
	__builtin_prefetch(programs->section.bytes + offset);
	__builtin_prefetch(programs->section.bytes + offset + 64);
}

int cfi_programs_init(struct cfi_programs *programs, const struct cfi_section *section,
		      const struct cfi_start *starts, uint32_t count)
{
	*programs = (struct cfi_programs){ .section = *section };
	return cfi_functions_init(&programs->functions, starts, count);
}

void cfi_programs_fini(struct cfi_programs *programs)
{
	cfi_functions_fini(&programs->functions);
}

size_t cfi_programs_memory(const struct cfi_programs *programs)
{
	return cfi_functions_memory(&programs->functions);
}
