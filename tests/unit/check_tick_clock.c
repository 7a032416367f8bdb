/* Ticks of the processors' counter as times of CLOCK_MONOTONIC. */
#include "probe/tick_clock.h"

#include "arch/arch.h"
#include "base/clock.h"

#include <check.h>
#include <stdlib.h>

#define START_NS (1000 * NSEC_PER_SEC)
#define START_TICKS 7000000000000ULL
#define LATER UINT64_MAX

/* Three ticks in a nanosecond. */
static struct tick_clock three_in_one(void)
{
	struct tick_clock clock = { .usable = true };

	tick_clock_set(&clock, (struct tick_moment){ START_NS, START_TICKS },
		       (struct tick_moment){ START_NS + 2 * NSEC_PER_MSEC, START_TICKS + 6 * NSEC_PER_MSEC });
	return clock;
}

START_TEST(ticks_are_times_before_and_behind_what_was_read)
{
	struct tick_clock clock = three_in_one();

	ck_assert_uint_eq(tick_clock_per_ms(&clock), 3000000);
	ck_assert_uint_eq(tick_clock_ns(&clock, START_TICKS + 3000, LATER), START_NS + 1000);
	ck_assert_uint_eq(tick_clock_ns(&clock, START_TICKS + 3 * 86400 * NSEC_PER_SEC, LATER), START_NS + 86400 * NSEC_PER_SEC);
}
END_TEST

START_TEST(what_is_forged_is_neither_before_the_beginning_nor_after_now)
{
	struct tick_clock clock = three_in_one();
	uint64_t now_ns = START_NS + NSEC_PER_SEC;

	ck_assert_uint_eq(tick_clock_ns(&clock, 0, now_ns), START_NS);
	ck_assert_uint_eq(tick_clock_ns(&clock, UINT64_MAX, now_ns), now_ns);
}
END_TEST

/* Who keeps the time has the clock go faster by 500 in a million. */
START_TEST(a_clock_that_is_slewed_is_followed)
{
	struct tick_clock clock = three_in_one();
	struct tick_moment moment = clock.last;

	for (unsigned i = 0; i < 1000; i++) {
		moment.ns += NSEC_PER_SEC + NSEC_PER_SEC / 2000;
		moment.ticks += 3 * NSEC_PER_SEC;
		tick_clock_take(&clock, moment);
	}
	ck_assert_uint_eq(clock.began.ns, START_NS);
	ck_assert_uint_eq(tick_clock_ns(&clock, moment.ticks, LATER), moment.ns);
	ck_assert_uint_eq(tick_clock_ns(&clock, moment.ticks - 3 * NSEC_PER_SEC, LATER),
			  moment.ns - NSEC_PER_SEC - NSEC_PER_SEC / 2000);
}
END_TEST

START_TEST(a_counter_that_has_gone_elsewhere_dates_nothing_from_before)
{
	struct tick_clock clock = three_in_one();
	struct tick_moment moment = { clock.last.ns + NSEC_PER_SEC, clock.last.ticks + 3 * NSEC_PER_SEC };

	tick_clock_take(&clock, moment);
	moment = (struct tick_moment){ moment.ns + NSEC_PER_SEC, 17 };
	tick_clock_take(&clock, moment);
	ck_assert_uint_eq(tick_clock_ns(&clock, START_TICKS + 3000, moment.ns), moment.ns);
	ck_assert_uint_eq(tick_clock_ns(&clock, 17 + 3000, LATER), moment.ns + 1000);
	ck_assert_uint_eq(tick_clock_per_ms(&clock), 3000000);
	/* Perhaps on another machine. */
	moment = (struct tick_moment){ moment.ns + NSEC_PER_SEC, moment.ticks + 2 * NSEC_PER_SEC };
	tick_clock_take(&clock, moment);
	ck_assert_uint_eq(tick_clock_per_ms(&clock), 2000000);
}
END_TEST

START_TEST(where_the_kernel_does_not_trust_the_counter_it_says_nothing)
{
	struct tick_clock clock = three_in_one();

	clock.usable = false;
	ck_assert_uint_eq(tick_clock_ns(&clock, START_TICKS, LATER), 0);
}
END_TEST

/* Both are read one after the other, and the machine is busy. */
START_TEST(this_machines_counter_tells_its_time)
{
	struct tick_clock clock;
	uint64_t before_ns, after_ns, ns;

	tick_clock_begin(&clock);
	if (!clock.usable)
		return;
	before_ns = clock_monotonic_ns();
	ns = tick_clock_ns(&clock, arch_ticks(), LATER);
	after_ns = clock_monotonic_ns();
	ck_assert_uint_le(before_ns - NSEC_PER_MSEC, ns);
	ck_assert_uint_le(ns, after_ns + NSEC_PER_MSEC);
}
END_TEST

/* A program that was just executed is held while its clock begins. */
START_TEST(a_later_clock_begins_with_the_rate_of_the_first)
{
	struct tick_clock first, later;

	tick_clock_begin(&first);
	tick_clock_begin(&later);
	ck_assert_uint_eq(later.rate.ns, first.rate.ns);
	ck_assert_uint_eq(later.rate.ticks, first.rate.ticks);
	ck_assert(later.rough);
	ck_assert_uint_ge(later.last.ns, first.last.ns);
	ck_assert_uint_ge(later.began.ns, first.began.ns);
	if (later.usable)
		ck_assert_uint_ge(tick_clock_ns(&later, arch_ticks(), LATER), later.began.ns);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tick_clock");
	TCase *tcase = tcase_create("tick_clock");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, ticks_are_times_before_and_behind_what_was_read);
	tcase_add_test(tcase, what_is_forged_is_neither_before_the_beginning_nor_after_now);
	tcase_add_test(tcase, a_clock_that_is_slewed_is_followed);
	tcase_add_test(tcase, a_counter_that_has_gone_elsewhere_dates_nothing_from_before);
	tcase_add_test(tcase, where_the_kernel_does_not_trust_the_counter_it_says_nothing);
	tcase_add_test(tcase, this_machines_counter_tells_its_time);
	tcase_add_test(tcase, a_later_clock_begins_with_the_rate_of_the_first);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
