/* The unwinder's parts by themselves: expressions, procedure linkage, frame pointers, reading. */
#include "process_map.h"
#include "unwind/cfi_image.h"
#include "unwind/expression.h"
#include "unwind/framepointer.h"
#include "unwind_fixture.h"

#include <check.h>
#include <dirent.h>
#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/user.h>
#include <unistd.h>

/* --- expressions --- */

static const uint64_t memory_words[] = { 0x1122334455667788, 42, 0x7000 };
#define MEMORY_AT 0x7000

static int read_words(void *context, raddr at, void *buf, size_t len)
{
	(void)context;
	if (at < MEMORY_AT || at + len > MEMORY_AT + sizeof(memory_words))
		return -EFAULT;
	memcpy(buf, (const char *)memory_words + (at - MEMORY_AT), len);
	return 0;
}

static const struct reader words_reader = { .read = read_words };

#define OPS_MAX 8

struct expression_case {
	Dwarf_Op ops[OPS_MAX];
	int err;
	enum expression_kind kind;
	uint64_t value;
};

#define OP(a) { .atom = (a) }
#define OP1(a, n) { .atom = (a), .number = (uint64_t)(n) }
#define PUSH(n) OP1(DW_OP_constu, n)
#define GIVES(v) .kind = EXPRESSION_ADDRESS, .value = (uint64_t)(v)
#define BINARY(a, x, y, v) { .ops = { PUSH(x), PUSH(y), OP(a) }, GIVES(v) }

