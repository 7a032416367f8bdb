/* How a function gives its frame back: read off what it still has to do.  Compilers have the stack pointer at the same place whichever
 * way an instruction was reached, so any way to a return tells; the one with the fewest calls is taken, since one of these may
 * never come back, and what stands behind it be another function. */
#include "arch/arch.h"
#include "arch/x86_64_insn.h"

#include <string.h>

#define WAYS_MAX 64                    /* that were not followed yet */
#define INSNS_MAX 2048                 /* of all ways */
#define SEEN_SIZE (INSNS_MAX * 2)
#define PIECE 512
#define INSN_MAX 15
#define CALL_COST 1
#define CALL_AT_AN_END_COST 8          /* padding follows: perhaps the function ends there */

enum base { BASE_UNKNOWN, BASE_SP, BASE_BP };

/* Relative to the stack or frame pointer that the way begins with. */
struct position {
	enum base base;
	int64_t offset;
};

/* Of a callee-saved register. */
enum saved_state { SAVED_NOT, SAVED_AT, SAVED_LOST };

struct way {
	raddr pc;
	unsigned cost;
	struct position sp, bp;
	struct {
		enum saved_state state;
		struct position at;
	} saved[ARCH_CALLEE_SAVED];
};

struct search {
	const struct arch_code *code;
	unsigned insns, count;
	struct way ways[WAYS_MAX];
	raddr seen[SEEN_SIZE];             /* 0: free */
	raddr piece_at;
	size_t piece_len;
	uint8_t piece[PIECE];
};

static const ZydisRegister callee_saved[ARCH_CALLEE_SAVED] = {
	ZYDIS_REGISTER_RBX, ZYDIS_REGISTER_RBP, ZYDIS_REGISTER_R12, ZYDIS_REGISTER_R13, ZYDIS_REGISTER_R14, ZYDIS_REGISTER_R15,
};

/* --- code --- */

static bool fetch(struct search *search, raddr pc)
{
	size_t to_page_end = 4096 - pc % 4096;

	search->piece_at = pc;
	search->piece_len = PIECE;
	if (search->code->read(search->code->context, pc, search->piece, PIECE) == 0)
		return true;
	search->piece_len = to_page_end < PIECE ? to_page_end : 0;
	return search->piece_len > 0 && search->code->read(search->code->context, pc, search->piece, search->piece_len) == 0;
}

static bool decode(struct search *search, raddr pc, struct insn *insn)
{
	uint64_t offset = pc - search->piece_at;

	if (offset >= search->piece_len || search->piece_len - offset < INSN_MAX) {
		if (!fetch(search, pc)) {
			search->piece_len = 0;
			return false;
		}
		offset = 0;
	}
	return insn_decode(search->piece + offset, search->piece_len - offset, pc, insn);
}

/* False: it was there before. */
static bool see(struct search *search, raddr pc)
{
	size_t i = (size_t)(pc * 0x9e3779b97f4a7c15ULL >> 32) % SEEN_SIZE;

	while (search->seen[i] != 0 && search->seen[i] != pc)
		i = (i + 1) % SEEN_SIZE;
	if (search->seen[i] == pc)
		return false;
	search->seen[i] = pc;
	return true;
}

static void add_way(struct search *search, const struct way *way, raddr pc, unsigned cost)
{
	struct way *added;

	if (search->count == WAYS_MAX)
		return;
	added = &search->ways[search->count++];
	*added = *way;
	added->pc = pc;
	added->cost += cost;
}

/* --- what instructions do --- */

static struct position moved(struct position from, int64_t by)
{
	from.offset += by;
	return from;
}

static int number_of(ZydisRegister reg)
{
	for (int i = 0; i < ARCH_CALLEE_SAVED; i++) {
		if (callee_saved[i] == reg)
			return i;
	}
	return -1;
}

/* What a function stores below the stack pointer that it has now it takes back unchanged. */
static bool is_stored_later(struct position at)
{
	return at.base == BASE_SP && at.offset < 0;
}

