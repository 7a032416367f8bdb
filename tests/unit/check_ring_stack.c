/* Stacks of records that the ring engine's code wrote in this process, against those taken on the spot. */
#include "probe/ring_stack.h"
#include "ring_fixture.h"
#include "require.h"
#include "unwind_fixture.h"

#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define FRAMES 25

static struct ring *ring;
static struct ring_area area;
static struct ring_patches patches;
static struct subject subject;
static struct recorded on_the_spot;
static uint64_t alloc_address;

static int read_self(void *context, raddr at, void *buf, size_t len)
{
	struct iovec local = { buf, len }, remote = { (void *)(uintptr_t)at, len };

	(void)context;
	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)len ? 0 : -EFAULT;
}

static const struct reader self_reader = { .read = read_self };

static void know_main_stack(struct ring_control *control)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	ck_assert_ptr_nonnull(maps);
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "[stack]"))
			sscanf(line, "%lx-%lx", &control->main_stack, &control->main_stack_end);
	fclose(maps);
}

static void setup(void)
{
	void *function = dlsym(RTLD_DEFAULT, "malloc");

	ck_assert_int_eq(ring_new(RING_SIZE_MIN, &ring), 0);
	ring_control(ring)->state = RING_ON;
	know_main_stack(ring_control(ring));
	ring_set_all_stack_lengths(ring, RING_STACK_UNKNOWN);
	subject_init(&subject);
	ring_area_map(&area, function);
	ring_patch_symbol(&area, "malloc", true, 1, &patches);
	alloc_address = (uintptr_t)function;
}

static void teardown(void)
{
	ring_unpatch(&patches);
	ring_area_unmap(&area);
	subject_fini(&subject);
	ring_free(ring);
}

static struct ring_record record_of_return(uint64_t *ret_return_address)
{
	struct ring_record record;

	REQUIRE(ring_next(ring, &record) == 1 && !record.is_return);
	*ret_return_address = record.return_address;
	ring_done(ring);
	REQUIRE(ring_next(ring, &record) == 1 && record.is_return);
	ring_done(ring);
	return record;
}

/* One call site, at any depth; a frame has some 300 bytes. */
static __attribute__((noinline)) void *allocate_at(unsigned depth)
{
	volatile uint64_t locals[32] = { depth };
	void *block;

	if (depth > 0) {
		block = allocate_at(depth - 1);
	} else {
		ucontext_t context;

		getcontext(&context);
		record_context(&on_the_spot, &context);
		ring_area_record(&area, ring);
		block = malloc(24);
		ring_area_record(&area, NULL);
	}
	locals[1] = locals[0];
	return block;
}

static struct ring_stack stack_at(unsigned depth, uint64_t *ret_site)
{
	struct ring_record record;

	free(allocate_at(depth));
	record = record_of_return(ret_site);
	return ring_stack_unwind(subject.unwinder, &subject.map, &self_reader, &record, alloc_address, FRAMES);
}

/* From the caller's caller on they are the same; what is called is malloc, from the caller. */
static void compare_with_the_spot(struct ring_stack stack, uint64_t site)
{
	struct pcs ours = pcs_of_node(&subject, stack.node);
	struct pcs theirs = unwind_recorded(&subject, &on_the_spot, FRAMES - 1);

	ck_assert_uint_eq(ours.count, theirs.count + 1);
	ck_assert_uint_eq(ours.truncated, theirs.truncated);
	ck_assert_uint_eq(ours.at[0], alloc_address);
	ck_assert_uint_le(ours.at[1] - site + 1, 1);           /* it is looked up at the call */
	for (unsigned i = 1; i < theirs.count; i++)
		ck_assert_uint_eq(ours.at[i + 1], theirs.at[i]);
}

START_TEST(the_stack_of_a_record_is_the_one_on_the_spot)
{
	for (unsigned depth = 0; depth < 60; depth++) {
		uint64_t site;
		struct ring_stack stack = stack_at(depth, &site);

		ck_assert(!stack.cut);
		compare_with_the_spot(stack, site);
	}
}
END_TEST

START_TEST(a_call_site_learns_how_much_it_needs)
{
	struct ring_stack stack;
	uint64_t site, first;

	stack = stack_at(10, &site);
	ring_stack_learn(ring, site, &stack);
	first = ring_stack_length(ring, site);
	ck_assert_uint_lt(first, RING_STACK_UNKNOWN);
	ck_assert_uint_ge(first, stack.needed);
	for (unsigned depth = 10; depth > 0; depth--) {        /* less is never too little */
		stack = stack_at(depth, &site);
		ck_assert(!stack.cut);
		ring_stack_learn(ring, site, &stack);
		compare_with_the_spot(stack, site);
	}
	ck_assert_uint_eq(ring_stack_length(ring, site), first);
}
END_TEST

START_TEST(a_piece_that_was_too_short_says_so_and_the_next_is_long_enough)
{
	struct ring_stack stack;
	struct pcs pcs;
	uint64_t site;

	stack = stack_at(0, &site);
	ring_set_stack_length(ring, site, 3072);
	stack = stack_at(10, &site);
	ck_assert(stack.cut);
	pcs = pcs_of_node(&subject, stack.node);
	ck_assert_uint_ne(pcs.truncated, 0);
	ck_assert_uint_ge(pcs.count, 3);
	ck_assert_uint_lt(pcs.count, 10);
	ring_stack_learn(ring, site, &stack);
	stack = stack_at(10, &site);
	ck_assert(!stack.cut);
	compare_with_the_spot(stack, site);
	ring_stack_learn(ring, site, &stack);
	ck_assert_uint_lt(ring_stack_length(ring, site), RING_STACK_UNKNOWN);
	stack = stack_at(10, &site);
	ck_assert(!stack.cut);
}
END_TEST

/* Whatever the piece holds, nothing outside of it is taken for a stack. */
START_TEST(a_piece_of_nothing_is_a_stack_that_ends)
{
	struct ring_record record;
	struct ring_stack stack;
	uint64_t site;

	free(allocate_at(5));
	record = record_of_return(&site);
	record.stack_length = 0;
	stack = ring_stack_unwind(subject.unwinder, &subject.map, &self_reader, &record, alloc_address, FRAMES);
	ck_assert(stack.cut);
	ck_assert_uint_eq(pcs_of_node(&subject, stack.node).count, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ring_stack");
	TCase *tests = tcase_create("ring_stack");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tests);
	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, the_stack_of_a_record_is_the_one_on_the_spot);
	tcase_add_test(tests, a_call_site_learns_how_much_it_needs);
	tcase_add_test(tests, a_piece_that_was_too_short_says_so_and_the_next_is_long_enough);
	tcase_add_test(tests, a_piece_of_nothing_is_a_stack_that_ends);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