static const struct expression_case expression_cases[] = {
	{ .ops = { OP(DW_OP_lit0) }, GIVES(0) },
	{ .ops = { OP(DW_OP_lit31) }, GIVES(31) },
	{ .ops = { OP1(DW_OP_const1s, -1) }, GIVES(-1) },
	{ .ops = { OP1(DW_OP_addr, 0x100) }, GIVES(0x100 + 0x555000) },
	{ .ops = { OP(DW_OP_call_frame_cfa) }, GIVES(0xcfa0) },
	{ .ops = { OP1(DW_OP_breg0 + 7, 8) }, GIVES(7008) },
	{ .ops = { OP1(DW_OP_breg0 + 16, -1) }, GIVES(15999) },
	{ .ops = { { .atom = DW_OP_bregx, .number = 6, .number2 = 16 } }, GIVES(6016) },
	{ .ops = { OP(DW_OP_reg0 + 3) }, .kind = EXPRESSION_VALUE, .value = 3000 },
	{ .ops = { OP1(DW_OP_regx, 12) }, .kind = EXPRESSION_VALUE, .value = 12000 },
	{ .ops = { PUSH(5), OP(DW_OP_stack_value) }, .kind = EXPRESSION_VALUE, .value = 5 },
	{ .ops = { PUSH(MEMORY_AT), OP(DW_OP_deref) }, GIVES(0x1122334455667788) },
	{ .ops = { PUSH(MEMORY_AT), OP1(DW_OP_deref_size, 2) }, GIVES(0x7788) },
	{ .ops = { PUSH(MEMORY_AT + 16), OP(DW_OP_deref), OP(DW_OP_deref) }, GIVES(0x1122334455667788) },
	{ .ops = { PUSH(3), OP1(DW_OP_plus_uconst, 4) }, GIVES(7) },
	{ .ops = { PUSH(3), OP(DW_OP_neg) }, GIVES(-3) },
	{ .ops = { PUSH(-3), OP(DW_OP_abs) }, GIVES(3) },
	{ .ops = { PUSH(0), OP(DW_OP_not) }, GIVES(-1) },
	BINARY(DW_OP_and, 12, 10, 8), BINARY(DW_OP_or, 12, 10, 14), BINARY(DW_OP_xor, 12, 10, 6),
	BINARY(DW_OP_plus, 3, -4, -1), BINARY(DW_OP_minus, 3, 4, -1), BINARY(DW_OP_mul, 3, 4, 12),
	BINARY(DW_OP_div, -12, 4, -3), BINARY(DW_OP_mod, 14, 4, 2),
	BINARY(DW_OP_shl, 1, 4, 16), BINARY(DW_OP_shl, 1, 64, 0), BINARY(DW_OP_shr, -1, 60, 15),
	BINARY(DW_OP_shra, -16, 2, -4), BINARY(DW_OP_shra, -16, 99, -1),
	BINARY(DW_OP_eq, 1, 1, 1), BINARY(DW_OP_ne, 1, 1, 0), BINARY(DW_OP_lt, -1, 1, 1),
	BINARY(DW_OP_le, 1, 1, 1), BINARY(DW_OP_gt, -1, 1, 0), BINARY(DW_OP_ge, 1, 1, 1),
	{ .ops = { PUSH(1), PUSH(2), OP(DW_OP_swap) }, GIVES(1) },
	{ .ops = { PUSH(1), PUSH(2), OP(DW_OP_over) }, GIVES(1) },
	{ .ops = { PUSH(1), PUSH(2), OP(DW_OP_drop) }, GIVES(1) },
	{ .ops = { PUSH(3), OP(DW_OP_dup), OP(DW_OP_mul) }, GIVES(9) },
	{ .ops = { PUSH(1), PUSH(2), PUSH(3), OP(DW_OP_rot) }, GIVES(2) },
	{ .ops = { PUSH(1), PUSH(2), PUSH(3), OP1(DW_OP_pick, 2) }, GIVES(1) },
	{ .ops = { PUSH(1), OP(DW_OP_nop) }, GIVES(1) },
	/* Branches count bytes; these operations stand at the offsets given. */
	{ .ops = { PUSH(7), { .atom = DW_OP_skip, .number = 1, .offset = 2 },
		   { .atom = DW_OP_neg, .offset = 5 }, { .atom = DW_OP_nop, .offset = 6 } }, GIVES(7) },
	{ .ops = { PUSH(7), { .atom = DW_OP_lit1, .offset = 1 }, { .atom = DW_OP_bra, .number = 1, .offset = 2 },
		   { .atom = DW_OP_neg, .offset = 5 }, { .atom = DW_OP_nop, .offset = 6 } }, GIVES(7) },
	{ .ops = { PUSH(7), { .atom = DW_OP_lit0, .offset = 1 }, { .atom = DW_OP_bra, .number = 1, .offset = 2 },
		   { .atom = DW_OP_neg, .offset = 5 }, { .atom = DW_OP_nop, .offset = 6 } }, GIVES(-7) },
	{ .ops = { PUSH(7), { .atom = DW_OP_skip, .number = 40, .offset = 2 } }, GIVES(7) },
	/* Broken ones. */
	{ .ops = { { .atom = DW_OP_skip, .number = (uint64_t)-3, .offset = 0 } }, .err = -ELOOP },
	{ .ops = { PUSH(1), { .atom = DW_OP_skip, .number = (uint64_t)-4, .offset = 2 } }, .err = -EINVAL },
	{ .ops = { OP(DW_OP_nop) }, .err = -EINVAL },
	{ .ops = { OP(DW_OP_plus) }, .err = -EINVAL },
	{ .ops = { PUSH(1), OP(DW_OP_plus) }, .err = -EINVAL },
	{ .ops = { PUSH(1), PUSH(2), OP(DW_OP_rot) }, .err = -EINVAL },
	{ .ops = { OP(DW_OP_drop) }, .err = -EINVAL },
	{ .ops = { OP(DW_OP_deref) }, .err = -EINVAL },
	{ .ops = { PUSH(1), OP1(DW_OP_pick, 1) }, .err = -EINVAL },
	{ .ops = { PUSH(1), PUSH(0), OP(DW_OP_div) }, .err = -EINVAL },
	{ .ops = { PUSH((uint64_t)1 << 63), PUSH(-1), OP(DW_OP_div) }, .err = -EINVAL },
	{ .ops = { PUSH(1), PUSH(0), OP(DW_OP_mod) }, .err = -EINVAL },
	{ .ops = { PUSH(0x9000), OP(DW_OP_deref) }, .err = -EFAULT },
	{ .ops = { PUSH(MEMORY_AT), OP1(DW_OP_deref_size, 9) }, .err = -EINVAL },
	{ .ops = { PUSH(MEMORY_AT), OP1(DW_OP_deref_size, 0) }, .err = -EINVAL },
	{ .ops = { OP1(DW_OP_breg0 + 17, 0) }, .err = -EINVAL },
	{ .ops = { OP1(DW_OP_regx, 200) }, .err = -EINVAL },
	{ .ops = { PUSH(1), OP(DW_OP_reg0) }, .err = -EINVAL },
	{ .ops = { PUSH(1), OP(DW_OP_push_object_address) }, .err = -ENOTSUP },
	{ .ops = { OP(DW_OP_form_tls_address) }, .err = -ENOTSUP },
	{ .ops = { OP(0xff) }, .err = -ENOTSUP },
};

