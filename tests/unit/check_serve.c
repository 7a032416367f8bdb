/* What was seen of calls becomes events, without a process: the same for every engine. */
#include "probe/serve.h"

#include "probe/plan.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_MAX 16
#define SP 0x7ffc00001000

static struct engine engine;
static struct module_map map;
static struct stack_table *stacks;
static struct calls calls;
static struct alloc_event events[EVENTS_MAX];
static unsigned event_count, given_up;
static raddr live;                             /* the one block that is */

static void take_event(void *context, const struct alloc_event *event)
{
	(void)context;
	ck_assert_uint_lt(event_count, EVENTS_MAX);
	events[event_count++] = *event;
}

static bool is_live(void *context, raddr address, uint32_t domain)
{
	(void)context, (void)domain;
	return address == live;
}

static void give_up(void *context, int32_t tid, raddr old_address)
{
	(void)context, (void)tid, (void)old_address;
	given_up++;
}

static int read_words(void *context, raddr at, void *buf, size_t len)
{
	const uint64_t word = at + 1;

	(void)context;
	if (len != sizeof(word) || at < SP)
		return -EFAULT;
	memcpy(buf, &word, sizeof(word));
	return 0;
}

static const struct reader reader = { .read = read_words };
static struct probe alloc = { .address = 0x1000 }, resize = { .address = 0x2000 }, release = { .address = 0x3000 },
		    aligned = { .address = 0x4000 }, many = { .address = 0x5000 };

static void setup(void)
{
	module_map_init(&map);
	stacks = stack_table_new(1000);
	alloc.entry = catalog_find("malloc");
	resize.entry = catalog_find("realloc");
	release.entry = catalog_find("free");
	aligned.entry = catalog_find("posix_memalign");
	many.entry = catalog_find("calloc");
	engine = (struct engine){ .unwinder = unwinder_new(&map, stacks), .max_frames = 10 };
	engine.sink = (struct engine_sink){ .event = take_event, .is_live = is_live, .abandoned = give_up };
	ck_assert_ptr_nonnull(engine.unwinder);
}

static void teardown(void)
{
	unwinder_free(engine.unwinder);
	stack_table_free(stacks);
	module_map_fini(&map);
}

static struct sighting seen_at(unsigned kinds, const struct probe *probe)
{
	struct sighting seen = { .tid = 7, .calls = &calls, .kinds = kinds, .probe = probe, .reader = &reader,
				 .time_ns = 1234 };

	seen.regs.reg[ARCH_DWARF_SP] = SP;
	return seen;
}

static void enter(const struct probe *probe, uint64_t a, uint64_t b, uint64_t c)
{
	struct sighting seen = seen_at(SITE_ENTRY, probe);
	struct serving serving;

	seen.args[0] = a;
	seen.args[1] = b;
	seen.args[2] = c;
	serving_init(&serving, &engine, &seen);
	serve_entry(&serving);
}

static void leave(uint64_t result)
{
	struct sighting seen = seen_at(SITE_EXIT, NULL);
	struct serving serving;

	seen.result = result;
	serving_init(&serving, &engine, &seen);
	serve_return(&serving);
}

START_TEST(an_entry_and_a_return_make_a_block_at_the_time_it_was_seen)
{
	enter(&alloc, 48, 0, 0);
	ck_assert_uint_eq(event_count, 0);
	leave(0x5550);
	ck_assert_uint_eq(event_count, 1);
	ck_assert_int_eq(events[0].kind, ALLOC_BORN);
	ck_assert_uint_eq(events[0].address, 0x5550);
	ck_assert_uint_eq(events[0].size, 48);
	ck_assert_int_eq(events[0].tid, 7);
	ck_assert_uint_eq(events[0].time_ns, 1234);
}
END_TEST

START_TEST(a_failed_call_makes_no_block)
{
	enter(&alloc, 48, 0, 0);
	leave(0);
	enter(&aligned, SP + 64, 16, 100);
	leave(ENOMEM);
	ck_assert_uint_eq(event_count, 0);
}
END_TEST

