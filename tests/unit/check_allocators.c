#include "model/allocators.h"
#include "model/domain_names.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct allocator parsed(const char *text)
{
	struct allocator allocator;
	char *reason = NULL;

	ck_assert_msg(allocator_parse(text, &allocator, &reason) == 0, "%s: %s", text, reason);
	return allocator;
}

START_TEST(a_description_says_which_argument_is_what)
{
	struct allocator a = parsed("  pool pool_get(-, size) pool_more( count ,size,align,\t-)\tlibp*.so:make(result, size, old) slab(-)=64 put(-,old)");
	static const int matter[] = { 2, 2, 3, 0, 2 };

	ck_assert_str_eq(a.name, "pool");
	ck_assert_uint_eq(a.function_count, 5);
	ck_assert_str_eq(a.functions[0].symbol, "pool_get");
	ck_assert_int_eq(a.functions[0].size, 1);
	ck_assert_int_eq(a.functions[0].old, ALLOCATOR_NO_ARGUMENT);
	ck_assert_int_eq(a.functions[1].count, 0);
	ck_assert_int_eq(a.functions[1].size, 1);
	ck_assert_str_eq(a.functions[2].object, "libp*.so");
	ck_assert_str_eq(a.functions[2].symbol, "make");
	ck_assert_int_eq(a.functions[2].result, 0);
	ck_assert_int_eq(a.functions[2].old, 2);
	ck_assert_uint_eq(a.functions[3].fixed_size, 64);
	ck_assert(allocator_function_allocates(&a.functions[3]));
	ck_assert(!allocator_function_allocates(&a.functions[4]));
	ck_assert_int_eq(a.functions[4].old, 1);
	for (size_t i = 0; i < a.function_count; i++)
		ck_assert_int_eq(allocator_function_arguments(&a.functions[i]), matter[i]);
}
END_TEST

START_TEST(an_object_is_a_pattern_of_its_name_or_path)
{
	struct allocator a = parsed("p lib*.so:f(size) /opt/*:g(size) h(size)");

	ck_assert(allocator_function_is_in(&a.functions[0], "/usr/lib/libpool.so"));
	ck_assert(!allocator_function_is_in(&a.functions[0], "/usr/lib/pool.so"));
	ck_assert(allocator_function_is_in(&a.functions[1], "/opt/pool/pool.so"));
	ck_assert(!allocator_function_is_in(&a.functions[1], "/srv/opt/pool.so"));
	ck_assert(allocator_function_is_in(&a.functions[2], ""));
}
END_TEST

static const struct {
	const char *text, *reason;
} wrong[] = {
	{ "", "begins with no name" }, { "f(size)", "begins with no name" }, { "1st f(size)", "begins with no name" },
	{ "p@x f(size)", "begins with no name" }, { "malloc f(size)", "cannot be named 'malloc'" },
	{ "a-name-of-more-than-thirty-one-characters f(size)", "has a name of more than 31" },
	{ "p", "names no function that allocates" }, { "p f(old)", "names no function that allocates" },
	{ "p f", "has no arguments behind 'f'" }, { "p f (size)", "has no arguments behind 'f'" },
	{ "p f(size", "has no ) behind" }, { "p f(size size)", "has no ) behind" }, { "p f(", "calls an argument of f ''" },
	{ "p f()", "calls an argument of f ''" }, { "p f(sise)", "calls an argument of f 'sise'" },
	{ "p f(an_argument_with_a_long_name)", "calls an argument of f" },
	{ "p f(size, size)", "two arguments 'size'" }, { "p f(-,-,-,-,-,-,size)", "more than 6 arguments" },
	{ "p f(count)", "a count of f, but no size" }, { "p f(result, old)", "a result of f, but no size" },
	{ "p f(-)", "neither what f allocates" }, { "p f(size)=8", "says twice" }, { "p f(-)=0", "no number of bytes" },
	{ "p f(-)=", "no number of bytes" }, { "p f(-)=8K", "no number of bytes" }, { "p f(size)g(old)", "where a space belongs" },
	{ "p :f(size)", "object without one" }, { "p lib.so:(size)", "function without a name" },
};

START_TEST(a_bad_one_is_refused_and_says_why)
{
	struct allocator allocator;
	char *reason = NULL;

	ck_assert_int_eq(allocator_parse(wrong[_i].text, &allocator, &reason), -EINVAL);
	ck_assert_msg(reason && strstr(reason, wrong[_i].reason), "%s: %s", wrong[_i].text, reason);
	free(reason);
}
END_TEST

START_TEST(all_of_it_is_limited)
{
	char text[ALLOCATOR_TEXT_MAX + 16] = "p";
	struct allocator allocator;
	char *reason = NULL;

	for (int i = 0; i <= ALLOCATOR_FUNCTIONS_MAX; i++)
		strcat(text, " f(size)");
	ck_assert_int_eq(allocator_parse(text, &allocator, &reason), -EINVAL);
	ck_assert_ptr_nonnull(strstr(reason, "more than 16 functions"));
	free(reason);
	memset(text, ' ', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	ck_assert_int_eq(allocator_parse(text, &allocator, &reason), -EINVAL);
	ck_assert_ptr_nonnull(strstr(reason, "longer than 1023"));
	free(reason);
	memset(text, 'x', 400);
	memcpy(text, "p ", 2);
	strcpy(text + 400, "(size)");
	ck_assert_int_eq(allocator_parse(text, &allocator, &reason), -EINVAL);
	ck_assert_ptr_nonnull(strstr(reason, "more than 255 bytes"));
	free(reason);
}
END_TEST

START_TEST(a_users_domain_has_one_number_and_its_name)
{
	int64_t pool = domain_of_user("pool"), other = domain_of_user("other");
	char text[DOMAIN_TEXT_MAX], name[16];

	ck_assert_int_gt(pool, 100);
	ck_assert_int_ne(pool, other);
	ck_assert_int_eq(domain_of_user("pool"), pool);
	ck_assert_int_eq(domain_by_name("pool"), pool);
	ck_assert_str_eq(domain_name((uint32_t)pool, text), "pool");
	ck_assert_int_eq(domain_by_name("pol"), -1);
	for (int i = 2; i < DOMAIN_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "d%d", i);
		ck_assert_int_gt(domain_of_user(name), 100);
	}
	ck_assert_int_eq(domain_of_user("one_more"), -E2BIG);
	ck_assert_int_eq(domain_of_user("d2"), domain_by_name("d2"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("allocators");
	TCase *tcase = tcase_create("allocators");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, a_description_says_which_argument_is_what);
	tcase_add_test(tcase, an_object_is_a_pattern_of_its_name_or_path);
	tcase_add_loop_test(tcase, a_bad_one_is_refused_and_says_why, 0, sizeof(wrong) / sizeof(wrong[0]));
	tcase_add_test(tcase, all_of_it_is_limited);
	tcase_add_test(tcase, a_users_domain_has_one_number_and_its_name);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
