/* Stacks that helpers have unwound ahead of a ring's reader, against those that it unwinds by itself. */
#include "probe/ring_ahead.h"
#include "process_map.h"
#include "require.h"
#include "ring/ring_eye.h"
#include "unwind_fixture.h"

#include "base/clock.h"
#include "base/fd.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FRAMES 41
#define SAMPLES 300
#define SAMPLE_BYTES 16384
#define RING_SIZE RING_SIZE_MIN
#define FIRST_SITE 10
#define MODULES 256
#define DEADLINE_S 90
#define HELPERS 2
#define FULL_NODES 300                 /* less than all samples have */

struct sample {
	raddr function, sp;
	uint64_t saved[ARCH_CALLEE_SAVED];
	uint32_t site, length;
	uint8_t bytes[SAMPLE_BYTES];
};

static struct subject subject;
static struct sample samples[SAMPLES];
static uint32_t sample_count;
static struct ring *ring;
static struct ring_ahead *ahead;
static uint64_t written, random_state = 1;
static int files[MODULES];
static uint64_t text;
static bool all_patched;

static uint64_t next_random(void)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return random_state >> 33;
}

/* --- stacks --- */

static void take_sample(ucontext_t *context, raddr function)
{
	static struct recorded recorded;
	struct sample *sample = &samples[sample_count];
	struct reader reader;
	struct unwind_reach reach;
	uint64_t offset;

	record_context(&recorded, context);
	reader = recorded_reader(&recorded);
	recorded.regs.reg[ARCH_DWARF_PC] = function;
	unwinder_unwind(subject.unwinder, &recorded.regs, &reader, FRAMES, &reach);
	offset = recorded.regs.reg[ARCH_DWARF_SP] - recorded.start;
	REQUIRE(offset < recorded.len);
	sample->function = function;
	sample->sp = recorded.regs.reg[ARCH_DWARF_SP];
	sample->length = (reach.bytes + 256) / 8 * 8;
	if (sample->length > recorded.len - offset)
		sample->length = (uint32_t)(recorded.len - offset) / 8 * 8;
	REQUIRE(sample->length <= SAMPLE_BYTES);
	memcpy(sample->bytes, recorded.bytes + offset, sample->length);
	for (unsigned i = 0; i < ARCH_CALLEE_SAVED; i++)
		sample->saved[i] = recorded.regs.reg[arch_callee_saved[i]];
	sample->site = FIRST_SITE + sample_count % 2;
	sample_count++;
}

static __attribute__((noinline)) void go_one_way(unsigned depth, unsigned ways);

static __attribute__((noinline)) void be_there(void)
{
	ucontext_t context;

	getcontext(&context);
	take_sample(&context, (raddr)context.uc_mcontext.gregs[REG_RIP]);
}

static __attribute__((noinline)) void go_another_way(unsigned depth, unsigned ways)
{
	volatile uint64_t locals[24] = { depth };

	if (depth == 0)
		be_there();
	else
		go_one_way(depth - 1, ways / 2);
	locals[1] = locals[0];
}

static __attribute__((noinline)) void go_one_way(unsigned depth, unsigned ways)
{
	volatile uint64_t locals[8] = { depth };

	if (depth == 0)
		be_there();
	else if (ways % 2)
		go_another_way(depth - 1, ways / 2);
	else
		go_one_way(depth - 1, ways / 2);
	locals[1] = locals[0];
}

/* --- the ring --- */

static struct ring_return *write_return_at(uint64_t position, const struct sample *sample)
{
	uint8_t *data = (uint8_t *)ring_control(ring) + RING_CONTROL_SIZE;
	struct ring_return *part = (void *)(data + (position & (RING_SIZE - 1)));
	uint32_t length = ((uint32_t)sizeof(*part) + sample->length + RING_UNIT - 1) / RING_UNIT * RING_UNIT;

	part->head = (struct ring_head){ .mark = 0, .length = length, .site = sample->site | RING_RETURN, .thread = 1, .sp = sample->sp };
	part->time = (uint64_t)(sample - samples);
	part->result = 64;
	part->stack_length = sample->length;
	part->first_length = 0;
	part->other_start = 0;
	memcpy(part->saved, sample->saved, sizeof(part->saved));
	part->length_key = 1;
	part->pointer_words = 0;
	memcpy(part->stack, sample->bytes, sample->length);
	return part;
}

static void write_return(const struct sample *sample)
{
	struct ring_control *control = ring_control(ring);
	struct ring_return *part = write_return_at(written, sample);
	uint64_t position = written;

	written += part->head.length;
	__atomic_store_n(&part->head.mark, (position ^ control->key) | RING_COMMITTED, __ATOMIC_RELEASE);
	__atomic_store_n(&control->head, written, __ATOMIC_RELEASE);
}