START_TEST(a_result_that_is_stored_is_read_where_it_is)
{
	enter(&aligned, SP + 64, 16, 100);
	leave(0);
	ck_assert_uint_eq(event_count, 1);
	ck_assert_uint_eq(events[0].address, SP + 65);
	ck_assert_uint_eq(events[0].size, 100);
	enter(&aligned, 8, 16, 100);                   /* which cannot be read */
	leave(0);
	ck_assert_uint_eq(event_count, 1);
	ck_assert_uint_eq(engine.counters.failed_reads, 1);
}
END_TEST

START_TEST(a_product_that_overflows_is_never_a_small_block)
{
	enter(&many, 6, 7, 0);
	leave(0x5550);
	enter(&many, UINT64_MAX / 2, 3, 0);
	leave(0x6660);
	ck_assert_uint_eq(events[0].size, 42);
	ck_assert_uint_eq(events[1].size, UINT64_MAX);
}
END_TEST

START_TEST(a_free_is_told_at_its_entry)
{
	live = 0x5550;
	enter(&release, 0x5550, 0, 0);
	enter(&release, 0, 0, 0);
	ck_assert_uint_eq(event_count, 1);
	ck_assert_int_eq(events[0].kind, ALLOC_FREED);
	ck_assert_uint_eq(events[0].old_address, 0x5550);
}
END_TEST

START_TEST(a_resize_has_two_parts)
{
	live = 0x5550;
	enter(&resize, 0x5550, 80, 0);
	ck_assert_uint_eq(event_count, 1);
	ck_assert_int_eq(events[0].kind, ALLOC_RESIZE_BEGIN);
	leave(0);                                      /* failed: the old block stays, which the heap sees to */
	ck_assert_uint_eq(event_count, 2);
	ck_assert_int_eq(events[1].kind, ALLOC_RESIZE_END);
	ck_assert_uint_eq(events[1].old_address, 0x5550);
	ck_assert_uint_eq(events[1].address, 0);
	ck_assert_uint_eq(events[1].size, 80);
}
END_TEST

START_TEST(a_return_without_an_entry_is_a_stray)
{
	struct sighting seen = seen_at(SITE_EXIT, NULL);
	struct serving serving;

	leave(0x5550);
	seen.calls = NULL;
	serving_init(&serving, &engine, &seen);
	serve_return(&serving);
	ck_assert_uint_eq(engine.counters.strays, 2);
	ck_assert_uint_eq(engine.counters.orphans, 2);
	ck_assert_uint_eq(engine.counters.allocations, 0);
	ck_assert_uint_eq(event_count, 1);
	ck_assert_int_eq(events[0].kind, ALLOC_GIVEN);
	ck_assert_uint_eq(events[0].address, 0x5550);
}
END_TEST

START_TEST(an_entry_that_cannot_be_remembered_is_counted)
{
	struct sighting seen = seen_at(SITE_ENTRY, &alloc);
	struct serving serving;

	seen.calls = NULL;
	serving_init(&serving, &engine, &seen);
	serve_entry(&serving);
	ck_assert_uint_eq(engine.counters.failed_reads, 1);
}
END_TEST

START_TEST(a_jump_that_ends_a_function_has_its_result_in_its_argument)
{
	struct sighting seen = seen_at(SITE_TAIL, NULL);
	struct serving serving;

	enter(&many, 6, 7, 0);
	seen.args[0] = 0x7770;
	serving_init(&serving, &engine, &seen);
	serve_return(&serving);
	ck_assert_uint_eq(event_count, 1);
	ck_assert_uint_eq(events[0].address, 0x7770);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("serve");
	TCase *tests = tcase_create("serve");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tests);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, an_entry_and_a_return_make_a_block_at_the_time_it_was_seen);
	tcase_add_test(tests, a_failed_call_makes_no_block);
	tcase_add_test(tests, a_result_that_is_stored_is_read_where_it_is);
	tcase_add_test(tests, a_product_that_overflows_is_never_a_small_block);
	tcase_add_test(tests, a_free_is_told_at_its_entry);
	tcase_add_test(tests, a_resize_has_two_parts);
	tcase_add_test(tests, a_return_without_an_entry_is_a_stray);
	tcase_add_test(tests, an_entry_that_cannot_be_remembered_is_counted);
	tcase_add_test(tests, a_jump_that_ends_a_function_has_its_result_in_its_argument);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
