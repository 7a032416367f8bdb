/* When a ring has too few readers, and when too many. */
#include "probe/ring_pressure.h"

#include <check.h>
#include <stdlib.h>

#define MS ((uint64_t)1000000)

static enum ring_advice after(struct ring_pressure *pressure, uint64_t ms, bool has_read, uint64_t left)
{
	return ring_pressure_follow(pressure, (1000 + ms) * MS, has_read, left, 1000, 0);
}

START_TEST(one_more_is_to_read_when_the_ring_stays_more_than_half_full)
{
	struct ring_pressure pressure = { .waits = 0 };
	uint64_t ms;

	for (ms = 0; ms <= RING_PRESSED_MS; ms += 10)
		ck_assert_int_eq(after(&pressure, ms, true, 501), RING_ENOUGH_READERS);
	ck_assert_int_eq(after(&pressure, ms, true, 501), RING_ONE_MORE_READER);
	/* And again so long after that. */
	ck_assert_int_eq(after(&pressure, ms, true, 501), RING_ENOUGH_READERS);
	ck_assert_int_eq(after(&pressure, ms + RING_PRESSED_MS, true, 501), RING_ENOUGH_READERS);
	ck_assert_int_eq(after(&pressure, ms + RING_PRESSED_MS + 1, true, 501), RING_ONE_MORE_READER);
}
END_TEST

START_TEST(a_ring_that_is_emptied_now_and_then_is_read_fast_enough)
{
	struct ring_pressure pressure = { .waits = 0 };

	for (uint64_t ms = 0; ms < 20 * RING_PRESSED_MS; ms += 10)
		ck_assert_int_eq(after(&pressure, ms, true, ms % 50 ? 900 : 500), RING_ENOUGH_READERS);
	/* Nor when somebody has waited, but once. */
	pressure = (struct ring_pressure){ .waits = 0 };
	ck_assert_int_eq(ring_pressure_follow(&pressure, 5000 * MS, true, 10, 1000, 1), RING_ENOUGH_READERS);
	ck_assert_int_eq(ring_pressure_follow(&pressure, 5101 * MS, true, 10, 1000, 2), RING_ONE_MORE_READER);
}
END_TEST

START_TEST(one_reads_when_there_was_nothing_to_read_for_long)
{
	struct ring_pressure pressure = { .waits = 0 };

	ck_assert_int_eq(after(&pressure, 0, false, 0), RING_ENOUGH_READERS);
	ck_assert_int_eq(after(&pressure, RING_IDLE_MS, true, 0), RING_ENOUGH_READERS);
	ck_assert_int_eq(after(&pressure, RING_IDLE_MS + 1, false, 0), RING_ENOUGH_READERS);
	ck_assert_int_eq(after(&pressure, 2 * RING_IDLE_MS + 1, false, 0), RING_ENOUGH_READERS);
	ck_assert_int_eq(after(&pressure, 2 * RING_IDLE_MS + 2, false, 0), RING_ONE_READER);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ring_pressure");
	TCase *tests = tcase_create("ring_pressure");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tests);
	tcase_add_test(tests, one_more_is_to_read_when_the_ring_stays_more_than_half_full);
	tcase_add_test(tests, a_ring_that_is_emptied_now_and_then_is_read_fast_enough);
	tcase_add_test(tests, one_reads_when_there_was_nothing_to_read_for_long);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
