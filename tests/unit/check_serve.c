/* What was seen of calls becomes events, without a process: the same for every engine. */
#define _GNU_SOURCE
#include "probe/serve.h"

#include "probe/plan.h"

#include <check.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EVENTS_MAX 16
#define SP 0x7ffc00001000
#define WORD 0x7ffc00002000                    /* where libc keeps the break */
#define PAGE 4096ULL

static struct engine engine;
static struct module_map map;
static struct stack_table *stacks;
static struct calls calls;
static struct alloc_event events[EVENTS_MAX];
static unsigned event_count, given_up;
static raddr live;                             /* the one block that is */
static uint64_t break_word;

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
	memcpy(buf, at == WORD ? &break_word : &word, sizeof(word));
	return 0;
}

static const struct reader reader = { .read = read_words };
static struct probe alloc = { .address = 0x1000 }, resize = { .address = 0x2000 }, release = { .address = 0x3000 },
		    aligned = { .address = 0x4000 }, many = { .address = 0x5000 },
		    mapper = { .address = 0x6000 }, unmap = { .address = 0x7000 }, remap = { .address = 0x8000 },
		    move_break = { .address = 0x9000, .word = WORD };

static void setup(void)
{
	module_map_init(&map);
	stacks = stack_table_new(1000);
	alloc.entry = catalog_find("malloc");
	resize.entry = catalog_find("realloc");
	release.entry = catalog_find("free");
	aligned.entry = catalog_find("posix_memalign");
	many.entry = catalog_find("calloc");
	mapper.entry = catalog_find("mmap64");
	unmap.entry = catalog_find("munmap");
	remap.entry = catalog_find("mremap");
	move_break.entry = catalog_find("brk");
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
	struct sighting seen = { .tid = 7, .word = 7, .calls = &calls, .kinds = kinds, .probe = probe, .reader = &reader,
				 .time_ns = 1234 };

	seen.regs.reg[ARCH_DWARF_SP] = SP;
	/* In no object, with a frame pointer that is none: stack pointers alone decide. */
	seen.regs.reg[ARCH_DWARF_PC] = 0x1000;
	seen.regs.reg[ARCH_DWARF_BP] = 8;
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

static uint64_t blind_return;

/* Of a record without a stack. */
static int read_return_address(void *context, raddr at, void *buf, size_t len)
{
	(void)context, (void)at;
	memcpy(buf, &blind_return, len);
	return 0;
}

/* Seven words further in than the call that is pending. */
static void enter_blindly(const struct probe *probe, uint64_t size, uint64_t return_address)
{
	static const struct reader blind = { .read = read_return_address };
	struct sighting seen = seen_at(SITE_ENTRY, probe);
	struct serving serving;

	blind_return = return_address;
	seen.regs.reg[ARCH_DWARF_SP] -= 56;
	seen.recorded = seen.is_blind = true;
	seen.reader = &blind;
	seen.args[0] = size;
	serving_init(&serving, &engine, &seen);
	serve_entry(&serving);
}

/* As glibc's posix_memalign calls malloc, of a thread whose slot is another's. */
START_TEST(a_call_without_a_stack_is_a_part_of_the_one_it_comes_from)
{
	struct code_part *part = vec_push(&aligned.parts);

	ck_assert_ptr_nonnull(part);
	*part = (struct code_part){ .address = aligned.address, .size = 0x100 };
	enter(&aligned, SP + 64, 16, 100);
	enter_blindly(&alloc, 100, aligned.address + 0x40);
	ck_assert_uint_eq(engine.counters.failed_reads, 0);
	/* By whom this is called nobody knows. */
	enter_blindly(&alloc, 100, 0x123456);
	ck_assert_uint_gt(engine.counters.failed_reads, 0);
	vec_fini(&aligned.parts);
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

/* Entered at a breakpoint, or while the thread is held: it may return by a record. */
START_TEST(the_return_of_a_resize_that_is_no_sample_is_recorded_for_its_old_block)
{
	const uint64_t bytes = RING_SAMPLE_MAX;
	struct ring_draw *draw;

	ck_assert_int_eq(ring_new(RING_SIZE_MIN, &engine.ring.ring), 0);
	ring_set_sampling(engine.ring.ring, bytes);
	engine.ring.options.sample_bytes = bytes;
	draw = &ring_control(engine.ring.ring)->draws_of[0][seen_at(SITE_ENTRY, NULL).word];
	enter(&resize, 0x4440, 1, 0);
	ck_assert_uint_eq(draw->fate, RING_PASSED);
	ck_assert_uint_eq(event_count, 0);
	leave(0x6660);
	ring_sample_returned(engine.ring.ring, seen_at(SITE_ENTRY, NULL).word, SP);
	live = 0x5550;
	enter(&resize, 0x5550, 1, 0);
	ck_assert_uint_eq(draw->fate, RING_OLD_ALONE);
	leave(0x6660);
	ck_assert_uint_eq(event_count, 2);
	ck_assert_int_eq(events[1].kind, ALLOC_RESIZE_END);
	ck_assert_uint_eq(events[1].address, 0);
	ck_assert_uint_eq(events[1].size, 0);
	ring_free(engine.ring.ring);
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

/* --- mappings --- */

static void enter_mapping(const struct probe *probe, raddr sp, uint64_t a, uint64_t b, uint64_t c, uint64_t flags)
{
	struct sighting seen = seen_at(SITE_ENTRY, probe);
	struct serving serving;

	seen.regs.reg[ARCH_DWARF_SP] = sp;
	seen.args[0] = a;
	seen.args[1] = b;
	seen.args[2] = c;
	seen.args[3] = flags;
	serving_init(&serving, &engine, &seen);
	serve_entry(&serving);
}

static void leave_at(raddr sp, uint64_t result)
{
	struct sighting seen = seen_at(SITE_EXIT, NULL);
	struct serving serving;

	seen.regs.reg[ARCH_DWARF_SP] = sp;
	seen.result = result;
	serving_init(&serving, &engine, &seen);
	serve_return(&serving);
}

static void ck_event(unsigned number, enum alloc_kind kind, raddr old, uint64_t old_size, raddr address, uint64_t size)
{
	ck_assert_uint_gt(event_count, number);
	ck_assert_int_eq(events[number].kind, kind);
	ck_assert_uint_eq(events[number].domain, DOMAIN_MMAP);
	ck_assert_uint_eq(events[number].old_address, old);
	ck_assert_uint_eq(events[number].old_size, old_size);
	ck_assert_uint_eq(events[number].address, address);
	ck_assert_uint_eq(events[number].size, size);
}

START_TEST(a_mapping_is_whole_pages)
{
	enter_mapping(&mapper, SP, 0, 5000, 3, MAP_PRIVATE | MAP_ANONYMOUS);
	leave_at(SP, 0x10000);
	ck_event(0, ALLOC_BORN, 0, 0, 0x10000, 2 * PAGE);
	ck_assert(!events[0].replaces && !events[0].internal);
	enter_mapping(&mapper, SP, 0x20000, 1, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_HUGETLB);
	leave_at(SP, 0x20000);
	ck_event(1, ALLOC_BORN, 0, 0, 0x20000, 2 << 20);
	ck_assert(events[1].replaces);
	enter_mapping(&mapper, SP, 0, 5000, 3, MAP_PRIVATE);
	leave_at(SP, (uint64_t)-1);
	ck_assert_uint_eq(event_count, 2);
}
END_TEST

START_TEST(an_unmapping_has_two_parts)
{
	enter_mapping(&unmap, SP, 0x10000, 4097, 0, 0);
	ck_event(0, ALLOC_RESIZE_BEGIN, 0x10000, 2 * PAGE, 0, 0);
	leave_at(SP, 0);
	ck_event(1, ALLOC_RESIZE_END, 0x10000, 2 * PAGE, 0, 0);
	enter_mapping(&unmap, SP, 0x10001, PAGE, 0, 0);
	leave_at(SP, (uint32_t)-1);
	ck_event(3, ALLOC_RESIZE_END, 0x10001, PAGE, 0, 1);
}
END_TEST

START_TEST(a_mapping_that_moves_leaves_its_place_unless_it_is_to_stay_there)
{
	enter_mapping(&remap, SP, 0x10000, PAGE, 3 * PAGE, MREMAP_MAYMOVE);
	leave_at(SP, 0x40000);
	ck_event(1, ALLOC_RESIZE_END, 0x10000, PAGE, 0x40000, 3 * PAGE);
	enter_mapping(&remap, SP, 0x40000, PAGE, PAGE, MREMAP_MAYMOVE | 4);
	leave_at(SP, 0x50000);
	ck_event(2, ALLOC_BORN, 0x40000, 0, 0x50000, PAGE);
	enter_mapping(&remap, SP, 0x40000, PAGE, 9 * PAGE, 0);
	leave_at(SP, (uint64_t)-1);
	ck_event(4, ALLOC_RESIZE_END, 0x40000, PAGE, 0, 1);
}
END_TEST

START_TEST(a_break_that_is_raised_maps_and_one_that_is_lowered_unmaps)
{
	break_word = 0x10010;
	enter_mapping(&move_break, SP, 0x13000, 0, 0, 0);
	break_word = 0x13000;
	leave_at(SP, 0);
	ck_event(0, ALLOC_BORN, 0, 0, 0x11000, 2 * PAGE);
	enter_mapping(&move_break, SP, 0x11800, 0, 0, 0);
	break_word = 0x11800;
	leave_at(SP, 0);
	ck_event(1, ALLOC_RESIZE_BEGIN, 0x12000, PAGE, 0, 0);
	ck_event(2, ALLOC_RESIZE_END, 0x12000, PAGE, 0, 0);
	enter_mapping(&move_break, SP, 0x1000, 0, 0, 0);       /* too low: the kernel leaves it where it is */
	leave_at(SP, 0);
	ck_event(4, ALLOC_RESIZE_END, 0x1000, 0x11000, 0, 1);
	enter_mapping(&move_break, SP, 0, 0, 0, 0);            /* asks for it */
	leave_at(SP, 0);
	ck_assert_uint_eq(event_count, 5);
}
END_TEST

START_TEST(what_malloc_maps_is_its_own)
{
	enter(&alloc, 1 << 20, 0, 0);
	enter_mapping(&mapper, SP - 100, 0, PAGE, 3, 0);
	leave_at(SP - 100, 0x10000);
	ck_event(0, ALLOC_BORN, 0, 0, 0x10000, PAGE);
	ck_assert(events[0].internal);
	leave(0x10010);
	ck_assert_int_eq(events[1].kind, ALLOC_BORN);
	ck_assert_uint_eq(events[1].domain, DOMAIN_MALLOC);
	enter_mapping(&mapper, SP - 100, 0, PAGE, 3, 0);
	leave_at(SP - 100, 0x20000);
	ck_assert(!events[2].internal);
}
END_TEST

/* Whether it goes on cannot be seen here. */
START_TEST(what_is_mapped_after_a_free_is_not_the_frees)
{
	live = 0x5550;
	enter(&release, 0x5550, 0, 0);
	enter_mapping(&mapper, SP - 100, 0, PAGE, 3, 0);
	leave_at(SP - 100, 0x20000);
	ck_event(1, ALLOC_BORN, 0, 0, 0x20000, PAGE);
	ck_assert(!events[1].internal);
}
END_TEST

START_TEST(who_stands_before_libcs_mmap_has_mapped)
{
	struct probe wrapper = mapper;

	wrapper.address = 0xa000;
	enter_mapping(&wrapper, SP, 0, 2 * PAGE, 3, 0);
	enter_mapping(&mapper, SP - 100, 0, 4 * PAGE, 3, 0);
	leave_at(SP - 100, 0x20000);
	enter_mapping(&unmap, SP - 100, 0x20000, 2 * PAGE, 0, 0);
	leave_at(SP - 100, 0);
	leave_at(SP, 0x22000);
	ck_assert_uint_eq(event_count, 1);
	ck_event(0, ALLOC_BORN, 0, 0, 0x22000, 2 * PAGE);
}
END_TEST

START_TEST(an_unmapping_that_is_left_has_failed)
{
	struct sighting seen = seen_at(SITE_ENTRY, NULL);
	struct serving serving;

	enter_mapping(&unmap, SP, 0x10000, PAGE, 0, 0);
	serving_init(&serving, &engine, &seen);
	calls_end(&calls, &serving.eyes);
	ck_event(1, ALLOC_RESIZE_END, 0x10000, PAGE, 0, 1);
	ck_assert_uint_eq(given_up, 0);
}
END_TEST

/* --- filters of system calls --- */

#define MANY 150                       /* more than are asked at a time */

static pthread_barrier_t is_confined, is_looked_at;
static pid_t confined;

/* This thread alone: it may still make any call. */
static void *confine(void *unused)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { 1, &all };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0)
		confined = gettid();
	pthread_barrier_wait(&is_confined);
	pthread_barrier_wait(&is_looked_at);
	return unused;
}

/* Whether it is seen, of so many, and after how many looks at most. */
static void require_seen(size_t number, size_t count, unsigned looks)
{
	static struct task tasks[MANY], *listed[MANY];
	struct target target = { .memory_tid = getpid() };
	struct ring_control *control = ring_control(engine.ring.ring);
	unsigned looked = 0;

	for (size_t i = 0; i < count; i++) {
		tasks[i].tid = i == number ? confined : getpid();
		listed[i] = &tasks[i];
	}
	target.tasks.items = listed;
	target.tasks.count = count;
	engine.target = &target;
	control->may_yield = 1;
	while (control->may_yield && looked < looks) {
		engine_look_for_filters(&engine);
		looked++;
	}
	ck_assert_msg(!control->may_yield, "the filter of number %zu of %zu is not seen in %u looks", number, count, looks);
	engine.target = NULL;
}

START_TEST(a_filter_that_one_thread_alone_has_is_seen)
{
	pthread_t thread;

	pthread_barrier_init(&is_confined, NULL, 2);
	pthread_barrier_init(&is_looked_at, NULL, 2);
	ck_assert_int_eq(ring_new(RING_SIZE_MIN, &engine.ring.ring), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, confine, NULL), 0);
	pthread_barrier_wait(&is_confined);
	ck_assert_int_ne(confined, 0);
	for (size_t i = 0; i < 5; i++)
		require_seen(i, 5, 1);
	for (size_t i = 0; i < MANY; i += MANY / 6)
		require_seen(i, MANY, 3);
	pthread_barrier_wait(&is_looked_at);
	pthread_join(thread, NULL);
	ring_free(engine.ring.ring);
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
	tcase_add_test(tests, a_call_without_a_stack_is_a_part_of_the_one_it_comes_from);
	tcase_add_test(tests, a_product_that_overflows_is_never_a_small_block);
	tcase_add_test(tests, a_free_is_told_at_its_entry);
	tcase_add_test(tests, a_resize_has_two_parts);
	tcase_add_test(tests, the_return_of_a_resize_that_is_no_sample_is_recorded_for_its_old_block);
	tcase_add_test(tests, a_return_without_an_entry_is_a_stray);
	tcase_add_test(tests, an_entry_that_cannot_be_remembered_is_counted);
	tcase_add_test(tests, a_jump_that_ends_a_function_has_its_result_in_its_argument);
	tcase_add_test(tests, a_mapping_is_whole_pages);
	tcase_add_test(tests, an_unmapping_has_two_parts);
	tcase_add_test(tests, a_mapping_that_moves_leaves_its_place_unless_it_is_to_stay_there);
	tcase_add_test(tests, a_break_that_is_raised_maps_and_one_that_is_lowered_unmaps);
	tcase_add_test(tests, what_malloc_maps_is_its_own);
	tcase_add_test(tests, what_is_mapped_after_a_free_is_not_the_frees);
	tcase_add_test(tests, who_stands_before_libcs_mmap_has_mapped);
	tcase_add_test(tests, an_unmapping_that_is_left_has_failed);
	tcase_add_test(tests, a_filter_that_one_thread_alone_has_is_seen);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
