/* Displaced instructions, really executed: a traced child steps over the original and over its copy
 * in a slot from the same registers and memory, and must come out the same. */
#include "arch/arch.h"
#include "elf_functions.h"
#include "random.h"
#include "require.h"
#include "share.h"
#include "stepped_child.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBDIR "/usr/lib/x86_64-linux-gnu/"

#define INSN_MAX 15
#define STATES 4               /* register states each instruction is run from */
#define STEPS_MAX 4            /* steps in a slot: the instruction and at most one jump, and repeats */

static void run_original(const struct state *start, struct state *end)
{
	put_state(start, FROM);
	step(end);
	get_state(end);
}

struct form {
	uint8_t bytes[INSN_MAX];
	uint32_t length;
};

/* Steps through the slot until it is left; each pc on the way must be one that can be taken back. */
static void run_displaced(const struct form *form, const struct state *start, struct state *end,
			  const struct state *original, uint64_t slot, uint32_t slot_length)
{
	uint64_t pc = slot, resume;

	put_state(start, slot);
	for (int steps = 0; steps < STEPS_MAX; steps++) {
		pc = step(end);
		if (end->signal != SIGTRAP || pc < slot || pc >= slot + slot_length)
			break;
		resume = arch_slot_resume(form->bytes, form->length, FROM, slot, pc);
		ck_assert_uint_eq(resume, original->regs.rip);
	}
	get_state(end);
	if (end->signal != SIGTRAP && original->regs.rip == FROM) {
		resume = arch_slot_resume(form->bytes, form->length, FROM, slot, pc);
		ck_assert_uint_eq(resume, FROM);
		end->regs.rip = FROM;
	}
}

struct tally {
	size_t forms, executed, faulted, refused_near, refused_far;
};

static void print_form(const char *what, const struct form *form)
{
	printf("  %s:", what);
	for (uint32_t i = 0; i < form->length; i++)
		printf(" %02x", form->bytes[i]);
	printf("\n");
}

static void compare_once(const struct form *form, uint64_t slot, uint32_t slot_length, struct tally *tally)
{
	static struct state start, original, displaced;

	random_state_fill(&start);
	run_original(&start, &original);
	run_displaced(form, &start, &displaced, &original, slot, slot_length);
	if (memcmp(&original, &displaced, sizeof(original)) != 0)
		print_form("different", form);
	ck_assert_int_eq(original.signal, displaced.signal);
	ck_assert_uint_eq(original.fault_address, displaced.fault_address);
	ck_assert_uint_eq(original.regs.rip, displaced.regs.rip);
	ck_assert_mem_eq(&original.regs, &displaced.regs, sizeof(original.regs));
	ck_assert_mem_eq(&original.fpregs, &displaced.fpregs, sizeof(original.fpregs));
	ck_assert_mem_eq(original.memory, displaced.memory, DATA_SIZE);
	tally->executed++;
	if (original.signal != SIGTRAP)
		tally->faulted++;
}

/* Whether the instruction could be moved to the slot. */
static int compare_in_slot(const struct form *form, uint64_t slot, struct tally *tally, const char **reason)
{
	uint8_t code[ARCH_SLOT_SIZE];
	uint32_t length, jump;
	int r = arch_displace(form->bytes, form->length, FROM, slot, code, &length, &jump, reason);

	if (r < 0) {
		ck_assert_int_eq(r, -ENOTSUP);
		ck_assert_uint_eq(arch_slot_resume(form->bytes, form->length, FROM, slot, slot), ARCH_NOWHERE);
		return 0;
	}
	ck_assert_uint_le(length, ARCH_SLOT_SIZE);
	ck_assert_uint_le(jump, length);
	ck_assert_uint_eq(arch_slot_resume(form->bytes, form->length, FROM, slot, slot), FROM);
	ck_assert_uint_eq(arch_slot_resume(form->bytes, form->length, FROM, slot, slot + length), ARCH_NOWHERE);
	memset((void *)(slot & ~(PAGE - 1)), 0xcc, PAGE);
	memcpy((void *)slot, code, length);
	memset((void *)FROM_PAGE, 0xcc, PAGE);
	memcpy((void *)FROM, form->bytes, form->length);
	for (int i = 0; i < STATES; i++)
		compare_once(form, slot, length, tally);
	return 1;
}

static void compare_form(const struct form *form, struct tally *tally)
{
	const char *reason = NULL;

	tally->forms++;
	if (!compare_in_slot(form, NEAR_SLOT, tally, &reason)) {
		ck_assert_msg(strstr(reason, "call") || strstr(reason, "system"), "%s", reason);
		tally->refused_near++;
	}
	if (!compare_in_slot(form, FAR_SLOT, tally, &reason)) {
		ck_assert_msg(strstr(reason, "call") || strstr(reason, "system") || strstr(reason, "reach"),
			      "%s", reason);
		tally->refused_far++;
	}
}

