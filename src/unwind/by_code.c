#include "unwind/by_code.h"

#define STUB_MAX 16
#define FUNCTION_MAX (64u << 10)       /* a call that leads further back leads to another function */
#define RESULT_PASSED_MAX 8

static int read_code(void *context, raddr at, void *buf, size_t len)
{
	struct unwinder *unwinder = context;

	return stack_copy_code(&unwinder->memory, at, buf, len) ? 0 : -1;
}

/* By way of the linker or not. */
static const struct ending *find_ending(struct unwinder *unwinder, raddr function)
{
	const struct module_range *range;
	uint8_t stub[STUB_MAX];
	raddr pointer, target;

	if (read_code(unwinder, function, stub, sizeof(stub)) == 0 &&
	    arch_decode_import_stub(stub, sizeof(stub), function, &pointer) &&
	    stack_copy_code(&unwinder->memory, pointer, &target, sizeof(target)))
		function = target;
	range = module_map_find(unwinder->map, function);
	return range ? endings_find(&unwinder->endings, range->module,
				    function - unwinder->map->modules.items[range->module].bias) : NULL;
}

static bool never_returns(void *context, raddr function)
{
	return find_ending(context, function) != NULL;
}

bool by_code_is_bottom(struct unwinder *unwinder, raddr pc)
{
	uint8_t code[RESULT_PASSED_MAX];
	const struct ending *ending;
	raddr function;

	if (read_code(unwinder, pc, code, sizeof(code)) < 0 || !arch_passes_result(code, sizeof(code), pc, &function))
		return false;
	ending = find_ending(unwinder, function);
	return ending && ending->takes_result;
}

/* A call that says where it leads leads to this function: to its start, to the linker's stub for it, or to a jump to it. */
static bool leads_to(struct unwinder *unwinder, raddr address, raddr pc)
{
	uint8_t code[ARCH_CALL_MAX], start[STUB_MAX];
	raddr target, pointer;

	if (!module_map_find(unwinder->map, address - 1) || read_code(unwinder, address - sizeof(code), code, sizeof(code)) < 0 ||
	    !arch_ends_in_call(code, sizeof(code)))
		return false;
	if (!arch_direct_call(code, sizeof(code), address, &target) || pc - target < FUNCTION_MAX)
		return true;
	return read_code(unwinder, target, start, sizeof(start)) == 0 &&
	       (arch_decode_import_stub(start, sizeof(start), target, &pointer) ||
		(arch_direct_jump(start, sizeof(start), target, &pointer) && pc - pointer < FUNCTION_MAX));
}

bool by_code_row(struct unwinder *unwinder, const struct arch_regs *regs, struct cfi_row *row)
{
	const struct arch_code code = { read_code, never_returns, unwinder };
	raddr pc = regs->reg[ARCH_DWARF_PC], address, cfa;
	struct arch_way_out out;

	if (!arch_find_way_out(&code, pc, &out))
		return false;
	cfa = regs->reg[out.from_bp ? ARCH_DWARF_BP : ARCH_DWARF_SP] + (uint64_t)(int64_t)out.cfa_offset;
	if (!stack_copy_word(&unwinder->memory, cfa - 8, &address) || !leads_to(unwinder, address, pc))
		return false;
	row->kind = CFI_ROW_PLAIN;
	row->from_bp = out.from_bp;
	row->cfa_offset = out.cfa_offset;
	row->saved_mask = out.saved_mask;
	row->depth = 8;
	for (unsigned i = 0; i < ARCH_CALLEE_SAVED; i++) {
		row->saved[i] = out.saved[i];
		if (-out.saved[i] > row->depth)
			row->depth = (uint16_t)-out.saved[i];
	}
	return true;
}
