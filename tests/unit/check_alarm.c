/* When an alarm is given, and when it is not: by figures, without a clock. */
#include "model/alarm.h"
#include "model/occasion.h"

#include <check.h>
#include <stdlib.h>

#define SECOND 1000000000ULL
#define MINUTE (60 * SECOND)
#define MIB (1ULL << 20)

static struct alarm alarm_of;
static struct alarm_limits limits;
static struct alarm_figures figures;

static void setup(void)
{
	limits = (struct alarm_limits){ .slope_ns = 5 * MINUTE, .least_ns = MINUTE };
	figures = (struct alarm_figures){ .now_ns = 1000 * SECOND, .rss_bytes = 10 * MIB, .high = 3, .max = 2, .oom = 1,
					  .stalled_us = 5000000 };
	alarm_init(&alarm_of, &figures);
}

/* A second later. */
static enum alarm_cause look(void)
{
	figures.now_ns += SECOND;
	return alarm_look(&alarm_of, &limits, &figures);
}

static enum alarm_cause look_at_rss(uint64_t mib)
{
	figures.rss_bytes = mib * MIB;
	return look();
}

/* Of so many looks. */
static unsigned alarms_of(unsigned looks)
{
	unsigned count = 0;

	for (unsigned i = 0; i < looks; i++)
		count += look() != ALARM_NONE;
	return count;
}

START_TEST(without_limits_there_is_no_alarm)
{
	limits.events = false;
	figures.high = figures.max = figures.oom = 100;
	figures.stalled_us *= 2;
	ck_assert_uint_eq(alarms_of(1000), 0);
	ck_assert_int_eq(look_at_rss(1 << 20), ALARM_NONE);
}
END_TEST

START_TEST(a_limit_that_is_passed_is_told_once_until_it_was_left_again)
{
	limits.rss_bytes = 100 * MIB;
	ck_assert_int_eq(look_at_rss(100), ALARM_NONE);
	ck_assert_int_eq(look_at_rss(101), ALARM_RSS_LIMIT);
	ck_assert_uint_eq(alarms_of(1000), 0);
	/* hovering around it is not leaving it */
	for (int i = 0; i < 500; i++) {
		ck_assert_int_eq(look_at_rss(95), ALARM_NONE);
		ck_assert_int_eq(look_at_rss(105), ALARM_NONE);
	}
	ck_assert_int_eq(look_at_rss(80), ALARM_NONE);
	ck_assert_int_eq(look_at_rss(101), ALARM_RSS_LIMIT);
}
END_TEST

START_TEST(an_alarm_within_the_least_time_comes_after_it_as_long_as_its_cause_lasts)
{
	unsigned looks = 0;

	limits.rss_bytes = 100 * MIB;
	ck_assert_int_eq(look_at_rss(101), ALARM_RSS_LIMIT);
	ck_assert_int_eq(look_at_rss(1), ALARM_NONE);
	figures.rss_bytes = 200 * MIB;
	while (look() == ALARM_NONE)
		looks++;
	ck_assert_uint_eq(looks, 58);           /* a minute after the first one */
}
END_TEST

START_TEST(what_happens_all_the_time_is_told_ever_more_seldom)
{
	unsigned count = 0;

	limits.events = true;
	for (int i = 0; i < 3600; i++) {
		figures.high++;
		count += look() == ALARM_MEMORY_HIGH;
	}
	/* after 1, 2, 4, 8, 16 and 32 minutes more */
	ck_assert_uint_eq(count, 6);
	/* and after a rest as at first */
	figures.now_ns += 200 * MINUTE;
	figures.high++;
	ck_assert_int_eq(look(), ALARM_MEMORY_HIGH);
	figures.now_ns += MINUTE;
	figures.high++;
	ck_assert_int_eq(look(), ALARM_MEMORY_HIGH);
}
END_TEST

