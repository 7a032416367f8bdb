#define _GNU_SOURCE
/* Handlers of signals that have come in the midst of a record: what the kernel's frame will bring back is put out of it, at each
 * instruction of the code.  The process is its own target, and a step of one instruction the signal. */
#include "ring_fixture.h"
#include "require.h"

#include "target/jumps.h"
#include "target/jumps_private.h"
#include "target/resident.h"

#include <check.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define SIZE RING_SIZE_MIN
#define PAGE 4096UL
#define ALLOC 0                         /* sites: entry 0, returns 1 and 2 */
#define FREE 3
#define HOOK 4
#define TRAP_FLAG 0x100
#define SIGNAL_STACK_SIZE (16 * PAGE)

extern uint64_t sample_alloc(uint64_t size);
extern const uint8_t sample_alloc_end[], sample_free_end[];
extern void sample_free(uint64_t address);
extern void sample_hook(void);

static struct ring *ring;
static struct ring_control *control;
static struct ring_area area;
static struct ring_patches patches;
static struct target *own;
static _Thread_local uint64_t own_tid;

static uint64_t thread_pointer(void)
{
	uint64_t pointer;

	__asm__("mov %%fs:0, %0" : "=r"(pointer));
	return pointer;
}

/* What jumps.c knows of those that it has planted. */
static void know_jumps(void)
{
	struct jump_area *made;

	ck_assert_int_eq(target_new(getpid(), &own), 0);
	ck_assert(own->mem_writable);
	ck_assert_int_eq(jumps_add_area(own, (uintptr_t)area.start, &made), 0);
	for (unsigned i = 0; i < patches.count; i++) {
		struct jump *jump = vec_push(&own->jumps);

		ck_assert_ptr_nonnull(jump);
		*jump = (struct jump){ .site = patches.items[i].site };
	}
	own->ring = (uintptr_t)control;
	own->ring_size = ring_mapping_size(ring);
}

static void setup(void)
{
	ck_assert_int_eq(ring_new(SIZE, &ring), 0);
	control = ring_control(ring);
	control->state = RING_ON;
	control->wait_ticks = (uint64_t)1 << 40;
	control->may_yield = 1;
	own_tid = (uint64_t)gettid();
	control->thread_offset = (uintptr_t)&own_tid - thread_pointer();
	control->thread_mask = UINT32_MAX;
	ring_set_all_stack_lengths(ring, 1024);
	ring_area_map(&area, (void *)sample_alloc);
	ring_patch_function(&area, (void *)sample_alloc, (size_t)(sample_alloc_end - (uint8_t *)sample_alloc), true, ALLOC, &patches);
	ring_patch_function(&area, (void *)sample_free, (size_t)(sample_free_end - (uint8_t *)sample_free), false, FREE, &patches);
	ring_patch_hook(&area, (void *)sample_hook, RING_WAITS_LOADER, HOOK, &patches);
	ring_area_record(&area, ring);
	know_jumps();
}

static void teardown(void)
{
	jumps_forget(own);
	target_free(own);
	ring_area_record(&area, NULL);
	ring_unpatch(&patches);
	ring_area_unmap(&area);
	ring_free(ring);
}

static struct ring_record next_record(void)
{
	struct ring_record record;

	REQUIRE(ring_next(ring, &record) == 1);
	ring_done(ring);
	return record;
}

static void expect_nothing(void)
{
	struct ring_record record;

	REQUIRE(ring_next(ring, &record) == 0);
}

/* --- steps --- */

enum act { LOOK, SETTLE, ALLOCATE_AND_SETTLE, PASS_AND_SETTLE, LEAVE };
static enum act act;
static unsigned long steps, acts_at, settled;
static bool has_acted, was_open;
static uint64_t made_in_handler, last_made;
static unsigned frees_read, returns_read, looked_behind;
static sigjmp_buf way_out;

static bool is_open(uint64_t *ret_position)
{
	uint64_t thread;

	*ret_position = ring_position(ring);
	return ring_find_unfinished(ring, ret_position, &thread);
}

/* In their order: all, or some. */
static void read_frees(unsigned most)
{
	for (struct ring_record record; most > 0 && ring_next(ring, &record) == 1; most--) {
		REQUIRE(record.site != FREE || record.args[0] == frees_read++);
		returns_read += record.is_return && record.result == last_made;
		ring_done(ring);
	}
}