static size_t op_count(const struct expression_case *c)
{
	size_t count = OPS_MAX;

	while (count > 0 && c->ops[count - 1].atom == 0)
		count--;
	return count;
}

static void init_context(struct expression_context *context, struct arch_regs *regs,
			 struct stack_copy *memory)
{
	for (unsigned int i = 0; i < ARCH_DWARF_REGS; i++)
		regs->reg[i] = i * 1000;
	ck_assert_int_eq(stack_copy_init(memory), 0);
	stack_copy_begin(memory, &words_reader, MEMORY_AT);
	*context = (struct expression_context){
		.regs = regs, .memory = memory, .cfa = 0xcfa0, .bias = 0x555000,
	};
}

START_TEST(an_expression_has_the_value_that_dwarf_gives_it)
{
	const struct expression_case *c = &expression_cases[_i];
	struct expression_context context;
	enum expression_kind kind = 99;
	struct stack_copy memory;
	struct arch_regs regs;
	uint64_t value = 98;
	int err;

	init_context(&context, &regs, &memory);
	err = expression_evaluate(c->ops, op_count(c), &context, &kind, &value);
	ck_assert_msg(err == c->err, "case %d (last operation 0x%x): %d, not %d", _i,
		      c->ops[op_count(c) - 1].atom, err, c->err);
	if (c->err == 0) {
		ck_assert_msg(value == c->value, "case %d (last operation 0x%x): 0x%lx, not 0x%lx", _i,
			      c->ops[op_count(c) - 1].atom, (unsigned long)value, (unsigned long)c->value);
		ck_assert_int_eq(kind, c->kind);
	} else {
		ck_assert_uint_eq(value, 98);
	}
	stack_copy_fini(&memory);
}
END_TEST

START_TEST(an_expression_that_pushes_without_end_is_stopped)
{
	static Dwarf_Op ops[2 * EXPRESSION_DEPTH];
	struct expression_context context;
	enum expression_kind kind;
	struct stack_copy memory;
	struct arch_regs regs;
	uint64_t value;

	for (unsigned int i = 0; i < 2 * EXPRESSION_DEPTH; i++)
		ops[i] = (Dwarf_Op){ .atom = DW_OP_lit1, .offset = i };
	init_context(&context, &regs, &memory);
	ck_assert_int_eq(expression_evaluate(ops, EXPRESSION_DEPTH, &context, &kind, &value), 0);
	ck_assert_int_eq(expression_evaluate(ops, EXPRESSION_DEPTH + 1, &context, &kind, &value), -EINVAL);
	stack_copy_fini(&memory);
}
END_TEST

/* --- a stop inside of a procedure linkage table --- */

static raddr find_plt(const struct subject *subject, uint64_t *ret_size)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const struct module_range *range = module_map_find(&subject->map, (uintptr_t)find_plt);
	Elf_Scn *section = NULL;
	raddr found = 0;
	size_t names;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	ck_assert_ptr_nonnull(elf);
	ck_assert_ptr_nonnull(range);
	elf_getshdrstrndx(elf, &names);
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;

		gelf_getshdr(section, &header);
		if (strcmp(elf_strptr(elf, names, header.sh_name), ".plt") != 0)
			continue;
		found = header.sh_addr + subject->map.modules.items[range->module].bias;
		*ret_size = header.sh_size;
	}
	elf_end(elf);
	close(fd);
	return found;
}

static void push_word(struct recorded *recorded, uint64_t word)
{
	uint64_t *sp = &recorded->regs.reg[ARCH_DWARF_SP];

	*sp -= 8;
	memcpy(recorded->bytes + (*sp - recorded->start), &word, 8);
}

static __attribute__((noinline)) void record_now(struct recorded *recorded)
{
	ucontext_t context;

	getcontext(&context);
	record_context(recorded, &context);
}

/* Its entries have 16 bytes: a jump, from byte 6 on a push, from byte 11 on a jump.  One row with an expression
 * describes them all. */
