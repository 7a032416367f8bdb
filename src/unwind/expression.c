#include "unwind/expression.h"

#include <dwarf.h>
#include <errno.h>

struct machine {
	const Dwarf_Op *ops;
	size_t count, at;                  /* operations; the next one */
	const struct expression_context *context;
	uint64_t stack[EXPRESSION_DEPTH];
	unsigned int depth;
	bool is_value;                     /* DW_OP_stack_value or a register was seen */
};

static int push(struct machine *m, uint64_t value)
{
	if (m->depth == EXPRESSION_DEPTH)
		return -EINVAL;
	m->stack[m->depth++] = value;
	return 0;
}

static int push_register(struct machine *m, uint64_t number, uint64_t offset)
{
	if (number >= ARCH_DWARF_REGS)
		return -EINVAL;
	return push(m, m->context->regs->reg[number] + offset);
}

static int deref(struct machine *m, uint64_t size)
{
	uint64_t *top = &m->stack[m->depth - 1], value = 0;
	const uint8_t *bytes;

	if (size == 0 || size > sizeof(value))
		return -EINVAL;
	bytes = stack_copy_at(m->context->memory, *top, size);
	if (!bytes)
		return -EFAULT;
	memcpy(&value, bytes, size);
	*top = value;
	return 0;
}

static int unary(struct machine *m, const Dwarf_Op *op)
{
	uint64_t *top = &m->stack[m->depth - 1];

	switch (op->atom) {
	case DW_OP_abs:
		if ((int64_t)*top < 0)
			*top = -*top;
		return 0;
	case DW_OP_neg:
		*top = -*top;
		return 0;
	case DW_OP_not:
		*top = ~*top;
		return 0;
	case DW_OP_plus_uconst:
		*top += op->number;
		return 0;
	case DW_OP_deref:
		return deref(m, sizeof(uint64_t));
	default:
		return deref(m, op->number);            /* DW_OP_deref_size */
	}
}

static int divide(uint64_t a, uint64_t b, uint64_t *ret)
{
	if (b == 0 || (a == (uint64_t)1 << 63 && b == UINT64_MAX))
		return -EINVAL;
	*ret = (uint64_t)((int64_t)a / (int64_t)b);
	return 0;
}

static uint64_t shift_arithmetic(uint64_t a, uint64_t b)
{
	uint64_t bits = (int64_t)a < 0 ? UINT64_MAX : 0;

	return b < 64 ? (a ^ bits) >> b ^ bits : bits;
}

static int compute(unsigned int atom, uint64_t a, uint64_t b, uint64_t *ret)
{
	int64_t x = (int64_t)a, y = (int64_t)b;

	switch (atom) {
	case DW_OP_and: *ret = a & b; return 0;
	case DW_OP_or: *ret = a | b; return 0;
	case DW_OP_xor: *ret = a ^ b; return 0;
	case DW_OP_plus: *ret = a + b; return 0;
	case DW_OP_minus: *ret = a - b; return 0;
	case DW_OP_mul: *ret = a * b; return 0;
	case DW_OP_div: return divide(a, b, ret);
	case DW_OP_mod:
		if (b == 0)
			return -EINVAL;
		*ret = a % b;
		return 0;
	case DW_OP_shl: *ret = b < 64 ? a << b : 0; return 0;
	case DW_OP_shr: *ret = b < 64 ? a >> b : 0; return 0;
	case DW_OP_shra: *ret = shift_arithmetic(a, b); return 0;
	case DW_OP_eq: *ret = x == y; return 0;
	case DW_OP_ne: *ret = x != y; return 0;
	case DW_OP_lt: *ret = x < y; return 0;
	case DW_OP_le: *ret = x <= y; return 0;
	case DW_OP_gt: *ret = x > y; return 0;
	default: *ret = x >= y; return 0;               /* DW_OP_ge */
	}
}

static int binary(struct machine *m, const Dwarf_Op *op)
{
	uint64_t result;
	int err = compute(op->atom, m->stack[m->depth - 2], m->stack[m->depth - 1], &result);

	if (err < 0)
		return err;
	m->depth--;
	m->stack[m->depth - 1] = result;
	return 0;
}

static int shuffle(struct machine *m, const Dwarf_Op *op)
{
	uint64_t *top = &m->stack[m->depth - 1], keep = *top;

	switch (op->atom) {
	case DW_OP_dup:
		return push(m, keep);
	case DW_OP_drop:
		m->depth--;
		return 0;
	case DW_OP_over:
		return push(m, top[-1]);
	case DW_OP_pick:
		if (op->number >= m->depth)
			return -EINVAL;
		return push(m, m->stack[m->depth - 1 - op->number]);
	case DW_OP_swap:
		*top = top[-1];
		top[-1] = keep;
		return 0;
	default:                                        /* DW_OP_rot */
		*top = top[-1];
		top[-1] = top[-2];
		top[-2] = keep;
		return 0;
	}
}

