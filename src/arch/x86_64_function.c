/* The exits of a function: which instructions can be reached, and which of them leave it. */
#include "arch/arch.h"
#include "arch/x86_64_scan.h"
#include "arch/x86_64_switch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_inside(const struct scan *scan, uint64_t target)
{
	return target - scan->address < scan->len;
}

/* To another function, or to its own start, where the int3 is. */
static bool leaves(const struct scan *scan, uint64_t target)
{
	return !is_inside(scan, target) || target == scan->address;
}

static int refuse(struct scan *scan, const char *reason)
{
	scan->reason = reason;
	return -ENOTSUP;
}

static int remember(struct scan *scan, uint64_t target)
{
	uint32_t *pending;

	if (leaves(scan, target))
		return 0;
	if (scan->marks[target - scan->address] & MARK_STARTS)
		return 0;
	pending = vec_push(&scan->pending);
	if (!pending)
		return -ENOMEM;
	*pending = (uint32_t)(target - scan->address);
	return 0;
}

static bool goes_on(const struct insn *insn)
{
	return insn->kind == INSN_PLAIN || insn->kind == INSN_CALL || insn->kind == INSN_BRANCH;
}

/* Marks the instruction; its branch target is remembered.  1 when the next one follows, else 0 or
 * negative errno. */
static int visit(struct scan *scan, uint32_t offset, const struct insn *insn, enum mark start)
{
	if (insn->narrow)
		return refuse(scan, "it has a branch with an operand-size prefix");
	if (insn->kind == INSN_FAR)
		return refuse(scan, "it has a far or system return");
	scan->marks[offset] |= start;
	for (uint32_t i = 0; i < insn->length; i++)
		scan->marks[offset + i] |= MARK_COVERED;
	if (insn->has_target) {
		int r = remember(scan, insn->target);

		if (insn->target - scan->address < ENTRY_REACH)
			scan->targets |= 1ULL << (insn->target - scan->address);
		if (is_inside(scan, insn->target))
			scan->marks[insn->target - scan->address] |= MARK_TARGET;
		if (r < 0)
			return r;
	}
	return goes_on(insn);
}

/* Follows the code from offset to where it ends, leaves or meets code already seen.  Code seen
 * may be met in the middle of an instruction only by a branch (over a lock prefix); what runs into
 * the middle of one from a gap is data. */
static int follow_run(struct scan *scan, uint32_t offset, enum mark start)
{
	bool after_call = false, first = true;
	struct insn insn;
	int r = 1;

	while (r > 0 && offset < scan->len) {
		if (scan->marks[offset] & MARK_STARTS)
			return 0;
		if (start == MARK_GAP && !first && scan->marks[offset] & MARK_COVERED)
			return refuse(scan, "it has data between its instructions");
		if (!scan_decode(scan, offset, &insn)) {
			if (after_call && start == MARK_FLOW)
				return 0;       /* the call before never returns */
			return refuse(scan, "it has bytes that are no instruction");
		}
		r = visit(scan, offset, &insn, start);
		after_call = insn.kind == INSN_CALL;
		first = false;
		offset += insn.length;
	}
	return r < 0 ? r : 0;
}

static int follow(struct scan *scan, uint32_t offset, enum mark start)
{
	int r = follow_run(scan, offset, start);

	while (r == 0 && scan->pending.count > 0)
		r = follow_run(scan, scan->pending.items[--scan->pending.count], start);
	scan->pending.count = 0;
	return r;
}

/* Landing pads and switch cases have no direct branch to them.  *ret_sound says whether all that was
 * not reached looks like code; if it does not, what was found there is forgotten. */
static int follow_gaps(struct scan *scan, bool *ret_sound)
{
	bool sound = true;
	int r = 0;

	for (uint32_t offset = 0; r == 0 && offset < scan->len; offset++)
		if (!(scan->marks[offset] & MARK_COVERED))
			r = follow(scan, offset, MARK_GAP);
	if (r == -ENOTSUP) {
		sound = false;
		for (uint32_t offset = 0; offset < scan->len; offset++)
			scan->marks[offset] &= (uint8_t)~MARK_GAP;
		scan->has_data = true;
	} else if (r < 0) {
		return r;
	}
	*ret_sound = sound;
	return 0;
}

/* Whether a thread may stand at the byte behind the first one of a ret.  Padding between two pieces
 * of code that nobody branches to is no such place. */
static bool is_ambiguous(const struct scan *scan, uint32_t ret_offset)
{
	uint32_t next = ret_offset + 1;
	struct insn insn;

	if (next >= scan->len || !(scan->marks[next] & MARK_STARTS))
		return false;
	if (scan->marks[next] & MARK_FLOW)
		return true;
	return !scan_decode(scan, next, &insn) || !insn.padding;
}

static int add_exit(const struct scan *scan, struct arch_function *function, uint32_t offset,
		    const struct insn *insn)
{
	struct arch_exit *exit = vec_push(&function->exits);

	if (!exit)
		return -ENOMEM;
	exit->address = scan->address + offset;
	exit->length = insn->length;
	exit->ambiguous = is_ambiguous(scan, offset);
	return 0;
}

