/* Stacks of records that the ring engine's code wrote in this process, against those taken on the spot. */
#include "probe/ring_stack.h"
#include "ring_fixture.h"
#include "require.h"
#include "unwind_fixture.h"

#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define FRAMES 25

static struct ring *ring;
static struct ring_area area;
static struct ring_patches patches;
static struct subject subject;
static struct recorded on_the_spot;
static uint64_t alloc_address;
static _Thread_local uint64_t own_tid;

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
	ring_control(ring)->may_yield = 1;
	own_tid = (uint64_t)gettid();
	ring_control(ring)->thread_offset = (uintptr_t)&own_tid - (uintptr_t)__builtin_thread_pointer();
	ring_control(ring)->thread_mask = UINT32_MAX;
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

static struct ring_record last;            /* that was taken */

static struct ring_record record_of_return(uint64_t *ret_return_address)
{
	struct ring_record record;

	REQUIRE(ring_next(ring, &record) == 1 && !record.is_return);
	*ret_return_address = record.return_address;
	ring_done(ring);
	REQUIRE(ring_next(ring, &record) == 1 && record.is_return);
	ring_done(ring);
	last = record;
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

START_TEST(a_place_learns_how_much_it_needs)
{
	struct ring_stack stack;
	uint64_t site, first;

	stack = stack_at(10, &site);
	ring_stack_learn(ring, &last, &stack);
	first = ring_stack_length(ring, last.length_key);
	ck_assert_uint_lt(first, RING_STACK_UNKNOWN);
	ck_assert_uint_ge(first, stack.needed);
	for (unsigned i = 0; i < 10; i++) {
		stack = stack_at(10, &site);
		ck_assert(!stack.cut);
		ck_assert_uint_le(last.stack_length, first);
		ring_stack_learn(ring, &last, &stack);
		compare_with_the_spot(stack, site);
	}
	ck_assert_uint_eq(ring_stack_length(ring, last.length_key), first);
}
END_TEST

START_TEST(a_piece_that_was_too_short_says_so_and_the_next_is_long_enough)
{
	struct ring_stack stack;
	struct pcs pcs;
	uint64_t site;

	stack = stack_at(10, &site);
	ring_set_stack_length(ring, last.length_key, 3072);
	stack = stack_at(10, &site);
	ck_assert(stack.cut);
	pcs = pcs_of_node(&subject, stack.node);
	ck_assert_uint_ne(pcs.truncated, 0);
	ck_assert_uint_ge(pcs.count, 3);
	ck_assert_uint_lt(pcs.count, 10);
	ring_stack_learn(ring, &last, &stack);
	stack = stack_at(10, &site);
	ck_assert(!stack.cut);
	compare_with_the_spot(stack, site);
	ring_stack_learn(ring, &last, &stack);
	ck_assert_uint_lt(ring_stack_length(ring, last.length_key), RING_STACK_UNKNOWN);
	stack = stack_at(10, &site);
	ck_assert(!stack.cut);
}
END_TEST

/* A function that others call allocates at many depths in turn. */
START_TEST(a_call_site_of_many_depths_is_never_cut)
{
	unsigned learned = 0;
	uint64_t site;

	for (unsigned i = 0; i < 120; i++) {
		struct ring_stack stack = stack_at(i * 7 % 30, &site);

		ck_assert(!stack.cut);
		learned += last.stack_length <= stack.needed + stack.needed / 4 + RING_UNIT;
		ring_stack_learn(ring, &last, &stack);
	}
	ck_assert_uint_ge(learned, 90);
}
END_TEST

/* Calls its second argument with the first and the third, from a frame of its own. */
static const uint8_t made_code[] = {
	0x55, 0x48, 0x89, 0xe5,                /* push rbp; mov rbp, rsp */
	0x48, 0x89, 0xf0, 0x48, 0x89, 0xd6,    /* mov rax, rsi; mov rsi, rdx */
	0xff, 0xd0, 0x5d, 0xc3,                /* call rax; pop rbp; ret */
};
#define MADE_RETURN 12u
typedef void *made_function(unsigned depth, void *callee, void *next);

static void *make_code(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(page, MAP_FAILED);
	memcpy(page, made_code, sizeof(made_code));
	ck_assert_int_eq(mprotect(page, 4096, PROT_READ | PROT_EXEC), 0);
	return page;
}

/* One such function calls another, as a JIT's do: only code in no object says that this is a call. */
START_TEST(a_stack_goes_on_through_code_that_is_in_no_object)
{
	void *page = make_code();
	raddr returned_to = (uintptr_t)page + MADE_RETURN;
	struct ring_record record;
	struct ring_stack stack;
	unsigned made = 0;
	uint64_t site;
	struct pcs pcs;

	free(((made_function *)page)(1, page, allocate_at));
	record = record_of_return(&site);
	stack = ring_stack_unwind(subject.unwinder, &subject.map, &self_reader, &record, alloc_address, FRAMES);
	ck_assert(!stack.cut);
	pcs = pcs_of_node(&subject, stack.node);
	for (unsigned i = 0; i < pcs.count; i++)
		made += returned_to - pcs.at[i] <= 1;          /* it is looked up at the call */
	ck_assert_uint_eq(made, 2);
	ck_assert_uint_eq(pcs.truncated, 0);
	munmap(page, 4096);
}
END_TEST

static unsigned depth_in_handler;

static void allocate_in_handler(int sig)
{
	(void)sig;
	free(allocate_at(depth_in_handler));
}

/* Who called the function that took `outside` are the callers of the handler, too. */
static void require_callers_of(struct recorded *outside, struct ring_stack handled)
{
	struct pcs ours = pcs_of_node(&subject, handled.node), theirs = unwind_recorded(&subject, outside, FRAMES);

	ck_assert_uint_eq(theirs.truncated, 0);
	if (ours.truncated == TRUNCATED_LIMIT)
		return;
	ck_assert_uint_eq(ours.truncated, 0);
	ck_assert_uint_gt(ours.count, theirs.count + depth_in_handler + 2);
	for (unsigned i = 1; i < theirs.count; i++)
		ck_assert_uint_eq(ours.at[ours.count - i], theirs.at[theirs.count - i]);
}

/* Both stacks as one. */
START_TEST(the_stack_of_a_handler_on_a_stack_of_its_own_goes_on_where_the_signal_came_in)
{
	static uint8_t alternate[128 * 1024];
	const stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
	struct sigaction action = { .sa_handler = allocate_in_handler, .sa_flags = SA_ONSTACK };
	static struct recorded outside;
	ucontext_t context;

	getcontext(&context);
	record_context(&outside, &context);
	ck_assert_int_eq(sigaltstack(&stack, NULL), 0);
	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	for (depth_in_handler = 0; depth_in_handler < 20; depth_in_handler++) {
		struct ring_record record;
		struct ring_stack handled;
		uint64_t site;

		ck_assert_int_eq(raise(SIGUSR1), 0);
		record = record_of_return(&site);
		handled = ring_stack_unwind(subject.unwinder, &subject.map, &self_reader, &record, alloc_address, FRAMES);
		ck_assert(!handled.cut);
		require_callers_of(&outside, handled);
		/* What is missing of the stack that was interrupted is not taken for its end. */
		record.other_length = 136;
		handled = ring_stack_unwind(subject.unwinder, &subject.map, &self_reader, &record, alloc_address, FRAMES);
		ck_assert(handled.cut || pcs_of_node(&subject, handled.node).count == FRAMES);
	}
}
END_TEST

/* The registers that a signal has interrupted are the last that there is of the piece, or are not there. */
START_TEST(a_piece_that_ends_at_a_signals_frame_says_so)
{
	struct ring_record record;
	uint64_t site;
	unsigned cut = 0;

	depth_in_handler = 2;
	signal(SIGUSR1, allocate_in_handler);
	ck_assert_int_eq(raise(SIGUSR1), 0);
	record = record_of_return(&site);
	for (uint32_t length = record.stack_length; length > 0; length -= 8) {
		struct ring_stack stack;
		struct pcs pcs;

		record.stack_length = length;
		stack = ring_stack_unwind(subject.unwinder, &subject.map, &self_reader, &record, alloc_address, FRAMES);
		pcs = pcs_of_node(&subject, stack.node);
		cut += stack.cut;
		ck_assert_uint_eq(stack.cut, pcs.truncated == TRUNCATED_MEMORY);
	}
	ck_assert_uint_gt(cut, 100);
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

struct scribbler {
	uint64_t *words;
	size_t count;
	bool stop;
};

static void *scribble(void *context)
{
	struct scribbler *scribbler = context;
	uint64_t random = 1;

	while (!__atomic_load_n(&scribbler->stop, __ATOMIC_RELAXED)) {
		uint64_t *word = &scribbler->words[(random >> 33) % scribbler->count], had = *word;

		random = random * 6364136223846793005u + 1442695040888963407u;
		/* What it was, a little beside it, anything. */
		__atomic_store_n(word, had + (random >> 60), __ATOMIC_RELAXED);
		__atomic_store_n(word, random, __ATOMIC_RELAXED);
		__atomic_store_n(word, had, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* It is unwound where it lies, in memory that is the program's as well. */
START_TEST(a_stack_that_is_written_to_meanwhile_has_an_end)
{
	struct scribbler scribbler = { .stop = false };
	struct ring_record record;
	pthread_t thread;
	uint64_t site;

	free(allocate_at(20));
	record = record_of_return(&site);
	scribbler.words = (uint64_t *)(uintptr_t)record.stack;
	scribbler.count = record.stack_length / sizeof(uint64_t);
	ck_assert_int_eq(pthread_create(&thread, NULL, scribble, &scribbler), 0);
	for (unsigned i = 0; i < 20000; i++) {
		struct ring_stack stack = ring_stack_unwind(subject.unwinder, &subject.map, &self_reader, &record, alloc_address,
							    FRAMES);

		ck_assert_uint_le(pcs_of_node(&subject, stack.node).count, FRAMES);
	}
	__atomic_store_n(&scribbler.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
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
	tcase_add_test(tests, a_place_learns_how_much_it_needs);
	tcase_add_test(tests, a_piece_that_was_too_short_says_so_and_the_next_is_long_enough);
	tcase_add_test(tests, a_call_site_of_many_depths_is_never_cut);
	tcase_add_test(tests, a_stack_goes_on_through_code_that_is_in_no_object);
	tcase_add_test(tests, the_stack_of_a_handler_on_a_stack_of_its_own_goes_on_where_the_signal_came_in);
	tcase_add_test(tests, a_piece_that_ends_at_a_signals_frame_says_so);
	tcase_add_test(tests, a_piece_of_nothing_is_a_stack_that_ends);
	tcase_add_test(tests, a_stack_that_is_written_to_meanwhile_has_an_end);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
