/* What people type: durations, sizes, numbers, names of snapshots. */
#include "cli/snap.h"
#include "base/units.h"
#include "model/snapshot_name.h"

#include "base/clock.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS(n) ((n) * NSEC_PER_SEC)

START_TEST(durations_are_read_as_systemd_writes_them)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} cases[] = {
		{ "90s", SECONDS(90) }, { "10min", SECONDS(600) }, { "2h", SECONDS(7200) }, { "5", SECONDS(5) },
		{ "1h 30min", SECONDS(5400) }, { "1h30min", SECONDS(5400) }, { "250ms", 250 * NSEC_PER_MSEC },
		{ "1.5s", 1500 * NSEC_PER_MSEC }, { "0.25", 250 * NSEC_PER_MSEC }, { "3us", 3000 },
		{ "2 s", 0 }, { "1d", SECONDS(86400) }, { "1w", SECONDS(604800) }, { "0", 0 },
		{ "0.0000000019s", 1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t ns = UINT64_MAX;
		int r = units_parse_duration(cases[i].text, &ns);

		if (strcmp(cases[i].text, "2 s") == 0) {
			ck_assert_int_eq(r, -EINVAL);
			continue;
		}
		ck_assert_msg(r == 0 && ns == cases[i].ns, "%s: %d, %llu", cases[i].text, r,
			      (unsigned long long)ns);
	}
}
END_TEST

START_TEST(what_is_no_duration_is_refused)
{
	static const char *const wrong[] = { "", " ", "s", "-1s", "1x", "1s x", "1..5s", "1.s", ".5s", "1e3s", "0x10",
					     "infinity", "1S", "5Min", " 5s", "1,5s", "5s-" };
	static const char *const large[] = { "101000d", "18446744073709551616", "999999999999h",
					     "36524d 99999h" };
	uint64_t ns = 7;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ck_assert_msg(units_parse_duration(wrong[i], &ns) == -EINVAL, "'%s'", wrong[i]);
	for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++)
		ck_assert_msg(units_parse_duration(large[i], &ns) == -ERANGE, "'%s'", large[i]);
	ck_assert_uint_eq(ns, 7);
}
END_TEST

START_TEST(sizes_go_in_steps_of_1024)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} cases[] = {
		{ "0", 0 }, { "4096", 4096 }, { "4096B", 4096 }, { "64K", 65536 }, { "1MiB", 1 << 20 },
		{ "1M", 1 << 20 }, { "1.5G", 3ULL << 29 }, { "16TiB", 16ULL << 40 }, { "0.5K", 512 },
		{ "18446744073709551615", UINT64_MAX },
	};
	static const char *const wrong[] = { "", "K", "-1", "1KB", "1k", "1 K", "1MB", "1KiBx", "0x10", "1K1", "+1" };
	static const char *const large[] = { "18446744073709551616", "16777216T" };
	uint64_t bytes;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int r = units_parse_size(cases[i].text, &bytes);

		ck_assert_msg(r == 0 && bytes == cases[i].bytes, "%s: %d, %llu", cases[i].text, r,
			      (unsigned long long)bytes);
	}
	bytes = 7;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ck_assert_msg(units_parse_size(wrong[i], &bytes) == -EINVAL, "'%s'", wrong[i]);
	for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++)
		ck_assert_msg(units_parse_size(large[i], &bytes) == -ERANGE, "'%s'", large[i]);
	ck_assert_uint_eq(bytes, 7);
}
END_TEST

START_TEST(numbers_are_read_whole_or_not_at_all)
{
	int64_t value = 7;

	ck_assert_int_eq(units_parse_number("12", 1, 12, &value), 0);
	ck_assert_int_eq(value, 12);
	ck_assert_int_eq(units_parse_number("-3", -5, 5, &value), 0);
	ck_assert_int_eq(value, -3);
	ck_assert_int_eq(units_parse_number("-3", 0, 5, &value), -EINVAL);
	ck_assert_int_eq(units_parse_number("13", 1, 12, &value), -ERANGE);
	ck_assert_int_eq(units_parse_number("99999999999999999999", 1, INT64_MAX, &value), -ERANGE);
	ck_assert_int_eq(units_parse_number("+1", 1, 12, &value), -EINVAL);
	ck_assert_int_eq(units_parse_number(" 1", 1, 12, &value), -EINVAL);
	ck_assert_int_eq(units_parse_number("1 ", 1, 12, &value), -EINVAL);
	ck_assert_int_eq(units_parse_number("", 1, 12, &value), -EINVAL);
	ck_assert_int_eq(units_parse_number("--3", -5, 5, &value), -EINVAL);
	ck_assert_int_eq(value, -3);
}
END_TEST

