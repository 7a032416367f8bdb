#define _GNU_SOURCE
/* The ring engine's code, run in this process: jumps in a sample allocator and in the real one, and what the ring then says. */
#include "ring_fixture.h"
#include "require.h"
#include "share.h"

#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define SIZE RING_SIZE_MIN
#define PAGE 4096UL
#define WAIT_TICKS 20000000             /* some ms */
#define ALLOC 10                        /* sites: entry 10, returns 11 and 12 */
#define FREE 20
#define HOOK 30
#define UNMAP 40

extern uint64_t sample_alloc(uint64_t size);
extern const uint8_t sample_alloc_end[], sample_free_end[], sample_caller_return[];
extern void sample_free(uint64_t address);
extern void sample_hook(void);
extern int sample_unmap(uint64_t start, uint64_t length, int protection);
extern void sample_caller(const void *function, const uint64_t in[15], uint64_t out[15]);
extern int sample_store(uint64_t *out, uint64_t address);
extern const uint8_t sample_store_end[];
extern uint64_t sample_flags(uint64_t size);
extern const uint8_t sample_flags_end[];
extern uint64_t sample_with_flags(const void *function, uint64_t flags, uint64_t *behind);
extern _Atomic uint64_t sample_next, sample_freed;

static struct ring *ring;
static struct ring_control *control;
static struct ring_area area;
static struct ring_patches patches;

static void setup(void)
{
	ck_assert_int_eq(ring_new(SIZE, &ring), 0);
	control = ring_control(ring);
	control->state = RING_ON;
	control->wait_ticks = WAIT_TICKS;
	control->may_yield = 1;
	ring_set_all_stack_lengths(ring, 1024);
	ring_area_map(&area, (void *)sample_alloc);
	ring_patch_function(&area, (void *)sample_alloc, (size_t)(sample_alloc_end - (uint8_t *)sample_alloc), true, ALLOC,
			    &patches);
	ring_patch_function(&area, (void *)sample_free, (size_t)(sample_free_end - (uint8_t *)sample_free), false, FREE,
			    &patches);
	ring_area_record(&area, ring);
}

static void teardown(void)
{
	ring_area_record(&area, NULL);
	ring_unpatch(&patches);
	ring_area_unmap(&area);
	ring_free(ring);
}

static uint64_t thread_pointer(void)
{
	uint64_t pointer;

	__asm__("mov %%fs:0, %0" : "=r"(pointer));
	return pointer;
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

	ck_assert_int_eq(ring_next(ring, &record), 0);
}

static void know_main_stack(void)
{
	char line[256];
	FILE *maps = fopen("/proc/self/maps", "re");

	ck_assert_ptr_nonnull(maps);
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "[stack]"))
			sscanf(line, "%lx-%lx", &control->main_stack, &control->main_stack_end);
	fclose(maps);
}

/* --- what is recorded --- */

START_TEST(an_entry_and_a_return_make_two_records)
{
	uint64_t address = sample_alloc(48), word;
	struct ring_record call = next_record(), record = next_record();

	ck_assert(!call.is_return);
	ck_assert_uint_eq(call.site, ALLOC);
	ck_assert_uint_eq(call.args[0], 48);
	ck_assert_uint_eq(call.thread, thread_pointer());
	ck_assert(record.is_return);
	ck_assert_uint_eq(record.site, ALLOC + 1);
	ck_assert_uint_eq(record.result, address);
	ck_assert_uint_eq(record.thread, thread_pointer());
	ck_assert_uint_eq(record.sp, call.sp);
	ck_assert_uint_ge(record.stack_length, 8);
	memcpy(&word, record.stack, sizeof(word));
	ck_assert_uint_eq(word, call.return_address);
	expect_nothing();
}
END_TEST

START_TEST(each_return_has_a_site_of_its_own)
{
	ck_assert_uint_eq(sample_alloc(0), 0);
	next_record();
	ck_assert_uint_eq(next_record().site, ALLOC + 2);
}
END_TEST

START_TEST(a_free_is_recorded_before_it_is_done)
{
	struct ring_record record;

	sample_free(77);
	ck_assert_uint_eq(sample_freed, 1);
	record = next_record();
	ck_assert_uint_eq(record.site, FREE);
	ck_assert_uint_eq(record.args[0], 77);
	sample_free(0);
	ck_assert_uint_eq(next_record().args[0], 0);
	ck_assert_uint_eq(sample_freed, 1);
	expect_nothing();
}
END_TEST

START_TEST(every_register_is_kept)
{
	uint64_t in[15], without[15], with[15];
	struct ring_record call, record;

	for (unsigned i = 0; i < 15; i++)
		in[i] = 0x0101010101010101ULL * (i + 1);
	ring_unpatch(&patches);
	sample_caller((void *)sample_alloc, in, without);
	sample_next = sample_next - in[6];
	teardown();
	setup();
	sample_caller((void *)sample_alloc, in, with);
	ck_assert_mem_eq(without, with, sizeof(with));
	call = next_record();
	ck_assert_uint_eq(call.return_address, (uintptr_t)sample_caller_return);
	ck_assert_uint_eq(call.args[0], in[6]);
	ck_assert_uint_eq(call.args[1], in[5]);
	ck_assert_uint_eq(call.args[2], in[2]);
	record = next_record();
	ck_assert_uint_eq(record.saved[0], in[3]);
	ck_assert_uint_eq(record.saved[1], in[4]);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_uint_eq(record.saved[2 + i], in[11 + i]);
}
END_TEST

static uint64_t ticks(void)
{
	return __builtin_ia32_rdtsc();
}

START_TEST(the_time_is_that_of_the_return)
{
	uint64_t before = ticks(), after;

	sample_alloc(1);
	after = ticks();
	next_record();
	ck_assert_uint_le(before, next_record().time);
	sample_alloc(1);
	next_record();
	ck_assert_uint_le(after, next_record().time);
}
END_TEST

START_TEST(a_thread_is_told_by_any_word_of_its_own)
{
	static _Thread_local uint64_t own = 0xffffffff00000007;

	control->thread_offset = (uintptr_t)&own - thread_pointer();
	control->thread_mask = UINT32_MAX;
	sample_free(1);
	ck_assert_uint_eq(next_record().thread, 7);
}
END_TEST

/* --- how much stack --- */

/* One place. */
static __attribute__((noinline)) struct ring_record allocate_with(volatile uint64_t pattern[16])
{
	struct ring_record record;

	for (unsigned i = 0; i < 16; i++)
		pattern[i] = 0x1000000000000 + i;
	sample_alloc(1);
	next_record();
	record = next_record();
	ring_set_stack_length(ring, record.length_key, 4096);
	return record;
}

static __attribute__((noinline)) void allocate_at_one_place(void)
{
	volatile uint64_t pattern[16];
	struct ring_record record;

	ck_assert_uint_eq(allocate_with(pattern).stack_length, 1024);
	record = allocate_with(pattern);
	ck_assert_uint_eq(record.stack_length, 4096);
	ck_assert_uint_le((uintptr_t)pattern + sizeof(pattern), record.sp + record.stack_length);
	ck_assert_mem_eq(record.stack + ((uintptr_t)pattern - record.sp), (const void *)pattern, sizeof(pattern));
}

START_TEST(the_stack_is_as_long_as_its_place_needs)
{
	volatile uint64_t room[512];           /* the stack may end soon behind this, where the environment is small */

	room[0] = room[511] = 0;
	know_main_stack();
	allocate_at_one_place();
	room[1] = room[511];
}
END_TEST

START_TEST(the_first_stack_is_read_to_its_end_and_not_beyond)
{
	struct ring_record record;

	know_main_stack();
	ring_set_all_stack_lengths(ring, RING_STACK_MAX);
	sample_alloc(1);
	next_record();
	record = next_record();
	if (control->main_stack_end - record.sp < RING_STACK_MAX)
		ck_assert_uint_eq(record.stack_length, control->main_stack_end - record.sp);
	else
		ck_assert_uint_eq(record.stack_length, RING_STACK_MAX);
}
END_TEST

static void *alloc_deep(void *unused)
{
	(void)unused;
	sample_alloc(1);
	return (void *)thread_pointer();
}

/* glibc keeps the lowest address of a thread's stack in its thread's data: found as the tracer finds it, by looking. */
static uint64_t find_stack_offset(void)
{
	pthread_attr_t attr;
	uint64_t pointer = thread_pointer();
	size_t size, guard;
	void *low;

	ck_assert_int_eq(pthread_getattr_np(pthread_self(), &attr), 0);
	pthread_attr_getstack(&attr, &low, &size);
	pthread_attr_getguardsize(&attr, &guard);
	pthread_attr_destroy(&attr);
	for (uint64_t offset = 8; offset < 2304; offset += 8) {
		uint64_t word;

		memcpy(&word, (void *)(pointer + offset), sizeof(word));
		if (word == (uintptr_t)low - guard || word == (uintptr_t)low)
			return offset;
	}
	return 0;
}

static void *find_in_thread(void *ret_offset)
{
	*(uint64_t *)ret_offset = find_stack_offset();
	return NULL;
}

static void run_thread(void *(*function)(void *), void *argument, void **ret_result)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, function, argument), 0);
	pthread_join(thread, ret_result);
}

START_TEST(a_threads_stack_is_read_to_its_end_and_not_beyond)
{
	uint64_t offset = 0;
	void *pointer;
	struct ring_record record;

	run_thread(find_in_thread, &offset, NULL);
	ck_assert_uint_ne(offset, 0);
	control->stack_offset = offset;
	ring_set_all_stack_lengths(ring, RING_STACK_MAX);
	run_thread(alloc_deep, NULL, &pointer);
	next_record();
	record = next_record();
	ck_assert_uint_eq(record.stack_length, (uintptr_t)pointer - record.sp);
	/* Where the word is zero, as in the first thread, it says nothing. */
	sample_alloc(1);
	next_record();
	record = next_record();
	ck_assert_uint_eq(record.stack_length, PAGE - record.sp % PAGE);
}
END_TEST

/* Records that were made so far from the end of the stack that they are on. */
struct far_records {
	uint64_t end, distance;
	struct ring_record call, record;
};