START_TEST(the_linkage_table_is_unwound_by_its_expression)
{
	static struct recorded recorded;
	struct subject subject;
	unsigned int compared = 0;
	struct pcs from;
	uint64_t size = 0;
	raddr plt;

	subject_init(&subject);
	plt = find_plt(&subject, &size);
	ck_assert_uint_gt(size, 32);
	record_now(&recorded);
	from = unwind_recorded(&subject, &recorded, PCS_MAX);
	for (raddr entry = plt + 16; entry < plt + size && compared < 120; entry += 16) {
		static const unsigned int offsets[] = { 0, 6, 11 };

		for (unsigned int i = 0; i < 3; i++) {
			struct recorded at_stub = recorded;
			struct pcs pcs;

			push_word(&at_stub, from.at[0]);
			if (offsets[i] == 11)
				push_word(&at_stub, 77);
			at_stub.regs.reg[ARCH_DWARF_PC] = entry + offsets[i];
			pcs = unwind_recorded(&subject, &at_stub, PCS_MAX);
			ck_assert_uint_eq(pcs.count, from.count + 1);
			ck_assert_mem_eq(pcs.at + 1, from.at, from.count * sizeof(*from.at));
			compared++;
		}
	}
	ck_assert_uint_gt(compared, 20);
	ck_assert_uint_ge(unwinder_counters(subject.unwinder).expression_steps, compared);
	subject_fini(&subject);
}
END_TEST

/* --- code without tables --- */

#define CODE_AT 0x400000
#define STACK_AT 0x700000

struct little_process {
	struct module_map map;
	struct stack_copy memory;
	uint64_t stack[64];
	uint8_t code[4096];
};

static int read_little(void *context, raddr at, void *buf, size_t len)
{
	struct little_process *little = context;

	if (at >= STACK_AT && at + len <= STACK_AT + sizeof(little->stack))
		memcpy(buf, (char *)little->stack + (at - STACK_AT), len);
	else if (at >= CODE_AT && at + len <= CODE_AT + sizeof(little->code))
		memcpy(buf, little->code + (at - CODE_AT), len);
	else
		return -EFAULT;
	return 0;
}

/* A module with a call that returns to CODE_AT + 16, and one to CODE_AT + 34 by way of a register. */
static void little_init(struct little_process *little, struct reader *reader)
{
	const struct module module = { .path = (char *)"little" };

	memset(little, 0, sizeof(*little));
	*reader = (struct reader){ .read = read_little, .context = little };
	module_map_init(&little->map);
	ck_assert_int_eq(module_map_add(&little->map, &module), 0);
	ck_assert_int_eq(module_map_add_range(&little->map, CODE_AT, CODE_AT + 4096, 0), 0);
	ck_assert_int_eq(stack_copy_init(&little->memory), 0);
	memset(little->code, 0x90, sizeof(little->code));
	little->code[11] = 0xe8;
	memset(little->code + 12, 0, sizeof(int32_t));
	little->code[32] = 0xff;
	little->code[33] = 0xd0;
	stack_copy_begin(&little->memory, reader, STACK_AT);
}

static void little_fini(struct little_process *little)
{
	stack_copy_fini(&little->memory);
	module_map_fini(&little->map);
}

static struct arch_regs regs_at(raddr sp, raddr bp)
{
	struct arch_regs regs = { .reg = { [ARCH_DWARF_SP] = sp, [ARCH_DWARF_BP] = bp,
					   [ARCH_DWARF_PC] = CODE_AT + 50 } };

	return regs;
}

/* Where breakpoints at entries are; the frame pointer is still its caller's, and leads past that one. */
START_TEST(behind_its_push_a_function_without_tables_was_called_by_its_caller)
{
	static const uint8_t function[] = { 0x55, 0x48, 0x89, 0xe5, 0xc9, 0xc3 };       /* push, mov, leave, ret */
	static struct unwind_frame frames[UNWIND_CHAIN_MAX];
	struct stack_table *stacks = stack_table_new(1000);
	struct arch_regs regs = regs_at(STACK_AT, STACK_AT + 64);
	struct little_process little;
	struct unwinder *unwinder;
	struct reader reader;
	bool whole;

	little_init(&little, &reader);
	unwinder = unwinder_new(&little.map, stacks);
	ck_assert_ptr_nonnull(unwinder);
	memcpy(little.code + 49, function, sizeof(function));
	little.stack[0] = STACK_AT + 64;
	little.stack[1] = CODE_AT + 16;
	little.stack[9] = CODE_AT + 34;
	ck_assert_uint_ge(unwinder_chain(unwinder, &regs, &reader, UINT64_MAX, frames, &whole), 2);
	ck_assert_uint_eq(frames[1].pc, CODE_AT + 16);
	ck_assert_uint_eq(frames[1].sp, STACK_AT + 16);
	unwinder_free(unwinder);
	stack_table_free(stacks);
	little_fini(&little);
}
END_TEST

