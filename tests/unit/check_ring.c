/* The ring as its reader sees it, with writers in C that obey the layout, or do not. */
#define _GNU_SOURCE
#include "ring/ring.h"
#include "random.h"
#include "require.h"
#include "share.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIZE RING_SIZE_MIN

static struct ring *ring;
static struct ring_control *control;

static void setup(void)
{
	ck_assert_int_eq(ring_new(SIZE, &ring), 0);
	control = ring_control(ring);
	control->state = RING_ON;
}

static void teardown(void)
{
	ring_free(ring);
}

/* --- a writer --- */

static uint8_t *place(uint64_t position)
{
	return (uint8_t *)control + RING_CONTROL_SIZE + position % SIZE;
}

static bool reserve(uint32_t length, uint64_t *ret_position)
{
	uint64_t head = __atomic_load_n(&control->head, __ATOMIC_RELAXED);

	do {
		if (head + length - __atomic_load_n(&control->tail, __ATOMIC_ACQUIRE) > SIZE)
			return false;
	} while (!__atomic_compare_exchange_n(&control->head, &head, head + length, false, __ATOMIC_ACQ_REL,
					      __ATOMIC_RELAXED));
	*ret_position = head;
	return true;
}

static void mark(uint64_t position, enum ring_mark how)
{
	struct ring_head *head = (void *)place(position);

	__atomic_store_n(&head->mark, (position ^ control->key) | how, __ATOMIC_RELEASE);
}

static void open_record(uint64_t position, uint32_t length, uint32_t site, uint64_t thread)
{
	struct ring_head *head = (void *)place(position);

	head->length = length;
	head->site = site;
	head->thread = thread;
	mark(position, RING_OPEN);
}

static void fill_call(uint64_t position, uint64_t value)
{
	struct ring_call *call = (void *)place(position);

	call->head.sp = value + 1;
	call->return_address = value + 2;
	for (unsigned i = 0; i < 3; i++)
		call->args[i] = value + 3 + i;
}

static bool write_call(uint32_t site, uint64_t thread, uint64_t value)
{
	uint64_t position;

	if (!reserve(sizeof(struct ring_call), &position))
		return false;
	open_record(position, sizeof(struct ring_call), site, thread);
	fill_call(position, value);
	mark(position, RING_COMMITTED);
	return true;
}

static uint32_t return_length(uint32_t stack_length)
{
	return (uint32_t)(sizeof(struct ring_return) + stack_length + RING_UNIT - 1) / RING_UNIT * RING_UNIT;
}

static bool write_return(uint32_t site, uint64_t thread, uint64_t value, uint32_t stack_length)
{
	struct ring_return *record;
	uint64_t position;

	if (!reserve(return_length(stack_length), &position))
		return false;
	open_record(position, return_length(stack_length), site | RING_RETURN, thread);
	record = (void *)place(position);
	record->head.sp = value + 1;
	record->time = value + 2;
	record->result = value + 3;
	record->stack_length = stack_length;
	record->other_start = 0;
	for (unsigned i = 0; i < 6; i++)
		record->saved[i] = value + 4 + i;
	for (uint32_t i = 0; i < stack_length / 8; i++)
		record->stack[i] = value + i;
	mark(position, RING_COMMITTED);
	return true;
}

/* --- reading --- */

static void expect_call(uint32_t site, uint64_t thread, uint64_t value)
{
	struct ring_record record;

	REQUIRE(ring_next(ring, &record) == 1);
	REQUIRE(!record.is_return && record.site == site && record.thread == thread && record.sp == value + 1);
	REQUIRE(record.return_address == value + 2 && record.args[0] == value + 3 && record.args[2] == value + 5);
	ring_done(ring);
}

static void require_return(const struct ring_record *record, uint64_t value, uint32_t stack_length)
{
	uint64_t word;

	REQUIRE(record->is_return && record->sp == value + 1 && record->time == value + 2);
	REQUIRE(record->result == value + 3 && record->saved[0] == value + 4 && record->saved[5] == value + 9);
	REQUIRE(record->stack_length == stack_length);
	for (uint32_t i = 0; i < stack_length / 8; i++) {
		memcpy(&word, record->stack + 8 * i, sizeof(word));
		REQUIRE(word == value + i);
	}
}