/* A sanitizer would put room of its own beside what is asked for. */
static __attribute__((noinline, no_sanitize_address)) void allocate_lower(struct far_records *far, size_t bytes)
{
	volatile char *room = __builtin_alloca(bytes + 16);

	room[0] = 1;
	sample_alloc(1);
	far->call = next_record();
	far->record = next_record();
}

static void *allocate_far(void *argument)
{
	struct far_records *far = argument;
	uint64_t end = far->end ? far->end : thread_pointer(), least;

	allocate_lower(far, 0);
	least = end - far->record.sp;
	REQUIRE(far->distance >= least && (far->distance - least) % 16 == 0);
	allocate_lower(far, far->distance - least);
	REQUIRE(end - far->record.sp == far->distance);
	return NULL;
}

/* By one wrapper of malloc, say: as far from the end the one needs more than the other. */
START_TEST(a_threads_place_is_another_one_than_the_first_threads)
{
	struct far_records first, other = { .distance = 128UL * 1024 + 8 };

	know_main_stack();
	first = (struct far_records){ .end = control->main_stack_end, .distance = other.distance };
	run_thread(find_in_thread, &control->stack_offset, NULL);
	ck_assert_uint_ne(control->stack_offset, 0);
	allocate_far(&first);
	run_thread(allocate_far, &other, NULL);
	ck_assert_uint_eq(first.call.return_address, other.call.return_address);
	ck_assert_uint_ne(first.record.length_key, other.record.length_key);
}
END_TEST

/* --- calls within others --- */

static __attribute__((noinline)) void allocate_below(volatile uint64_t pattern[16])
{
	pattern[0] = 1;
	sample_alloc(1);
}

static void note_pending_calls(void)
{
	teardown();
	area.notes_pending = true;
	setup();
}

START_TEST(a_call_within_another_comes_with_the_stack_up_to_that)
{
	volatile uint64_t pattern[16] = { 0 };
	uint64_t outer = (uintptr_t)pattern;
	struct ring_record record;

	note_pending_calls();
	know_main_stack();
	ring_note_pending(ring, thread_pointer(), outer);
	allocate_below(pattern);
	record = next_record();
	ck_assert(record.has_stack && !record.is_return);
	ck_assert_uint_eq(record.stack_start, control->main_stack);
	ck_assert_uint_eq(record.sp + record.stack_length, outer + 64);
	ck_assert_mem_eq(record.stack, &record.return_address, sizeof(record.return_address));
	ck_assert_mem_eq(record.stack + (outer - record.sp), (const void *)pattern, 64);
	ck_assert(next_record().is_return);
	ring_note_returned(ring, thread_pointer(), outer);
	allocate_below(pattern);
	ck_assert(!next_record().has_stack);
}
END_TEST

START_TEST(a_call_that_was_left_on_the_same_stack_is_noted_no_more)
{
	volatile uint64_t pattern[16] = { 0 };

	note_pending_calls();
	know_main_stack();
	ring_note_pending(ring, thread_pointer(), (uintptr_t)pattern - 4096);
	allocate_below(pattern);
	ck_assert(next_record().has_stack);
	next_record();
	allocate_below(pattern);
	ck_assert(!next_record().has_stack);
}
END_TEST

/* --- threads that are stopped while they write --- */

#define TRAP_FLAG 0x100

static unsigned long steps, settled_step;

static void copy_registers(greg_t *gregs, struct user_regs_struct *regs, bool back)
{
	const struct {
		int number;
		unsigned long long *other;
	} pairs[] = {
		{ REG_RIP, &regs->rip }, { REG_RSP, &regs->rsp }, { REG_EFL, &regs->eflags }, { REG_RAX, &regs->rax },
		{ REG_RCX, &regs->rcx }, { REG_RDX, &regs->rdx }, { REG_RSI, &regs->rsi }, { REG_RDI, &regs->rdi },
		{ REG_R8, &regs->r8 }, { REG_R9, &regs->r9 }, { REG_R10, &regs->r10 }, { REG_R11, &regs->r11 },
	};

	for (unsigned i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		if (back)
			gregs[pairs[i].number] = (greg_t)*pairs[i].other;
		else
			*pairs[i].other = (unsigned long long)gregs[pairs[i].number];
	}
}

static void make_void(const struct ring_unfinished *unfinished)
{
	struct ring_head *head = (void *)((uint8_t *)control + RING_CONTROL_SIZE + unfinished->position % SIZE);
	uint64_t mark = unfinished->position ^ control->key;

	if (head->mark != (mark | RING_OPEN))
		head->length = unfinished->length;
	head->site = RING_VOID;
	head->mark = mark | RING_COMMITTED;
}

static const struct ring_site *find_site(uint64_t pc, const uint64_t *words, unsigned *ret_at)
{
	for (*ret_at = 0; *ret_at < RING_CODE_WORDS; ++*ret_at) {
		for (unsigned i = 0; i < patches.count; i++) {
			const struct ring_site *site = &patches.items[i].site;

			if (pc - site->at < site->length || words[*ret_at] == ring_site_back(site))
				return site;
		}
	}
	return NULL;
}

/* As the tracer does it. */
static void settle(greg_t *gregs)
{
	struct user_regs_struct regs = { 0 };
	struct ring_unfinished unfinished = { .reserved = false };
	const struct ring_site *site;
	const uint64_t *words;
	unsigned at;

	copy_registers(gregs, &regs, false);
	words = (const void *)(uintptr_t)regs.rsp;
	site = find_site(regs.rip, words, &at);
	REQUIRE(site);
	if (ring_site_settle(site, (uintptr_t)area.start, words - RING_CODE_BELOW, at, &regs, &unfinished) == RING_ELSEWHERE)
		return;
	copy_registers(gregs, &regs, true);
	if (unfinished.reserved)
		make_void(&unfinished);
}

/* Each turn of a repeated instruction is a step, but not another place. */
static void on_step(int sig, siginfo_t *info, void *context)
{
	greg_t *gregs = ((ucontext_t *)context)->uc_mcontext.gregs;
	static greg_t last;
	bool again = gregs[REG_RIP] == last;

	(void)sig, (void)info;
	last = gregs[REG_RIP];
	if (again)
		return;
	if ((uint64_t)gregs[REG_RIP] - (uintptr_t)area.start >= RING_CODE_SIZE || steps++ != settled_step)
		return;
	settle(gregs);
	gregs[REG_EFL] &= ~TRAP_FLAG;
}

static void set_trap_flag(bool on)
{
	if (on)
		__asm__ volatile("pushfq\n orq $0x100, (%%rsp)\n popfq" ::: "memory", "cc");
	else
		__asm__ volatile("pushfq\n andq $~0x100, (%%rsp)\n popfq" ::: "memory", "cc");
}

static uint64_t allocate_in_steps(uint64_t size)
{
	uint64_t address;

	steps = 0;
	set_trap_flag(true);
	address = sample_alloc(size);
	set_trap_flag(false);
	return address;
}

static int store_in_steps(uint64_t *out, uint64_t address)
{
	int result;

	steps = 0;
	set_trap_flag(true);
	result = sample_store(out, address);
	set_trap_flag(false);
	return result;
}

static _Thread_local uint64_t own_tid;

/* outer: a pending call's stack pointer, or 0.  Returns how many places there are. */
static unsigned long settle_everywhere(uint64_t outer)
{
	struct sigaction action = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };
	uint64_t next = sample_alloc(48);

	next_record();
	next_record();
	ring_forget_thread(ring, own_tid);
	sigaction(SIGTRAP, &action, NULL);
	settled_step = 0;
	do {
		struct ring_record call, record;

		if (outer)
			ring_note_pending(ring, own_tid, outer);
		next += 48;
		REQUIRE(allocate_in_steps(48) == next);
		call = next_record();
		REQUIRE(!call.is_return && call.args[0] == 48 && call.has_stack == (outer != 0));
		REQUIRE(!outer || call.stack_length > 0);
		record = next_record();
		REQUIRE(record.is_return && record.result == next && record.sp == call.sp);
		expect_nothing();
	} while (steps > settled_step++);
	return settled_step;
}

static void tell_threads_by_number(void)
{
	own_tid = (uint64_t)gettid();
	control->thread_offset = (uintptr_t)&own_tid - thread_pointer();
	control->thread_mask = UINT32_MAX;
}

#define SIGNAL_STACK_SIZE (16 * PAGE)

static uint8_t *signal_stack;