START_TEST(a_frame_pointer_leads_on_only_to_what_was_called)
{
	struct little_process little;
	struct frame_pointer by = { .map = &little.map, .memory = &little.memory };
	struct reader reader;
	struct arch_regs regs = regs_at(STACK_AT, STACK_AT + 64);

	little_init(&little, &reader);
	little.stack[8] = STACK_AT + 160;
	little.stack[9] = CODE_AT + 16;
	ck_assert_int_eq(frame_pointer_step(&by, &regs), FRAME_POINTER_STEP);
	ck_assert_uint_eq(regs.reg[ARCH_DWARF_PC], CODE_AT + 16);
	ck_assert_uint_eq(regs.reg[ARCH_DWARF_SP], STACK_AT + 80);
	ck_assert_uint_eq(regs.reg[ARCH_DWARF_BP], STACK_AT + 160);
	/* Behind a call to what is not the function of pc, or not its beginning, and with no frame pointer behind. */
	for (int32_t k = 0; k < 2; k++) {
		const int32_t distance = k ? 40 : -5000;

		memcpy(little.code + 12, &distance, sizeof(distance));
		little.stack[8] = 1;
		regs = regs_at(STACK_AT, STACK_AT + 64);
		stack_copy_begin(&little.memory, &reader, STACK_AT);
		ck_assert_int_eq(frame_pointer_step(&by, &regs), FRAME_POINTER_UNKNOWN);
	}
	memset(little.code + 12, 0, sizeof(int32_t));
	/* Behind no call; in no module; odd; below sp; out of reach; not there. */
	little.stack[9] = CODE_AT + 17;
	regs = regs_at(STACK_AT, STACK_AT + 64);
	stack_copy_begin(&little.memory, &reader, STACK_AT);
	ck_assert_int_eq(frame_pointer_step(&by, &regs), FRAME_POINTER_UNKNOWN);
	ck_assert_uint_eq(regs.reg[ARCH_DWARF_PC], CODE_AT + 50);
	little.stack[9] = 0x900010;
	stack_copy_begin(&little.memory, &reader, STACK_AT);
	ck_assert_int_eq(frame_pointer_step(&by, &regs), FRAME_POINTER_UNKNOWN);
	little.stack[9] = CODE_AT + 34;
	stack_copy_begin(&little.memory, &reader, STACK_AT);
	regs = regs_at(STACK_AT, STACK_AT + 63);
	ck_assert_int_eq(frame_pointer_step(&by, &regs), FRAME_POINTER_UNKNOWN);
	regs = regs_at(STACK_AT + 72, STACK_AT + 64);
	ck_assert_int_eq(frame_pointer_step(&by, &regs), FRAME_POINTER_UNKNOWN);
	regs = regs_at(STACK_AT, STACK_AT + 2 * FRAME_POINTER_REACH);
	ck_assert_int_eq(frame_pointer_step(&by, &regs), FRAME_POINTER_UNKNOWN);
	regs = regs_at(STACK_AT, STACK_AT + 8192);
	ck_assert_int_eq(frame_pointer_step(&by, &regs), FRAME_POINTER_UNKNOWN);
	regs = regs_at(STACK_AT, 0);
	ck_assert_int_eq(frame_pointer_step(&by, &regs), FRAME_POINTER_END);
	little_fini(&little);
}
END_TEST