static void fill(void)
{
	while (written - ring_position(ring) < RING_SIZE - 2 * SAMPLE_BYTES)
		write_return(&samples[next_random() % sample_count]);
}

/* --- what stacks hang on --- */

static int module_file(void *context, uint32_t module)
{
	(void)context;
	return module < MODULES ? files[module] : -1;
}

static void find_patched(void *context, bool *modules, size_t count)
{
	(void)context;
	memset(modules, all_patched, count);
}

static int no_memory_file(void *context)
{
	(void)context;
	return -1;
}

static struct ring_ahead_options options(uint32_t nodes_max)
{
	return (struct ring_ahead_options){
		.world = { &subject.map, subject.unwinder, &text, module_file, find_patched, no_memory_file, NULL },
		.max_frames = FRAMES, .nodes_max = nodes_max, .eager = true,
	};
}

static void begin(uint32_t nodes_max)
{
	const struct ring_ahead_options given = options(nodes_max);

	ck_assert_int_eq(ring_ahead_new(ring, &given, &ahead), 0);
	for (unsigned i = 0; i < HELPERS; i++)
		ck_assert_int_eq(ring_ahead_begin_helper(ahead), 0);
}

static void setup(void)
{
	subject_init(&subject);
	for (uint32_t i = 0; i < MODULES; i++)
		files[i] = i < subject.map.modules.count ? process_map_open(getpid(), &subject.map, i) : -1;
	while (sample_count < SAMPLES)
		go_one_way((unsigned)(next_random() % 24), (unsigned)next_random());
	ck_assert_int_eq(ring_new(RING_SIZE, &ring), 0);
}

static void teardown(void)
{
	ring_ahead_free(ahead, ring);
	for (uint32_t i = 0; i < MODULES; i++)
		fd_close(&files[i]);
	subject_fini(&subject);
}

/* --- reading --- */

static int read_nothing(void *context, raddr at, void *buf, size_t len)
{
	(void)context, (void)at, (void)buf, (void)len;
	return -EFAULT;
}

static const struct reader no_code = { .read = read_nothing };

/* What the record's stack is, by the reader's own unwinder. */
static struct ring_stack own_stack(const struct ring_record *record, raddr function)
{
	return ring_stack_unwind(subject.unwinder, &subject.map, &no_code, record, function, FRAMES);
}

static uint64_t compared;

/* As the engine does it, but that each stack is unwound and compared. */
static void serve(const struct ring_record *record)
{
	raddr function = samples[record->time].function;
	struct ring_stack own, stack;
	struct ring_ahead_found found;

	if (ring_ahead_take(ahead, record, function, &stack, &found)) {
		own = own_stack(record, function);
		REQUIRE(stack.node == own.node && stack.needed == own.needed && stack.had == own.had && !own.cut && own.whole);
	} else {
		own = own_stack(record, function);
		ring_ahead_note(ahead, &found, &own);
	}
	compared++;
}

static void drain(void)
{
	struct ring_record record;

	while (ring_next(ring, &record) == 1) {
		serve(&record);
		ring_done(ring);
		ring_ahead_pass(ahead, ring_position(ring));
	}
}

static void take_so_many(uint64_t count)
{
	uint64_t deadline_ns = clock_monotonic_ns() + DEADLINE_S * NSEC_PER_SEC, before = ring_ahead_counters(ahead).taken;

	while (ring_ahead_counters(ahead).taken - before < count) {
		ck_assert(!clock_passed(deadline_ns));
		fill();
		drain();
	}
}

static void tell(const char *what)
{
	struct ring_ahead_counters counters = ring_ahead_counters(ahead);

	printf("%s: %lu compared, %lu taken, %lu noted, %lu unwound by helpers, %lu given up, %lu worlds\n", what, compared, counters.taken,
	       counters.noted, counters.unwound, counters.given_up, counters.worlds);
}

/* Until helpers have done all that they can of a ring that is full, ahead of a reader that has come this far. */
static void wait_for_helpers(uint64_t unwound)
{
	const struct timespec pause = { 0, 1000000 };
	uint64_t deadline_ns = clock_monotonic_ns() + DEADLINE_S * NSEC_PER_SEC;

	while (ring_ahead_counters(ahead).unwound < unwound) {
		ck_assert(!clock_passed(deadline_ns));
		nanosleep(&pause, NULL);
	}
}

/* Where helpers know the functions of both places, and the reader the nodes of all stacks. */
static void begin_and_warm_up(void)
{
	uint64_t unwound;

	begin(0);
	take_so_many(1000);
	unwound = ring_ahead_counters(ahead).unwound;
	fill();
	wait_for_helpers(unwound + 20);
}