static void expect_nothing(void)
{
	struct ring_record record;

	ck_assert_int_eq(ring_next(ring, &record), 0);
}

START_TEST(memory_that_could_be_cut_short_is_no_ring)
{
	int fd = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct ring *opened = NULL;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, RING_CONTROL_SIZE + RING_SIZE_MIN), 0);
	ck_assert_int_eq(ring_open(dup(fd), RING_SIZE_MIN, &opened), -EINVAL);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	ck_assert_int_eq(ring_open(dup(fd), 2 * RING_SIZE_MIN, &opened), -EINVAL);
	ck_assert_int_eq(ring_open(fd, RING_SIZE_MIN, &opened), 0);
	ring_free(opened);
}
END_TEST

START_TEST(records_come_out_as_they_went_in)
{
	struct ring_record record;

	expect_nothing();
	ck_assert(write_call(7, 100, 1000));
	ck_assert(write_return(8, 100, 2000, 512));
	expect_call(7, 100, 1000);
	ck_assert_int_eq(ring_next(ring, &record), 1);
	ck_assert_uint_eq(record.site, 8);
	require_return(&record, 2000, 512);
	ring_done(ring);
	expect_nothing();
}
END_TEST

START_TEST(a_record_is_there_until_it_is_done_with)
{
	ck_assert(write_call(7, 100, 1000));
	for (int i = 0; i < 3; i++) {
		struct ring_record record;

		ck_assert_int_eq(ring_next(ring, &record), 1);
		ck_assert_uint_eq(record.site, 7);
	}
	ring_done(ring);
	expect_nothing();
	ring_done(ring);                       /* of nothing */
	expect_nothing();
}
END_TEST

/* Many times round, with records that go over the end of the data. */
START_TEST(records_are_whole_wherever_they_begin)
{
	uint64_t wrapped = 0;

	for (uint64_t i = 0; i < share_of(100000); i++) {
		uint32_t stack_length = (uint32_t)(random_u64() % 1200) * 8;
		struct ring_record record;

		REQUIRE(write_return(1, 5, i * 100, stack_length));
		REQUIRE(ring_next(ring, &record) == 1);
		require_return(&record, i * 100, stack_length);
		wrapped += record.position % SIZE + return_length(stack_length) > SIZE;
		ring_done(ring);
	}
	ck_assert_uint_gt(wrapped, 20);
}
END_TEST

START_TEST(a_full_ring_takes_no_more_until_it_is_read)
{
	unsigned written = 0;

	while (write_call(1, 1, written))
		written++;
	ck_assert_uint_eq(written, SIZE / RING_UNIT);
	for (unsigned i = 0; i < written; i++)
		expect_call(1, 1, i);
	expect_nothing();                      /* which says so to the writers */
	ck_assert(write_call(2, 1, 5));
	expect_call(2, 1, 5);
}
END_TEST

START_TEST(room_is_given_back_long_before_all_is_read)
{
	unsigned written = 0;

	while (write_call(1, 1, written))
		written++;
	for (unsigned i = 0; i < written / 4; i++)
		expect_call(1, 1, i);
	ck_assert(write_call(1, 1, written));
}
END_TEST

START_TEST(an_open_record_says_whose_it_is)
{
	struct ring_record record;
	uint64_t position;

	ck_assert(reserve(sizeof(struct ring_call), &position));
	ck_assert_int_eq(ring_next(ring, &record), -EAGAIN);
	ck_assert_uint_eq(record.position, position);
	ck_assert_uint_eq(record.thread, 0);
	open_record(position, sizeof(struct ring_call), 9, 100);
	ck_assert(write_call(1, 200, 10));
	ck_assert_int_eq(ring_next(ring, &record), -EAGAIN);
	ck_assert_uint_eq(record.thread, 100);
	ck_assert_uint_eq(record.site, 9);
	fill_call(position, 50);
	mark(position, RING_COMMITTED);
	expect_call(9, 100, 50);
	expect_call(1, 200, 10);
}
END_TEST