/* A branch is a distance in bytes from the end of the branch; libdw keeps the offset of each operation. */
static int jump(struct machine *m, const Dwarf_Op *op)
{
	uint64_t target = op->offset + 3 + (uint64_t)(int64_t)(int16_t)op->number;
	const Dwarf_Op *last = &m->ops[m->count - 1];

	for (size_t i = 0; i < m->count; i++) {
		if (m->ops[i].offset == target && m->ops[i].atom != DW_OP_call_frame_cfa) {
			m->at = i;
			return 0;
		}
	}
	if (target <= last->offset)
		return -EINVAL;
	m->at = m->count;                               /* to the end of the expression */
	return 0;
}

static int branch(struct machine *m, const Dwarf_Op *op)
{
	if (op->atom == DW_OP_skip)
		return jump(m, op);
	m->depth--;
	return m->stack[m->depth] ? jump(m, op) : 0;
}

static int constant(struct machine *m, const Dwarf_Op *op)
{
	switch (op->atom) {
	case DW_OP_addr:
		return push(m, op->number + m->context->bias);
	case DW_OP_call_frame_cfa:
		return push(m, m->context->cfa);
	case DW_OP_bregx:
		return push_register(m, op->number, op->number2);
	case DW_OP_lit0 ... DW_OP_lit31:
		return push(m, op->atom - DW_OP_lit0);
	case DW_OP_breg0 ... DW_OP_breg31:
		return push_register(m, op->atom - DW_OP_breg0, op->number);
	default:                                        /* DW_OP_const*: sign-extended by libdw */
		return push(m, op->number);
	}
}

/* A register's name stands for the whole expression: the value is the register's. */
static int name_register(struct machine *m, uint64_t number)
{
	if (m->count != 1)
		return -EINVAL;
	m->is_value = true;
	return push_register(m, number, 0);
}

static bool has_depth(const struct machine *m, unsigned int atom)
{
	switch (atom) {
	case DW_OP_rot:
		return m->depth >= 3;
	case DW_OP_over: case DW_OP_swap:
	case DW_OP_and: case DW_OP_div: case DW_OP_minus: case DW_OP_mod: case DW_OP_mul: case DW_OP_or:
	case DW_OP_plus: case DW_OP_shl: case DW_OP_shr: case DW_OP_shra: case DW_OP_xor:
	case DW_OP_eq: case DW_OP_ge: case DW_OP_gt: case DW_OP_le: case DW_OP_lt: case DW_OP_ne:
		return m->depth >= 2;
	case DW_OP_dup: case DW_OP_drop: case DW_OP_pick: case DW_OP_bra:
	case DW_OP_abs: case DW_OP_neg: case DW_OP_not: case DW_OP_plus_uconst:
	case DW_OP_deref: case DW_OP_deref_size: case DW_OP_stack_value:
		return m->depth >= 1;
	default:
		return true;
	}
}

static int step(struct machine *m)
{
	const Dwarf_Op *op = &m->ops[m->at++];

	if (!has_depth(m, op->atom))
		return -EINVAL;
	switch (op->atom) {
	case DW_OP_addr: case DW_OP_call_frame_cfa: case DW_OP_bregx:
	case DW_OP_lit0 ... DW_OP_lit31:
	case DW_OP_breg0 ... DW_OP_breg31:
	case DW_OP_const1u: case DW_OP_const1s: case DW_OP_const2u: case DW_OP_const2s:
	case DW_OP_const4u: case DW_OP_const4s: case DW_OP_const8u: case DW_OP_const8s:
	case DW_OP_constu: case DW_OP_consts:
		return constant(m, op);
	case DW_OP_reg0 ... DW_OP_reg31:
		return name_register(m, op->atom - DW_OP_reg0);
	case DW_OP_regx:
		return name_register(m, op->number);
	case DW_OP_dup: case DW_OP_drop: case DW_OP_over: case DW_OP_pick: case DW_OP_swap: case DW_OP_rot:
		return shuffle(m, op);
	case DW_OP_abs: case DW_OP_neg: case DW_OP_not: case DW_OP_plus_uconst:
	case DW_OP_deref: case DW_OP_deref_size:
		return unary(m, op);
	case DW_OP_skip: case DW_OP_bra:
		return branch(m, op);
	case DW_OP_nop:
		return 0;
	case DW_OP_stack_value:
		m->is_value = true;
		m->at = m->count;
		return 0;
	case DW_OP_and: case DW_OP_div: case DW_OP_minus: case DW_OP_mod: case DW_OP_mul: case DW_OP_or:
	case DW_OP_plus: case DW_OP_shl: case DW_OP_shr: case DW_OP_shra: case DW_OP_xor:
	case DW_OP_eq: case DW_OP_ge: case DW_OP_gt: case DW_OP_le: case DW_OP_lt: case DW_OP_ne:
		return binary(m, op);
	default:
		return -ENOTSUP;
	}
}

int expression_evaluate(const Dwarf_Op *ops, size_t count, const struct expression_context *context,
			enum expression_kind *ret_kind, uint64_t *ret_value)
{
	struct machine m = { .ops = ops, .count = count, .context = context };

	for (unsigned int steps = 0; m.at < m.count; steps++) {
		int err = steps < EXPRESSION_STEPS_MAX ? step(&m) : -ELOOP;

		if (err < 0)
			return err;
	}
	if (m.depth == 0)
		return -EINVAL;
	*ret_kind = m.is_value ? EXPRESSION_VALUE : EXPRESSION_ADDRESS;
	*ret_value = m.stack[m.depth - 1];
	return 0;
}
