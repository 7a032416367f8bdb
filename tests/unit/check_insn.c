/* arch_decode_function against objdump, on real libraries and on code made by hand. */
#include "arch/arch.h"
#include "elf_functions.h"
#include "random.h"
#include "require.h"
#include "share.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBDIR "/usr/lib/x86_64-linux-gnu/"

static const char *const libraries[] = {
	LIBDIR "libc.so.6",
	LIBDIR "libjemalloc.so.2",
	LIBDIR "libtcmalloc_minimal.so.4",
	LIBDIR "libmimalloc.so.2.0",
	"/usr/lib/x86_64-linux-musl/libc.so",
	LIBDIR "libstdc++.so.6",
	LIBDIR "libcrypto.so.3",
	"/usr/bin/python3",
};
#define ALLOCATORS 6           /* the first ones define allocator functions */

static const char *const allocator_names[] = {
	"malloc", "free", "calloc", "realloc", "reallocarray", "posix_memalign", "aligned_alloc",
	"memalign", "valloc", "pvalloc", "free_sized", "free_aligned_sized",
	"sdallocx", "mallocx", "rallocx", "xallocx", "dallocx", "cfree",
	"_Znwm", "_Znam", "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm", "_ZnwmRKSt9nothrow_t",
	"_ZnamRKSt9nothrow_t", "_ZnwmSt11align_val_t", "_ZnamSt11align_val_t",
	"_ZnwmSt11align_val_tRKSt9nothrow_t", "_ZnamSt11align_val_tRKSt9nothrow_t",
	"_ZdlPvSt11align_val_t", "_ZdaPvSt11align_val_t", "_ZdlPvmSt11align_val_t",
	"_ZdaPvmSt11align_val_t", "_ZdlPvRKSt9nothrow_t", "_ZdaPvRKSt9nothrow_t",
	"mi_malloc", "mi_free", "mi_calloc", "mi_realloc",
};

static int is_allocator(const char *name)
{
	for (size_t i = 0; i < sizeof(allocator_names) / sizeof(*allocator_names); i++)
		if (!strcmp(name, allocator_names[i]))
			return 1;
	return 0;
}

struct tally {
	size_t functions, refused, rets, equal, fewer, different;
};

static void print_tally(const char *what, const char *path, const struct tally *tally)
{
	printf("%s %s: %zu functions, %zu refused, %zu rets; %zu equal, %zu fewer (data in the code), "
	       "%zu different\n", what, path, tally->functions, tally->refused, tally->rets, tally->equal,
	       tally->fewer, tally->different);
}

/* Equal, or fewer than objdump finds, which decodes data too; never one that objdump has not. */
static void compare(const struct elf_function *function, const struct arch_function *found,
		    const struct addresses *rets, struct tally *tally)
{
	size_t first = addresses_find(rets, function->address);
	size_t expected = addresses_find(rets, function->address + function->size) - first;
	size_t same = 0;

	for (size_t i = 0; i < found->exits.count; i++) {
		uint64_t address = found->exits.items[i].address;
		size_t at = addresses_find(rets, address);

		if (at < rets->items.count && rets->items.items[at] == address)
			same++;
		else
			printf("  %s: ret at %lx only here\n", function->name, address);
	}
	tally->rets += same;
	if (same != found->exits.count)
		tally->different++;
	else if (same == expected)
		tally->equal++;
	else
		tally->fewer++;
	if (same < expected)
		printf("  %s at %lx: %zu of %zu rets\n", function->name, function->address, same, expected);
}

static void compare_library(const char *path, int (*wanted)(const char *name), struct tally *tally)
{
	struct elf_functions functions;
	struct addresses rets;

	elf_functions_load(&functions, path);
	objdump_rets(path, &rets);
	for (size_t i = 0; i < functions.items.count; i++) {
		const struct elf_function *function = &functions.items.items[i];
		struct arch_function found;
		const char *reason = NULL;
		int r;

		if (wanted && !wanted(function->name))
			continue;
		r = arch_decode_function(function->code, function->size, function->address, &found, &reason);
		tally->functions++;
		if (r < 0) {
			ck_assert_int_eq(r, -ENOTSUP);
			ck_assert_ptr_nonnull(reason);
			tally->refused++;
			continue;
		}
		compare(function, &found, &rets, tally);
		arch_function_fini(&found);
	}
	vec_fini(&rets.items);
	elf_functions_fini(&functions);
}