/* The reader gives it up, and others write all over it; then there is room again. */
static void pass_and_fill(void)
{
	struct ring_record record;
	int r;

	while ((r = ring_next(ring, &record)) == 1)
		ring_done(ring);
	if (r < 0)
		ring_skip(ring);
	REQUIRE(ring_next(ring, &record) == 0);
	frees_read = 0;
	for (unsigned i = 0; i < SIZE / RING_UNIT; i++)
		sample_free(i);
	read_frees(SIZE / RING_UNIT / 4);
}

static void settle(raddr frame)
{
	bool is_in_midst = jumps_frame_is_in_record(own, frame);
	int r = jumps_settle_frame(own, frame);

	REQUIRE(r == is_in_midst);
	REQUIRE(!jumps_frame_is_in_record(own, frame));
	settled += (unsigned long)r;
}

/* A stack that can be seen through. */
static void look_at(const greg_t *gregs)
{
	static const int saved[] = { REG_RBX, REG_RBP, REG_R12, REG_R13, REG_R14, REG_R15 };
	const struct reader stack = target_reader(own);
	struct arch_regs regs = { 0 };
	raddr pc, sp;

	for (unsigned i = 0; i < ARCH_CALLEE_SAVED; i++)
		regs.reg[arch_callee_saved[i]] = (uint64_t)gregs[saved[i]];
	regs.reg[ARCH_DWARF_PC] = (uint64_t)gregs[REG_RIP];
	regs.reg[ARCH_DWARF_SP] = (uint64_t)gregs[REG_RSP];
	resident_translate(own, &regs, &stack);
	pc = regs.reg[ARCH_DWARF_PC];
	sp = regs.reg[ARCH_DWARF_SP];
	REQUIRE(pc - (uintptr_t)area.start >= RING_CODE_SIZE && sp >= (uint64_t)gregs[REG_RSP]);
	looked_behind += pc - (uintptr_t)sample_alloc >= (uintptr_t)(sample_alloc_end - (uint8_t *)sample_alloc);
	for (unsigned i = 0; i < ARCH_CALLEE_SAVED; i++)
		REQUIRE(regs.reg[arch_callee_saved[i]] == (uint64_t)gregs[saved[i]]);
	settled++;
}

/* Each turn of a repeated instruction is a step, but not another place. */
static void on_step(int sig, siginfo_t *info, void *context)
{
	greg_t *gregs = ((ucontext_t *)context)->uc_mcontext.gregs;
	static greg_t last;
	bool again = gregs[REG_RIP] == last;
	uint64_t position;

	(void)sig, (void)info;
	last = gregs[REG_RIP];
	if (again || (uint64_t)gregs[REG_RIP] - (uintptr_t)area.start >= RING_CODE_SIZE || steps++ != acts_at)
		return;
	has_acted = true;
	was_open = is_open(&position);
	if (act == LOOK) {
		look_at(gregs);
		gregs[REG_EFL] &= ~TRAP_FLAG;
		return;
	}
	if (act == ALLOCATE_AND_SETTLE)
		made_in_handler = sample_alloc(16);
	if (act == PASS_AND_SETTLE)
		pass_and_fill();
	if (act == LEAVE)
		siglongjmp(way_out, 1);
	/* The kernel's frame begins with the word before the context. */
	settle((uintptr_t)context - sizeof(uint64_t));
	gregs[REG_EFL] &= ~TRAP_FLAG;
}

static void set_trap_flag(bool on)
{
	if (on)
		__asm__ volatile("pushfq\n orq $0x100, (%%rsp)\n popfq" ::: "memory", "cc");
	else
		__asm__ volatile("pushfq\n andq $~0x100, (%%rsp)\n popfq" ::: "memory", "cc");
}

static void begin(enum act what, int flags)
{
	struct sigaction action = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_NODEFER | flags };

	sigaction(SIGTRAP, &action, NULL);
	act = what;
	acts_at = settled = 0;
	sample_alloc(48);
	next_record();
	next_record();
	ring_forget_thread(ring, own_tid);
}

static uint64_t allocate_in_steps(void)
{
	uint64_t address;

	steps = 0;
	has_acted = was_open = false;
	set_trap_flag(true);
	address = sample_alloc(48);
	set_trap_flag(false);
	return address;
}

/* --- cases --- */

static void settle_everywhere(int flags)
{
	unsigned open = 0;

	begin(SETTLE, flags);
	do {
		uint64_t made = allocate_in_steps();
		struct ring_record call = next_record(), end = next_record();

		open += was_open;
		REQUIRE(!call.is_return && call.site == ALLOC && call.args[0] == 48);
		REQUIRE(end.is_return && end.result == made && end.sp == call.sp);
		expect_nothing();
		ring_forget_thread(ring, own_tid);
		acts_at++;
	} while (has_acted);
	ck_assert_uint_gt(settled, 100);
	ck_assert_uint_gt(open, 30);
}