static int add_tail_call(struct arch_function *function, uint64_t target)
{
	uint64_t *tail_call = vec_push(&function->tail_calls);

	if (!tail_call)
		return -ENOMEM;
	*tail_call = target;
	return 0;
}

/* The last instruction runs into whatever stands behind the function.  A call there does not come
 * back, nor does a system call (exit, sigreturn), and padding is not run. */
static bool runs_off(const struct scan *scan, uint32_t offset, const struct insn *insn)
{
	if (offset + insn->length != scan->len || !goes_on(insn) || insn->kind == INSN_CALL)
		return false;
	if (insn->raw.mnemonic == ZYDIS_MNEMONIC_SYSCALL)
		return false;
	return !insn->padding || scan->marks[offset] & MARK_FLOW;
}

static int add_jump(const struct scan *scan, struct arch_function *function, uint32_t offset,
		    const struct insn *insn)
{
	struct arch_jump *jump = vec_push(&function->jumps);

	if (!jump)
		return -ENOMEM;
	jump->address = scan->address + offset;
	jump->target = insn->target;
	jump->length = insn->length;
	jump->conditional = insn->kind == INSN_BRANCH;
	return add_tail_call(function, insn->target);
}

/* The cases of a switch are all found between the other code; where a tail call goes is not known. */
static int check_indirect(struct scan *scan, uint32_t offset, const struct insn *insn, bool sound)
{
	const struct switch_code code = {
		.bytes = scan->code,
		.marks = scan->marks,
		.start_mask = MARK_STARTS,
		.address = scan->address,
	};

	if (!switch_recognise(&code, offset, insn))
		return refuse(scan, "it has an indirect tail call");
	scan->has_switch = true;
	if (scan->unsized)
		return refuse(scan, "it has a switch table, and nothing says how far it reaches");
	if (!sound)
		return refuse(scan, "it has a switch table and data between its instructions");
	return 0;
}

static int collect_one(struct scan *scan, struct arch_function *function, uint32_t offset, bool sound)
{
	struct insn insn;
	int r = 0;

	if (!scan_decode(scan, offset, &insn))
		return refuse(scan, "it has bytes that are no instruction");
	if (insn.kind == INSN_INDIRECT)
		return check_indirect(scan, offset, &insn, sound);
	if (insn.kind == INSN_RET)
		r = add_exit(scan, function, offset, &insn);
	else if ((insn.kind == INSN_JUMP || insn.kind == INSN_BRANCH) && leaves(scan, insn.target))
		r = add_jump(scan, function, offset, &insn);
	if (r == 0 && runs_off(scan, offset, &insn))
		r = add_tail_call(function, scan->address + scan->len);
	return r;
}

