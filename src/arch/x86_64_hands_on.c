/* Where the result of a function comes from: the code is walked along all branches with one thing known, whether the register
 * of results holds what the source has returned. */
#include "arch/arch.h"
#include "arch/x86_64_insn.h"

#define PLACES_MAX 1024
#define FUNCTION_MAX 4096        /* bytes of it */

struct place {
	uint64_t address;
	bool is_result;          /* the register holds the source's result, or 0 */
};

struct walk {
	const struct arch_surroundings *around;
	VEC_OF(struct place) seen, pending;
	uint64_t source;         /* the address of the call or jump; 0: none yet */
	uint64_t start;
	size_t len;
	uint8_t covered[FUNCTION_MAX];
};

/* A second one would be of another block. */
static bool note_source(struct walk *walk, uint64_t address)
{
	if (walk->source != 0 && walk->source != address)
		return false;
	walk->source = address;
	return true;
}

/* What is less known covers what is known better. */
static bool is_seen(const struct walk *walk, uint64_t address, bool is_result)
{
	for (size_t i = 0; i < walk->seen.count; i++) {
		const struct place *place = &walk->seen.items[i];

		if (place->address == address && (place->is_result == is_result || !place->is_result))
			return true;
	}
	return false;
}

static bool note_seen(struct walk *walk, uint64_t address, uint32_t length, bool is_result)
{
	struct place *place = walk->seen.count < PLACES_MAX ? vec_push(&walk->seen) : NULL;

	if (!place)
		return false;
	*place = (struct place){ address, is_result };
	for (uint64_t at = address; at < address + length; at++) {
		if (at - walk->start < walk->len)
			walk->covered[at - walk->start] = 1;
	}
	return true;
}

static bool add_pending(struct walk *walk, uint64_t address, bool is_result)
{
	struct place *place = walk->pending.count < PLACES_MAX ? vec_push(&walk->pending) : NULL;

	if (place)
		*place = (struct place){ address, is_result };
	return place;
}

static bool leads_to_source(const struct walk *walk, const struct insn *insn, uint64_t end)
{
	const struct arch_surroundings *around = walk->around;
	const ZydisDecodedOperand *pointer = insn_rip_relative(insn);
	bool is_jump = insn->kind != INSN_CALL;

	if (insn->has_target)
		return around->is_source(around->context, insn->target, false, is_jump);
	return pointer && around->is_source(around->context, end + (uint64_t)pointer->mem.disp.value, true, is_jump);
}

/* xor eax, eax */
static bool is_zeroing(const struct insn *insn)
{
	return insn->raw.mnemonic == ZYDIS_MNEMONIC_XOR && insn_register(insn, 0) == insn_register(insn, 1);
}

static bool result_after(const struct insn *insn, bool is_result)
{
	for (unsigned i = 0; i < insn->raw.operand_count; i++) {
		if (insn_register(insn, i) == ZYDIS_REGISTER_RAX &&
		    insn->operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			return is_zeroing(insn);
	}
	return is_result;
}

enum step { GOES_ON, ENDS, FAILS };

static enum step go(bool is_right)
{
	return is_right ? ENDS : FAILS;
}

static enum step take(struct walk *walk, const struct insn *insn, struct place *at)
{
	uint64_t address = at->address;

	at->address += insn->length;
	if (insn->narrow)
		return FAILS;
	switch (insn->kind) {
	case INSN_PLAIN:
		at->is_result = result_after(insn, at->is_result);
		return GOES_ON;
	case INSN_CALL:
		at->is_result = leads_to_source(walk, insn, at->address);
		return !at->is_result || note_source(walk, address) ? GOES_ON : FAILS;
	case INSN_JUMP:
	case INSN_BRANCH:
		if (leads_to_source(walk, insn, at->address) ? !note_source(walk, address) :
		    !add_pending(walk, insn->target, at->is_result))
			return FAILS;
		return insn->kind == INSN_BRANCH ? GOES_ON : ENDS;
	case INSN_INDIRECT:
		return go(leads_to_source(walk, insn, at->address) && note_source(walk, address));
	case INSN_RET:
		return go(at->is_result);
	case INSN_STOP:
		return ENDS;
	default:
		return FAILS;
	}
}

/* From one place to where the code ends, leaves or meets what was seen.  What runs off its end after a call does not: the call
 * never returns. */
static bool follow(struct walk *walk, struct place at)
{
	enum step step = GOES_ON;
	bool may_end = false;
	size_t len;
	const uint8_t *code = walk->around->code(walk->around->context, at.address, &len);

	if (!code)
		return false;
	while (step == GOES_ON && len > 0 && !is_seen(walk, at.address, at.is_result)) {
		struct insn insn;

		if (!insn_decode(code, len, at.address, &insn))
			return may_end;
		if (!note_seen(walk, at.address, insn.length, at.is_result))
			return false;
		step = take(walk, &insn, &at);
		may_end = insn.kind == INSN_CALL || insn.padding;
		code += insn.length;
		len -= insn.length;
	}
	return step == ENDS || (step == GOES_ON && (len > 0 || may_end));
}

static bool follow_all(struct walk *walk)
{
	while (walk->pending.count > 0) {
		if (!follow(walk, walk->pending.items[--walk->pending.count]))
			return false;
	}
	return true;
}

/* Exceptions come to where no branch does. */
static bool follow_landing_pads(struct walk *walk)
{
	for (size_t i = 0; i < walk->len; i++) {
		if (!walk->covered[i] && !(add_pending(walk, walk->start + i, false) && follow_all(walk)))
			return false;
	}
	return true;
}

bool arch_hands_on(const struct arch_surroundings *around, uint64_t address)
{
	struct walk walk = { .around = around, .start = address };
	bool hands_on = around->code(around->context, address, &walk.len) && walk.len <= FUNCTION_MAX &&
			add_pending(&walk, address, false) && follow_all(&walk) && follow_landing_pads(&walk) &&
			walk.source != 0;

	vec_fini(&walk.seen);
	vec_fini(&walk.pending);
	return hands_on;
}