/* Behind it nothing is mapped. */
static void have_on_a_stack_of_its_own(void (*handle)(int))
{
	stack_t stack = { .ss_size = SIGNAL_STACK_SIZE };
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_ONSTACK };

	if (!signal_stack) {
		signal_stack = mmap(NULL, SIGNAL_STACK_SIZE + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		REQUIRE(signal_stack != MAP_FAILED && munmap(signal_stack + SIGNAL_STACK_SIZE, PAGE) == 0);
	}
	stack.ss_sp = signal_stack;
	REQUIRE(sigaltstack(&stack, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
	REQUIRE(raise(SIGUSR1) == 0);
}

/* On a stack of which nothing is known. */
static void settle_in_handler(int sig)
{
	(void)sig;
	REQUIRE(settle_everywhere(0) > 200);
	REQUIRE(settle_everywhere((uintptr_t)signal_stack + SIGNAL_STACK_SIZE) > 300);
}

START_TEST(a_record_is_written_once_wherever_its_thread_is_stopped)
{
	volatile uint64_t pattern[16] = { 0 };

	note_pending_calls();
	tell_threads_by_number();
	know_main_stack();
	have_on_a_stack_of_its_own(settle_in_handler);
	ck_assert_uint_gt(settle_everywhere(0), 100);
	ck_assert_uint_gt(settle_everywhere((uintptr_t)pattern), 200);
}
END_TEST

#define STORE (ALLOC + 60)

/* Its result is told by its first argument. */
static void patch_store(void)
{
	const struct ring_shape shape = { .size_argument = 1, .count_argument = RING_NO_ARGUMENT, .old_argument = RING_NO_ARGUMENT,
					  .out_argument = 0 };

	area.notes_pending = area.told = area.stored = true;
	ring_patch_function(&area, (void *)sample_store, (size_t)(sample_store_end - (uint8_t *)sample_store), true, STORE, &patches);
	ring_set_shape(ring, STORE, &shape);
	tell_threads_by_number();
	know_main_stack();
}

static struct ring_record record_of_store(uint64_t *out, uint64_t address)
{
	ck_assert_int_eq(sample_store(out, address), 0);
	ck_assert_uint_eq(next_record().site, STORE);
	return next_record();
}

/* Wherever that is, and whatever is written there the moment after. */
START_TEST(what_a_call_has_stored_comes_with_its_return)
{
	static uint64_t elsewhere;
	uint64_t here_on_the_stack;
	struct ring_record record;

	patch_store();
	record = record_of_store(&elsewhere, 0x20000);
	elsewhere = 0;
	ck_assert(record.is_return && record.stored);
	ck_assert_uint_eq(record.result, 0x20000);
	record = record_of_store(&here_on_the_stack, 0x30000);
	ck_assert(record.stored);
	ck_assert_uint_eq(record.result, 0x30000);
	ck_assert_uint_eq(record.stack_length, 1024);
	expect_nothing();
}
END_TEST

/* Of a call that was not recorded, or another thread's. */
START_TEST(what_another_call_has_stored_is_not_taken_for_ones_own)
{
	struct ring_draw *draw;
	struct ring_record record;
	uint64_t elsewhere;

	patch_store();
	draw = &control->draws_of[0][own_tid % RING_DRAWS];
	ck_assert(record_of_store(&elsewhere, 0x20000).stored);
	/* What is noted changes while the call is under way. */
	record = record_of_store(&draw->return_address, 0x20000);
	ck_assert(!record.stored && record.result == 0);
	ck_assert(!record_of_store(&draw->sp, 0x20000).stored);
	record = record_of_store(&draw->out, 0x20000);
	ck_assert(!record.stored && record.result == 0);
	ck_assert(record_of_store(&elsewhere, 0x20000).stored);
	/* Nor is anything where the kernel may not be asked. */
	control->may_yield = 0;
	record = record_of_store(&elsewhere, 0x20000);
	ck_assert(!record.stored && record.result == 0);
}
END_TEST

START_TEST(what_is_stored_is_told_once_wherever_its_thread_is_stopped)
{
	struct sigaction action = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };
	static uint64_t elsewhere;

	patch_store();
	ck_assert(record_of_store(&elsewhere, 0x20000).stored);
	sigaction(SIGTRAP, &action, NULL);
	settled_step = 0;
	do {
		struct ring_record record;

		ck_assert_int_eq(store_in_steps(&elsewhere, 0x1000 * settled_step), 0);
		ck_assert_uint_eq(next_record().site, STORE);
		record = next_record();
		ck_assert(record.stored);
		ck_assert_uint_eq(record.result, 0x1000 * settled_step);
		expect_nothing();
	} while (steps > settled_step++);
	ck_assert_uint_gt(settled_step, 200);
}
END_TEST

static ucontext_t here, there, apart;

static void alloc_and_return(void)
{
	sample_alloc(1);
}

/* A stack that nobody has told of, with nothing behind it. */
START_TEST(an_unknown_stack_is_read_to_the_end_of_its_page)
{
	/* Below the thread pointer, as a thread's own would be. */
	void *below = (void *)((thread_pointer() - (256 << 20)) & ~(PAGE - 1));
	uint8_t *stack = mmap(below, 5 * PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	struct ring_record record;
	uint64_t offset = 0;

	ck_assert_ptr_eq(stack, below);
	know_main_stack();
	run_thread(find_in_thread, &offset, NULL);
	control->stack_offset = offset;
	ring_set_all_stack_lengths(ring, RING_STACK_MAX);
	ck_assert_int_eq(munmap(stack + 4 * PAGE, PAGE), 0);
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = 4 * PAGE;
	there.uc_link = &here;
	makecontext(&there, alloc_and_return, 0);
	swapcontext(&here, &there);
	next_record();
	record = next_record();
	ck_assert_uint_eq(record.sp + record.stack_length, (uintptr_t)stack + 4 * PAGE);
	ck_assert_uint_eq(record.other_length, 0);
}
END_TEST

static __attribute__((noinline)) void alloc_pages_deep(void)
{
	volatile uint8_t room[2 * PAGE];

	room[0] = 1;
	sample_alloc(1);
	room[1] = room[0];
}

/* However little of it is known, as long as the kernel may be asked. */
START_TEST(an_unknown_stack_is_read_as_far_as_it_goes_and_is_needed)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	uint8_t *stack = mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
	struct ring_record record;

	ck_assert_ptr_ne(stack, MAP_FAILED);
	ck_assert_int_eq(munmap(stack + 8 * PAGE, PAGE), 0);
	know_main_stack();
	tell_threads_by_number();
	for (unsigned i = 0; i < 2; i++) {
		uint64_t rest;

		getcontext(&apart);
		apart.uc_stack.ss_sp = stack;
		apart.uc_stack.ss_size = 8 * PAGE;
		apart.uc_link = &here;
		makecontext(&apart, alloc_pages_deep, 0);
		ring_set_all_stack_lengths(ring, i ? 3 * PAGE : PAGE);
		swapcontext(&here, &apart);
		next_record();
		record = next_record();
		rest = (uintptr_t)stack + 8 * PAGE - record.sp;
		ck_assert_uint_gt(rest, 2 * PAGE);
		ck_assert_uint_eq(record.stack_length, i ? rest : PAGE);
	}
}
END_TEST

#define SHARED_PAGES 8

/* On the calling thread's own stack, below a page that cannot be read, whose address is returned. */
static __attribute__((noinline)) uint64_t allocate_below_a_hole(bool within)
{
	uint8_t room[(SHARED_PAGES + 2) * PAGE];
	uint8_t *stack = room + PAGE - (uintptr_t)room % PAGE, *hole = stack + SHARED_PAGES * PAGE;

	memset(room, 0, sizeof(room));
	if (within)
		ring_note_pending(ring, own_tid, (uintptr_t)hole + PAGE);
	REQUIRE(mprotect(hole, PAGE, PROT_NONE) == 0);
	getcontext(&apart);
	apart.uc_stack.ss_sp = stack;
	apart.uc_stack.ss_size = SHARED_PAGES * PAGE;
	apart.uc_link = &here;
	makecontext(&apart, alloc_pages_deep, 0);
	swapcontext(&here, &apart);
	REQUIRE(mprotect(hole, PAGE, PROT_READ | PROT_WRITE) == 0);
	return (uintptr_t)hole;
}

static void require_end(const struct ring_record *record, uint64_t end)
{
	REQUIRE(record->other_length == 0);
	REQUIRE(record->sp + record->stack_length == end);
}

static void *run_below_a_hole(void *unused)
{
	own_tid = (uint64_t)gettid();
	for (unsigned i = 0; i < 2; i++) {
		uint64_t hole = allocate_below_a_hole(i == 1), end;
		struct ring_record record = next_record();

		end = control->may_yield ? hole : (record.sp | (PAGE - 1)) + 1;
		REQUIRE(record.has_stack == (i == 1));
		if (i == 1)
			require_end(&record, end);
		record = next_record();
		require_end(&record, end);
	}
	return unused;
}

START_TEST(where_stacks_have_holes_none_is_copied_without_being_asked_for)
{
	note_pending_calls();
	tell_threads_by_number();
	know_main_stack();
	run_thread(find_in_thread, &control->stack_offset, NULL);
	ck_assert_uint_ne(control->stack_offset, 0);
	ring_set_all_stack_lengths(ring, RING_STACK_MAX);
	control->has_holes = 1;
	run_thread(run_below_a_hole, NULL, NULL);
	/* A program with a filter may not ask. */
	control->may_yield = 0;
	run_thread(run_below_a_hole, NULL, NULL);
}
END_TEST

#define GUARD_INSTALL 102              /* MADV_GUARD_INSTALL, which older headers do not know */

static bool makes_hole(uint64_t start, uint64_t length, int protection)
{
	bool made;

	REQUIRE(sample_unmap(start, length, protection) == 11);
	made = control->has_holes;
	control->has_holes = 0;
	return made;
}

/* Of the calling thread's. */
static struct bounds {
	uint64_t start, end;
} own_stack(void)
{
	struct bounds bounds = { control->main_stack, control->main_stack_end };

	if (gettid() != getpid()) {
		bounds.end = thread_pointer();
		memcpy(&bounds.start, (void *)(bounds.end + control->stack_offset), sizeof(bounds.start));
	}
	return bounds;
}

/* Callers are above here; at the lower end there may be a guard. */
static void *unmap_within_stack(void *context)
{
	static const int advice[] = { MADV_NORMAL, MADV_DONTNEED, MADV_FREE, MADV_DONTDUMP, 24 /* MADV_DONTNEED_LOCKED */ };
	enum ring_unmaps by = *(const enum ring_unmaps *)context;
	int goes = by == RING_UNMAPS_BY_ADVICE ? GUARD_INSTALL : PROT_NONE;
	uint64_t page = (uintptr_t)__builtin_frame_address(0) & ~(PAGE - 1);
	struct bounds bounds = own_stack();

	REQUIRE(bounds.start < page && page < bounds.end);
	REQUIRE(makes_hole(page, PAGE, goes));
	REQUIRE(makes_hole(bounds.start, bounds.end - bounds.start, goes));
	REQUIRE(!makes_hole(bounds.end, PAGE, goes));
	REQUIRE(!makes_hole(bounds.start - PAGE, 2 * PAGE, goes));
	REQUIRE(makes_hole(page, PAGE, PROT_READ) == (by == RING_UNMAPS));
	for (size_t i = 0; by != RING_UNMAPS_BY_PROTECTION && i < sizeof(advice) / sizeof(advice[0]); i++)
		REQUIRE(makes_hole(page, PAGE, advice[i]) == (by == RING_UNMAPS));
	ring_area_record(&area, NULL);
	REQUIRE(!makes_hole(page, PAGE, goes));
	ring_area_record(&area, ring);
	return NULL;
}

static void unmap_everywhere(enum ring_unmaps by)
{
	ring_patch_unmap(&area, (void *)sample_unmap, by, UNMAP, &patches);
	unmap_within_stack(&by);
	run_thread(unmap_within_stack, &by, NULL);
}

START_TEST(what_is_unmapped_of_the_callers_own_stack_is_noted)
{
	know_main_stack();
	run_thread(find_in_thread, &control->stack_offset, NULL);
	unmap_everywhere(RING_UNMAPS);
	ring_unpatch(&patches);
	unmap_everywhere(RING_UNMAPS_BY_PROTECTION);
	ring_unpatch(&patches);
	unmap_everywhere(RING_UNMAPS_BY_ADVICE);
	expect_nothing();
}
END_TEST

START_TEST(every_register_is_kept_where_memory_is_unmapped)
{
	uint64_t in[15], without[15], with[15];

	for (unsigned i = 0; i < 15; i++)
		in[i] = 0x0101010101010101ULL * (i + 1);
	sample_caller((void *)sample_unmap, in, without);
	run_thread(find_in_thread, &control->stack_offset, NULL);
	for (enum ring_unmaps by = RING_UNMAPS; by <= RING_UNMAPS_BY_ADVICE; by++) {
		ring_patch_unmap(&area, (void *)sample_unmap, by, UNMAP, &patches);
		sample_caller((void *)sample_unmap, in, with);
		ck_assert_mem_eq(without, with, sizeof(with));
		ring_unpatch(&patches);
	}
}
END_TEST

START_TEST(a_return_says_where_its_threads_pointer_is)
{
	void *pointer;

	run_thread(alloc_deep, NULL, &pointer);
	next_record();
	ck_assert_uint_eq(next_record().thread_pointer, (uintptr_t)pointer);
}
END_TEST

static void allocate_when_asked(int sig)
{
	(void)sig;
	sample_alloc(1);
}

static void require_both_stacks(const struct ring_record *record, const volatile uint64_t *pattern)
{
	uint64_t at = (uintptr_t)pattern - record->other_start;

	ck_assert_uint_le(record->sp + record->stack_length, (uintptr_t)signal_stack + SIGNAL_STACK_SIZE);
	ck_assert_uint_gt(record->stack_length, 256);
	ck_assert_uint_le((uintptr_t)pattern - at, (uintptr_t)pattern);
	ck_assert_uint_le(at + 128, record->other_length);
	ck_assert_mem_eq(record->stack + record->stack_length + at, (const void *)pattern, 128);
}

START_TEST(what_a_handler_on_a_stack_of_its_own_does_comes_with_both_stacks)
{
	volatile uint64_t pattern[16];
	struct ring_record record;

	for (unsigned i = 0; i < 16; i++)
		pattern[i] = 0x1000000000000 + i;
	note_pending_calls();
	know_main_stack();
	tell_threads_by_number();
	ring_set_all_stack_lengths(ring, 16384);
	have_on_a_stack_of_its_own(allocate_when_asked);
	ck_assert(!next_record().has_stack);
	record = next_record();
	require_both_stacks(&record, pattern);
	ring_note_pending(ring, own_tid, (uintptr_t)pattern);
	have_on_a_stack_of_its_own(allocate_when_asked);
	record = next_record();
	ck_assert(record.has_stack && !record.is_return);
	require_both_stacks(&record, pattern);
	record = next_record();
	require_both_stacks(&record, pattern);
	/* A program with a filter may not ask. */
	control->may_yield = 0;
	have_on_a_stack_of_its_own(allocate_when_asked);
	next_record();
	record = next_record();
	ck_assert_uint_eq(record.other_length, 0);
	ck_assert_uint_le(record.stack_length, PAGE);
}
END_TEST

/* --- sampling --- */

#define ALWAYS 1                        /* sample_bytes: what is larger than some tens is missed once in e^size times */
#define NEVER RING_SAMPLE_MAX           /* as good as */

static struct ring_draw *own_draw(void)
{
	return &control->draws_of[0][thread_pointer() % RING_DRAWS];
}

static uint64_t own_tag(void)
{
	return ((thread_pointer() & UINT32_MAX) >> RING_DRAWS_SHIFT | RING_DRAW_TAG) << RING_DRAW_TAG_SHIFT;
}

static void sample(uint64_t bytes)
{
	area.sampled = true;
	note_pending_calls();
	know_main_stack();
	ring_set_sampling(ring, bytes);
}

/* The countdown of this thread, drawn by other means. */
static void count_down_from(uint64_t bytes)
{
	own_draw()->countdown = bytes | own_tag();
}

START_TEST(what_is_not_sampled_leaves_no_record)
{
	sample(NEVER);
	count_down_from(1000);
	sample_free(sample_alloc(600));
	sample_free(sample_alloc(399));
	expect_nothing();
	ck_assert_uint_eq(own_draw()->countdown, 1 | own_tag());
	sample_alloc(1);
	ck_assert_uint_eq(next_record().args[0], 1);
	ck_assert(next_record().is_return);
	expect_nothing();
}
END_TEST

START_TEST(every_register_is_kept_of_what_is_not_sampled)
{
	uint64_t in[15], without[15], with[15];

	for (unsigned i = 0; i < 15; i++)
		in[i] = 0x0101010101010101ULL * (i + 1);
	in[6] = 48;                            /* rdi, the size */
	ring_unpatch(&patches);
	sample_caller((void *)sample_alloc, in, without);
	sample_next -= in[6];
	sample(NEVER);
	count_down_from(1000);
	sample_caller((void *)sample_alloc, in, with);
	ck_assert_mem_eq(without, with, sizeof(with));
	sample_caller((void *)sample_free, in, with);
	ck_assert_mem_eq(&in[1], &with[1], sizeof(with) - sizeof(with[0]));
	expect_nothing();
	ck_assert_uint_eq(own_draw()->countdown, (1000 - 48) | own_tag());
}
END_TEST

#define FLAGS 0xcd5                      /* carry, parity, auxiliary, zero, sign, direction, overflow */

/* What a compiler may rely on where it sees both sides of a call. */
static void require_flags_are_kept(void)
{
	static const uint64_t flags[] = { 0, FLAGS, 1, 4, 0x10, 0x40, 0x80, 0x400, 0x800, 0x801 };

	for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		uint64_t behind, at_entry = sample_with_flags((void *)sample_flags, flags[i], &behind);

		ck_assert_uint_eq(at_entry & FLAGS, flags[i]);
		ck_assert_uint_eq(behind & FLAGS, flags[i]);
	}
}