START_TEST(what_a_dead_thread_left_is_passed)
{
	struct ring_record record;
	uint64_t position;

	ck_assert(reserve(return_length(4000), &position));        /* died before it said what it is */
	ck_assert(reserve(return_length(800), &position));
	open_record(position, return_length(800), 9 | RING_RETURN, 100);
	ck_assert(write_call(1, 200, 10));
	ck_assert_int_eq(ring_next(ring, &record), -EAGAIN);
	ck_assert_uint_eq(ring_skip(ring), return_length(4000));
	ck_assert_int_eq(ring_next(ring, &record), -EAGAIN);
	ck_assert_uint_eq(record.thread, 100);
	ck_assert_uint_eq(ring_skip(ring), return_length(800));
	expect_call(1, 200, 10);
	expect_nothing();
	ck_assert_uint_eq(ring_skip(ring), 0);
}
END_TEST

/* Whose writer lives, and has not come to say how long it is. */
START_TEST(what_was_reserved_behind_it_is_not_passed_with_it)
{
	struct ring_record record;
	uint64_t dead, position;

	ck_assert(reserve(return_length(800), &dead));
	open_record(dead, return_length(800), 9 | RING_RETURN, 100);
	ck_assert(reserve(sizeof(struct ring_call), &position));
	ck_assert_int_eq(ring_next(ring, &record), -EAGAIN);
	ck_assert_uint_eq(ring_skip(ring), return_length(800));
	ck_assert_int_eq(ring_next(ring, &record), -EAGAIN);
	ck_assert_uint_eq(record.position, position);
	open_record(position, sizeof(struct ring_call), 9, 200);
	fill_call(position, 50);
	mark(position, RING_COMMITTED);
	expect_call(9, 200, 50);
	expect_nothing();
}
END_TEST

START_TEST(what_was_given_up_by_its_writer_is_passed_without_a_word)
{
	struct ring_head *head;
	uint64_t position;

	for (unsigned i = 0; i < 2; i++) {
		ck_assert(reserve(return_length(4000), &position));
		head = (void *)place(position);
		head->length = return_length(4000);
		head->site = RING_VOID;
		mark(position, RING_COMMITTED);
	}
	ck_assert(write_call(1, 200, 10));
	expect_call(1, 200, 10);
	expect_nothing();
}
END_TEST

/* Where there was no more than that when it was looked at first. */
START_TEST(what_comes_behind_a_record_that_was_given_up_is_seen_at_once)
{
	struct ring_record record;
	struct ring_head *head;
	uint64_t position;

	ck_assert(reserve(return_length(4000), &position));
	ck_assert_int_eq(ring_next(ring, &record), -EAGAIN);
	head = (void *)place(position);
	head->length = return_length(4000);
	head->site = RING_VOID;
	mark(position, RING_COMMITTED);
	ck_assert(write_call(1, 200, 10));
	expect_call(1, 200, 10);
	expect_nothing();
}
END_TEST

/* Two of them, one of which says what it is, among what others have written. */
START_TEST(what_nobody_will_write_becomes_no_record)
{
	uint64_t positions[2], position = 0, thread;

	ck_assert(!ring_find_unfinished(ring, &position, &thread));
	ck_assert(write_call(1, 200, 10));
	ck_assert(reserve(return_length(4000), &positions[0]));
	ck_assert(write_call(1, 200, 11));
	ck_assert(reserve(return_length(800), &positions[1]));
	open_record(positions[1], return_length(800), 9 | RING_RETURN, 100);
	ck_assert(write_call(1, 200, 12));
	for (unsigned i = 0; i < 2; i++) {
		ck_assert(ring_find_unfinished(ring, &position, &thread));
		ck_assert_uint_eq(position, positions[i]);
		ck_assert_uint_eq(thread, i ? 100 : 0);
		ring_make_void(ring, position);
	}
	ck_assert(!ring_find_unfinished(ring, &position, &thread));
	for (uint64_t i = 10; i <= 12; i++)
		expect_call(1, 200, i);
	expect_nothing();
}
END_TEST

