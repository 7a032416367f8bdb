/* Room in the ring for those that run again while others are still held: it is made before they wait for it, and nothing is done for it that
 * others would wait for. */
#include "probe/engine_private.h"

#include <check.h>
#include <stdlib.h>

#define NOBODY 77                              /* a thread's number that no thread has */
#define LOADER 0                               /* sites */
#define ELSEWHERE 1

static struct engine engine;
static struct target target;
static struct ring *ring;
static struct ring_control *control;
static unsigned looked_up;

static bool objects_changed(void *context)
{
	(void)context;
	looked_up++;
	return false;
}

static void setup(void)
{
	engine = (struct engine){ .target = &target, .sink = { .objects_changed = objects_changed } };
	ck_assert_int_eq(ring_new(RING_SIZE_MIN, &ring), 0);
	engine.ring.ring = ring;
	engine.ring.options.size = RING_SIZE_MIN;
	engine.ring.hook = RING_NO_HOOK;
	engine.ring.hook_waits_from = UINT64_MAX;
	tick_clock_begin(&engine.ring.clock);
	*vec_push(&engine.ring.places) = (struct ring_place){ .kinds = SITE_LOADER };
	control = ring_control(ring);
	control->state = RING_ON;
}

static void teardown(void)
{
	engine_ring_free(&engine);
}

/* As the code in the target writes it. */
static void write_call(uint32_t site)
{
	uint64_t position = control->head;
	struct ring_call *call = (void *)((uint8_t *)control + RING_CONTROL_SIZE + position % RING_SIZE_MIN);

	*call = (struct ring_call){ .head = { .length = sizeof(*call), .thread = NOBODY, .site = (uint16_t)site } };
	call->head.mark = (position ^ control->key) | RING_COMMITTED;
	control->head += sizeof(*call);
}

static void fill_up_to(uint64_t bytes)
{
	while (control->head - control->tail < bytes)
		write_call(ELSEWHERE);
}

START_TEST(room_is_due_when_three_quarters_are_full)
{
	ck_assert(!engine_is_almost_full(&engine));
	fill_up_to(RING_SIZE_MIN / 4 * 3);
	ck_assert(!engine_is_almost_full(&engine));
	write_call(ELSEWHERE);
	ck_assert(engine_is_almost_full(&engine));
}
END_TEST

START_TEST(room_that_is_made_is_there_for_writers)
{
	fill_up_to(RING_SIZE_MIN);
	engine_make_room(&engine);
	ck_assert_uint_ge(control->tail, RING_SIZE_MIN / 8);
	ck_assert_uint_lt(control->tail, RING_SIZE_MIN / 4);
}
END_TEST

START_TEST(nothing_is_looked_up_while_room_is_made)
{
	for (unsigned i = 0; i < 10; i++)
		write_call(ELSEWHERE);
	write_call(LOADER);
	fill_up_to(RING_SIZE_MIN);
	engine_make_room(&engine);
	ck_assert_uint_eq(looked_up, 0);
	ck_assert_uint_eq(engine_ring_position(&engine), 10 * sizeof(struct ring_call));
	engine_make_room(&engine);
	ck_assert_uint_eq(engine_ring_position(&engine), 10 * sizeof(struct ring_call));
	/* In its turn it is. */
	ck_assert_int_eq(engine_read_ring(&engine, 1, NULL), 1);
	ck_assert_uint_eq(looked_up, 1);
}
END_TEST

START_TEST(there_is_no_room_to_make_in_an_empty_ring)
{
	engine_make_room(&engine);
	ck_assert_uint_eq(engine_ring_position(&engine), 0);
	engine_ring_end(&engine);
	ck_assert(!engine_is_almost_full(&engine));
	engine_make_room(&engine);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("room");
	TCase *tcase = tcase_create("room");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, room_is_due_when_three_quarters_are_full);
	tcase_add_test(tcase, room_that_is_made_is_there_for_writers);
	tcase_add_test(tcase, nothing_is_looked_up_while_room_is_made);
	tcase_add_test(tcase, there_is_no_room_to_make_in_an_empty_ring);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