/* As a JIT's code calls an interpreter's, which is in an object and has no tables, either. */
START_TEST(code_in_no_object_is_a_caller_where_its_frame_pointer_leads_on)
{
	struct little_process little;
	struct frame_pointer by = { .map = &little.map, .memory = &little.memory };
	struct reader reader;
	struct arch_regs regs = regs_at(STACK_AT, STACK_AT + 64);

	little_init(&little, &reader);
	module_map_remove(&little.map, 0);
	little.stack[8] = STACK_AT + 160;
	little.stack[9] = CODE_AT + 16;
	ck_assert_int_eq(frame_pointer_step(&by, &regs), FRAME_POINTER_STEP);
	ck_assert_uint_eq(regs.reg[ARCH_DWARF_PC], CODE_AT + 16);
	ck_assert_uint_eq(regs.reg[ARCH_DWARF_BP], STACK_AT + 160);
	/* Back to itself; behind no call. */
	little.stack[8] = STACK_AT + 64;
	regs = regs_at(STACK_AT, STACK_AT + 64);
	stack_copy_begin(&little.memory, &reader, STACK_AT);
	ck_assert_int_eq(frame_pointer_step(&by, &regs), FRAME_POINTER_UNKNOWN);
	little.stack[8] = STACK_AT + 160;
	little.stack[9] = CODE_AT + 17;
	stack_copy_begin(&little.memory, &reader, STACK_AT);
	ck_assert_int_eq(frame_pointer_step(&by, &regs), FRAME_POINTER_UNKNOWN);
	little_fini(&little);
}
END_TEST

/* Stopped at the entry of a function without tables, the frame pointer is the caller's, who would be missed. */
START_TEST(at_an_entry_the_return_address_is_at_the_top)
{
	struct little_process little;
	struct frame_pointer by = { .map = &little.map, .memory = &little.memory, .innermost = true };
	struct reader reader;
	struct arch_regs regs = regs_at(STACK_AT, STACK_AT + 64);

	little_init(&little, &reader);
	little.stack[0] = CODE_AT + 34;
	little.stack[8] = STACK_AT + 160;
	little.stack[9] = CODE_AT + 16;
	ck_assert_int_eq(frame_pointer_step(&by, &regs), FRAME_POINTER_STEP);
	ck_assert_uint_eq(regs.reg[ARCH_DWARF_PC], CODE_AT + 34);
	ck_assert_uint_eq(regs.reg[ARCH_DWARF_SP], STACK_AT + 8);
	ck_assert_uint_eq(regs.reg[ARCH_DWARF_BP], STACK_AT + 64);
	little_fini(&little);
}
END_TEST

static const uint8_t *first_half_in_place(void *context, raddr at, size_t *ret_len)
{
	const uint8_t *stack = context;

	*ret_len = 256;
	return at == STACK_AT ? stack : NULL;
}

static int read_second_half(void *context, raddr at, void *buf, size_t len)
{
	const uint8_t *stack = context;

	if (at < STACK_AT + 256 || at + len > STACK_AT + 512)
		return -EFAULT;
	memcpy(buf, stack + (at - STACK_AT), len);
	return 0;
}

START_TEST(what_the_reader_has_in_place_is_not_copied)
{
	static uint8_t stack[512];
	const struct reader reader = { .read = read_second_half, .context = stack, .in_place = first_half_in_place };
	struct stack_copy copy;

	stack[300] = 5;
	ck_assert_int_eq(stack_copy_init(&copy), 0);
	stack_copy_begin(&copy, &reader, STACK_AT);
	ck_assert_ptr_eq(stack_copy_at(&copy, STACK_AT + 8, 8), stack + 8);
	ck_assert_ptr_eq(stack_copy_at(&copy, STACK_AT + 248, 8), stack + 248);
	/* What is not in it is read. */
	ck_assert_ptr_null(stack_copy_at(&copy, STACK_AT + 252, 8));
	ck_assert_uint_eq(stack_copy_at(&copy, STACK_AT + 300, 8)[0], 5);
	ck_assert_ptr_ne(stack_copy_at(&copy, STACK_AT + 300, 8), stack + 300);
	/* And nothing of it is left to another stack. */
	stack_copy_begin(&copy, &reader, STACK_AT + 256);
	ck_assert_ptr_null(stack_copy_at(&copy, STACK_AT + 8, 8));
	stack_copy_fini(&copy);
}
END_TEST