/* No more than that is told, or made of them. */
START_TEST(pieces_with_lengths_that_cannot_be_are_no_end)
{
	static const uint32_t lengths[] = { 0, 1, RING_UNIT + 1, SIZE, UINT32_MAX };
	uint64_t position, thread;

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		struct ring_record record;
		uint64_t committed, open;

		ck_assert(reserve(RING_UNIT, &committed));
		open_record(committed, lengths[i], 1, 1);
		mark(committed, RING_COMMITTED);
		position = committed;
		ck_assert(!ring_find_unfinished(ring, &position, &thread));
		ck_assert_uint_gt(ring_skip(ring), 0);
		ck_assert(reserve(2 * RING_UNIT, &open));
		open_record(open, lengths[i], 1, 1);
		ck_assert(write_call(1, 200, i));
		position = open;
		ck_assert(ring_find_unfinished(ring, &position, &thread));
		ring_make_void(ring, open);
		expect_call(1, 200, i);
		ck_assert_int_eq(ring_next(ring, &record), 0);
	}
	control->head = ring_position(ring) + SIZE + RING_UNIT;
	position = ring_position(ring);
	ck_assert(!ring_find_unfinished(ring, &position, &thread));
	ring_make_void(ring, position);
	ck_assert_uint_ne(((struct ring_head *)(void *)place(position))->site, RING_VOID);
}
END_TEST

START_TEST(a_slot_has_the_pending_calls_of_one_thread)
{
	const struct ring_slot *slot = &control->slots[5];

	ring_note_pending(ring, 5, 0x1000);
	ring_note_pending(ring, 5, 0x1000);
	ring_note_pending(ring, 5, 0x2000);
	ck_assert_uint_eq(slot->sp[0], 0x1000);
	ck_assert_uint_eq(slot->sp[1], 0x2000);
	ck_assert_uint_eq(slot->sp[2], 0);
	ring_note_pending(ring, 5 + RING_SLOTS, 0x3000);
	ring_note_returned(ring, 5 + RING_SLOTS, 0x1000);
	ring_forget_thread(ring, 5 + RING_SLOTS);
	ck_assert_uint_eq(slot->thread, 5);
	ck_assert_uint_eq(slot->sp[2], 0);
	ring_note_returned(ring, 5, 0x1000);
	ck_assert_uint_eq(slot->sp[0], 0);
	ck_assert_uint_eq(slot->sp[1], 0x2000);
	ring_forget_thread(ring, 5);
	ring_note_pending(ring, 5 + RING_SLOTS, 0x3000);
	ck_assert_uint_eq(slot->thread, 5 + RING_SLOTS);
	ck_assert_uint_eq(slot->sp[0], 0x3000);
}
END_TEST

/* What lies there from the round before was marked as committed, too, and stacks hold all sorts of numbers. */
START_TEST(old_records_and_stacks_are_not_taken_for_new_ones)
{
	struct ring_record record;
	uint64_t position;

	for (unsigned i = 0; i < SIZE / RING_UNIT; i++)
		ck_assert(write_call(1, 1, i));
	for (unsigned i = 0; i < SIZE / RING_UNIT; i++)
		expect_call(1, 1, i);
	expect_nothing();
	ck_assert(reserve(return_length(8000), &position));
	for (unsigned i = 0; i < 8000 / 8; i++)
		((uint64_t *)(void *)place(position))[i] = (position + 8 * i) | RING_COMMITTED;
	ck_assert_int_eq(ring_next(ring, &record), -EAGAIN);
	ck_assert_uint_eq(ring_skip(ring), return_length(8000));
	expect_nothing();
}
END_TEST

START_TEST(what_the_program_writes_over_the_rate_is_not_drawn_by)
{
	ring_set_sampling(ring, 1000);
	ring_control(ring)->sample_bytes = UINT64_MAX;
	for (uint32_t i = 0; i < 100; i++) {
		const struct ring_sampled_call call = { .thread = 7, .site = i, .sp = 0x1000, .return_address = 0x2000,
							.bytes = 1000000 };

		ck_assert_int_eq(ring_sample(ring, &call), RING_SAMPLED);
		ring_sample_returned(ring, 7, 0x1000);
	}
}
END_TEST

START_TEST(lengths_are_kept_by_place)
{
	const uint32_t key = 0x12345678, tag = 1 << RING_KEY_TAG_SHIFT;

	ring_set_all_stack_lengths(ring, 4096);
	ring_set_stack_length(ring, key, 1000);
	ck_assert_uint_eq(ring_stack_length(ring, key), 1024);
	ck_assert_uint_eq(ring_stack_length(ring, key + tag), 4096);
	ring_set_stack_length(ring, key + tag, 1 << 30);
	ck_assert_uint_eq(ring_stack_length(ring, key + tag), RING_STACK_MAX);
	ck_assert_uint_eq(ring_stack_length(ring, key), 1024);
	/* A third one has the place of another. */
	ring_set_stack_length(ring, key + 2 * tag, 2048);
	ck_assert_uint_eq(ring_stack_length(ring, key + 2 * tag), 2048);
	ck_assert_int_eq((ring_stack_length(ring, key) == 4096) + (ring_stack_length(ring, key + tag) == 4096), 1);
	ring_set_all_stack_lengths(ring, 512);
	ck_assert_uint_eq(ring_stack_length(ring, key + 2 * tag), 512);
}
END_TEST