static void load_saved(struct way *way, ZydisRegister reg, struct position from)
{
	int i = number_of(reg);

	if (reg == ZYDIS_REGISTER_RBP)
		way->bp.base = BASE_UNKNOWN;
	if (i < 0)
		return;
	way->saved[i].state = from.base == BASE_UNKNOWN ? SAVED_LOST : is_stored_later(from) ? SAVED_NOT : SAVED_AT;
	way->saved[i].at = from;
}

static void lose(struct way *way, ZydisRegister reg)
{
	int i = number_of(reg);

	if (reg == ZYDIS_REGISTER_RBP)
		way->bp.base = BASE_UNKNOWN;
	if (reg == ZYDIS_REGISTER_RSP)
		way->sp.base = BASE_UNKNOWN;
	if (i >= 0)
		way->saved[i].state = SAVED_LOST;
}

/* Where a memory operand is, when that is a place in the frame. */
static struct position place_of(const struct way *way, const ZydisDecodedOperand *operand)
{
	const struct position nowhere = { BASE_UNKNOWN, 0 };

	if (operand->type != ZYDIS_OPERAND_TYPE_MEMORY || operand->mem.index != ZYDIS_REGISTER_NONE ||
	    operand->mem.segment == ZYDIS_REGISTER_FS || operand->mem.segment == ZYDIS_REGISTER_GS)
		return nowhere;
	if (operand->mem.base == ZYDIS_REGISTER_RSP)
		return moved(way->sp, operand->mem.disp.value);
	return operand->mem.base == ZYDIS_REGISTER_RBP ? moved(way->bp, operand->mem.disp.value) : nowhere;
}

static void do_leave(struct way *way)
{
	way->sp = way->bp;
	load_saved(way, ZYDIS_REGISTER_RBP, way->sp);
	way->sp = moved(way->sp, 8);
}

static void do_pop(struct way *way, const struct insn *insn)
{
	if (insn->raw.operand_width != 64) {
		way->sp.base = BASE_UNKNOWN;
		return;
	}
	load_saved(way, insn_register(insn, 0), way->sp);
	way->sp = moved(way->sp, 8);
}

/* True: it is one of those whose effect on the stack pointer is known. */
static bool move_sp(struct way *way, const struct insn *insn)
{
	const ZydisDecodedOperand *from = &insn->operands[1];
	bool is_number = from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;

	switch (insn->raw.mnemonic) {
	case ZYDIS_MNEMONIC_ADD:
		way->sp = moved(way->sp, from->imm.value.s);
		return is_number;
	case ZYDIS_MNEMONIC_SUB:
		way->sp = moved(way->sp, -from->imm.value.s);
		return is_number;
	case ZYDIS_MNEMONIC_LEA:
		way->sp = place_of(way, from);
		return true;
	case ZYDIS_MNEMONIC_MOV:
		way->sp = way->bp;
		return insn_register(insn, 1) == ZYDIS_REGISTER_RBP;
	default:
		return false;
	}
}

static void do_write(struct way *way, const struct insn *insn, unsigned operand)
{
	ZydisRegister reg = insn_register(insn, operand);
	bool is_move = insn->raw.mnemonic == ZYDIS_MNEMONIC_MOV && insn->raw.operand_width == 64 && operand == 0;

	if (reg == ZYDIS_REGISTER_RSP) {
		if (operand != 0 || !move_sp(way, insn))
			way->sp.base = BASE_UNKNOWN;
		return;
	}
	if (is_move && place_of(way, &insn->operands[1]).base != BASE_UNKNOWN) {
		load_saved(way, reg, place_of(way, &insn->operands[1]));
		return;
	}
	lose(way, reg);
	if (is_move && reg == ZYDIS_REGISTER_RBP && insn_register(insn, 1) == ZYDIS_REGISTER_RSP)
		way->bp = way->sp;
}