/* It stands for the function, or for its caller when its return is recorded. */
START_TEST(wherever_a_thread_is_in_a_record_it_stands_for_a_place_in_the_text)
{
	unsigned places_behind = 0;

	begin(LOOK, 0);
	do {
		struct ring_record call, end;

		looked_behind = 0;
		allocate_in_steps();
		call = next_record();
		end = next_record();
		REQUIRE(!call.is_return && end.is_return);
		places_behind += looked_behind;
		ring_forget_thread(ring, own_tid);
		acts_at++;
	} while (has_acted);
	ck_assert_uint_gt(settled, 100);
	ck_assert_uint_gt(places_behind, 10);
	ck_assert_uint_lt(places_behind, settled / 3);
}
END_TEST

START_TEST(a_record_is_written_once_wherever_a_handler_comes_into_it)
{
	settle_everywhere(0);
}
END_TEST

START_TEST(so_it_is_with_a_handler_on_a_stack_of_its_own)
{
	stack_t stack = { .ss_size = SIGNAL_STACK_SIZE };

	stack.ss_sp = mmap(NULL, SIGNAL_STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(stack.ss_sp, MAP_FAILED);
	ck_assert_int_eq(sigaltstack(&stack, NULL), 0);
	settle_everywhere(SA_ONSTACK);
}
END_TEST

START_TEST(what_the_handler_has_recorded_comes_before_it)
{
	begin(ALLOCATE_AND_SETTLE, 0);
	do {
		uint64_t made = allocate_in_steps();
		unsigned calls = 0, returns = 0, own_returns = 0, own_calls = 0;
		struct ring_record record;

		while (ring_next(ring, &record) == 1) {
			calls += !record.is_return;
			returns += record.is_return;
			own_calls += !record.is_return && record.args[0] == 48;
			own_returns += record.is_return && record.result == made;
			/* What was open is written behind it. */
			REQUIRE(!was_open || record.is_return || record.args[0] != 16 || own_returns == 0);
			ring_done(ring);
		}
		REQUIRE(calls == 1U + has_acted && returns == calls && own_calls == 1 && own_returns == 1);
		ring_forget_thread(ring, own_tid);
		acts_at++;
	} while (has_acted);
	ck_assert_uint_gt(settled, 100);
}
END_TEST

/* Its thread writes another one, and nothing of others' is written over. */
START_TEST(a_record_that_was_given_up_before_is_left_to_others)
{
	unsigned open = 0;

	begin(PASS_AND_SETTLE, 0);
	do {
		struct ring_record record;

		frees_read = returns_read = 0;
		last_made = allocate_in_steps();
		open += was_open;
		read_frees(UINT_MAX);
		REQUIRE(ring_next(ring, &record) == 0);
		REQUIRE(frees_read == (has_acted ? SIZE / RING_UNIT : 0U));
		REQUIRE(!was_open || returns_read == 1);
		ring_forget_thread(ring, own_tid);
		acts_at++;
	} while (has_acted);
	ck_assert_uint_gt(open, 30);
}
END_TEST

/* The handler has left it by a jump: it never was one. */
START_TEST(what_nobody_writes_any_more_is_no_record)
{
	static unsigned open;

	begin(LEAVE, 0);
	do {
		uint64_t position;
		struct ring_record record;
		unsigned calls = 0, frees = 0;

		if (sigsetjmp(way_out, 1) == 0)
			allocate_in_steps();
		sample_free(5);
		open += was_open;
		REQUIRE(is_open(&position) == was_open);
		if (was_open)
			ring_make_void(ring, position);
		REQUIRE(!is_open(&position));
		while (ring_next(ring, &record) == 1) {
			calls += record.site == ALLOC && !record.is_return;
			frees += record.site == FREE;
			ring_done(ring);
		}
		REQUIRE(frees == 1 && calls <= 1);
		expect_nothing();
		ring_forget_thread(ring, own_tid);
		acts_at++;
	} while (has_acted);
	ck_assert_uint_gt(open, 30);
}
END_TEST

static void know_main_stack(void)
{
	char line[256];
	FILE *maps = fopen("/proc/self/maps", "re");

	ck_assert_ptr_nonnull(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (strstr(line, "[stack]"))
			sscanf(line, "%lx-%lx", &control->main_stack, &control->main_stack_end);
	}
	fclose(maps);
}

static bool is_noted(uint64_t sp)
{
	const struct ring_slot *slot = &control->slots[own_tid % RING_SLOTS];
	bool found = false;

	for (unsigned i = 0; i < RING_PENDING_MAX; i++)
		found |= slot->sp[i] == sp;
	return found;
}

/* Else the next record would come without the stack that says that it is gone. */
START_TEST(a_call_that_was_left_is_noted_until_a_record_has_said_so)
{
	/* All of the slot is in use, or one alone. */
	static unsigned left_calls;

	know_main_stack();
	for (left_calls = 1; left_calls <= RING_PENDING_MAX; left_calls += RING_PENDING_MAX - 1) {
		begin(LEAVE, 0);
		do {
			uint64_t low = (uint64_t)(uintptr_t)__builtin_frame_address(0) - 8 * PAGE, position;
			struct ring_record record;
			static unsigned calls;

			for (unsigned i = 0; i < left_calls; i++)
				ring_note_pending(ring, own_tid, low + 16 * i);
			if (sigsetjmp(way_out, 1) == 0)
				allocate_in_steps();
			calls = 0;
			if (is_open(&position))
				ring_make_void(ring, position);
			while (ring_next(ring, &record) == 1) {
				REQUIRE(record.is_return || record.stack_length > 0);
				calls += !record.is_return;
				ring_done(ring);
			}
			REQUIRE(calls > 0 || is_noted(low + 16 * (left_calls - 1)));
			REQUIRE(has_acted || !is_noted(low));
			ring_forget_thread(ring, own_tid);
			acts_at++;
		} while (has_acted);
	}
}
END_TEST

/* --- who waits --- */

static _Atomic(uintptr_t) handlers_frame;
static atomic_bool may_return, has_returned;

static void handle(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)info;
	handlers_frame = (uintptr_t)context - sizeof(uint64_t);
	while (!may_return)
		sched_yield();
}