START_TEST(what_was_too_short_is_several_times_as_long_next)
{
	ring_set_all_stack_lengths(ring, RING_STACK_MAX);
	ring_set_stack_length(ring, 7 << 20, 1024);
	ring_note_too_short(ring, 7 << 20);
	ck_assert_uint_eq(ring_stack_length(ring, 7 << 20), RING_STACK_MAX);
	ring_set_stack_length(ring, 7 << 20, 1100);
	ck_assert_uint_eq(ring_stack_length(ring, 7 << 20), RING_GROWTH * 1024);
}
END_TEST

START_TEST(losses_are_told_once)
{
	ck_assert_uint_eq(ring_take_lost(ring), 0);
	control->lost += 3;
	ck_assert_uint_eq(ring_take_lost(ring), 3);
	ck_assert_uint_eq(ring_take_lost(ring), 0);
}
END_TEST

START_TEST(sizes_that_no_ring_has_are_refused)
{
	static const uint64_t sizes[] = { 0, 1, RING_SIZE_MIN / 2, RING_SIZE_MIN + 4096, 2 * RING_SIZE_MAX, UINT64_MAX };
	struct ring *none = NULL;

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		ck_assert_int_eq(ring_new(sizes[i], &none), -EINVAL);
	ck_assert_ptr_null(none);
	ring_free(NULL);
}
END_TEST

START_TEST(the_program_cannot_cut_it_short)
{
	ck_assert_int_eq(ftruncate(ring_fd(ring), 0), -1);
	ck_assert_int_eq(errno, EPERM);
	ck_assert_int_eq(ftruncate(ring_fd(ring), 1 << 30), -1);
}
END_TEST

/* --- a hostile program --- */

START_TEST(a_head_that_is_nowhere_is_told)
{
	struct ring_record record;

	control->head = 8;
	ck_assert_int_eq(ring_next(ring, &record), -EBADMSG);
	control->head = SIZE + RING_UNIT;
	ck_assert_int_eq(ring_next(ring, &record), -EBADMSG);
	control->head = (uint64_t)-(int64_t)RING_UNIT;
	ck_assert_int_eq(ring_next(ring, &record), -EBADMSG);
	ck_assert_uint_eq(ring_skip(ring), 0);
	control->head = 0;
	expect_nothing();
}
END_TEST

START_TEST(lengths_that_cannot_be_are_told)
{
	static const uint32_t lengths[][2] = {         /* of the record, of its stack */
		{ 0, 0 }, { 64, 0 }, { 100, 0 }, { 128, 128 }, { 256, 4 }, { 1u << 31, 0 }, { SIZE, 0 },
		{ 256, UINT32_MAX - 7 }, { SIZE / 2, RING_STACK_MAX + 8 },
	};

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		struct ring_record record;
		struct ring_return *bad;
		uint64_t position;

		ck_assert(reserve(SIZE / 4, &position));
		bad = (void *)place(position);
		open_record(position, lengths[i][0], RING_RETURN, 1);
		bad->stack_length = lengths[i][1];
		mark(position, RING_COMMITTED);
		ck_assert_int_eq(ring_next(ring, &record), -EBADMSG);
		ck_assert_uint_eq(ring_skip(ring), SIZE / 4);
		expect_nothing();
	}
}
END_TEST

