/* What one subscriber has not taken yet: bounded, in order, and nobody's events crowd out another's. */
#include "daemon/events_queue.h"

#include <check.h>
#include <stdlib.h>

#define ROOT 0
#define ONE 1001
#define OTHER 1002
#define SHARE OWNER_SHARE(EVENTS_QUEUED_MAX)

static struct events_queue queue;

static void setup(void)
{
	queue = (struct events_queue){ 0 };
}

static void teardown(void)
{
	events_queue_fini(&queue);
}

static void add(uid_t owner, int number)
{
	json_t *body = json_integer(number);

	events_queue_add(&queue, owner, owner != ROOT, body);
	json_decref(body);
}

static void flood(uid_t owner, int count)
{
	for (int i = 0; i < count; i++)
		add(owner, i);
}

static void see(int number)
{
	uint64_t missed;
	json_t *body;

	ck_assert(events_queue_take(&queue, &body, &missed));
	ck_assert_uint_eq(missed, 0);
	ck_assert_int_eq(json_integer_value(body), number);
	json_decref(body);
}

static void see_flood(int count)
{
	for (int i = 0; i < count; i++)
		see(i);
}

static void see_missed(uint64_t count)
{
	uint64_t missed;
	json_t *body;

	ck_assert(events_queue_take(&queue, &body, &missed));
	ck_assert_ptr_null(body);
	ck_assert_uint_eq(missed, count);
}

static void see_nothing(void)
{
	uint64_t missed;
	json_t *body;

	ck_assert(!events_queue_take(&queue, &body, &missed));
}

START_TEST(what_finds_no_room_is_counted_where_it_is_missed)
{
	flood(ROOT, EVENTS_QUEUED_MAX + 7);
	see(0);
	see(1);
	add(ROOT, 4711);
	for (int i = 2; i < EVENTS_QUEUED_MAX; i++)
		see(i);
	see_missed(7);
	see(4711);
	see_nothing();
	/* A message that there is no memory for, too. */
	events_queue_add(&queue, ROOT, false, NULL);
	add(ROOT, 1);
	see_missed(1);
	see(1);
	see_nothing();
}
END_TEST

START_TEST(a_users_flood_takes_no_room_from_others)
{
	flood(ONE, 1000);
	add(OTHER, 4711);
	add(ROOT, 4712);
	add(ONE, 4713);
	see_flood(SHARE);
	see_missed(1000 - SHARE + 1);
	see(4711);
	see(4712);
	see_nothing();
	/* It goes on from there. */
	add(ONE, 4714);
	see(4714);
	see_nothing();
}
END_TEST

START_TEST(however_many_users_there_are_a_share_is_left_for_what_is_nobody_elses)
{
	for (uid_t user = ONE; user < ONE + 10; user++)
		flood(user, EVENTS_QUEUED_MAX);
	flood(ROOT, SHARE);
	see_flood(SHARE);
	see_missed(10 * EVENTS_QUEUED_MAX - 3 * SHARE);
	for (int i = 0; i < 3; i++)
		see_flood(SHARE);
	see_nothing();
}
END_TEST

START_TEST(who_has_the_queue_alone_has_all_of_it)
{
	flood(ROOT, EVENTS_QUEUED_MAX);
	see_flood(EVENTS_QUEUED_MAX);
	see_nothing();
}
END_TEST

START_TEST(in_any_order_nothing_is_lost_and_nothing_told_twice)
{
	uint64_t added = 0, told = 0;
	int last[3] = { -1, -1, -1 };

	srandom(1);
	for (int i = 0; i < 200000; i++) {
		uint64_t missed;
		json_t *body;
		bool quick = (i / 1000) % 2;

		if (random() % (quick ? 3 : 10) > 0) {
			uid_t owner = (uid_t)(random() % 3);

			add(owner == 0 ? ROOT : ONE + owner, i * 3 + (int)owner);
			added++;
		} else if (events_queue_take(&queue, &body, &missed)) {
			told += body ? 1 : missed;
			if (body) {
				int number = (int)json_integer_value(body);

				ck_assert_int_gt(number, last[number % 3]);
				last[number % 3] = number;
				json_decref(body);
			}
		}
		ck_assert_uint_le(queue.count, EVENTS_QUEUED_MAX);
	}
	for (;;) {
		uint64_t missed;
		json_t *body;

		if (!events_queue_take(&queue, &body, &missed))
			break;
		told += body ? 1 : missed;
		json_decref(body);
	}
	ck_assert_uint_eq(told, added);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("events_queue");
	TCase *t = tcase_create("queue");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, what_finds_no_room_is_counted_where_it_is_missed);
	tcase_add_test(t, a_users_flood_takes_no_room_from_others);
	tcase_add_test(t, however_many_users_there_are_a_share_is_left_for_what_is_nobody_elses);
	tcase_add_test(t, who_has_the_queue_alone_has_all_of_it);
	tcase_add_test(t, in_any_order_nothing_is_lost_and_nothing_told_twice);
	suite_add_tcase(suite, t);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