START_TEST(exits_of_allocator_functions_equal_objdump)
{
	struct tally tally = {0};

	compare_library(libraries[_i], is_allocator, &tally);
	print_tally("allocators of", libraries[_i], &tally);
	ck_assert_uint_eq(tally.refused, 0);
	ck_assert_uint_eq(tally.equal, tally.functions);
	ck_assert_uint_ge(tally.functions, 4);
}
END_TEST

START_TEST(exits_of_all_functions_equal_objdump)
{
	struct tally tally = {0};

	compare_library(libraries[_i], NULL, &tally);
	print_tally("all of", libraries[_i], &tally);
	ck_assert_uint_eq(tally.different, 0);
	ck_assert_uint_ge(tally.functions, 40);
	ck_assert_uint_ge(tally.equal * 10, tally.functions * 9);
}
END_TEST

/* --- code made by hand --- */

#define SAMPLE(name)                                                                                 \
	extern const uint8_t sample_##name[], sample_##name##_end[];                                 \
	static int decode_##name(struct arch_function *function, const char **reason)                \
	{                                                                                            \
		return arch_decode_function(sample_##name, (size_t)(sample_##name##_end - sample_##name), \
					    (uint64_t)sample_##name, function, reason);              \
	}
extern const uint8_t sample_elsewhere[];
SAMPLE(loops_to_its_start)
SAMPLE(conditional_tail_call)
SAMPLE(branch_into_first)
SAMPLE(kinds_of_ret)
SAMPLE(ambiguous_ret)
SAMPLE(branch_into_ret)
SAMPLE(data_between)
SAMPLE(landing_pad)
SAMPLE(after_noreturn)
SAMPLE(over_lock)
SAMPLE(runs_off)
SAMPLE(switch_of_gcc)
SAMPLE(switch_of_clang)
SAMPLE(switch_with_cet)
SAMPLE(switch_without_pic)
SAMPLE(switch_and_data)
SAMPLE(indirect_register)
SAMPLE(indirect_method)
SAMPLE(table_of_functions)
SAMPLE(table_entry_overwritten)
SAMPLE(far_return)
SAMPLE(narrow_branch)
SAMPLE(bad_bytes)
SAMPLE(system_call_at_the_end)
SAMPLE(import_stub)

typedef int (*decode_sample)(struct arch_function *function, const char **reason);

static struct arch_function decoded(decode_sample decode)
{
	struct arch_function function;
	const char *reason = "";
	int r = decode(&function, &reason);

	ck_assert_msg(r == 0, "refused: %s", reason);
	return function;
}

static void expect_exits(decode_sample decode, size_t exits, size_t tail_calls)
{
	struct arch_function function = decoded(decode);

	ck_assert_uint_eq(function.exits.count, exits);
	ck_assert_uint_eq(function.tail_calls.count, tail_calls);
	arch_function_fini(&function);
}

static void expect_refusal(decode_sample decode, const char *because)
{
	struct arch_function function;
	const char *reason = NULL;

	ck_assert_int_eq(decode(&function, &reason), -ENOTSUP);
	ck_assert_msg(strstr(reason, because) != NULL, "\"%s\" does not say \"%s\"", reason, because);
}

START_TEST(jump_to_the_own_start_is_a_tail_call)
{
	struct arch_function function = decoded(decode_loops_to_its_start);

	ck_assert_uint_eq(function.tail_calls.count, 1);
	ck_assert_uint_eq(function.tail_calls.items[0], (uint64_t)sample_loops_to_its_start);
	ck_assert_uint_eq(function.exits.count, 1);
	arch_function_fini(&function);
}
END_TEST

START_TEST(conditional_jump_out_is_a_tail_call)
{
	struct arch_function function = decoded(decode_conditional_tail_call);

	ck_assert_uint_eq(function.tail_calls.count, 1);
	ck_assert_uint_eq(function.tail_calls.items[0], (uint64_t)sample_elsewhere);
	ck_assert_uint_eq(function.first_length, 3);
	ck_assert(!function.first_is_ambiguous);
	arch_function_fini(&function);
}
END_TEST

START_TEST(rets_of_every_form_have_their_length)
{
	struct arch_function function = decoded(decode_kinds_of_ret);
	static const uint32_t lengths[] = {1, 2, 3, 2};

	ck_assert_uint_eq(function.exits.count, 4);
	for (size_t i = 0; i < 4; i++)
		ck_assert_uint_eq(function.exits.items[i].length, lengths[i]);
	arch_function_fini(&function);
}
END_TEST

START_TEST(ret_before_a_branch_target_is_ambiguous)
{
	struct arch_function function = decoded(decode_ambiguous_ret);

	ck_assert_uint_eq(function.exits.count, 3);
	ck_assert(function.exits.items[0].ambiguous);
	ck_assert(!function.exits.items[1].ambiguous);
	ck_assert(!function.exits.items[2].ambiguous);
	arch_function_fini(&function);
	function = decoded(decode_branch_into_ret);
	ck_assert_uint_eq(function.exits.count, 2);
	ck_assert(function.exits.items[0].ambiguous);
	ck_assert(!function.exits.items[1].ambiguous);
	arch_function_fini(&function);
}
END_TEST

START_TEST(data_is_not_taken_for_rets)
{
	expect_exits(decode_data_between, 2, 0);
	expect_exits(decode_after_noreturn, 1, 0);
}
END_TEST

START_TEST(code_without_a_branch_to_it_is_found)
{
	struct arch_function function = decoded(decode_landing_pad);

	ck_assert_uint_eq(function.exits.count, 2);
	ck_assert(function.exits.items[0].ambiguous);
	arch_function_fini(&function);
}
END_TEST

/* What else there is may be the next function. */
START_TEST(of_a_function_of_unknown_length_is_looked_at_what_is_reached)
{
	size_t len = (size_t)(sample_landing_pad_end - sample_landing_pad);
	struct arch_function function;
	const char *reason = "";

	ck_assert_int_eq(arch_decode_unsized(sample_landing_pad, len, (uint64_t)sample_landing_pad, &function, &reason), 0);
	ck_assert_uint_eq(function.exits.count, 1);
	arch_function_fini(&function);
	len = (size_t)(sample_switch_of_gcc_end - sample_switch_of_gcc);
	ck_assert_int_eq(arch_decode_unsized(sample_switch_of_gcc, len, (uint64_t)sample_switch_of_gcc, &function, &reason),
			 -ENOTSUP);
	ck_assert_msg(strstr(reason, "how far it reaches") != NULL, "%s", reason);
}
END_TEST

START_TEST(branch_over_a_lock_prefix_is_followed)
{
	expect_exits(decode_over_lock, 1, 0);
}
END_TEST

START_TEST(running_off_the_end_is_a_tail_call)
{
	struct arch_function function = decoded(decode_runs_off);

	ck_assert_uint_eq(function.exits.count, 1);
	ck_assert_uint_eq(function.tail_calls.count, 1);
	ck_assert_uint_eq(function.tail_calls.items[0], (uint64_t)sample_runs_off_end);
	arch_function_fini(&function);
	expect_exits(decode_system_call_at_the_end, 0, 0);
}
END_TEST

START_TEST(switches_are_recognised_and_their_cases_found)
{
	expect_exits(decode_switch_of_gcc, 2, 1);
	expect_exits(decode_switch_of_clang, 2, 0);
	expect_exits(decode_switch_with_cet, 1, 0);
	expect_exits(decode_switch_without_pic, 2, 0);
}
END_TEST

START_TEST(what_cannot_be_known_is_refused_with_the_reason)
{
	expect_refusal(decode_indirect_register, "indirect tail call");
	expect_refusal(decode_indirect_method, "indirect tail call");
	expect_refusal(decode_table_of_functions, "indirect tail call");
	expect_refusal(decode_table_entry_overwritten, "indirect tail call");
	expect_refusal(decode_switch_and_data, "data");
	expect_refusal(decode_branch_into_first, "branch into its first instruction");
	expect_refusal(decode_far_return, "far");
	expect_refusal(decode_narrow_branch, "operand-size");
	expect_refusal(decode_bad_bytes, "no instruction");
}
END_TEST

START_TEST(import_stub_names_its_pointer)
{
	size_t len = (size_t)(sample_import_stub_end - sample_import_stub);
	uint64_t pointer = 0;
	int32_t disp;

	memcpy(&disp, sample_import_stub + len - sizeof(disp), sizeof(disp));
	ck_assert(arch_decode_import_stub(sample_import_stub, len, 0x400000, &pointer));
	ck_assert_uint_eq(pointer, 0x400000 + len + (uint64_t)disp);
	ck_assert(!arch_decode_import_stub(sample_indirect_method, 8, 0x400000, &pointer));
	expect_refusal(decode_import_stub, "indirect tail call");
}
END_TEST

/* --- hostile bytes --- */

#define HOSTILE_BUFFERS 150000
#define HOSTILE_LENGTH 96

/* Random bytes, with many more branches and rets than chance would give. */
static void fill_hostile(uint8_t *bytes, size_t len)
{
	static const uint8_t lively[] = {0x74, 0x75, 0xeb, 0xe9, 0xc3, 0xf3, 0xff, 0x0f, 0xe8, 0x90, 0xcc, 0x3e};

	for (size_t i = 0; i < len; i++) {
		uint64_t r = random_u64();

		bytes[i] = r & 0x300 ? (uint8_t)r : lively[(r >> 16) % sizeof(lively)];
	}
}

/* Where a function's entry is stopped at: the bytes, and what is expected of them. */
static const struct entry_sample {
	const char *what, *code;
	size_t len;
	uint32_t offset, sp_below;
	bool ambiguous;
} entry_samples[] = {
	{ "the first of several pushes whose successor is longer than a byte",
	  "\x41\x54\x55\x53\x48\x89\xfb\x5b\x5d\x41\x5c\xc3", 12, 4, 24, false },
	{ "behind endbr64", "\xf3\x0f\x1e\xfa\x48\x85\xff\xc3", 8, 4, 0, false },
	{ "behind sub $24, %rsp", "\x48\x83\xec\x18\x48\x89\xf8\x48\x83\xc4\x18\xc3", 12, 4, 24, false },
	{ "a conditional jump", "\x48\x85\xff\x74\x01\x90\xc3", 7, 3, 0, false },
	{ "a push of one byte, for want of others", "\x55\x53\x48\x89\xd7\x5b\x5d\xc3", 8, 2, 16, false },
	{ "one byte, where there are only such", "\x50\x57\x5f\x58\xc3", 5, 1, 8, true },
	{ "nothing behind an argument that is overwritten", "\x89\xf7\x48\x89\xf8\xc3", 6, 0, 0, false },
	{ "nor behind a partly overwritten one", "\x40\xb7\x01\x48\x89\xf8\xc3", 7, 0, 0, false },
	{ "not the target of a jump", "\x48\x89\xf8\x48\xff\xc0\x75\xfb\xc3", 9, 0, 0, false },
	{ "not a return", "\x31\xc0\xc3", 3, 0, 0, false },
	{ "not behind a jump", "\xeb\x03\x90\x90\x90\x48\x89\xf8\xc3", 9, 0, 0, false },
	{ "not behind a call", "\xe8\x00\x00\x00\x10\x48\x89\xf8\xc3", 9, 0, 0, false },
	{ "not behind an unknown change of the stack", "\x48\x83\xe4\xf0\x48\x89\xf8\xc3", 8, 0, 0, false },
	{ "not behind pop", "\x58\x48\x89\xf8\xff\xe0", 6, 0, 0, true },
};

START_TEST(an_entry_is_stopped_at_behind_the_first_byte_where_that_is_the_same)
{
	const struct entry_sample *sample = &entry_samples[_i];
	struct arch_function function;
	const char *reason = "";
	int r = arch_decode_function((const uint8_t *)sample->code, sample->len, 0x400000, &function, &reason);

	if (r == -ENOTSUP && sample->offset == 0)
		return;                            /* not probed at all */
	ck_assert_msg(r == 0, "%s: %s", sample->what, reason);
	ck_assert_msg(function.entry.offset == sample->offset, "%s: at %u", sample->what, function.entry.offset);
	ck_assert_msg(function.entry.sp_below == sample->sp_below, "%s: %u", sample->what, function.entry.sp_below);
	ck_assert_msg(function.entry.ambiguous == sample->ambiguous, "%s", sample->what);
	arch_function_fini(&function);
}
END_TEST

START_TEST(random_bytes_are_decoded_or_refused)
{
	size_t decoded_count = 0, refused = 0;

	for (size_t n = 0; n < share_of(HOSTILE_BUFFERS); n++) {
		size_t len = 1 + random_u64() % HOSTILE_LENGTH;
		uint8_t *bytes = malloc(len);
		struct arch_function function;
		const char *reason = NULL;
		int r;

		fill_hostile(bytes, len);
		r = arch_decode_function(bytes, len, random_u64(), &function, &reason);
		if (r == 0) {
			REQUIRE(function.first_length > 0);
			REQUIRE(function.first_length <= len);
			REQUIRE(function.entry.offset == 0 || function.entry.offset >= function.first_length);
			REQUIRE(function.entry.offset < len);
			arch_function_fini(&function);
			decoded_count++;
		} else {
			REQUIRE(r == -ENOTSUP);
			REQUIRE(reason != NULL);
			refused++;
		}
		free(bytes);
	}
	printf("random code: %zu decoded, %zu refused\n", decoded_count, refused);
	ck_assert_uint_gt(decoded_count, share_of(HOSTILE_BUFFERS) / 1000);
}
END_TEST

/* The largest function made of nothing but branches, each to another place outside; or a share of it. */
START_TEST(decoding_takes_time_in_proportion_to_the_code)
{
	size_t len = share_of(ARCH_FUNCTION_MAX);
	uint8_t *bytes = calloc(ARCH_FUNCTION_MAX, 1);
	struct arch_function function;
	const char *reason = "";

	for (size_t i = 0; i + 6 <= len; i += 6) {
		uint32_t distance = 0x10000000 + (uint32_t)(i * 5);

		bytes[i] = 0x0f;
		bytes[i + 1] = 0x85;
		memcpy(bytes + i + 2, &distance, sizeof(distance));
	}
	for (size_t i = len / 6 * 6; i < len; i++)
		bytes[i] = 0xc3;
	ck_assert_int_eq(arch_decode_function(bytes, len, 0x400000, &function, &reason), 0);
	ck_assert_uint_eq(function.tail_calls.count, len / 6);
	arch_function_fini(&function);
	ck_assert_int_eq(arch_decode_function(bytes, ARCH_FUNCTION_MAX + 1, 0x400000, &function, &reason), -ENOTSUP);
	free(bytes);
}
END_TEST

static void add_sample_tests(Suite *suite)
{
	TCase *samples = tcase_create("samples");

	suite_add_tcase(suite, samples);
	tcase_add_test(samples, jump_to_the_own_start_is_a_tail_call);
	tcase_add_test(samples, conditional_jump_out_is_a_tail_call);
	tcase_add_test(samples, rets_of_every_form_have_their_length);
	tcase_add_test(samples, ret_before_a_branch_target_is_ambiguous);
	tcase_add_test(samples, data_is_not_taken_for_rets);
	tcase_add_test(samples, code_without_a_branch_to_it_is_found);
	tcase_add_test(samples, of_a_function_of_unknown_length_is_looked_at_what_is_reached);
	tcase_add_test(samples, branch_over_a_lock_prefix_is_followed);
	tcase_add_test(samples, running_off_the_end_is_a_tail_call);
	tcase_add_test(samples, switches_are_recognised_and_their_cases_found);
	tcase_add_test(samples, what_cannot_be_known_is_refused_with_the_reason);
	tcase_add_test(samples, import_stub_names_its_pointer);
}

static void add_hostile_tests(Suite *suite)
{
	TCase *hostile = tcase_create("hostile bytes");

	suite_add_tcase(suite, hostile);
	tcase_set_timeout(hostile, 300);
	tcase_add_loop_test(hostile, an_entry_is_stopped_at_behind_the_first_byte_where_that_is_the_same, 0,
			    sizeof(entry_samples) / sizeof(entry_samples[0]));
	tcase_add_test(hostile, random_bytes_are_decoded_or_refused);
	tcase_add_test(hostile, decoding_takes_time_in_proportion_to_the_code);
}

static void add_library_tests(Suite *suite)
{
	TCase *real = tcase_create("real libraries");

	suite_add_tcase(suite, real);
	tcase_set_timeout(real, 300);
	tcase_add_loop_test(real, exits_of_allocator_functions_equal_objdump, 0, ALLOCATORS);
	tcase_add_loop_test(real, exits_of_all_functions_equal_objdump, 0,
			    (int)(sizeof(libraries) / sizeof(*libraries)));
}

int main(void)
{
	Suite *suite = suite_create("insn");
	SRunner *runner = srunner_create(suite);
	int failed;

	setvbuf(stdout, NULL, _IOLBF, 0);      /* the tests' children print, too */
	add_sample_tests(suite);
	add_hostile_tests(suite);
	add_library_tests(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