static void patch_flags(void)
{
	ring_patch_function(&area, (void *)sample_flags, (size_t)(sample_flags_end - (uint8_t *)sample_flags), true, ALLOC + 50,
			    &patches);
}

START_TEST(flags_are_kept)
{
	struct ring_record record;
	unsigned records = 0;

	patch_flags();
	require_flags_are_kept();
	for (; ring_next(ring, &record) == 1; records++)
		ring_done(ring);
	ck_assert_uint_eq(records, 20);
	sample(NEVER);
	patch_flags();
	count_down_from(100000);
	require_flags_are_kept();
	expect_nothing();
	sample(ALWAYS);
	patch_flags();
	require_flags_are_kept();
	ck_assert(!next_record().is_return);
}
END_TEST

static const struct form {
	struct ring_form form;
	bool frees;
	uint64_t bytes;                        /* that it asks for with 3 and 5 */
} forms[] = {
	{ { 0, RING_NO_ARGUMENT, false }, false, 3 },
	{ { 1, RING_NO_ARGUMENT, false }, false, 5 },
	{ { 1, 0, false }, false, 15 },
	{ { 0, 1, false }, false, 15 },
	{ { 1, RING_NO_ARGUMENT, true }, false, 5 },
	{ { 0, RING_NO_ARGUMENT, false }, true, 0 },
};
#define FORMS (sizeof(forms) / sizeof(forms[0]))

static void patch_form(const struct form *form)
{
	ring_unpatch(&patches);
	area.used = ring_code().sites;
	area.form = &form->form;
	ring_patch_function(&area, (void *)sample_flags, (size_t)(sample_flags_end - (uint8_t *)sample_flags), !form->frees, ALLOC,
			    &patches);
}

static void call_form(uint64_t first, uint64_t second)
{
	uint64_t in[15], out[16];

	for (unsigned i = 0; i < 15; i++)
		in[i] = 0x0101010101010101ULL * (i + 1);
	in[5] = second;
	in[6] = first;
	sample_caller((void *)sample_flags, in, out);
	ck_assert_mem_eq(&in[1], &out[1], sizeof(in) - sizeof(in[0]));
}

START_TEST(each_form_of_a_call_is_passed_over)
{
	sample(NEVER);
	for (unsigned i = 0; i < FORMS; i++) {
		patch_form(&forms[i]);
		count_down_from(1000);
		call_form(3, 5);
		expect_nothing();
		ck_assert_uint_eq(own_draw()->countdown, (1000 - forms[i].bytes) | own_tag());
		ck_assert_uint_eq(own_draw()->sp, 0);
		call_form(0, 0);
		expect_nothing();
		ck_assert_uint_eq(own_draw()->countdown, (1000 - forms[i].bytes - !forms[i].frees) | own_tag());
	}
}
END_TEST

START_TEST(each_form_that_asks_for_too_much_is_sampled)
{
	static const uint64_t much[] = { (uint64_t)1 << 33, (uint64_t)1 << 47, (uint64_t)1 << 63, -5ULL, -1ULL };

	sample(NEVER);
	for (unsigned i = 0; i < FORMS; i++) {
		if (forms[i].frees)
			continue;
		patch_form(&forms[i]);
		for (unsigned j = 0; j < sizeof(much) / sizeof(much[0]); j++) {
			count_down_from(1000);
			call_form(much[j], much[j]);
			ck_assert_uint_eq(next_record().args[0], much[j]);
			ck_assert(next_record().is_return);
			expect_nothing();
		}
	}
}
END_TEST

START_TEST(a_sampled_block_that_is_resized_is_recorded)
{
	sample(NEVER);
	patch_form(&forms[4]);
	ring_filter_add(ring, 0x123456789a0);
	count_down_from(1000);
	call_form(0x123456789a0 ^ 1 << 12, 5);
	call_form(0x123456789a0 ^ 1ULL << 32, 5);
	expect_nothing();
	call_form(0x123456789a0, 5);
	ck_assert_uint_eq(next_record().args[0], 0x123456789a0);
	ck_assert(next_record().is_return);
	expect_nothing();
	ck_assert_uint_eq(own_draw()->countdown, (1000 - 15) | own_tag());
}
END_TEST

static void require_flags_are_kept_in_steps(uint64_t flags)
{
	uint64_t behind, at_entry;

	steps = 0;
	at_entry = sample_with_flags((void *)sample_flags, flags | TRAP_FLAG, &behind);
	set_trap_flag(false);
	ck_assert_uint_eq(at_entry & FLAGS, flags);
	ck_assert_uint_eq(behind & FLAGS, flags);
}