static int compare_addresses(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void sort_tail_calls(struct arch_function *function)
{
	uint64_t *items = function->tail_calls.items;
	size_t kept = 0;

	if (function->tail_calls.count == 0)
		return;
	qsort(items, function->tail_calls.count, sizeof(*items), compare_addresses);
	for (size_t i = 1; i < function->tail_calls.count; i++)
		if (items[i] != items[kept])
			items[++kept] = items[i];
	function->tail_calls.count = kept + 1;
}

static int collect(struct scan *scan, struct arch_function *function, bool sound)
{
	int r = 0;

	for (uint32_t offset = 0; r == 0 && offset < scan->len; offset++)
		if (scan->marks[offset] & MARK_STARTS)
			r = collect_one(scan, function, offset, sound);
	sort_tail_calls(function);
	return r;
}

static int check_first(struct scan *scan, struct arch_function *function)
{
	struct insn insn;

	if (!scan_decode(scan, 0, &insn))
		return refuse(scan, "its first instruction cannot be decoded");
	for (uint32_t i = 1; i < insn.length; i++)
		if (scan->marks[i] & MARK_STARTS)
			return refuse(scan, "it has a branch into its first instruction");
	function->first_length = insn.length;
	function->first_is_ambiguous = insn.length == 1 && (insn.kind != INSN_RET || is_ambiguous(scan, 0));
	return 0;
}

static bool writes(const ZydisDecodedOperand *operand)
{
	return operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
}

static bool is_argument(ZydisRegister reg)
{
	return reg == ZYDIS_REGISTER_RDI || reg == ZYDIS_REGISTER_RSI || reg == ZYDIS_REGISTER_RDX ||
	       reg == ZYDIS_REGISTER_RCX;
}

/* How much it lowers the stack pointer; false when that is not known. */
static bool lowers_stack(const struct insn *insn, uint32_t *ret_by)
{
	const ZydisDecodedOperand *by = &insn->operands[1];

	if (insn->raw.mnemonic == ZYDIS_MNEMONIC_PUSH && insn->raw.operand_width == 64) {
		*ret_by = 8;
		return true;
	}
	if (insn->raw.mnemonic != ZYDIS_MNEMONIC_SUB || by->type != ZYDIS_OPERAND_TYPE_IMMEDIATE ||
	    by->imm.value.s < 0 || by->imm.value.s > INT32_MAX || insn->raw.operand_width != 64)
		return false;
	*ret_by = (uint32_t)by->imm.value.s;
	return true;
}

/* Whether behind it all is as it was at the entry, but for the stack pointer. */
static bool keeps_arguments(const struct insn *insn, uint32_t *ret_lower)
{
	*ret_lower = 0;
	if (insn->kind != INSN_PLAIN)
		return false;
	for (unsigned i = 0; i < insn->raw.operand_count; i++) {
		ZydisRegister reg = insn_register(insn, i);

		if (!writes(&insn->operands[i]))
			continue;
		if (is_argument(reg) || (reg == ZYDIS_REGISTER_RSP && !lowers_stack(insn, ret_lower)))
			return false;
	}
	return insn->raw.meta.category != ZYDIS_CATEGORY_SYSCALL;
}

static bool stores(const struct insn *insn)
{
	for (unsigned i = 0; i < insn->raw.operand_count; i++) {
		if (insn->operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY && writes(&insn->operands[i]) &&
		    insn->raw.mnemonic != ZYDIS_MNEMONIC_PUSH)
			return true;
	}
	return false;
}

/* Behind the first instruction, as near to it as can be; but one whose stop needs no second look is better. */
static void choose_entry(const struct scan *scan, struct arch_function *function)
{
	struct arch_entry *entry = &function->entry;
	uint32_t offset = 0, below = 0, lower;
	bool has_stored = false;
	struct insn insn;

	entry->ambiguous = function->first_is_ambiguous;
	while (scan_decode(scan, offset, &insn) && keeps_arguments(&insn, &lower)) {
		offset += insn.length;
		below += lower;
		has_stored |= stores(&insn);
		if (offset >= scan->len || offset >= ENTRY_REACH || !(scan->marks[offset] & MARK_FLOW) ||
		    (scan->targets & ~1ULL & ((2ULL << offset) - 1)) || !scan_decode(scan, offset, &insn) ||
		    (insn.kind != INSN_PLAIN && insn.kind != INSN_BRANCH))
			return;
		if (entry->offset == 0 || insn.length > 1)
			*entry = (struct arch_entry){ offset, below, insn.length == 1, has_stored };
		if (!entry->ambiguous)
			return;
	}
}

static int scan_function(struct scan *scan, struct arch_function *function)
{
	bool sound = false;
	int r = follow(scan, 0, MARK_FLOW);

	if (r == 0 && !scan->unsized)
		r = follow_gaps(scan, &sound);
	scan->has_data |= scan->unsized;
	if (r == 0)
		r = check_first(scan, function);
	if (r == 0)
		r = collect(scan, function, sound);
	if (r == 0) {
		choose_entry(scan, function);
		scan_find_room(scan, function);
	}
	return r;
}

static int decode(const uint8_t *code, size_t len, uint64_t address, bool unsized,
		  struct arch_function *ret_function, const char **ret_reason)
{
	struct scan scan = {.code = code, .len = len, .address = address, .unsized = unsized};
	struct arch_function function = {0};
	int r;

	if (len == 0 || len > ARCH_FUNCTION_MAX) {
		*ret_reason = len ? "it is too large" : "it has no code";
		return -ENOTSUP;
	}
	scan.marks = calloc(len, 1);
	if (!scan.marks)
		return -ENOMEM;
	r = scan_function(&scan, &function);
	free(scan.marks);
	vec_fini(&scan.pending);
	if (r < 0) {
		if (r == -ENOTSUP)
			*ret_reason = scan.reason;
		arch_function_fini(&function);
		return r;
	}
	*ret_function = function;
	return 0;
}

int arch_decode_function(const uint8_t *code, size_t len, uint64_t address,
			 struct arch_function *ret_function, const char **ret_reason)
{
	return decode(code, len, address, false, ret_function, ret_reason);
}

int arch_decode_unsized(const uint8_t *code, size_t len, uint64_t address,
			struct arch_function *ret_function, const char **ret_reason)
{
	return decode(code, len, address, true, ret_function, ret_reason);
}

void arch_function_fini(struct arch_function *function)
{
	vec_fini(&function->exits);
	vec_fini(&function->tail_calls);
	vec_fini(&function->jumps);
}

/* endbr64 and bnd come with some linkers' stubs. */
bool arch_decode_import_stub(const uint8_t *code, size_t len, uint64_t address, raddr *ret_pointer)
{
	const ZydisDecodedOperand *pointer;
	struct insn insn;

	if (!insn_decode(code, len, address, &insn))
		return false;
	if (insn.raw.mnemonic == ZYDIS_MNEMONIC_ENDBR64) {
		code += insn.length;
		len -= insn.length;
		address += insn.length;
		if (!insn_decode(code, len, address, &insn))
			return false;
	}
	pointer = insn_rip_relative(&insn);
	if (insn.kind != INSN_INDIRECT || insn.narrow || !pointer || pointer->mem.base != ZYDIS_REGISTER_RIP)
		return false;
	*ret_pointer = address + insn.length + (uint64_t)pointer->mem.disp.value;
	return true;
}