START_TEST(what_helpers_have_unwound_is_what_the_reader_would)
{
	begin(0);
	take_so_many(20000);
	tell("the same");
	ck_assert_uint_gt(ring_ahead_counters(ahead).noted, SAMPLES / 4);
}
END_TEST

/* A record's own stack is another one then: the test's own objects are not in the map any more. */
START_TEST(nothing_is_taken_that_was_unwound_before_the_objects_have_changed)
{
	begin_and_warm_up();
	for (uint32_t i = 0; i < subject.map.modules.count; i++) {
		if (!module_map_find(&subject.map, samples[0].function) ||
		    module_map_find(&subject.map, samples[0].function)->module != i)
			continue;
		unwinder_remove_module(subject.unwinder, i);
		module_map_remove(&subject.map, i);
	}
	ck_assert_ptr_null(module_map_find(&subject.map, samples[0].function));
	drain();
	tell("changed");
}
END_TEST

START_TEST(objects_may_change_all_the_time)
{
	begin(0);
	take_so_many(1000);
	for (unsigned i = 0; i < 200; i++) {
		uint32_t module = (uint32_t)(next_random() % subject.map.modules.count);

		fill();
		if (files[module] >= 0)
			unwinder_add_module(subject.unwinder, module, files[module]);
		drain();
	}
	take_so_many(1000);
	tell("changing");
	ck_assert_uint_gt(ring_ahead_counters(ahead).worlds, 200);
}
END_TEST

START_TEST(a_helper_whose_table_is_full_begins_anew)
{
	begin(FULL_NODES);
	while (ring_ahead_counters(ahead).worlds < 4)
		take_so_many(20);
	tell("full");
}
END_TEST

/* Both functions have come by the same place by turns: a stack is taken as that of the right one alone. */
START_TEST(a_stack_is_taken_for_the_function_that_was_called)
{
	struct sample *other = &samples[0];

	begin_and_warm_up();
	drain();
	for (uint32_t i = 0; i < sample_count; i++) {
		if (i % 3 == 0)
			samples[i].function += samples[i].function == other->function ? 4 : 0;
	}
	take_so_many(5000);
	tell("functions");
}
END_TEST

/* Its helpers have a reference each to what they look at. */
static bool is_mapped(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	bool found = false;

	ck_assert_ptr_nonnull(maps);
	while (fgets(line, sizeof(line), maps))
		found |= strstr(line, "allocwatch-ring") != NULL;
	fclose(maps);
	return found;
}

/* While helpers are in the midst of it. */
static void end_in_the_midst(void)
{
	uint64_t unwound, deadline_ns = clock_monotonic_ns() + DEADLINE_S * NSEC_PER_SEC;

	take_so_many(50);
	unwound = ring_ahead_counters(ahead).unwound;
	fill();
	while (ring_ahead_counters(ahead).unwound == unwound)
		ck_assert(!clock_passed(deadline_ns));
	ring_ahead_free(ahead, ring);
	ahead = NULL;
	ring = NULL;
	written = 0;
}

START_TEST(the_end_waits_for_no_helper_and_the_last_one_unmaps_the_ring)
{
	const struct timespec pause = { 0, 1000000 };
	uint64_t deadline_ns = clock_monotonic_ns() + DEADLINE_S * NSEC_PER_SEC;

	for (unsigned i = 0; i < 20; i++) {
		if (!ring)
			ck_assert_int_eq(ring_new(RING_SIZE, &ring), 0);
		ck_assert(is_mapped());
		begin(0);
		end_in_the_midst();
	}
	while (is_mapped()) {
		ck_assert(!clock_passed(deadline_ns));
		nanosleep(&pause, NULL);
	}
}
END_TEST

START_TEST(helpers_can_be_ended_and_begun_again)
{
	begin(0);
	for (unsigned i = 0; i < 20; i++) {
		take_so_many(200);
		ring_ahead_end_helper(ahead);
		fill();
		drain();
		if (i % 4 == 3)
			ring_ahead_end_helper(ahead);
		while (ring_ahead_helpers(ahead) < HELPERS)
			ck_assert_int_eq(ring_ahead_begin_helper(ahead), 0);
	}
	tell("ended");
}
END_TEST

static void be_a_child(void)
{
	const struct sample *sample = &samples[0];
	struct ring_record record = { .is_return = true, .has_stack = true, .sp = sample->sp, .stack = sample->bytes,
				      .stack_length = sample->length };

	ring_ahead_forget(ahead);
	/* The ring is the parent's.  Its unwinder serves here as well. */
	memcpy(record.saved, sample->saved, sizeof(record.saved));
	_exit(own_stack(&record, sample->function).whole ? 0 : 1);
}

