#include "model/event.h"
#include "model/filter.h"
#include "model/utf8.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct filter parsed(const char *text)
{
	struct filter filter;
	const char *reason = "";
	int r = filter_parse(text, &filter, &reason);

	ck_assert_msg(r == 0, "%s: %s", text, reason);
	return filter;
}

START_TEST(a_pattern_alone_is_inclusive_and_of_the_most_recent_frame)
{
	struct filter filter = parsed("*/main.c");

	ck_assert(filter.inclusive && !filter.all_frames);
	ck_assert_str_eq(filter.file_pattern, "*/main.c");
	ck_assert_ptr_null(filter.function_pattern);
	ck_assert_ptr_null(filter.object_pattern);
	ck_assert_uint_eq(filter.line, 0);
	ck_assert_int_eq(filter.domain, -1);
	filter_fini(&filter);
}
END_TEST

START_TEST(all_suffixes_in_any_order)
{
	static const char *const texts[] = {
		"-a.c:12@all@domain=new@function=f*@object=*lib*", "-a.c:12@object=*lib*@function=f*@domain=2@all",
	};

	for (size_t i = 0; i < 2; i++) {
		struct filter filter = parsed(texts[i]);

		ck_assert(!filter.inclusive && filter.all_frames);
		ck_assert_str_eq(filter.file_pattern, "a.c");
		ck_assert_uint_eq(filter.line, 12);
		ck_assert_int_eq(filter.domain, 2);
		ck_assert_str_eq(filter.function_pattern, "f*");
		ck_assert_str_eq(filter.object_pattern, "*lib*");
		filter_fini(&filter);
	}
}
END_TEST

START_TEST(a_domain_alone_is_a_domain_filter)
{
	struct filter filter = parsed("-@domain=mmap");

	ck_assert(!filter.inclusive);
	ck_assert_ptr_null(filter.file_pattern);
	ck_assert_int_eq(filter.domain, 1);
	filter_fini(&filter);
	filter = parsed("@function=*malloc*");
	ck_assert(filter.inclusive);
	ck_assert_ptr_null(filter.file_pattern);
	filter_fini(&filter);
}
END_TEST

START_TEST(line_0_is_that_of_frames_without_one_and_compiled_files_are_their_sources)
{
	struct filter filter = parsed("*:0");

	ck_assert_str_eq(filter.file_pattern, "*");
	ck_assert(filter.no_line);
	filter_fini(&filter);
	filter = parsed("-/lib/m.pyc:7@all");
	ck_assert_str_eq(filter.file_pattern, "/lib/m.py");
	ck_assert_uint_eq(filter.line, 7);
	ck_assert(!filter.no_line);
	filter_fini(&filter);
}
END_TEST

START_TEST(what_is_no_suffix_belongs_to_the_pattern)
{
	static const char *const texts[] = {
		"user@host.c", "a[@]all", "a[:]12", "a:b", "a:", "a:12b", "a@allx", "@", "[+]plus", "@all:x",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct filter filter = parsed(texts[i]);

		ck_assert_str_eq(filter.file_pattern, texts[i]);
		ck_assert(!filter.all_frames);
		ck_assert_uint_eq(filter.line, 0);
		filter_fini(&filter);
	}
}
END_TEST

START_TEST(what_cannot_be_meant_is_refused_with_a_reason)
{
	static const char *const texts[] = {
		"", "+", "-", "@all", ":12", ":0", "a.c:99999999999", "a@domain=nosuch", "a@domain=",
		"a@domain=new@domain=new", "a@function=f@function=g", "a@object=o@object=p", "@domain=-1",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct filter filter;
		const char *reason = NULL;

		ck_assert_msg(filter_parse(texts[i], &filter, &reason) == -EINVAL, "%s", texts[i]);
		ck_assert_ptr_nonnull(reason);
	}
}
END_TEST

START_TEST(a_filter_too_long_is_refused)
{
	char *text = malloc(FILTER_LENGTH_MAX + 1);
	struct filter filter;
	const char *reason = NULL;

	memset(text, 'x', FILTER_LENGTH_MAX);
	text[FILTER_LENGTH_MAX] = '\0';
	ck_assert_int_eq(filter_parse(text, &filter, &reason), -EINVAL);
	ck_assert_ptr_nonnull(reason);
	text[FILTER_LENGTH_MAX - 1] = '\0';
	filter = parsed(text);
	filter_fini(&filter);
	free(text);
}
END_TEST