START_TEST(a_duration_is_shown_in_two_units_at_most)
{
	char text[UNITS_TEXT_MAX];

	ck_assert_str_eq(units_duration_text(text, 0), "0.0 s");
	ck_assert_str_eq(units_duration_text(text, 1500 * NSEC_PER_MSEC), "1.5 s");
	ck_assert_str_eq(units_duration_text(text, SECONDS(59)), "59 s");
	ck_assert_str_eq(units_duration_text(text, SECONDS(125)), "2 min 5 s");
	ck_assert_str_eq(units_duration_text(text, SECONDS(4 * 3600 + 600)), "4 h 10 min");
	ck_assert_str_eq(units_duration_text(text, SECONDS(6 * 86400 + 3 * 3600)), "6 d 3 h");
}
END_TEST

START_TEST(a_snapshot_is_named_in_several_ways)
{
	static const struct {
		const char *text;
		enum snap_kind kind;
		pid_t pid;
	} cases[] = {
		{ "4242", SNAP_PID, 4242 }, { "2147483647", SNAP_PID, 2147483647 }, { "s17", SNAP_ID, 0 },
		{ "4242:before", SNAP_NAMED, 4242 }, { "1:exit", SNAP_NAMED, 1 }, { "70000:a.B_c-9", SNAP_NAMED, 70000 },
		{ "redis-server.service:last", SNAP_NAMED, 0 }, { "a@b-\\x2d.service:x", SNAP_NAMED, 0 },
		{ "9unit.service:x", SNAP_NAMED, 0 },
		{ "./17", SNAP_FILE, 0 }, { "/tmp/x:y", SNAP_FILE, 0 }, { "a/s17", SNAP_FILE, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *reason = NULL;
		struct snap snap;

		ck_assert_msg(snap_parse(cases[i].text, &snap, &reason) == 0, "%s: %s", cases[i].text, reason);
		ck_assert_int_eq(snap.kind, cases[i].kind);
		ck_assert_int_eq(snap.pid, cases[i].pid);
		ck_assert_ptr_eq(snap.text, cases[i].text);
	}
}
END_TEST

START_TEST(what_names_no_snapshot_is_refused_with_a_reason)
{
	static const char *const wrong[] = { "", "s", "sx", "s1x", "S17", "0", "-4", "2147483648", "99999999999999999999",
					     "4242:", "4242:a b", "4242:\xc3\xa9", ":x", "-unit:x", "9unit:x", "0:x", "x", "4242 ",
					     "1:2:x" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const char *reason = NULL;
		struct snap snap;

		ck_assert_msg(snap_parse(wrong[i], &snap, &reason) == -EINVAL, "'%s'", wrong[i]);
		ck_assert_ptr_nonnull(reason);
	}
}
END_TEST

START_TEST(a_name_has_a_limit)
{
	char name[66];

	memset(name, 'a', sizeof(name));
	name[64] = '\0';
	ck_assert(snapshot_name_is_valid(name));
	name[64] = 'a';
	name[65] = '\0';
	ck_assert(!snapshot_name_is_valid(name));
	ck_assert(!snapshot_name_is_valid(""));
}
END_TEST

START_TEST(what_the_daemon_gives_by_itself_nobody_else_gives)
{
	static const char *const names[] = { "exit", "exec", "detach", "lost", "watch", "rss-limit", "rss-slope", "memory-high",
					     "memory-max", "memory-oom", "memory-pressure" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ck_assert_msg(snapshot_name_is_valid(names[i]) && !snapshot_name_may_be_given(names[i]), "%s", names[i]);
	ck_assert(snapshot_name_may_be_given("exits") && !snapshot_name_may_be_given("") && !snapshot_name_may_be_given("a b"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("units");
	TCase *tcase = tcase_create("units");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tcase);
	tcase_add_test(tcase, durations_are_read_as_systemd_writes_them);
	tcase_add_test(tcase, what_is_no_duration_is_refused);
	tcase_add_test(tcase, sizes_go_in_steps_of_1024);
	tcase_add_test(tcase, numbers_are_read_whole_or_not_at_all);
	tcase_add_test(tcase, a_duration_is_shown_in_two_units_at_most);
	tcase_add_test(tcase, a_snapshot_is_named_in_several_ways);
	tcase_add_test(tcase, what_names_no_snapshot_is_refused_with_a_reason);
	tcase_add_test(tcase, a_name_has_a_limit);
	tcase_add_test(tcase, what_the_daemon_gives_by_itself_nobody_else_gives);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
