/* The parts of symbol/ that need no ELF file. */
#include "require.h"

#include "base/hash.h"
#include "symbol/demangle.h"
#include "symbol/intervals.h"
#include "symbol/path.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static uint64_t find(const struct intervals *intervals, uint64_t address)
{
	const struct interval *piece = intervals_find(intervals, address);

	return piece ? piece->value : UINT64_MAX;
}

START_TEST(the_innermost_range_answers)
{
	struct intervals intervals = { 0 };

	ck_assert_int_eq(intervals_add(&intervals, 10, 100, 0, 1), 0);
	ck_assert_int_eq(intervals_add(&intervals, 20, 30, 1, 2), 0);
	ck_assert_int_eq(intervals_add(&intervals, 25, 30, 2, 3), 0);
	ck_assert_int_eq(intervals_add(&intervals, 100, 100, 0, 9), 0);
	ck_assert_int_eq(intervals_add(&intervals, 200, 210, 1, 4), 0);
	ck_assert_int_eq(intervals_add(&intervals, 200, 210, 0, 5), 0);
	ck_assert_int_eq(intervals_flatten(&intervals), 0);
	ck_assert_uint_eq(find(&intervals, 9), UINT64_MAX);
	ck_assert_uint_eq(find(&intervals, 10), 1);
	ck_assert_uint_eq(find(&intervals, 24), 2);
	ck_assert_uint_eq(find(&intervals, 25), 3);
	ck_assert_uint_eq(find(&intervals, 30), 1);
	ck_assert_uint_eq(find(&intervals, 99), 1);
	ck_assert_uint_eq(find(&intervals, 100), UINT64_MAX);
	ck_assert_uint_eq(find(&intervals, 205), 4);
	intervals_fini(&intervals);
}
END_TEST

#define SPACE 300

static uint64_t state;

static uint64_t random_below(uint64_t limit)
{
	return hash_u64(++state) % limit;
}

/* Ranges nested like scopes, at random: the deepest one painted last must be the answer. */
static void nest(struct intervals *intervals, uint64_t *painted, uint64_t lo, uint64_t hi,
		 uint32_t depth, uint32_t *value)
{
	uint64_t at = lo;

	for (uint64_t i = lo; i < hi; i++)
		painted[i] = *value;
	ck_assert_int_eq(intervals_add(intervals, lo, hi, depth, (*value)++), 0);
	while (depth < 6 && at < hi) {
		uint64_t from = at + random_below(hi - at + 1), to;

		to = from + random_below(hi - from + 1);
		if (to > from)
			nest(intervals, painted, from, to, depth + 1, value);
		at = to + 1 + random_below(20);
	}
}

START_TEST(nested_ranges_read_as_if_painted)
{
	size_t checked = 0;

	for (state = 0; state < 200000;) {
		uint64_t painted[SPACE];
		struct intervals intervals = { 0 };
		uint32_t value = 0;

		memset(painted, 0xff, sizeof(painted));
		nest(&intervals, painted, 10, 140, 0, &value);
		nest(&intervals, painted, 150, 290, 0, &value);
		ck_assert_int_eq(intervals_flatten(&intervals), 0);
		for (uint64_t i = 0; i < SPACE; i++, checked++)
			REQUIRE(find(&intervals, i) == painted[i]);
		for (size_t i = 1; i < intervals.items.count; i++)
			REQUIRE(intervals.items.items[i - 1].hi <= intervals.items.items[i].lo);
		intervals_fini(&intervals);
	}
	ck_assert_uint_gt(checked, 100000);
}
END_TEST

/* Hostile ranges overlap in any way; the table must still be sorted, disjoint and cover the same. */
START_TEST(ranges_that_overlap_without_nesting_leave_a_sound_table)
{
	for (state = 0; state < 100000;) {
		bool covered[SPACE] = { false };
		struct intervals intervals = { 0 };

		for (uint32_t n = 0; n < 20; n++) {
			uint64_t lo = random_below(SPACE), hi = lo + random_below(SPACE - lo);

			for (uint64_t i = lo; i < hi; i++)
				covered[i] = true;
			ck_assert_int_eq(intervals_add(&intervals, lo, hi, 0, n), 0);
		}
		ck_assert_int_eq(intervals_flatten(&intervals), 0);
		for (uint64_t i = 0; i < SPACE; i++)
			REQUIRE((find(&intervals, i) != UINT64_MAX) == covered[i]);
		intervals_fini(&intervals);
	}
}
END_TEST