START_TEST(steady_growth_is_told_when_it_was_too_fast_for_the_whole_time)
{
	unsigned at = 0;

	limits.slope_bytes = 30 * MIB;
	for (unsigned i = 1; i <= 1000 && at == 0; i++) {
		if (look_at_rss(10 + i) == ALARM_RSS_SLOPE)     /* 60 MiB a minute */
			at = i;
	}
	ck_assert_uint_ge(at, 300);
	ck_assert_uint_le(at, 320);
	/* told once while it goes on */
	for (unsigned i = 1; i <= 1000; i++)
		ck_assert_int_eq(look_at_rss(10 + at + i), ALARM_NONE);
}
END_TEST

START_TEST(growth_below_the_slope_is_none_and_neither_is_one_step)
{
	limits.slope_bytes = 30 * MIB;
	for (unsigned i = 1; i <= 2000; i++)
		ck_assert_int_eq(look_at_rss(10 + i / 3), ALARM_NONE);     /* 20 MiB a minute */
	/* a cache that is filled: 140 MiB at once are less than 30 a minute for five minutes */
	for (unsigned i = 1; i <= 1000; i++)
		ck_assert_int_eq(look_at_rss(10 + 2000 / 3 + (i < 500 ? 0 : 140)), ALARM_NONE);
}
END_TEST

START_TEST(the_gravest_counter_is_told)
{
	limits.events = true;
	ck_assert_uint_eq(alarms_of(10), 0);
	figures.high++;
	figures.max++;
	ck_assert_int_eq(look(), ALARM_MEMORY_MAX);
	figures.now_ns += 10 * MINUTE;
	figures.high++;
	figures.max++;
	figures.oom++;
	ck_assert_int_eq(look(), ALARM_MEMORY_OOM);
	ck_assert_uint_eq(alarms_of(1000), 0);
}
END_TEST

START_TEST(waiting_for_memory_counts_within_its_window)
{
	limits.stalled_us = 200000;
	for (int i = 0; i < 100; i++) {
		figures.stalled_us += 90000;            /* 180 ms in two seconds */
		ck_assert_int_eq(look(), ALARM_NONE);
	}
	figures.stalled_us += 210000;
	ck_assert_int_eq(look(), ALARM_MEMORY_PRESSURE);
	ck_assert_uint_eq(alarms_of(1000), 0);
	figures.pressed = true;                         /* the kernel's own word */
	ck_assert_int_eq(look(), ALARM_MEMORY_PRESSURE);
}
END_TEST

START_TEST(a_counter_that_begins_anew_is_no_pressure)
{
	limits.stalled_us = 200000;
	figures.stalled_us = 0;
	ck_assert_uint_eq(alarms_of(10), 0);
	figures.stalled_us += 300000;
	ck_assert_int_eq(look(), ALARM_MEMORY_PRESSURE);
}
END_TEST

START_TEST(each_alarm_has_a_name_that_nobody_else_may_give)
{
	for (enum alarm_cause cause = ALARM_RSS_LIMIT; cause <= ALARM_MEMORY_PRESSURE; cause++) {
		ck_assert(alarm_is_name(alarm_name(cause)));
		ck_assert_ptr_nonnull(occasion_text(alarm_name(cause)));
	}
	ck_assert(!alarm_is_name("exit"));
	ck_assert(!alarm_is_name(""));
	ck_assert_ptr_nonnull(occasion_text("exit"));
	ck_assert_ptr_null(occasion_text("before"));
	ck_assert_ptr_null(occasion_text(""));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("alarm");
	TCase *tcase = tcase_create("alarm");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, without_limits_there_is_no_alarm);
	tcase_add_test(tcase, a_limit_that_is_passed_is_told_once_until_it_was_left_again);
	tcase_add_test(tcase, an_alarm_within_the_least_time_comes_after_it_as_long_as_its_cause_lasts);
	tcase_add_test(tcase, what_happens_all_the_time_is_told_ever_more_seldom);
	tcase_add_test(tcase, steady_growth_is_told_when_it_was_too_fast_for_the_whole_time);
	tcase_add_test(tcase, growth_below_the_slope_is_none_and_neither_is_one_step);
	tcase_add_test(tcase, the_gravest_counter_is_told);
	tcase_add_test(tcase, waiting_for_memory_counts_within_its_window);
	tcase_add_test(tcase, a_counter_that_begins_anew_is_no_pressure);
	tcase_add_test(tcase, each_alarm_has_a_name_that_nobody_else_may_give);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