/* Anything in the whole of the mapping, at any time: no read beyond it, no endless loop. */
START_TEST(random_bytes_do_no_harm)
{
	for (unsigned round = 0; round < share_of(300); round++) {
		uint64_t passed = 0;
		struct ring_record record;

		for (unsigned i = 0; i < 2000; i++) {
			uint64_t position = random_u64() % SIZE / RING_UNIT * RING_UNIT;
			uint64_t words[8];

			for (unsigned w = 0; w < 8; w++)
				words[w] = random_u64() % 3 ? random_u64() % 500 : random_u64();
			words[0] = (position ^ control->key) | random_u64() % 4;
			memcpy(place(position), words, sizeof(words));
		}
		control->head = random_u64() % (2 * SIZE) / RING_UNIT * RING_UNIT;
		control->key = random_u64();
		control->size = random_u64();
		while (passed < 4ULL * SIZE) {
			int r = ring_next(ring, &record);

			if (r == 0)
				break;
			if (r == 1) {
				REQUIRE(record.stack_length <= RING_STACK_MAX);
				for (uint32_t b = 0; record.is_return && b < record.stack_length; b++)
					passed += record.stack[b] & 0;
				ring_done(ring);
			} else if (ring_skip(ring) == 0) {
				break;
			}
			passed += RING_UNIT;
		}
		REQUIRE(passed < 4ULL * SIZE);
		teardown();
		setup();
	}
}
END_TEST

/* --- several writers --- */

#define WRITERS 4

static unsigned per_writer;

static void *write_many(void *number)
{
	uint64_t thread = *(const unsigned *)number;

	for (uint64_t i = 0; i < per_writer; i++) {
		while (!(i % 3 ? write_call(1, thread, i) : write_return(2, thread, i, (uint32_t)(i % 50 * 8))))
			sched_yield();
	}
	return NULL;
}

START_TEST(every_threads_records_come_in_its_order)
{
	static unsigned numbers[WRITERS] = { 0, 1, 2, 3 };
	uint64_t next[WRITERS] = { 0 }, seen = 0;
	pthread_t threads[WRITERS];

	per_writer = share_of(100000);
	for (unsigned i = 0; i < WRITERS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, write_many, &numbers[i]), 0);
	while (seen < (uint64_t)WRITERS * per_writer) {
		struct ring_record record;
		int r = ring_next(ring, &record);

		REQUIRE(r >= 0 || r == -EAGAIN);
		if (r <= 0) {
			sched_yield();
			continue;
		}
		REQUIRE(record.thread < WRITERS && record.sp == next[record.thread] + 1);
		if (record.is_return)
			require_return(&record, next[record.thread], (uint32_t)(next[record.thread] % 50 * 8));
		next[record.thread]++;
		ring_done(ring);
		seen++;
	}
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	expect_nothing();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ring");
	TCase *tests = tcase_create("ring");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tests);
	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, memory_that_could_be_cut_short_is_no_ring);
	tcase_add_test(tests, records_come_out_as_they_went_in);
	tcase_add_test(tests, a_record_is_there_until_it_is_done_with);
	tcase_add_test(tests, records_are_whole_wherever_they_begin);
	tcase_add_test(tests, a_full_ring_takes_no_more_until_it_is_read);
	tcase_add_test(tests, room_is_given_back_long_before_all_is_read);
	tcase_add_test(tests, an_open_record_says_whose_it_is);
	tcase_add_test(tests, what_a_dead_thread_left_is_passed);
	tcase_add_test(tests, what_was_reserved_behind_it_is_not_passed_with_it);
	tcase_add_test(tests, what_was_given_up_by_its_writer_is_passed_without_a_word);
	tcase_add_test(tests, what_comes_behind_a_record_that_was_given_up_is_seen_at_once);
	tcase_add_test(tests, what_nobody_will_write_becomes_no_record);
	tcase_add_test(tests, pieces_with_lengths_that_cannot_be_are_no_end);
	tcase_add_test(tests, a_slot_has_the_pending_calls_of_one_thread);
	tcase_add_test(tests, old_records_and_stacks_are_not_taken_for_new_ones);
	tcase_add_test(tests, what_the_program_writes_over_the_rate_is_not_drawn_by);
	tcase_add_test(tests, lengths_are_kept_by_place);
	tcase_add_test(tests, what_was_too_short_is_several_times_as_long_next);
	tcase_add_test(tests, losses_are_told_once);
	tcase_add_test(tests, sizes_that_no_ring_has_are_refused);
	tcase_add_test(tests, the_program_cannot_cut_it_short);
	tcase_add_test(tests, a_head_that_is_nowhere_is_told);
	tcase_add_test(tests, lengths_that_cannot_be_are_told);
	tcase_add_test(tests, random_bytes_do_no_harm);
	tcase_add_test(tests, every_threads_records_come_in_its_order);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