START_TEST(all_is_kept_wherever_a_thread_is_stopped_that_passes_over)
{
	struct sigaction action = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };

	sample(NEVER);
	sigaction(SIGTRAP, &action, NULL);
	for (unsigned i = 0; i < FORMS; i++) {
		patch_form(&forms[i]);
		settled_step = 0;
		do {
			count_down_from(1ULL << 40);
			require_flags_are_kept_in_steps(0);
			require_flags_are_kept_in_steps(FLAGS);
			steps = 0;
			set_trap_flag(true);
			call_form(3, 5);
			set_trap_flag(false);
			expect_nothing();
			ck_assert_uint_eq(own_draw()->sp, 0);
		} while (steps > settled_step++);
		ck_assert_uint_gt(settled_step, 12);
	}
}
END_TEST

START_TEST(a_request_for_nothing_counts_as_one_byte)
{
	sample(NEVER);
	count_down_from(2);
	sample_alloc(0);
	expect_nothing();
	sample_alloc(0);
	ck_assert_uint_eq(next_record().args[0], 0);
}
END_TEST

START_TEST(a_sampled_block_is_in_the_filter_before_its_caller_has_it)
{
	uint64_t address;

	sample(ALWAYS);
	address = sample_alloc(4096);
	ck_assert(ring_filter_has(ring, address));
	ck_assert_uint_eq(next_record().site, ALLOC);
	ck_assert_uint_eq(next_record().result, address);
	sample_free(address);
	ck_assert_uint_eq(next_record().args[0], address);
	ring_filter_remove(ring, address);
	sample_free(address);
	expect_nothing();
	/* Never below nothing. */
	ring_filter_remove(ring, address);
	ck_assert(!ring_filter_has(ring, address));
}
END_TEST

START_TEST(blocks_of_one_place_in_the_filter_are_counted)
{
	ring_filter_add(ring, 0x10000);
	ring_filter_add(ring, 0x10008);
	ring_filter_remove(ring, 0x10000);
	ck_assert(ring_filter_has(ring, 0x10008));
	for (unsigned i = 0; i < 1000; i++)
		ring_filter_add(ring, 0x10000);
	for (unsigned i = 0; i < 1000; i++)
		ring_filter_remove(ring, 0x10000);
	ck_assert(ring_filter_has(ring, 0x10008));
}
END_TEST

START_TEST(a_part_of_a_call_shares_its_fate)
{
	volatile uint64_t pattern[16] = { 0 };
	struct ring_draw *draw;

	sample(ALWAYS);
	count_down_from(1);
	draw = own_draw();
	pattern[8] = draw->return_address = 0x123456;
	draw->sp = (uintptr_t)&pattern[8];
	allocate_below(pattern);
	expect_nothing();
	ck_assert_uint_eq(draw->sp, (uintptr_t)&pattern[8]);
	/* The outer one was left: something else stands there. */
	pattern[8] = 0;
	allocate_below(pattern);
	ck_assert(!next_record().is_return);
	ck_assert(next_record().is_return);
	ck_assert_uint_eq(draw->sp, 0);
}
END_TEST

/* What a thread has drawn is its own. */
static struct ring_shape told(uint64_t fixed_size, uint32_t family)
{
	return (struct ring_shape){ .fixed_size = fixed_size, .count_argument = RING_NO_ARGUMENT, .old_argument = RING_NO_ARGUMENT,
				    .out_argument = RING_NO_ARGUMENT, .family = family };
}

START_TEST(what_a_call_asks_for_may_be_told)
{
	struct ring_shape shape = told(100, 0);

	area.told = true;
	sample(NEVER);
	ring_set_shape(ring, ALLOC, &shape);
	count_down_from(101);
	sample_alloc(5);
	expect_nothing();
	ck_assert_uint_eq(own_draw()->countdown, 1 | own_tag());
	sample_alloc(5);
	ck_assert_uint_eq(next_record().args[0], 5);
	ck_assert(next_record().is_return);
	/* The program writes what it likes there: nothing is drawn by it. */
	shape.family = UINT32_MAX;
	ring_set_shape(ring, ALLOC, &shape);
	sample_alloc(5);
	expect_nothing();
}
END_TEST

static struct ring_draw *draw_of_family(uint32_t family)
{
	return &control->draws_of[family][thread_pointer() % RING_DRAWS];
}

START_TEST(a_call_within_one_of_another_family_is_drawn)
{
	volatile uint64_t pattern[16] = { 0 };
	const struct ring_shape shape = told(0, 1);

	area.told = area.described = true;
	sample(NEVER);
	ring_set_families(ring, 2);
	ring_set_shape(ring, ALLOC, &shape);
	count_down_from(1000);
	pattern[8] = own_draw()->return_address = 0x123456;
	own_draw()->sp = (uintptr_t)&pattern[8];
	draw_of_family(1)->countdown = 1 | own_tag();
	allocate_below(pattern);
	ck_assert(!next_record().is_return);
	ck_assert(next_record().is_return);
	expect_nothing();
	ck_assert_uint_eq(draw_of_family(1)->sp, 0);
	ck_assert_uint_eq(own_draw()->sp, (uintptr_t)&pattern[8]);
	ck_assert_uint_eq(own_draw()->countdown, 1000 | own_tag());
}
END_TEST

/* One function has jumped to the other: there is one return. */
START_TEST(a_return_ends_the_calls_of_all_families)
{
	const struct ring_shape shape = told(0, 1);
	struct ring_record call;

	area.told = area.described = true;
	sample(ALWAYS);
	ring_set_families(ring, 2);
	ring_set_shape(ring, ALLOC, &shape);
	for (unsigned i = 0; i < 2; i++) {
		sample_alloc(4096);
		call = next_record();
		ck_assert(!call.is_return && next_record().is_return);
		expect_nothing();
		ck_assert_uint_eq(own_draw()->sp, 0);
		/* As if that had been a call of family 0 as well, before it is made again. */
		own_draw()->sp = call.sp;
		own_draw()->return_address = call.return_address;
		own_draw()->fate = RING_SAMPLED;
	}
	/* One that was left there is none of them. */
	own_draw()->return_address = 0;
	draw_of_family(1)->countdown = 10000 | own_tag();
	sample_alloc(4096);
	expect_nothing();
	ck_assert_uint_eq(own_draw()->sp, call.sp);
}
END_TEST

/* Before its caller has it, as one that is returned; where it is stored elsewhere nobody knows whether that is mapped. */
START_TEST(a_block_that_is_stored_on_the_stack_is_in_the_filter)
{
	static uint64_t elsewhere;
	uint64_t here_on_the_stack;
	struct ring_shape shape = told(4096, 0);

	area.told = true;
	sample(ALWAYS);
	ring_patch_function(&area, (void *)sample_store, (size_t)(sample_store_end - (uint8_t *)sample_store), true, ALLOC + 60,
			    &patches);
	shape.out_argument = 0;
	ring_set_shape(ring, ALLOC + 60, &shape);
	sample_store(&here_on_the_stack, 0x10000);
	ck_assert_uint_eq(next_record().site, ALLOC + 60);
	ck_assert(next_record().is_return);
	ck_assert(ring_filter_has(ring, 0x10000));
	sample_store(&elsewhere, 0x20000);
	next_record();
	next_record();
	expect_nothing();
	ck_assert(!ring_filter_has(ring, 0x20000));
}
END_TEST

START_TEST(a_sampled_block_that_is_stored_elsewhere_is_told_and_counted_once)
{
	struct ring_shape shape = told(4096, 0);
	uint64_t here_on_the_stack;
	static uint64_t elsewhere;
	struct ring_record record;

	area.told = area.stored = true;
	sample(ALWAYS);
	tell_threads_by_number();
	ring_patch_function(&area, (void *)sample_store, (size_t)(sample_store_end - (uint8_t *)sample_store), true, ALLOC + 60,
			    &patches);
	shape.out_argument = 0;
	ring_set_shape(ring, ALLOC + 60, &shape);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t address = i ? 0x1230000 : 0x4560000;

		sample_store(i ? &elsewhere : &here_on_the_stack, address);
		next_record();
		record = next_record();
		ck_assert(record.stored);
		ck_assert_uint_eq(record.result, address);
		ck_assert(ring_filter_has(ring, address));
		ring_filter_remove(ring, address);
		ck_assert(!ring_filter_has(ring, address));
	}
	expect_nothing();
}
END_TEST

START_TEST(the_block_that_a_free_is_told_of_may_be_any_argument)
{
	struct ring_window window = { .address = 0x10000000, .text = (const uint8_t *)"\x0f\x1f\x84\0\0\0\0\0", .length = 8,
				      .count_argument = RING_NO_ARGUMENT, .sampled = true, .old_argument = 2 };
	uint8_t code[RING_SITE_MAX];
	struct ring_site site;
	const char *reason = "none";
	uint32_t word;

	ck_assert_int_eq(ring_site_build(&window, 0x10100000, 0x10101000, code, &site, &reason), 0);
	memcpy(&word, code + 2, sizeof(word));
	ck_assert_uint_eq(word >> RING_SIZE_SHIFT & 3, 2);
}
END_TEST

START_TEST(a_thread_draws_anew_when_another_has_had_its_place)
{
	sample(NEVER);
	own_draw()->countdown = 1 | (own_tag() ^ (1ULL << RING_DRAW_TAG_SHIFT));
	sample_alloc(1);
	expect_nothing();
	ck_assert_uint_eq(own_draw()->countdown >> RING_DRAW_TAG_SHIFT, own_tag() >> RING_DRAW_TAG_SHIFT);
	ck_assert_uint_ne(control->draws, 0);
	/* Nor does it take what is left of that one's for its own. */
	own_draw()->countdown = 1 | (own_tag() + (1ULL << RING_DRAW_TAG_SHIFT));
	sample_alloc(100);
	expect_nothing();
	ck_assert_uint_gt(control->draws, 1);
}
END_TEST

static int compare(const void *a, const void *b)
{
	return (*(const uint64_t *)a > *(const uint64_t *)b) - (*(const uint64_t *)a < *(const uint64_t *)b);
}