static void print_tally(const char *what, const struct tally *tally)
{
	printf("%s: %zu instructions, %zu runs compared (%zu of them faults), refused near %zu, far %zu\n", what,
	       tally->forms, tally->executed, tally->faulted, tally->refused_near, tally->refused_far);
}

/* --- first instructions of real functions --- */

/* mod 00, rm 101: rip-relative.  In the test its operand lies in the data pages. */
static void point_to_data(struct form *form, int32_t old_disp, uint32_t at)
{
	int32_t disp = (int32_t)(DATA_PAGE + PAGE + (uint64_t)(old_disp & 0xff0) - FROM - form->length);

	memcpy(form->bytes + at, &disp, sizeof(disp));
}

/* Finds the displacement by asking: the slot's copy differs in it alone. */
static void retarget(struct form *form)
{
	uint8_t code[ARCH_SLOT_SIZE];
	uint32_t length, jump;
	const char *reason;
	int32_t disp;

	if (arch_displace(form->bytes, form->length, FROM, FROM + 0x01010101, code, &length, &jump, &reason) < 0)
		return;
	for (uint32_t i = 1; i + 4 <= form->length && jump == form->length; i++) {
		int32_t copied;

		memcpy(&disp, form->bytes + i, sizeof(disp));
		memcpy(&copied, code + i, sizeof(copied));
		if ((uint32_t)disp - (uint32_t)copied == 0x01010101) {
			point_to_data(form, disp, i);
			return;
		}
	}
}

struct forms {
	VEC_OF(struct form) items;
};

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct form));
}

static void add_first_instructions(struct forms *forms, const char *path)
{
	struct elf_functions functions;

	elf_functions_load(&functions, path);
	for (size_t i = 0; i < functions.items.count; i++) {
		const struct elf_function *function = &functions.items.items[i];
		struct arch_function decoded;
		const char *reason;
		struct form *form;

		if (arch_decode_function(function->code, function->size, function->address, &decoded, &reason) < 0)
			continue;
		form = vec_push(&forms->items);
		ck_assert_ptr_nonnull(form);
		form->length = decoded.first_length;
		memcpy(form->bytes, function->code, form->length);
		arch_function_fini(&decoded);
		retarget(form);
	}
	elf_functions_fini(&functions);
}

START_TEST(copies_of_real_first_instructions_do_the_same)
{
	static const char *const paths[] = {
		LIBDIR "libc.so.6", LIBDIR "libjemalloc.so.2", LIBDIR "libtcmalloc_minimal.so.4",
		LIBDIR "libmimalloc.so.2.0", "/usr/lib/x86_64-linux-musl/libc.so",
		LIBDIR "libstdc++.so.6", "/usr/bin/python3",
	};
	struct tally tally = {0};
	struct forms forms = {0};

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		add_first_instructions(&forms, paths[i]);
	qsort(forms.items.items, forms.items.count, sizeof(*forms.items.items), by_bytes);
	start_child();
	for (size_t i = 0; i < forms.items.count; i++)
		if (i == 0 || by_bytes(&forms.items.items[i], &forms.items.items[i - 1]) != 0)
			compare_form(&forms.items.items[i], &tally);
	end_child();
	print_tally("first instructions", &tally);
	ck_assert_uint_gt(tally.executed, 1000);
	ck_assert_uint_lt(tally.faulted * 2, tally.executed);
	vec_fini(&forms.items);
}
END_TEST

/* --- forms that are rare in libraries --- */

#define BYTES(...) {{__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__})}
/* A distance from FROM to the data pages, little endian: 0x00200000 and a bit. */
#define TO_DATA 0x00, 0x18, 0x20, 0x00