START_TEST(a_process_forks_while_helpers_work)
{
	begin(0);
	for (unsigned i = 0; i < 30; i++) {
		int status;
		pid_t child;

		fill();
		ring_ahead_halt(ahead);
		child = fork();
		if (child == 0)
			be_a_child();
		ring_ahead_go_on(ahead);
		take_so_many(50);
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert_int_eq(status, 0);
	}
	tell("forks");
}
END_TEST

static int open_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void allow(int descriptors)
{
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = (rlim_t)descriptors;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* Who traces has snapshots to write and new objects to open. */
START_TEST(helpers_keep_no_file_open_when_descriptors_are_short)
{
	uint64_t deadline_ns = clock_monotonic_ns() + DEADLINE_S * NSEC_PER_SEC;
	int before = open_descriptors(), next;

	begin(0);
	take_so_many(100);
	next = dup(files[0]);
	close(next);
	allow(2 * next);
	unwinder_add_module(subject.unwinder, 0, files[0]);
	fill();
	drain();
	while (open_descriptors() > before)
		ck_assert_msg(!clock_passed(deadline_ns), "%d descriptors are kept", open_descriptors() - before);
	allow(4 * next);
	text++;
	take_so_many(100);
}
END_TEST

/* --- a program that writes what it likes --- */

static uint32_t some_length(void)
{
	static const uint32_t lengths[] = { 0, 1, 63, 64, 128, 4096, 8192, RING_STACK_MAX, RING_STACK_MAX + 8, RING_SIZE, 2 * RING_SIZE,
					    0x7fffffc0, 0xffffffc0, 0xffffffff };

	return lengths[next_random() % (sizeof(lengths) / sizeof(lengths[0]))];
}

/* A record of which something is another thing, mostly. */
static void write_garbage(uint64_t position)
{
	struct ring_control *control = ring_control(ring);
	struct ring_return *part = write_return_at(position, &samples[next_random() % sample_count]);

	switch (next_random() % 8) {
	case 0:
		part->head.length = some_length();
		break;
	case 1:
		part->stack_length = some_length();
		break;
	case 2:
		part->first_length = some_length();
		part->other_start = part->head.sp + next_random() % 4096;
		break;
	case 3:
		part->head.site = next_random() % 2 ? RING_VOID : (uint32_t)next_random();
		break;
	case 4:
		part->head.sp = next_random() << 31;
		break;
	case 5:
		part->stack[next_random() % 64] = next_random();
		part->saved[next_random() % ARCH_CALLEE_SAVED] = part->head.sp + next_random() % 4096;
		break;
	default:
		break;
	}
	__atomic_store_n(&part->head.mark, (position ^ control->key) | RING_COMMITTED, __ATOMIC_RELEASE);
}

START_TEST(garbage_in_the_ring_harms_no_helper)
{
	uint64_t before, deadline_ns = clock_monotonic_ns() + DEADLINE_S * NSEC_PER_SEC;
	struct ring_ahead_counters counters;

	begin_and_warm_up();
	drain();
	before = ring_ahead_counters(ahead).unwound;
	/* The reader goes on as if all of it were records. */
	for (;;) {
		__atomic_store_n(&ring_control(ring)->head, written + RING_SIZE, __ATOMIC_RELEASE);
		for (unsigned i = 0; i < 500; i++)
			write_garbage(written + next_random() % (RING_SIZE / RING_UNIT) * RING_UNIT);
		counters = ring_ahead_counters(ahead);
		if (counters.unwound - before > 1000 && counters.given_up > 300)
			break;
		ck_assert(!clock_passed(deadline_ns));
		written += RING_SIZE / 4;
		ring_ahead_pass(ahead, written);
	}
	tell("garbage");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ring_ahead");
	TCase *tests = tcase_create("ring_ahead");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tests);
	tcase_set_timeout(tests, 240);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, what_helpers_have_unwound_is_what_the_reader_would);
	tcase_add_test(tests, nothing_is_taken_that_was_unwound_before_the_objects_have_changed);
	tcase_add_test(tests, objects_may_change_all_the_time);
	tcase_add_test(tests, a_helper_whose_table_is_full_begins_anew);
	tcase_add_test(tests, a_stack_is_taken_for_the_function_that_was_called);
	tcase_add_test(tests, the_end_waits_for_no_helper_and_the_last_one_unmaps_the_ring);
	tcase_add_test(tests, helpers_can_be_ended_and_begun_again);
	tcase_add_test(tests, a_process_forks_while_helpers_work);
	tcase_add_test(tests, helpers_keep_no_file_open_when_descriptors_are_short);
	tcase_add_test(tests, garbage_in_the_ring_harms_no_helper);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