#define DRAWS 400000
#define DRAWS_AWAY 3.0

/* Kolmogorov and Smirnov's test against the exponential distribution: draws of it are further away with 2 exp(-2 * 3.0^2), once in 30
 * million runs. */
START_TEST(draws_are_exponential)
{
	const double mean = 1 << 16;
	uint64_t *draws = malloc(DRAWS * sizeof(*draws));
	double worst = 0;

	ck_assert_ptr_nonnull(draws);
	sample(1 << 16);
	for (unsigned i = 0; i < DRAWS; i++) {
		sample_alloc((uint64_t)1 << 40);
		next_record();
		next_record();
		draws[i] = own_draw()->countdown ^ own_tag();
	}
	qsort(draws, DRAWS, sizeof(*draws), compare);
	for (unsigned i = 0; i < DRAWS; i++) {
		double distance = fabs(-expm1(-(double)draws[i] / mean) - (i + 0.5) / DRAWS) * sqrt(DRAWS);

		worst = distance > worst ? distance : worst;
	}
	free(draws);
	printf("%d draws: %.3f away from the distribution, times the root of their number\n", DRAWS, worst);
	ck_assert_double_lt(worst, DRAWS_AWAY);
}
END_TEST

/* Of two sites that strictly alternate a fixed step would see one alone.  Six deviations: each is further away with 2 exp(-17.7) at most
 * (Bernstein's inequality), one of them once in 13 million runs. */
START_TEST(sites_that_alternate_come_out_equal)
{
	const unsigned pairs = 800000;
	double share = -expm1(-512.0 / 16384), error;
	uint64_t sampled[2] = { 0, 0 };
	struct ring_record record;

	sample(16384);
	for (unsigned i = 0; i < pairs; i++) {
		sample_alloc(512);
		sampled[0] += ring_next(ring, &record) == 1;
		while (ring_next(ring, &record) == 1)
			ring_done(ring);
		sample_alloc(512);
		sampled[1] += ring_next(ring, &record) == 1;
		while (ring_next(ring, &record) == 1)
			ring_done(ring);
	}
	error = 6 * sqrt(pairs * share * (1 - share));
	printf("%lu and %lu samples of %.0f +- %.0f\n", sampled[0], sampled[1], pairs * share, error);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_double_le(fabs((double)sampled[i] - pairs * share), error);
}
END_TEST

/* What it was stopped in, and put to before, draws once more at most. */
START_TEST(a_call_that_is_not_sampled_is_passed_over_wherever_its_thread_is_stopped)
{
	struct sigaction action = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };
	uint64_t next = sample_next;

	sample(NEVER);
	tell_threads_by_number();
	sigaction(SIGTRAP, &action, NULL);
	settled_step = 0;
	do {
		struct ring_draw *draw = &control->draws_of[0][own_tid % RING_DRAWS];

		draw->countdown = 1000 | ((own_tid & UINT32_MAX) >> RING_DRAWS_SHIFT | RING_DRAW_TAG) << RING_DRAW_TAG_SHIFT;
		REQUIRE(allocate_in_steps(48) == next);
		next += 48;
		expect_nothing();
		REQUIRE(draw->sp == 0 && (draw->countdown & 0xffffffff) <= 1000 - 48 && (draw->countdown & 0xffffffff) >= 1000 - 96);
	} while (steps > settled_step++);
	ck_assert_uint_gt(settled_step, 60);
}
END_TEST

START_TEST(a_sampled_record_is_written_once_wherever_its_thread_is_stopped)
{
	sample(ALWAYS);
	own_tid = (uint64_t)gettid();
	control->thread_offset = (uintptr_t)&own_tid - thread_pointer();
	control->thread_mask = UINT32_MAX;
	ck_assert_uint_gt(settle_everywhere(0), 150);
}
END_TEST

/* --- a full ring --- */

START_TEST(a_full_ring_holds_a_thread_up_once_and_then_it_runs_on)
{
	while (control->lost == 0)
		sample_free(1);
	ck_assert_uint_eq(control->state, RING_STALLED);
	ck_assert_uint_eq(control->waits, 1);
	ck_assert_uint_eq(control->head, SIZE);
	for (int i = 0; i < 1000; i++)
		sample_alloc(1);
	ck_assert_uint_eq(control->waits, 1);
	ck_assert_uint_eq(control->lost, 1001);
	for (unsigned i = 0; i < SIZE / RING_UNIT; i++)
		next_record();
	expect_nothing();
	control->state = RING_ON;
	sample_free(5);
	ck_assert_uint_eq(next_record().args[0], 5);
	ck_assert_uint_eq(ring_take_lost(ring), 1001);
}
END_TEST

/* Once for each call: of one whose entry was recorded it is the return that is lost. */
START_TEST(calls_that_a_stalled_ring_does_not_record_are_counted)
{
	const struct ring_slot *slot;

	note_pending_calls();
	slot = &control->slots[thread_pointer() & control->thread_mask & (RING_SLOTS - 1)];
	for (unsigned i = 0; i < SIZE / RING_UNIT - 1; i++)
		sample_free(1);
	sample_alloc(1);
	ck_assert_uint_eq(control->head, SIZE);
	ck_assert_uint_eq(control->state, RING_STALLED);
	ck_assert_uint_eq(control->lost, 1);
	for (int i = 0; i < 50; i++) {
		sample_alloc(1);
		sample_free(1);
	}
	ck_assert_uint_eq(control->lost, 101);
	for (unsigned i = 0; i < RING_PENDING_MAX; i++)
		ck_assert_uint_eq(slot->sp[i], 0);
	control->state = RING_OFF;
	sample_alloc(1);
	sample_free(1);
	ck_assert_uint_eq(control->lost, 101);
}
END_TEST

static __attribute__((noinline)) void alloc_one(void)
{
	sample_alloc(1);
}

START_TEST(a_return_whose_entry_was_recorded_is_lost_while_it_is_stalled)
{
	const struct ring_slot *slot;
	uint64_t sp;

	note_pending_calls();
	slot = &control->slots[thread_pointer() & control->thread_mask & (RING_SLOTS - 1)];
	alloc_one();
	sp = next_record().sp;
	next_record();
	/* As if the ring had been stalled meanwhile. */
	ring_note_pending(ring, thread_pointer(), sp);
	control->state = RING_STALLED;
	alloc_one();
	ck_assert_uint_eq(control->lost, 2);
	ck_assert_uint_eq(slot->sp[0], 0);
	alloc_one();
	ck_assert_uint_eq(control->lost, 3);
	expect_nothing();
}
END_TEST

/* Else the reader, where it has no other one, would not come to make room. */
START_TEST(who_waits_for_room_leaves_its_processor_to_others)
{
	struct rusage before, after;

	/* Long enough for several sleeps, also where each of them lasts until a processor is free. */
	control->wait_ticks = (uint64_t)1 << 30;
	ck_assert_int_eq(getrusage(RUSAGE_THREAD, &before), 0);
	while (control->lost == 0)
		sample_free(1);
	ck_assert_int_eq(getrusage(RUSAGE_THREAD, &after), 0);
	ck_assert_uint_eq(control->waits, 1);
	ck_assert_int_gt(after.ru_nvcsw, before.ru_nvcsw + 1);
}
END_TEST

static void *read_all(void *unused)
{
	(void)unused;
	while (control->waits == 0)
		sched_yield();
	for (unsigned i = 0; i < SIZE / RING_UNIT; i++)
		next_record();
	return NULL;
}

START_TEST(a_thread_that_waits_loses_nothing_when_room_is_made_in_time)
{
	pthread_t reader;

	control->wait_ticks = (uint64_t)1 << 40;
	control->may_yield = 0;
	ck_assert_int_eq(pthread_create(&reader, NULL, read_all, NULL), 0);
	for (unsigned i = 0; i < SIZE / RING_UNIT; i++)
		sample_free(1);
	sample_free(42);
	pthread_join(reader, NULL);
	ck_assert_uint_eq(control->lost, 0);
	ck_assert_uint_eq(next_record().args[0], 42);
}
END_TEST

/* --- the loader's hook --- */

static _Atomic bool has_returned, was_handled;

static void patch_waiting(enum ring_waits waits)
{
	ring_patch_hook(&area, (void *)sample_hook, waits, HOOK, &patches);
	control->hook_waits = 1;
}

static void patch_hook(void)
{
	patch_waiting(RING_WAITS_LOADER);
}

static void *call_hook(void *unused)
{
	own_tid = (uint64_t)gettid();
	sample_hook();
	has_returned = true;
	return unused;
}

static pthread_t wait_in_hook(struct ring_record *ret_record)
{
	pthread_t thread;

	control->wait_ticks = (uint64_t)1 << 40;
	has_returned = false;
	ck_assert_int_eq(pthread_create(&thread, NULL, call_hook, NULL), 0);
	while (ring_next(ring, ret_record) != 1)
		sched_yield();
	ring_done(ring);
	for (unsigned i = 0; i < 100; i++)
		sched_yield();
	ck_assert(!has_returned);
	return thread;
}

START_TEST(who_is_in_the_loaders_hook_waits_until_it_is_served)
{
	struct ring_record record;
	pthread_t thread;

	patch_hook();
	for (control->may_yield = 0; control->may_yield <= 1; control->may_yield++) {
		thread = wait_in_hook(&record);
		ck_assert_uint_eq(record.site, HOOK);
		ck_assert(!record.is_return);
		control->hook_served = record.position;
		sched_yield();
		ck_assert(!has_returned);
		ring_serve_hook(ring, record.position);
		pthread_join(thread, NULL);
		ck_assert(has_returned);
	}
	ck_assert_uint_eq(control->hook_waits, 1);
	ck_assert_uint_eq(control->hook_left, 0);
}
END_TEST

START_TEST(nobody_waits_there_after_that_was_in_vain)
{
	struct ring_record record;

	patch_hook();
	sample_free(1);
	sample_hook();
	next_record();
	record = next_record();
	ck_assert_uint_eq(record.site, HOOK);
	ck_assert_uint_eq(control->hook_left, record.position + 1);
	ck_assert_uint_eq(control->hook_waits, 0);
	control->wait_ticks = (uint64_t)1 << 40;
	sample_hook();
	record = next_record();
	ck_assert_uint_eq(control->hook_left, record.position + 1);
}
END_TEST

