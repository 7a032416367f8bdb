/* What a thread of the program did not record is known to whoever has read all that it did record, at whatever place he has stopped. */
#include "probe/engine_private.h"

#include "require.h"

#include <check.h>
#include <stdlib.h>

#define READ_AT_ONCE 64                        /* as the engine does */
#define NOBODY 77                              /* a thread's number that no thread has: its record is a loss of its own */

static struct engine engine;
static struct target target;
static struct ring *ring;
static struct ring_control *control;

static void setup(void)
{
	engine = (struct engine){ .target = &target };
	ck_assert_int_eq(ring_new(RING_SIZE_MIN, &ring), 0);
	engine.ring.ring = ring;
	engine.ring.hook = RING_NO_HOOK;
	tick_clock_begin(&engine.ring.clock);
	control = ring_control(ring);
	control->state = RING_ON;
}

static void teardown(void)
{
	ring_free(engine.ring.ring);
}

/* Calls of nobody, as the code in the target writes them. */
static void write_calls(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		uint64_t position = control->head;
		struct ring_call *call = (void *)((uint8_t *)control + RING_CONTROL_SIZE + position % RING_SIZE_MIN);

		*call = (struct ring_call){ .head = { .length = sizeof(*call), .thread = NOBODY } };
		call->head.mark = (position ^ control->key) | RING_COMMITTED;
		control->head += sizeof(*call);
	}
}

static void stall(uint64_t lost)
{
	control->state = RING_STALLED;
	control->lost += lost;
}

static uint64_t losses(void)
{
	return engine_counters(&engine).failed_reads;
}

static void read_all(void)
{
	pid_t writer;

	REQUIRE(engine_read_until(&engine, engine_ring_head(&engine), &writer));
	ck_assert_uint_eq(engine_ring_position(&engine), engine_ring_head(&engine));
}

/* The reader comes to the end of the ring by more than one record, by none, and by as many as it reads at once, behind which it does not
 * look whether there are more. */
START_TEST(a_loss_is_known_when_all_is_read)
{
	const unsigned counts[] = { 0, 1, READ_AT_ONCE - 1, READ_AT_ONCE, READ_AT_ONCE + 1, 3 * READ_AT_ONCE };
	uint64_t expected = 0;

	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		write_calls(counts[i]);
		stall(1000);
		read_all();
		expected += counts[i] + 1000;
		ck_assert_msg(losses() == expected, "behind %u records %llu losses are known, should be %llu", counts[i],
			      (unsigned long long)losses(), (unsigned long long)expected);
		REQUIRE(engine_read_ring(&engine, 1, NULL) == 0);
		ck_assert_uint_eq(losses(), expected);
		ck_assert_uint_eq(control->state, RING_ON);
	}
}
END_TEST

/* Whoever has stalled the ring counts a moment later.  What is read to the end before and after that is a loss already. */
START_TEST(a_ring_that_is_stalled_is_a_loss_before_anybody_has_counted)
{
	stall(0);
	read_all();
	ck_assert_uint_eq(losses(), 1);
	read_all();
	ck_assert_uint_eq(losses(), 1);
	REQUIRE(engine_read_ring(&engine, 1, NULL) == 0);
	ck_assert_uint_eq(losses(), 1);
	stall(0);
	REQUIRE(engine_read_ring(&engine, 1, NULL) == 0);
	ck_assert_uint_eq(losses(), 2);
	ck_assert_uint_eq(control->state, RING_ON);
}
END_TEST

START_TEST(what_was_counted_during_a_stall_is_counted_once)
{
	stall(3);
	read_all();
	ck_assert_uint_eq(losses(), 3);
	control->lost += 2;
	read_all();
	ck_assert_uint_eq(losses(), 5);
	REQUIRE(engine_read_ring(&engine, 1, NULL) == 0);
	ck_assert_uint_eq(losses(), 5);
	/* By one that had seen the ring stalled, and was away until now. */
	control->lost++;
	read_all();
	ck_assert_uint_eq(losses(), 6);
}
END_TEST

START_TEST(a_loss_is_known_though_a_record_before_it_is_not_finished)
{
	pid_t writer;

	control->head += sizeof(struct ring_call);
	stall(4);
	REQUIRE(!engine_read_until(&engine, engine_ring_head(&engine), &writer));
	ck_assert_uint_eq(losses(), 4);
}
END_TEST

/* A program that says so for a moment, and goes on to record, would else have its tracer read until it has recorded all that. */
START_TEST(what_is_to_be_read_is_no_more_than_the_ring_holds)
{
	const uint64_t heads[] = { RING_SIZE_MIN + RING_UNIT, 1ULL << 50, (uint64_t)-RING_UNIT, 1ULL << 63 };

	write_calls(3);
	read_all();
	for (unsigned i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		uint64_t before = control->head, until;

		control->head = before + heads[i];
		until = engine_ring_head(&engine);
		control->head = before;
		ck_assert_uint_eq(until, before + RING_SIZE_MIN);
	}
	write_calls(1);
	ck_assert_uint_eq(engine_ring_head(&engine), control->head);
	read_all();
}
END_TEST

START_TEST(a_loss_is_known_when_the_ring_has_ended)
{
	stall(5);
	engine_ring_end(&engine);
	REQUIRE(!engine_has_ring(&engine));
	ck_assert_uint_eq(losses(), 5);
}
END_TEST

/* What came during a stall has written no record at the loader's hook. */
START_TEST(a_stall_may_have_hidden_a_change_of_objects)
{
	REQUIRE(!engine_take_missed_change(&engine));
	stall(0);
	read_all();
	REQUIRE(engine_misses_change(&engine));
	REQUIRE(engine_take_missed_change(&engine));
	REQUIRE(!engine_misses_change(&engine));
	REQUIRE(engine_read_ring(&engine, 1, NULL) == 0);
	REQUIRE(engine_take_missed_change(&engine));
	REQUIRE(engine_read_ring(&engine, 1, NULL) == 0);
	REQUIRE(!engine_take_missed_change(&engine));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("losses");
	TCase *tests = tcase_create("losses");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tests);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, a_loss_is_known_when_all_is_read);
	tcase_add_test(tests, a_ring_that_is_stalled_is_a_loss_before_anybody_has_counted);
	tcase_add_test(tests, what_was_counted_during_a_stall_is_counted_once);
	tcase_add_test(tests, a_loss_is_known_though_a_record_before_it_is_not_finished);
	tcase_add_test(tests, what_is_to_be_read_is_no_more_than_the_ring_holds);
	tcase_add_test(tests, a_loss_is_known_when_the_ring_has_ended);
	tcase_add_test(tests, a_stall_may_have_hidden_a_change_of_objects);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