START_TEST(a_call_is_recognised_by_its_end)
{
	static const struct {
		uint8_t code[ARCH_CALL_MAX];
		bool is_call;
	} cases[] = {
		{ { 0x90, 0x90, 0xe8, 1, 2, 3, 4 }, true },
		{ { 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0 }, true },                /* call *%rax */
		{ { 0x90, 0x90, 0x90, 0x90, 0x41, 0xff, 0xd4 }, true },                /* call *%r12 */
		{ { 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x10 }, true },                /* call *(%rax) */
		{ { 0x90, 0x90, 0x90, 0x90, 0xff, 0x50, 0x08 }, true },                /* call *8(%rax) */
		{ { 0x90, 0x90, 0x90, 0xff, 0x54, 0x24, 0x08 }, true },                /* call *8(%rsp) */
		{ { 0x90, 0xff, 0x15, 1, 2, 3, 4 }, true },                            /* call *x(%rip) */
		{ { 0x90, 0xff, 0x90, 1, 2, 3, 4 }, true },                            /* call *x(%rax) */
		{ { 0xff, 0x14, 0xc5, 1, 2, 3, 4 }, true },                            /* call *x(,%rax,8) */
		{ { 0xff, 0x94, 0x24, 1, 2, 3, 4 }, true },                            /* call *x(%rsp) */
		{ { 0x90, 0x90, 0x90, 0x90, 0xff, 0x14, 0xc3 }, true },                /* call *(%rbx,%rax,8) */
		{ { 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xe0 }, false },               /* jmp *%rax */
		{ { 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xc0 }, false },               /* inc %eax */
		{ { 0x90, 0x90, 0xe9, 1, 2, 3, 4 }, false },
		{ { 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 }, false },
	};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		ck_assert_msg(arch_ends_in_call(cases[i].code, ARCH_CALL_MAX) == cases[i].is_call, "case %u", i);
}
END_TEST

/* In DWARF's order, which is not the kernel's. */
START_TEST(registers_are_numbered_as_dwarf_numbers_them)
{
	const struct user_regs_struct user = {
		.rax = 1000, .rdx = 1001, .rcx = 1002, .rbx = 1003, .rsi = 1004, .rdi = 1005, .rbp = 1006,
		.rsp = 1007, .r8 = 1008, .r9 = 1009, .r10 = 1010, .r11 = 1011, .r12 = 1012, .r13 = 1013,
		.r14 = 1014, .r15 = 1015, .rip = 1016,
	};
	struct arch_regs regs;

	arch_regs_from_user(&user, &regs);
	for (unsigned int i = 0; i < ARCH_DWARF_REGS; i++)
		ck_assert_uint_eq(regs.reg[i], 1000 + i);
}
END_TEST

/* --- tables of real files --- */

static void check_file(const char *path, unsigned int *files, unsigned int *functions)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct cfi_image image;

	if (fd >= 0 && cfi_image_make(fd, &image) == 0) {
		ck_assert_msg(image.refused == 0, "%s: %u entries refused", path, image.refused);
		(*files)++;
		*functions += image.functions;
		cfi_image_fini(&image);
	}
	if (fd >= 0)
		close(fd);
}

/* The limits are far from what compilers write. */
START_TEST(no_table_of_an_installed_library_is_refused)
{
	static const char folder[] = "/usr/lib/x86_64-linux-gnu";
	unsigned int files = 0, functions = 0;
	DIR *dir = opendir(folder);
	struct dirent *entry;
	char path[512];

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)) && files < 400) {
		if (!strstr(entry->d_name, ".so"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		check_file(path, &files, &functions);
	}
	closedir(dir);
	check_file("/proc/self/exe", &files, &functions);
	printf("tables of %u files with %u functions passed\n", files, functions);
	ck_assert_uint_ge(files, 5);
	ck_assert_uint_ge(functions, 5000);
}
END_TEST

static Suite *parts_suite(void)
{
	Suite *suite = suite_create("unwind parts");
	TCase *tcase = tcase_create("parts");

	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, an_expression_has_the_value_that_dwarf_gives_it, 0,
			    (int)(sizeof(expression_cases) / sizeof(*expression_cases)));
	tcase_add_test(tcase, an_expression_that_pushes_without_end_is_stopped);
	tcase_add_test(tcase, the_linkage_table_is_unwound_by_its_expression);
	tcase_add_test(tcase, behind_its_push_a_function_without_tables_was_called_by_its_caller);
	tcase_add_test(tcase, a_frame_pointer_leads_on_only_to_what_was_called);
	tcase_add_test(tcase, code_in_no_object_is_a_caller_where_its_frame_pointer_leads_on);
	tcase_add_test(tcase, at_an_entry_the_return_address_is_at_the_top);
	tcase_add_test(tcase, what_the_reader_has_in_place_is_not_copied);
	tcase_add_test(tcase, a_call_is_recognised_by_its_end);
	tcase_add_test(tcase, registers_are_numbered_as_dwarf_numbers_them);
	tcase_add_test(tcase, no_table_of_an_installed_library_is_refused);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(parts_suite());
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