/* It is not the loader's list of objects that was missed. */
START_TEST(who_executes_and_waits_in_vain_says_nothing_of_the_loader)
{
	patch_waiting(RING_WAITS_EXEC);
	tell_threads_by_number();
	control->may_yield = 1;
	for (control->wait_ticks = 0; control->wait_ticks <= 1000000; control->wait_ticks += 99999) {
		control->hook_left = 77;
		control->hook_waits = 1;
		sample_hook();
		ck_assert_uint_eq(next_record().site, HOOK);
		ck_assert_uint_eq(control->hook_left, 77);
		ck_assert_uint_eq(control->hook_waits, 0);
	}
	sample_hook();
	expect_nothing();
}
END_TEST

START_TEST(who_executes_waits_until_that_is_served)
{
	struct ring_record record;
	pthread_t thread;

	patch_waiting(RING_WAITS_EXEC);
	tell_threads_by_number();
	control->may_yield = 1;
	thread = wait_in_hook(&record);
	ck_assert_uint_eq(record.site, HOOK);
	ring_serve_hook(ring, record.position);
	pthread_join(thread, NULL);
	ck_assert(has_returned);
	ck_assert_uint_eq(control->hook_waits, 1);
}
END_TEST

START_TEST(nobody_waits_there_when_the_ring_records_no_more)
{
	struct ring_record record;
	pthread_t thread;

	patch_hook();
	thread = wait_in_hook(&record);
	control->state = RING_STALLED;
	pthread_join(thread, NULL);
	ck_assert_uint_eq(control->hook_left, record.position + 1);
	control->hook_waits = 1;
	sample_hook();
	control->state = RING_OFF;
	sample_hook();
	expect_nothing();
}
END_TEST

static void free_in_handler(int sig)
{
	(void)sig;
	sample_free(7);
	was_handled = true;
}

static void end_in_handler(int sig)
{
	(void)sig;
	was_handled = true;
	pthread_exit(NULL);
}

static void handle_in_hook(pthread_t thread, void (*handle)(int))
{
	struct sigaction action = { .sa_handler = handle };

	was_handled = false;
	sigaction(SIGUSR1, &action, NULL);
	pthread_kill(thread, SIGUSR1);
	while (!was_handled)
		sched_yield();
}

START_TEST(a_handler_runs_in_the_midst_of_that_wait_and_may_end_it)
{
	struct ring_record record;
	pthread_t thread;

	patch_hook();
	thread = wait_in_hook(&record);
	handle_in_hook(thread, free_in_handler);
	ck_assert(!has_returned);
	ck_assert_uint_eq(next_record().args[0], 7);
	handle_in_hook(thread, end_in_handler);
	pthread_join(thread, NULL);
	ck_assert(!has_returned);
}
END_TEST

START_TEST(every_register_is_kept_there)
{
	uint64_t in[15], without[15], with[15];

	for (unsigned i = 0; i < 15; i++)
		in[i] = 0x0101010101010101ULL * (i + 1);
	sample_caller((void *)sample_hook, in, without);
	patch_hook();
	sample_caller((void *)sample_hook, in, with);
	ck_assert_mem_eq(without, with, sizeof(with));
	ck_assert_uint_eq(next_record().return_address, (uintptr_t)sample_caller_return);
}
END_TEST

/* The wait goes once around. */
START_TEST(a_call_of_the_hook_is_recorded_once_wherever_its_thread_is_stopped)
{
	struct sigaction action = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };

	patch_waiting(_i);
	/* Only who says its own number waits to execute. */
	tell_threads_by_number();
	control->may_yield = 1;
	sample_hook();
	next_record();
	sigaction(SIGTRAP, &action, NULL);
	control->wait_ticks = 1;
	settled_step = 0;
	do {
		control->hook_waits = 1;
		steps = 0;
		set_trap_flag(true);
		sample_hook();
		set_trap_flag(false);
		REQUIRE(next_record().site == HOOK);
		expect_nothing();
	} while (steps > settled_step++);
	ck_assert_uint_gt(settled_step, 60);
}
END_TEST

/* --- fork --- */