START_TEST(a_list_of_domains_always_has_malloc)
{
	ck_assert_uint_eq(domain_list_parse("malloc"), 1u << DOMAIN_MALLOC);
	ck_assert_uint_eq(domain_list_parse("mmap"), 1u << DOMAIN_MALLOC | 1u << DOMAIN_MMAP);
	ck_assert_uint_eq(domain_list_parse("new,malloc,mmap"), 1u << DOMAIN_MALLOC | 1u << DOMAIN_MMAP | 1u << DOMAIN_NEW);
	ck_assert_uint_eq(domain_list_parse("python"), 0);
	ck_assert_uint_eq(domain_list_parse("malloc,"), 0);
	ck_assert_uint_eq(domain_list_parse(""), 0);
	ck_assert_uint_eq(domain_list_parse("mal"), 0);
}
END_TEST

START_TEST(domains_have_names_both_ways)
{
	static const uint32_t domains[] = { 0, 1, 2, 3, 4, 99, 100, 101, 107, UINT32_MAX };
	char text[DOMAIN_TEXT_MAX];

	for (size_t i = 0; i < sizeof(domains) / sizeof(*domains); i++)
		ck_assert_int_eq(domain_by_name(domain_name(domains[i], text)), domains[i]);
	ck_assert_str_eq(domain_name(100, text), "user");
	ck_assert_str_eq(domain_name(107, text), "107");
	ck_assert_int_eq(domain_by_name("107"), 107);
	ck_assert_int_eq(domain_by_name("107x"), -1);
	ck_assert_int_eq(domain_by_name("4294967296"), -1);
}
END_TEST

/* Patterns that make a backtracking matcher try every split. */
START_TEST(a_pattern_of_many_stars_ends_in_time)
{
	char pattern[2049], text[50001];

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (size_t i = 0; i < sizeof(pattern) - 1; i += 2) {
		pattern[i] = '*';
		pattern[i + 1] = 'a';
	}
	pattern[sizeof(pattern) - 1] = '\0';
	ck_assert(fnmatch_python(pattern, text));
	pattern[sizeof(pattern) - 2] = 'b';
	ck_assert(!fnmatch_python(pattern, text));
}
END_TEST

START_TEST(bytes_that_are_no_characters_count_one_each)
{
	ck_assert(fnmatch_python("?", "\xc3\xa9"));
	ck_assert(!fnmatch_python("??", "\xc3\xa9"));
	ck_assert(fnmatch_python("??", "\xa9\xc3"));
	ck_assert(fnmatch_python("???", "\xe2\x82x"));
	ck_assert(fnmatch_python("[\xc3\xa0-\xc3\xbc]", "\xc3\xa9"));
	ck_assert(!fnmatch_python("[\xc3\xa0-\xc3\xbc]", "\xc3"));
}
END_TEST

START_TEST(strings_are_ordered_by_code_points)
{
	/* In Python's order: ASCII, two bytes, three bytes, escaped bytes, private use, four bytes. */
	static const char *const ordered[] = {
		"", "a", "a\x7f", "b", "\xc3\xa9", "\xed\x9f\xbf", "\x80", "\xff", "\xee\x80\x80", "\xf0\x9f\x98\x80",
	};
	int count = (int)(sizeof(ordered) / sizeof(*ordered));

	for (int i = 0; i < count; i++) {
		for (int j = 0; j < count; j++) {
			int order = utf8_compare(ordered[i], ordered[j]);

			ck_assert_int_eq((order > 0) - (order < 0), (i > j) - (i < j));
		}
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("filter");
	TCase *tcase = tcase_create("filter");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 600);
	tcase_add_test(tcase, a_pattern_alone_is_inclusive_and_of_the_most_recent_frame);
	tcase_add_test(tcase, all_suffixes_in_any_order);
	tcase_add_test(tcase, a_domain_alone_is_a_domain_filter);
	tcase_add_test(tcase, line_0_is_that_of_frames_without_one_and_compiled_files_are_their_sources);
	tcase_add_test(tcase, what_is_no_suffix_belongs_to_the_pattern);
	tcase_add_test(tcase, what_cannot_be_meant_is_refused_with_a_reason);
	tcase_add_test(tcase, a_filter_too_long_is_refused);
	tcase_add_test(tcase, domains_have_names_both_ways);
	tcase_add_test(tcase, a_list_of_domains_always_has_malloc);
	tcase_add_test(tcase, a_pattern_of_many_stars_ends_in_time);
	tcase_add_test(tcase, bytes_that_are_no_characters_count_one_each);
	tcase_add_test(tcase, strings_are_ordered_by_code_points);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