START_TEST(a_range_up_to_the_end_of_the_address_space_is_kept)
{
	struct intervals intervals = { 0 };

	ck_assert_int_eq(intervals_add(&intervals, UINT64_MAX - 1, UINT64_MAX, 0, 7), 0);
	ck_assert_int_eq(intervals_flatten(&intervals), 0);
	ck_assert_uint_eq(find(&intervals, UINT64_MAX - 1), 7);
	intervals_fini(&intervals);
}
END_TEST

static const struct { const char *dir, *name, *want; } paths[] = {
	{ "/build", "a.c", "/build/a.c" },
	{ "/build/", "sub/a.c", "/build/sub/a.c" },
	{ "/build/x", "../../src/a.c", "/src/a.c" },
	{ "/build", "/usr/include/a.h", "/usr/include/a.h" },
	{ "/build", "./a.c", "/build/a.c" },
	{ "/build", "b/./c//d/../a.c", "/build/b/c/a.c" },
	{ "/", "../../a.c", "/a.c" },
	{ NULL, "a.c", "a.c" },
	{ "", "../a.c", "../a.c" },
	{ "./malloc", "./malloc/malloc.c", "./malloc/malloc/malloc.c" },
	{ ".", "build/../src/a.c", "./src/a.c" },
	{ "..", "../a/../b.c", "../../b.c" },
	{ "a/..", "../b.c", "../b.c" },
	{ "/build", "...", "/build/..." },
	{ "/build", "..a/.b", "/build/..a/.b" },
};

START_TEST(paths_are_joined_and_straightened)
{
	char buf[256];

	path_join(paths[_i].dir, paths[_i].name, buf, sizeof(buf));
	ck_assert_str_eq(buf, paths[_i].want);
}
END_TEST

START_TEST(a_path_that_does_not_fit_is_cut_between_parts)
{
	char buf[12];

	path_join("/build", "abc/defgh/i", buf, sizeof(buf));
	ck_assert_str_eq(buf, "/build/abc");
}
END_TEST

static const struct { const char *mangled, *want; } names[] = {
	{ "_ZN6shapes6squareC1Ed", "shapes::square::square(double)" },
	{ "_Znwm", "operator new(unsigned long)" },
	{ "_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "core::ptr::drop_in_place" },
	{ "_RNvCskwGfYPst2Cb_3foo16example_function", "foo::example_function" },
	{ "_RNvNtCs4fqI2P2rA04_4core3fmt5write", "core::fmt::write" },
	{ "malloc", NULL },
	{ "_start", NULL },
	{ "_Zebra", NULL },
	{ "", NULL },
};

START_TEST(cxx_and_rust_names_are_demangled)
{
	char *readable = demangle(names[_i].mangled);

	ck_assert_pstr_eq(readable, names[_i].want);
	free(readable);
}
END_TEST

START_TEST(a_name_too_long_to_be_one_is_left_alone)
{
	char *name = malloc(DEMANGLE_INPUT_MAX + 1);

	memset(name, 'S', DEMANGLE_INPUT_MAX);
	memcpy(name, "_Z1", 3);
	name[DEMANGLE_INPUT_MAX] = '\0';
	ck_assert_ptr_null(demangle(name));
	free(name);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("symbol parts");
	TCase *parts = tcase_create("parts");
	SRunner *runner;
	int failed;

	suite_add_tcase(suite, parts);
	tcase_set_timeout(parts, 120);
	tcase_add_test(parts, the_innermost_range_answers);
	tcase_add_test(parts, nested_ranges_read_as_if_painted);
	tcase_add_test(parts, ranges_that_overlap_without_nesting_leave_a_sound_table);
	tcase_add_test(parts, a_range_up_to_the_end_of_the_address_space_is_kept);
	tcase_add_loop_test(parts, paths_are_joined_and_straightened, 0,
			    sizeof(paths) / sizeof(paths[0]));
	tcase_add_test(parts, a_path_that_does_not_fit_is_cut_between_parts);
	tcase_add_loop_test(parts, cxx_and_rust_names_are_demangled, 0,
			    sizeof(names) / sizeof(names[0]));
	tcase_add_test(parts, a_name_too_long_to_be_one_is_left_alone);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