START_TEST(a_child_does_not_write_to_its_parents_ring)
{
	pid_t child;
	int status;

	sample_free(1);
	child = fork();
	if (child == 0) {
		for (int i = 0; i < 10; i++)
			sample_free(sample_alloc(2));
		_exit(sample_freed == 11 ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	sample_free(3);
	ck_assert_uint_eq(next_record().args[0], 1);
	ck_assert_uint_eq(next_record().args[0], 3);
	expect_nothing();
}
END_TEST

START_TEST(a_vfork_child_acts_for_its_parent)
{
	pid_t child;
	int status;

	child = vfork();
	if (child == 0) {
		sample_free(1);
		_exit(0);
	}
	waitpid(child, &status, 0);
	ck_assert_uint_eq(next_record().args[0], 1);
	expect_nothing();
}
END_TEST

/* --- signals --- */

static volatile sig_atomic_t signals;
static sigjmp_buf out;
static volatile bool jumps;

static void allocate_in_handler(int sig)
{
	(void)sig;
	signals++;
	sample_free(sample_alloc(16));
	if (jumps && signals % 3 == 0)
		siglongjmp(out, 1);
}

static void shake(bool with_jumps)
{
	const struct itimerval often = { { 0, 50 }, { 0, 50 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = allocate_in_handler };

	jumps = with_jumps;
	sigaction(SIGALRM, &action, NULL);
	sigsetjmp(out, 1);              /* before the first signal: its handler may jump */
	setitimer(ITIMER_REAL, &often, NULL);
	while (signals < (int)share_of(3000))
		sample_free(sample_alloc(32));
	jumps = false;
	setitimer(ITIMER_REAL, &never, NULL);
}

static volatile bool ended;
static uint64_t calls, returns, frees;

static void *count_all(void *unused)
{
	struct ring_record record;

	(void)unused;
	for (;;) {
		int r = ring_next(ring, &record);

		if (r == 0 && ended)
			return NULL;
		REQUIRE(r >= 0 || r == -EAGAIN);
		if (r <= 0) {
			sched_yield();
			continue;
		}
		if (record.site == FREE)
			frees++;
		else if (record.is_return)
			returns++;
		else
			calls++;
		ring_done(ring);
	}
}

START_TEST(handlers_that_allocate_in_the_midst_of_a_record_are_recorded_too)
{
	pthread_t reader;
	sigset_t set;

	sigfillset(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	ck_assert_int_eq(pthread_create(&reader, NULL, count_all, NULL), 0);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	control->wait_ticks = (uint64_t)1 << 40;
	shake(false);
	ended = true;
	pthread_join(reader, NULL);
	ck_assert_uint_eq(frees, sample_freed);
	ck_assert_uint_eq(calls, returns);
	ck_assert_uint_eq(calls, frees);
	ck_assert_uint_eq(control->lost, 0);
}
END_TEST

/* Out of the midst of a record, now and then: it stays open, and all others are whole. */
START_TEST(what_a_jump_out_of_a_record_leaves_is_passed)
{
	struct ring_record record;
	uint64_t open = 0;

	control->wait_ticks = 0;
	ring_set_all_stack_lengths(ring, 8192);
	know_main_stack();
	for (unsigned round = 0; round < 20; round++) {
		int r;

		signals = (int)share_of(3000) - 40;
		shake(true);
		while ((r = ring_next(ring, &record)) != 0) {
			REQUIRE(r == 1 || r == -EAGAIN);
			if (r == 1)
				ring_done(ring);
			else
				open += ring_skip(ring) > 0;
		}
		control->state = RING_ON;
	}
	printf("%lu records were left open\n", open);
	sample_free(99);
	ck_assert_uint_eq(next_record().args[0], 99);
}
END_TEST

/* --- threads, with the real allocator --- */

#define THREADS 4
#define BLOCKS 64

static unsigned rounds;

static void *allocate(void *unused)
{
	void *blocks[BLOCKS] = { 0 };

	(void)unused;
	for (unsigned i = 0; i < rounds; i++) {
		free(blocks[i % BLOCKS]);
		blocks[i % BLOCKS] = malloc(16 + i % 500);
	}
	for (unsigned i = 0; i < BLOCKS; i++)
		free(blocks[i]);
	return NULL;
}

#define TABLE (1u << 20)

static uint64_t table[TABLE];            /* live blocks, by a hash of the address; static: the reader must not allocate */

static uint64_t *slot_of(uint64_t address)
{
	uint64_t i = address * 0x9e3779b97f4a7c15ULL >> 44;

	while (table[i] != 0 && table[i] != address)
		i = (i + 1) % TABLE;
	return &table[i];
}

struct heap_tally {
	uint64_t born, freed, twice, unknown;
};

/* A block is born where one lives, or freed where none does: the order was wrong.  Freed places stay in the table. */
static uint64_t live[TABLE];

static void apply(const struct ring_record *record, struct heap_tally *tally)
{
	uint64_t address = record->is_return ? record->result : record->args[0];
	uint64_t *slot = slot_of(address);
	uint64_t *alive = &live[slot - table];

	if ((!record->is_return && record->site != FREE + 100) || address == 0)
		return;
	*slot = address;
	if (record->is_return) {
		tally->twice += *alive;
		tally->born++;
		*alive = 1;
	} else {
		/* libc itself frees what a thread that ends had cached. */
		tally->unknown += !*alive && record->return_address - (uintptr_t)allocate < PAGE;
		tally->freed++;
		*alive = 0;
	}
}

static void *read_heap(void *context)
{
	struct ring_record record;

	for (;;) {
		int r = ring_next(ring, &record);

		if (r == 0 && ended)
			return NULL;
		REQUIRE(r >= 0 || r == -EAGAIN);
		if (r <= 0) {
			sched_yield();
			continue;
		}
		apply(&record, context);
		ring_done(ring);
	}
}

START_TEST(the_order_of_records_is_the_order_of_truth)
{
	struct heap_tally tally = { 0 };
	pthread_t threads[THREADS], reader;
	struct ring_area near_libc = { .notes_pending = false };

	rounds = share_of(100000);
	control->wait_ticks = (uint64_t)1 << 40;
	ring_area_map(&near_libc, dlsym(RTLD_DEFAULT, "malloc"));
	ring_patch_symbol(&near_libc, "malloc", true, ALLOC + 100, &patches);
	ring_patch_symbol(&near_libc, "free", false, FREE + 100, &patches);
	pthread_create(&reader, NULL, read_heap, &tally);
	ring_area_record(&near_libc, ring);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, allocate, NULL);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ring_area_record(&near_libc, NULL);
	ended = true;
	pthread_join(reader, NULL);
	ck_assert_uint_ge(tally.born, THREADS * rounds);
	ck_assert_uint_ge(tally.freed, THREADS * rounds);
	ck_assert_uint_eq(tally.twice, 0);
	ck_assert_uint_eq(tally.unknown, 0);
	ck_assert_uint_eq(control->lost, 0);
}
END_TEST

/* --- where a thread is --- */

START_TEST(every_pc_has_its_place_on_either_side)
{
	for (uint32_t i = 0; i < patches.count; i++) {
		const struct ring_site *site = &patches.items[i].site;
		unsigned found = 0, busy = 0;

		for (uint32_t offset = 1; offset < site->window_length; offset++) {
			uint64_t pc = ring_site_enter(site, site->window + offset);

			if (pc == ARCH_NOWHERE)
				continue;
			ck_assert_uint_ge(pc, site->at);
			ck_assert_uint_lt(pc, site->at + site->length);
			ck_assert_uint_eq(ring_site_leave(site, pc), site->window + offset);
			found++;
		}
		ck_assert_uint_ge(found, site->window_length > ARCH_JUMP_SIZE || site->record > 0 ? 1 : 0);
		ck_assert_uint_eq(ring_site_enter(site, site->window), site->window);
		ck_assert_uint_eq(ring_site_leave(site, site->at), site->window);
		for (uint32_t offset = 0; offset < site->length; offset++)
			busy += ring_site_leave(site, site->at + offset) == ARCH_NOWHERE;
		ck_assert_uint_ge(busy, 11);
		/* Pushed, not recorded yet. */
		ck_assert_uint_eq(ring_site_leave(site, site->at + site->moved[0].length + 1), ARCH_NOWHERE);
	}
}
END_TEST

static const char *site_reason(const uint8_t *text, uint32_t length, uint32_t record, uint64_t at)
{
	struct ring_window window = { .address = 0x10000000, .text = text, .length = length, .record = record };
	uint8_t code[RING_SITE_MAX];
	struct ring_site site;
	const char *reason = "none";

	ck_assert_int_eq(ring_site_build(&window, 0x10100000, at, code, &site, &reason), -ENOTSUP);
	return reason;
}

/* push %rdi; mov $site, %eax; call; pop %rdi: what the next function will return is the result. */
START_TEST(before_a_jump_to_memset_its_argument_is_the_result)
{
	static const uint8_t text[] = { 0x48, 0x89, 0xdf, 0xe9, 0, 1, 0, 0 };      /* mov %rbx, %rdi; jmp */
	struct ring_window window = { .address = 0x10000000, .text = text, .length = sizeof(text), .record = 3, .number = 5,
				      .is_return = true, .hands_on = true };
	uint8_t code[RING_SITE_MAX];
	struct ring_site site;
	const char *reason = "none";

	ck_assert_int_eq(ring_site_build(&window, 0x10100000, 0x10101000, code, &site, &reason), 0);
	ck_assert_uint_eq(code[3], 0x57);
	ck_assert_uint_eq(code[4], 0xb8);
	ck_assert_uint_eq(code[site.behind - 1], 0x5f);
}
END_TEST

START_TEST(what_cannot_be_a_site_is_refused)
{
	static const uint8_t text[] = { 0x53, 0x48, 0x89, 0xf8, 0x74, 0xfd };      /* push; mov; je back to the mov's second byte */
	static const uint8_t between[] = { 0x53, 0x48, 0x89, 0xf8, 0x74, 0xfb };   /* je to the mov */

	ck_assert_ptr_nonnull(strstr(site_reason(text, 4, 2, 0x10101000), "no instruction"));
	ck_assert_ptr_nonnull(strstr(site_reason(text, 4, 4, 0x10101000), "no instruction"));
	ck_assert_ptr_nonnull(strstr(site_reason(between, 6, 4, 0x10101000), "branch in among"));
	ck_assert_ptr_nonnull(strstr(site_reason(text, 4, 0, 0x7f0000000000), "out of reach"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ring_code");
	TCase *tests = tcase_create("ring_code");
	SRunner *runner = srunner_create(suite);
	int failed;

	setvbuf(stdout, NULL, _IOLBF, 0);
	suite_add_tcase(suite, tests);
	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, an_entry_and_a_return_make_two_records);
	tcase_add_test(tests, each_return_has_a_site_of_its_own);
	tcase_add_test(tests, a_free_is_recorded_before_it_is_done);
	tcase_add_test(tests, every_register_is_kept);
	tcase_add_test(tests, the_time_is_that_of_the_return);
	tcase_add_test(tests, a_thread_is_told_by_any_word_of_its_own);
	tcase_add_test(tests, the_stack_is_as_long_as_its_place_needs);
	tcase_add_test(tests, a_call_within_another_comes_with_the_stack_up_to_that);
	tcase_add_test(tests, a_call_that_was_left_on_the_same_stack_is_noted_no_more);
	tcase_add_test(tests, a_record_is_written_once_wherever_its_thread_is_stopped);
	tcase_add_test(tests, what_a_call_has_stored_comes_with_its_return);
	tcase_add_test(tests, what_another_call_has_stored_is_not_taken_for_ones_own);
	tcase_add_test(tests, what_is_stored_is_told_once_wherever_its_thread_is_stopped);
	tcase_add_test(tests, the_first_stack_is_read_to_its_end_and_not_beyond);
	tcase_add_test(tests, a_threads_stack_is_read_to_its_end_and_not_beyond);
	tcase_add_test(tests, a_threads_place_is_another_one_than_the_first_threads);
	tcase_add_test(tests, an_unknown_stack_is_read_to_the_end_of_its_page);
	tcase_add_test(tests, an_unknown_stack_is_read_as_far_as_it_goes_and_is_needed);
	tcase_add_test(tests, where_stacks_have_holes_none_is_copied_without_being_asked_for);
	tcase_add_test(tests, what_is_unmapped_of_the_callers_own_stack_is_noted);
	tcase_add_test(tests, every_register_is_kept_where_memory_is_unmapped);
	tcase_add_test(tests, a_return_says_where_its_threads_pointer_is);
	tcase_add_test(tests, what_a_handler_on_a_stack_of_its_own_does_comes_with_both_stacks);
	tcase_add_test(tests, what_is_not_sampled_leaves_no_record);
	tcase_add_test(tests, every_register_is_kept_of_what_is_not_sampled);
	tcase_add_test(tests, flags_are_kept);
	tcase_add_test(tests, each_form_of_a_call_is_passed_over);
	tcase_add_test(tests, each_form_that_asks_for_too_much_is_sampled);
	tcase_add_test(tests, a_sampled_block_that_is_resized_is_recorded);
	tcase_add_test(tests, all_is_kept_wherever_a_thread_is_stopped_that_passes_over);
	tcase_add_test(tests, a_request_for_nothing_counts_as_one_byte);
	tcase_add_test(tests, a_sampled_block_is_in_the_filter_before_its_caller_has_it);
	tcase_add_test(tests, blocks_of_one_place_in_the_filter_are_counted);
	tcase_add_test(tests, a_part_of_a_call_shares_its_fate);
	tcase_add_test(tests, what_a_call_asks_for_may_be_told);
	tcase_add_test(tests, a_call_within_one_of_another_family_is_drawn);
	tcase_add_test(tests, a_return_ends_the_calls_of_all_families);
	tcase_add_test(tests, a_block_that_is_stored_on_the_stack_is_in_the_filter);
	tcase_add_test(tests, a_sampled_block_that_is_stored_elsewhere_is_told_and_counted_once);
	tcase_add_test(tests, the_block_that_a_free_is_told_of_may_be_any_argument);
	tcase_add_test(tests, a_thread_draws_anew_when_another_has_had_its_place);
	tcase_add_test(tests, draws_are_exponential);
	tcase_add_test(tests, sites_that_alternate_come_out_equal);
	tcase_add_test(tests, a_call_that_is_not_sampled_is_passed_over_wherever_its_thread_is_stopped);
	tcase_add_test(tests, a_sampled_record_is_written_once_wherever_its_thread_is_stopped);
	tcase_add_test(tests, a_full_ring_holds_a_thread_up_once_and_then_it_runs_on);
	tcase_add_test(tests, calls_that_a_stalled_ring_does_not_record_are_counted);
	tcase_add_test(tests, a_return_whose_entry_was_recorded_is_lost_while_it_is_stalled);
	tcase_add_test(tests, who_waits_for_room_leaves_its_processor_to_others);
	tcase_add_test(tests, a_thread_that_waits_loses_nothing_when_room_is_made_in_time);
	tcase_add_test(tests, who_is_in_the_loaders_hook_waits_until_it_is_served);
	tcase_add_test(tests, nobody_waits_there_after_that_was_in_vain);
	tcase_add_test(tests, who_executes_and_waits_in_vain_says_nothing_of_the_loader);
	tcase_add_test(tests, who_executes_waits_until_that_is_served);
	tcase_add_test(tests, nobody_waits_there_when_the_ring_records_no_more);
	tcase_add_test(tests, a_handler_runs_in_the_midst_of_that_wait_and_may_end_it);
	tcase_add_test(tests, every_register_is_kept_there);
	tcase_add_loop_test(tests, a_call_of_the_hook_is_recorded_once_wherever_its_thread_is_stopped, RING_WAITS_LOADER, RING_WAITS_EXEC + 1);
	tcase_add_test(tests, a_child_does_not_write_to_its_parents_ring);
	tcase_add_test(tests, a_vfork_child_acts_for_its_parent);
	tcase_add_test(tests, handlers_that_allocate_in_the_midst_of_a_record_are_recorded_too);
	tcase_add_test(tests, what_a_jump_out_of_a_record_leaves_is_passed);
	tcase_add_test(tests, the_order_of_records_is_the_order_of_truth);
	tcase_add_test(tests, every_pc_has_its_place_on_either_side);
	tcase_add_test(tests, before_a_jump_to_memset_its_argument_is_the_result);
	tcase_add_test(tests, what_cannot_be_a_site_is_refused);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