static void *call_hook(void *unused)
{
	sample_hook();
	has_returned = true;
	return unused;
}

START_TEST(who_waits_for_what_he_has_recorded_waits_on)
{
	struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO };
	struct ring_record record;
	pthread_t thread;

	control->hook_waits = 1;
	sigaction(SIGUSR1, &action, NULL);
	ck_assert_int_eq(pthread_create(&thread, NULL, call_hook, NULL), 0);
	while (ring_next(ring, &record) != 1)
		sched_yield();
	ring_done(ring);
	pthread_kill(thread, SIGUSR1);
	while (!handlers_frame)
		sched_yield();
	ck_assert(!jumps_frame_is_in_record(own, handlers_frame));
	ck_assert_int_eq(jumps_settle_frame(own, handlers_frame), 0);
	may_return = true;
	for (unsigned i = 0; i < 1000; i++)
		sched_yield();
	ck_assert(!has_returned);
	ring_serve_hook(ring, record.position);
	pthread_join(thread, NULL);
	ck_assert(has_returned);
}
END_TEST

START_TEST(what_is_no_frame_is_left_as_it_is)
{
	uint64_t words[64] = { 0 };

	ck_assert_int_lt(jumps_settle_frame(own, (uintptr_t)words), 0);
	ck_assert_int_lt(jumps_settle_frame(own, 16), 0);
	ck_assert(!jumps_frame_is_in_record(own, (uintptr_t)words));
	for (unsigned i = 0; i < 64; i++)
		ck_assert_uint_eq(words[i], 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ring_settle");
	TCase *tests = tcase_create("ring_settle");
	SRunner *runner = srunner_create(suite);
	int failed;

	setvbuf(stdout, NULL, _IOLBF, 0);
	suite_add_tcase(suite, tests);
	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, wherever_a_thread_is_in_a_record_it_stands_for_a_place_in_the_text);
	tcase_add_test(tests, a_record_is_written_once_wherever_a_handler_comes_into_it);
	tcase_add_test(tests, so_it_is_with_a_handler_on_a_stack_of_its_own);
	tcase_add_test(tests, what_the_handler_has_recorded_comes_before_it);
	tcase_add_test(tests, a_record_that_was_given_up_before_is_left_to_others);
	tcase_add_test(tests, what_nobody_writes_any_more_is_no_record);
	tcase_add_test(tests, a_call_that_was_left_is_noted_until_a_record_has_said_so);
	tcase_add_test(tests, who_waits_for_what_he_has_recorded_waits_on);
	tcase_add_test(tests, what_is_no_frame_is_left_as_it_is);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