static void run(struct way *way, const struct insn *insn)
{
	switch (insn->raw.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_PUSHFQ:
		way->sp = moved(way->sp, -8);
		return;
	case ZYDIS_MNEMONIC_POP:
		do_pop(way, insn);
		return;
	case ZYDIS_MNEMONIC_POPFQ:
		way->sp = moved(way->sp, 8);
		return;
	case ZYDIS_MNEMONIC_LEAVE:
		do_leave(way);
		return;
	default:
		break;
	}
	for (unsigned i = 0; i < insn->raw.operand_count; i++) {
		if (insn->operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    (insn->operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			do_write(way, insn, i);
	}
}

/* --- ways --- */

static bool is_at_an_end(struct search *search, raddr pc)
{
	struct insn insn;

	return pc % 16 != 0 && decode(search, pc, &insn) && insn.padding;
}

static void follow_call(struct search *search, const struct way *way, const struct insn *insn)
{
	const struct arch_code *code = search->code;
	raddr next = way->pc + insn->length;

	if (insn->has_target && code->never_returns(code->context, insn->target))
		return;
	add_way(search, way, next, is_at_an_end(search, next) ? CALL_AT_AN_END_COST : CALL_COST);
}

/* A jump by way of the linker leaves as a return does. */
static bool leaves(const struct insn *insn)
{
	return insn->kind == INSN_RET || (insn->kind == INSN_INDIRECT && insn_rip_relative(insn) != NULL);
}

/* To a return: true, with the way as it is there. */
static bool follow(struct search *search, struct way *way)
{
	struct insn insn;

	while (search->insns++ < INSNS_MAX && see(search, way->pc) && decode(search, way->pc, &insn) && !insn.narrow) {
		if (leaves(&insn))
			return true;
		switch (insn.kind) {
		case INSN_JUMP:
			way->pc = insn.target;
			continue;
		case INSN_CALL:
			follow_call(search, way, &insn);
			return false;
		case INSN_BRANCH:
			add_way(search, way, insn.target, 0);
			break;
		case INSN_PLAIN:
			run(way, &insn);
			break;
		default:
			return false;
		}
		way->pc += insn.length;
	}
	return false;
}

static struct way take_cheapest(struct search *search)
{
	unsigned cheapest = 0;
	struct way way;

	for (unsigned i = 1; i < search->count; i++) {
		if (search->ways[i].cost < search->ways[cheapest].cost)
			cheapest = i;
	}
	way = search->ways[cheapest];
	search->ways[cheapest] = search->ways[--search->count];
	return way;
}

/* At its return instruction. */
static bool tell(const struct way *way, struct arch_way_out *ret)
{
	struct position cfa = moved(way->sp, 8);
	struct arch_way_out out = { .from_bp = cfa.base == BASE_BP, .cfa_offset = (int32_t)cfa.offset };

	if (cfa.base == BASE_UNKNOWN || cfa.offset < 8 || cfa.offset > ARCH_FRAME_MAX)
		return false;
	for (unsigned i = 0; i < ARCH_CALLEE_SAVED; i++) {
		int64_t offset = way->saved[i].at.offset - cfa.offset;

		out.saved[i] = -8;
		if (way->saved[i].state == SAVED_NOT)
			continue;
		if (way->saved[i].state == SAVED_LOST || way->saved[i].at.base != cfa.base || offset > -16 || offset % 8 != 0 ||
		    offset < -ARCH_SAVED_REACH)
			return false;
		out.saved[i] = (int16_t)offset;
		out.saved_mask |= (uint8_t)(1u << i);
	}
	*ret = out;
	return true;
}

bool arch_find_way_out(const struct arch_code *code, raddr pc, struct arch_way_out *ret)
{
	struct search search = { .code = code, .count = 1 };

	search.ways[0] = (struct way){ .pc = pc, .sp = { BASE_SP, 0 }, .bp = { BASE_BP, 0 } };
	while (search.count > 0 && search.insns < INSNS_MAX) {
		struct way way = take_cheapest(&search);

		if (way.cost >= ARCH_WAY_COST_MAX)
			return false;
		if (follow(&search, &way) && tell(&way, ret))
			return true;
	}
	return false;
}