static const struct form rare_forms[] = {
	BYTES(0xf3, 0x0f, 0x1e, 0xfa),                          /* endbr64 */
	BYTES(0x55),                                            /* push %rbp */
	BYTES(0x41, 0x57),                                      /* push %r15 */
	BYTES(0x5f),                                            /* pop %rdi */
	BYTES(0x54),                                            /* push %rsp */
	BYTES(0x5c),                                            /* pop %rsp */
	BYTES(0x9c),                                            /* pushf */
	BYTES(0x68, 1, 2, 3, 4),                                /* push $imm */
	BYTES(0x8f, 0x05, TO_DATA),                             /* pop d(%rip) */
	BYTES(0xff, 0x35, TO_DATA),                             /* push d(%rip) */
	BYTES(0x48, 0x85, 0xff),                                /* test %rdi, %rdi */
	BYTES(0x48, 0x8d, 0x05, TO_DATA),                       /* lea d(%rip), %rax */
	BYTES(0x8d, 0x05, TO_DATA),                             /* lea d(%rip), %eax */
	BYTES(0x80, 0x3d, TO_DATA, 0x00),                       /* cmpb $0, d(%rip) */
	BYTES(0x66, 0x81, 0x3d, TO_DATA, 1, 2),                 /* cmpw $i, d(%rip) */
	BYTES(0x81, 0x05, TO_DATA, 1, 2, 3, 4),                 /* addl $i, d(%rip) */
	BYTES(0x48, 0xc7, 0x05, TO_DATA, 1, 2, 3, 4),           /* movq $i, d(%rip) */
	BYTES(0xf0, 0x48, 0x0f, 0xc1, 0x05, TO_DATA),           /* lock xadd %rax, d(%rip) */
	BYTES(0xf0, 0x0f, 0xb1, 0x0d, TO_DATA),                 /* lock cmpxchg %ecx, d(%rip) */
	BYTES(0x0f, 0x28, 0x05, TO_DATA),                       /* movaps d(%rip), %xmm0 */
	BYTES(0x0f, 0xc6, 0x05, TO_DATA, 0x1b),                 /* shufps $i, d(%rip), %xmm0 */
	BYTES(0xc5, 0xf9, 0x70, 0x05, TO_DATA, 0x1b),           /* vpshufd $i, d(%rip), %xmm0 */
	BYTES(0x48, 0x0f, 0xba, 0x25, TO_DATA, 0x05),           /* btq $5, d(%rip) */
	BYTES(0x69, 0x05, TO_DATA, 1, 2, 3, 4),                 /* imul $i, d(%rip), %eax */
	BYTES(0xf7, 0x25, TO_DATA),                             /* mull d(%rip) */
	BYTES(0xdd, 0x05, TO_DATA),                             /* fldl d(%rip) */
	BYTES(0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0),     /* mov %fs:0x28, %rax */
	BYTES(0x65, 0x48, 0x89, 0x04, 0x25, 0x28, 0, 0, 0),     /* mov %rax, %gs:0x28 */
	BYTES(0x48, 0xa1, 0x08, 0x10, 0x20, 0x10, 0, 0, 0, 0),  /* movabs 0x10201008, %rax */
	BYTES(0xc9),                                            /* leave */
	BYTES(0xc8, 0x20, 0x00, 0x00),                          /* enter */
	BYTES(0xa4), BYTES(0xab), BYTES(0xd7), BYTES(0x98),     /* movsb, stosl, xlat, cwtl */
	BYTES(0xf7, 0xf1),                                      /* div %ecx: may raise SIGFPE */
	BYTES(0xc3), BYTES(0xf3, 0xc3), BYTES(0xf2, 0xc3),      /* ret */
	BYTES(0xc2, 0x10, 0x00),                                /* ret $16 */
	BYTES(0xeb, 0x10), BYTES(0xeb, 0x80), BYTES(0xeb, 0xfe),
	BYTES(0xe9, 1, 2, 3, 4), BYTES(0xe9, 1, 2, 3, 0x84), BYTES(0xf2, 0xe9, 1, 2, 3, 4),
	BYTES(0xff, 0xe0), BYTES(0x3e, 0xff, 0xe1),             /* jmp *%rax, notrack jmp *%rcx */
	BYTES(0xff, 0x25, TO_DATA), BYTES(0xf2, 0xff, 0x25, TO_DATA), BYTES(0xff, 0x60, 0x10),
	BYTES(0xe0, 0x10), BYTES(0xe1, 0x90), BYTES(0xe2, 0x20), BYTES(0xe3, 0x30), BYTES(0xe3, 0xfe),
	BYTES(0x67, 0xe2, 0x20), BYTES(0x67, 0xe3, 0x30), BYTES(0x48, 0xe2, 0x11),
};

START_TEST(copies_of_rare_instructions_do_the_same)
{
	struct tally tally = {0};

	start_child();
	for (size_t i = 0; i < sizeof(rare_forms) / sizeof(*rare_forms); i++)
		compare_form(&rare_forms[i], &tally);
	end_child();
	print_tally("rare instructions", &tally);
	ck_assert_uint_eq(tally.refused_near, 0);
	ck_assert_uint_lt(tally.faulted * 2, tally.executed);
}
END_TEST

/* Taken and not taken, with the target in reach of the slot and out of it. */
START_TEST(conditional_branches_go_where_they_did)
{
	static const int32_t distances[] = {0x1234, -0x1234, 0x7ffffff0, -0x7ffffff0};
	struct tally tally = {0};

	start_child();
	for (uint8_t condition = 0; condition < 16; condition++) {
		struct form form = {{0x70 | condition, 0x22}, 2};

		compare_form(&form, &tally);
		form.bytes[1] = 0x90;
		compare_form(&form, &tally);
		form = (struct form){{0x3e, 0x70 | condition, 0x33}, 3};
		compare_form(&form, &tally);
		for (size_t i = 0; i < sizeof(distances) / sizeof(*distances); i++) {
			form = (struct form){{0x0f, 0x80 | condition}, 6};
			memcpy(form.bytes + 2, &distances[i], sizeof(distances[i]));
			compare_form(&form, &tally);
		}
	}
	end_child();
	print_tally("conditional branches", &tally);
	ck_assert_uint_eq(tally.refused_near + tally.refused_far, 0);
	ck_assert_uint_eq(tally.faulted, 0);
}
END_TEST

START_TEST(what_cannot_be_moved_is_refused)
{
	static const struct form forms[] = {
		BYTES(0xe8, 1, 2, 3, 4), BYTES(0xff, 0xd0), BYTES(0xff, 0x15, TO_DATA),
		BYTES(0x0f, 0x05), BYTES(0x0f, 0x34), BYTES(0xcd, 0x80), BYTES(0xcc), BYTES(0xf1), BYTES(0xf4),
		BYTES(0x0f, 0x0b), BYTES(0xcb), BYTES(0xca, 8, 0), BYTES(0xcf), BYTES(0x48, 0xcf),
		BYTES(0xff, 0x2d, TO_DATA), BYTES(0xff, 0x1d, TO_DATA),
		BYTES(0x66, 0xe9, 1, 2, 3, 4), BYTES(0x66, 0x0f, 0x84, 1, 2, 3, 4), BYTES(0x66, 0xc3),
		BYTES(0xc7, 0xf8, 1, 2, 3, 4), BYTES(0x67, 0x48, 0x8b, 0x05, TO_DATA), BYTES(0x06),
		BYTES(0xe4, 0x10), BYTES(0xfa), BYTES(0x0f, 0x30), BYTES(0x48, 0x8b), BYTES(0xe8),
		BYTES(0x2e, 0x2e, 0x2e, 0x67, 0xe2, 0x10),
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		uint8_t code[ARCH_SLOT_SIZE];
		uint32_t length, jump;
		const char *reason = NULL;
		int r = arch_displace(forms[i].bytes, forms[i].length, FROM, NEAR_SLOT, code, &length, &jump,
				      &reason);

		if (r == 0)
			print_form("not refused", &forms[i]);
		ck_assert_int_eq(r, -ENOTSUP);
		ck_assert_ptr_nonnull(reason);
	}
}
END_TEST

#define HOSTILE_INSTRUCTIONS 300000

/* Whatever the bytes: a slot that fits, with its start and its jumps known, or a refusal. */
START_TEST(random_bytes_are_displaced_or_refused)
{
	size_t displaced = 0;

	for (size_t n = 0; n < share_of(HOSTILE_INSTRUCTIONS); n++) {
		size_t len = random_u64() % (INSN_MAX + 1);
		uint8_t *bytes = malloc(len ? len : 1), *code = malloc(ARCH_SLOT_SIZE);
		uint64_t from = random_u64(), to = random_u64() % 2 ? from + (uint32_t)random_u64() : random_u64();
		uint32_t length = 0, jump = 0;
		const char *reason = NULL;

		for (size_t i = 0; i < len; i++)
			bytes[i] = (uint8_t)random_u64();
		if (arch_displace(bytes, len, from, to, code, &length, &jump, &reason) == 0) {
			displaced++;
			REQUIRE(length <= ARCH_SLOT_SIZE);
			REQUIRE(arch_slot_resume(bytes, len, from, to, to) == from);
			if (jump < length)
				REQUIRE(arch_slot_resume(bytes, len, from, to, to + jump) != ARCH_NOWHERE);
		} else {
			REQUIRE(reason != NULL);
		}
		free(bytes);
		free(code);
	}
	printf("random instructions: %zu displaced of %u\n", displaced, share_of(HOSTILE_INSTRUCTIONS));
	ck_assert_uint_gt(displaced, share_of(HOSTILE_INSTRUCTIONS) / 10);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("displace");
	TCase *tests = tcase_create("displace");
	SRunner *runner = srunner_create(suite);
	int failed;

	setvbuf(stdout, NULL, _IOLBF, 0);
	suite_add_tcase(suite, tests);
	tcase_set_timeout(tests, 300);
	tcase_add_test(tests, copies_of_real_first_instructions_do_the_same);
	tcase_add_test(tests, copies_of_rare_instructions_do_the_same);
	tcase_add_test(tests, conditional_branches_go_where_they_did);
	tcase_add_test(tests, what_cannot_be_moved_is_refused);
	tcase_add_test(tests, random_bytes_are_displaced_or_refused);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
