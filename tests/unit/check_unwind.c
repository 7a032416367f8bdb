/* Stacks of this very program, recorded and unwound, against libgcc's unwinder and libunwind. */
#include "process_map.h"
#include "require.h"
#include "unwind_fixture.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

static struct subject subject;
static struct recorded recorded;
static ucontext_t context;
static uint64_t libgcc_pcs[PCS_MAX];
static unsigned int libgcc_count;
static uint64_t libunwind_pcs[PCS_MAX];
static unsigned int libunwind_count;

static void setup(void)
{
	subject_init(&subject);
}

static void teardown(void)
{
	subject_fini(&subject);
}

/* --- recursion of many shapes --- */

static unsigned int shape, compared;

typedef void end_fn(void);
static void grow(unsigned int depth, end_fn *end);

/* One who keeps frames in different ways at each level: registers, a frame pointer, an aligned frame. */
static __attribute__((noinline)) void grow_plain(unsigned int depth, end_fn *end)
{
	volatile uint64_t keep[5] = { depth, depth + 1 };

	grow(depth - 1, end);
	keep[2] = keep[0] + keep[1];
}

static __attribute__((noinline)) void grow_registers(unsigned int depth, end_fn *end)
{
	uint64_t a = depth * 3, b = a * a, c = b ^ a, d = c + 7, e = d * b;

	grow(depth - 1, end);
	__asm__ volatile("" : : "r"(a), "r"(b), "r"(c), "r"(d), "r"(e));
}

static __attribute__((noinline)) void grow_alloca(unsigned int depth, end_fn *end)
{
	volatile char *room = __builtin_alloca(depth * 16 + 24);

	room[0] = 1;
	grow(depth - 1, end);
	room[1] = room[0];
}

/* Its CFA is an expression: the frame is aligned, the caller's sp is fetched from it. */
static __attribute__((noinline)) void grow_aligned(unsigned int depth, end_fn *end)
{
	volatile char aligned[64] __attribute__((aligned(128)));
	volatile char *room = __builtin_alloca(depth * 8 + 8);

	aligned[0] = 1;
	room[0] = 2;
	grow(depth - 1, end);
	room[1] = aligned[0];
}

static __attribute__((noinline)) void grow(unsigned int depth, end_fn *end)
{
	static void (*const ways[])(unsigned int, end_fn *) = {
		grow_plain, grow_registers, grow_alloca, grow_aligned,
	};

	if (depth == 0) {
		end();
	} else {
		shape = shape * 1103515245u + 12345u;
		ways[shape >> 16 & 3](depth, end);
	}
	__asm__ volatile("");
}

static _Unwind_Reason_Code take_pc(struct _Unwind_Context *frame, void *unused)
{
	(void)unused;
	if (libgcc_count == PCS_MAX)
		return _URC_END_OF_STACK;
	libgcc_pcs[libgcc_count] = _Unwind_GetIP(frame);
	if (libgcc_pcs[libgcc_count] != 0)
		libgcc_count++;
	return _URC_NO_REASON;
}

static __attribute__((noinline)) void record_and_ask(void)
{
	getcontext(&context);
	record_context(&recorded, &context);
	libgcc_count = 0;
	_Unwind_Backtrace(take_pc, NULL);
	libunwind_count = local_libunwind(&context, libunwind_pcs, PCS_MAX);
}

/* Frame 0 of the three is at different instructions of one function; from frame 1 on all must agree. */
static void compare(const struct pcs *pcs)
{
	ck_assert_int_eq(pcs->truncated, TRUNCATED_NONE);
	ck_assert_uint_eq(pcs->count, libgcc_count);
	ck_assert_uint_eq(pcs->count, libunwind_count);
	ck_assert_uint_eq(pcs->at[0], libunwind_pcs[0]);
	ck_assert_int_eq(pcs->kind[0], FRAME_EXACT);
	for (unsigned int i = 1; i < pcs->count; i++) {
		REQUIRE(pcs->at[i] == libgcc_pcs[i]);
		REQUIRE(pcs->at[i] == libunwind_pcs[i]);
		REQUIRE(pcs->kind[i] == FRAME_CALL);
	}
	compared++;
}

static void record_and_compare(void)
{
	struct pcs pcs;

	record_and_ask();
	pcs = unwind_recorded(&subject, &recorded, PCS_MAX);
	compare(&pcs);
}

START_TEST(stacks_of_any_shape_equal_those_of_libgcc_and_libunwind)
{
	compared = 0;
	for (shape = 1; compared < 3000;)
		grow(compared % 90, record_and_compare);
	ck_assert_uint_gt(unwinder_counters(subject.unwinder).expression_steps, 1000);
	ck_assert_uint_eq(unwinder_counters(subject.unwinder).frame_pointer_steps, 0);
}
END_TEST

/* What is known of the last stack must not colour the next one: an unwinder that has seen nothing gives
 * the same. */
START_TEST(a_used_unwinder_says_what_a_new_one_says)
{
	for (unsigned int i = 0; i < 40; i++) {
		struct subject fresh;
		struct pcs pcs;

		shape = i / 3;
		grow(i % 30, record_and_compare);
		subject_init(&fresh);
		pcs = unwind_recorded(&fresh, &recorded, PCS_MAX);
		compare(&pcs);
		subject_fini(&fresh);
	}
}
END_TEST

/* A stack that differs from the last one in a single word, at any depth. */
START_TEST(a_changed_return_address_is_seen_at_any_depth)
{
	unsigned int seen = 0;
	struct pcs before;

	shape = 5;
	grow(60, record_and_ask);
	before = unwind_recorded(&subject, &recorded, PCS_MAX);
	for (size_t at = 0; at + 8 <= recorded.len && seen < before.count - 3; at += 8) {
		uint64_t word, other = before.at[before.count - 2];
		struct pcs changed;

		memcpy(&word, recorded.bytes + at, 8);
		if (word != before.at[seen + 1])
			continue;
		memcpy(recorded.bytes + at, &other, 8);
		changed = unwind_recorded(&subject, &recorded, PCS_MAX);
		/* Else it is what an earlier call left behind. */
		if (changed.at[seen + 1] == other)
			seen++;
		ck_assert_mem_eq(changed.at, before.at, seen * sizeof(*before.at));
		memcpy(recorded.bytes + at, &word, 8);
		changed = unwind_recorded(&subject, &recorded, PCS_MAX);
		ck_assert_uint_eq(changed.count, before.count);
		ck_assert_mem_eq(changed.at, before.at, before.count * sizeof(*before.at));
	}
	ck_assert_uint_eq(seen, before.count - 3);
	ck_assert_uint_gt(seen, 40);
}
END_TEST

/* The compiler puts nothing behind a call that does not return: the return address is the next function's. */
void last_call(void);
void jump_away(void);
__asm__(".text\n"
	"last_call:\n"
	"	.cfi_startproc\n"
	"	sub $72, %rsp\n"
	"	.cfi_adjust_cfa_offset 72\n"
	"	call jump_away\n"
	"	.cfi_endproc\n"
	"next_function:\n"
	"	.cfi_startproc\n"
	"	ret\n"
	"	.cfi_endproc\n");

static jmp_buf back;

void jump_away(void)
{
	record_and_ask();
	longjmp(back, 1);
}

START_TEST(a_call_at_the_end_of_a_function_is_of_that_function)
{
	struct pcs pcs;

	if (setjmp(back) == 0)
		last_call();
	pcs = unwind_recorded(&subject, &recorded, PCS_MAX);
	compare(&pcs);
}
END_TEST

/* --- the end of a stack, and ends that come too early --- */

START_TEST(a_limit_is_told_as_the_outermost_frame)
{
	struct pcs all, cut;

	shape = 9;
	grow(40, record_and_ask);
	all = unwind_recorded(&subject, &recorded, PCS_MAX);
	for (uint32_t max = 1; max < all.count; max++) {
		cut = unwind_recorded(&subject, &recorded, max);
		ck_assert_int_eq(cut.truncated, TRUNCATED_LIMIT);
		ck_assert_uint_eq(cut.count, max);
		ck_assert_mem_eq(cut.at, all.at, max * sizeof(*all.at));
	}
	cut = unwind_recorded(&subject, &recorded, all.count);
	ck_assert_int_eq(cut.truncated, TRUNCATED_NONE);
	ck_assert_uint_eq(cut.count, all.count);
	ck_assert_uint_eq(unwinder_counters(subject.unwinder).truncated[TRUNCATED_LIMIT], all.count - 1);
}
END_TEST

START_TEST(unreadable_memory_keeps_the_frames_before_it)
{
	unsigned int last = 0, cuts = 0;
	struct pcs all, cut;
	raddr sp;

	shape = 11;
	grow(50, record_and_ask);
	all = unwind_recorded(&subject, &recorded, PCS_MAX);
	sp = recorded.regs.reg[ARCH_DWARF_SP];
	for (recorded.end = sp + 8; last < all.count && recorded.end <= recorded.start + recorded.len;
	     recorded.end += 56) {
		cut = unwind_recorded(&subject, &recorded, PCS_MAX);
		ck_assert_uint_ge(cut.count, last);
		ck_assert_mem_eq(cut.at, all.at, cut.count * sizeof(*all.at));
		if (cut.count < all.count) {
			ck_assert_int_eq(cut.truncated, TRUNCATED_MEMORY);
			cuts++;
		}
		last = cut.count;
	}
	ck_assert_uint_eq(last, all.count);
	ck_assert_uint_gt(cuts, 20);
}
END_TEST

static raddr word_of(const struct recorded *r, raddr at)
{
	uint64_t word;

	memcpy(&word, r->bytes + (at - r->start), sizeof(word));
	return word;
}

static void set_word(struct recorded *r, raddr at, uint64_t word)
{
	memcpy(r->bytes + (at - r->start), &word, sizeof(word));
}

/* Room of a size not known before makes it count from rbp. */
static __attribute__((noinline)) void with_frame_pointer(void)
{
	volatile char *room = __builtin_alloca(shape % 7 + 32);

	room[0] = 1;
	getcontext(&context);
	record_context(&recorded, &context);
	room[1] = 2;
}

START_TEST(a_chain_that_leads_back_is_cut)
{
	uint64_t *bp = &recorded.regs.reg[ARCH_DWARF_BP];
	struct pcs pcs;

	with_frame_pointer();
	/* It returns to itself, with the same frame. */
	set_word(&recorded, *bp, *bp);
	set_word(&recorded, *bp + 8, recorded.regs.reg[ARCH_DWARF_PC]);
	pcs = unwind_recorded(&subject, &recorded, PCS_MAX);
	ck_assert_int_eq(pcs.truncated, TRUNCATED_LOOP);
	ck_assert_uint_eq(pcs.count, 2);
}
END_TEST

/* Two frames that lead to each other by way of lower addresses. */
START_TEST(a_chain_that_goes_round_is_cut)
{
	raddr bp, lower;
	struct pcs pcs;

	with_frame_pointer();
	bp = recorded.regs.reg[ARCH_DWARF_BP];
	lower = bp + 256;
	set_word(&recorded, bp, lower);
	set_word(&recorded, bp + 8, recorded.regs.reg[ARCH_DWARF_PC]);
	set_word(&recorded, lower, bp);
	set_word(&recorded, lower + 8, recorded.regs.reg[ARCH_DWARF_PC]);
	pcs = unwind_recorded(&subject, &recorded, PCS_MAX);
	ck_assert_int_eq(pcs.truncated, TRUNCATED_LOOP);
	ck_assert_uint_le(pcs.count, 4);
}
END_TEST

/* As Go's does, by its name and by how its tables say nothing of the other stack; and a section that a Go program has. */
extern void call_on(void (*function)(void), void *stack) __asm__("runtime.asmcgocall.abi0");
__asm__(".pushsection .note.go.buildid, \"a\", @note\n"
	"	.long 4, 4, 4\n"
	"	.asciz \"Go\"\n"
	"	.balign 4\n"
	"	.long 0\n"
	".popsection\n"
	".pushsection .text\n"
	"	.type runtime.asmcgocall.abi0, @function\n"
	"runtime.asmcgocall.abi0:\n"
	"	.cfi_startproc\n"
	"	mov %rsp, %rdx\n"
	"	mov %rsi, %rsp\n"
	"	push %rdx\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call *%rdi\n"
	"	pop %rdx\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	mov %rdx, %rsp\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size runtime.asmcgocall.abi0, . - runtime.asmcgocall.abi0\n"
	".popsection\n");

static __attribute__((noinline)) void record_here(void)
{
	getcontext(&context);
	record_context(&recorded, &context);
}

/* Behind the other stack stands what looks like a caller. */
static __attribute__((noinline)) void record_on_another_stack(void)
{
	static const uint64_t size = 2048;
	uint64_t stack[2048 + 2];

	stack[size] = (uint64_t)__builtin_return_address(0);
	call_on(record_here, &stack[size]);
	__asm__ volatile("" : : "r"(stack) : "memory");
}

START_TEST(a_change_of_stacks_by_go_is_told_as_the_outermost_frame)
{
	struct pcs pcs;

	record_on_another_stack();
	pcs = unwind_recorded(&subject, &recorded, PCS_MAX);
	ck_assert_int_eq(pcs.truncated, TRUNCATED_LOOP);
	ck_assert_uint_eq(pcs.count, 2);
	ck_assert_uint_lt(pcs.at[1] - (uintptr_t)call_on, 32);
}
END_TEST

START_TEST(a_pc_in_no_module_is_recorded_and_ends_the_stack)
{
	struct pcs pcs;

	with_frame_pointer();
	/* What an earlier call has left where its return address would be is none. */
	set_word(&recorded, recorded.regs.reg[ARCH_DWARF_SP], 0);
	recorded.regs.reg[ARCH_DWARF_PC] = 0x123456789;
	recorded.regs.reg[ARCH_DWARF_BP] = 0x1234;
	pcs = unwind_recorded(&subject, &recorded, PCS_MAX);
	ck_assert_int_eq(pcs.truncated, TRUNCATED_NO_MODULE);
	ck_assert_uint_eq(pcs.count, 1);
	ck_assert_uint_eq(pcs.at[0], 0x123456789);
	/* Not an address of user space at all, and one that a cached one resembles. */
	recorded.regs.reg[ARCH_DWARF_PC] = (uintptr_t)with_frame_pointer | (uint64_t)1 << 63;
	pcs = unwind_recorded(&subject, &recorded, PCS_MAX);
	ck_assert_int_eq(pcs.truncated, TRUNCATED_NO_MODULE);
}
END_TEST

START_TEST(a_full_table_gives_a_stack_that_says_so)
{
	struct stack_table *small = stack_table_new(12), *keep = subject.stacks;
	struct unwinder *unwinder = unwinder_new(&subject.map, small);
	struct reader reader;
	struct pcs pcs;
	uint32_t node;

	grow(30, record_and_ask);
	reader = recorded_reader(&recorded);
	ck_assert_ptr_nonnull(unwinder);
	for (uint32_t i = 0; i < subject.map.modules.count; i++) {
		int fd = process_map_open(getpid(), &subject.map, i);

		unwinder_add_module(unwinder, i, fd);
		close(fd);
	}
	subject.stacks = small;
	for (int i = 0; i < 3; i++) {
		node = unwinder_unwind(unwinder, &recorded.regs, &reader, PCS_MAX, NULL);
		pcs = pcs_of_node(&subject, node);
		ck_assert_int_eq(pcs.truncated, TRUNCATED_TABLE);
	}
	ck_assert_uint_eq(unwinder_counters(unwinder).truncated[TRUNCATED_TABLE], 3);
	subject.stacks = keep;
	unwinder_free(unwinder);
	stack_table_free(small);
	small = stack_table_new(3);
	ck_assert_ptr_null(unwinder_new(&subject.map, small));
	stack_table_free(small);
}
END_TEST

/* --- signals --- */

static struct pcs signal_pcs;
static uint64_t interrupted_pc;
static unsigned int interrupted_at;
static volatile int landed;
static uint64_t restorer;              /* whose code must be read, too; 0: none's */

static void on_signal(int number, siginfo_t *info, void *data)
{
	ucontext_t *interrupted = data;

	(void)number;
	(void)info;
	interrupted_pc = (uint64_t)interrupted->uc_mcontext.gregs[REG_RIP];
	getcontext(&context);
	record_context(&recorded, &context);
	record_other(&recorded, restorer ? restorer : (uint64_t)interrupted->uc_mcontext.gregs[REG_RSP]);
	libunwind_count = local_libunwind(&context, libunwind_pcs, PCS_MAX);
	interrupted->uc_mcontext.gregs[REG_RIP] += 2;          /* over the ud2 */
	landed++;
}

static __attribute__((noinline)) void die_in_a_leaf(void)
{
	__asm__ volatile("ud2");
}

static void handle_signals(bool alternate)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	static char other_stack[262144];
	stack_t stack = { .ss_sp = other_stack, .ss_size = sizeof(other_stack) };

	if (alternate) {
		ck_assert_int_eq(sigaltstack(&stack, NULL), 0);
		action.sa_flags |= SA_ONSTACK;
	}
	ck_assert_int_eq(sigaction(SIGILL, &action, NULL), 0);
}

static void compare_signal_stack(void)
{
	signal_pcs = unwind_recorded(&subject, &recorded, PCS_MAX);
	ck_assert_int_eq(signal_pcs.truncated, TRUNCATED_NONE);
	ck_assert_uint_eq(signal_pcs.count, libunwind_count);
	interrupted_at = 0;
	for (unsigned int i = 0; i < signal_pcs.count; i++) {
		ck_assert_uint_eq(signal_pcs.at[i], libunwind_pcs[i]);
		if (i > 0 && signal_pcs.kind[i] == FRAME_EXACT)
			interrupted_at = i;
	}
	/* The handler, the trampoline, the interrupted instruction. */
	ck_assert_uint_eq(interrupted_at, 2);
	ck_assert_uint_eq(signal_pcs.at[interrupted_at], interrupted_pc);
	compared++;
}

static void take_signal(void)
{
	die_in_a_leaf();
	compare_signal_stack();
}

/* As musl has it: no table knows it. */
void plain_restorer(void);
__asm__(".text\n\tnop\n.type plain_restorer, @function\nplain_restorer:\n\tmov $15, %rax\n\tsyscall\n.size plain_restorer, . - plain_restorer");

static void handle_signals_with_it(void)
{
	struct {
		void (*handler)(int number, siginfo_t *info, void *data);
		unsigned long flags;
		void (*restorer)(void);
		uint64_t mask;
	} action = { on_signal, SA_SIGINFO | 0x04000000 /* SA_RESTORER */, plain_restorer, 0 };

	restorer = (uint64_t)(uintptr_t)plain_restorer;
	ck_assert_int_eq(syscall(SYS_rt_sigaction, SIGILL, &action, NULL, sizeof(action.mask)), 0);
}

static void take_signal_without_tables(void)
{
	die_in_a_leaf();
	signal_pcs = unwind_recorded(&subject, &recorded, PCS_MAX);
	ck_assert_int_eq(signal_pcs.truncated, TRUNCATED_NONE);
	ck_assert_uint_ge(signal_pcs.count, 5);
	ck_assert_uint_eq(signal_pcs.at[1], (uint64_t)(uintptr_t)plain_restorer);
	ck_assert_int_eq(signal_pcs.kind[2], FRAME_EXACT);
	ck_assert_uint_eq(signal_pcs.at[2], interrupted_pc);
	compared++;
}

/* The frame pointer of a handler's caller, and all that it has saved, is back, too: stacks of all depths are whole. */
START_TEST(a_trampoline_without_tables_is_known_by_its_code)
{
	compared = 0;
	handle_signals_with_it();
	for (unsigned int i = 0; i < 50; i++)
		grow(i, take_signal_without_tables);
	ck_assert_uint_eq(compared, 50);
}
END_TEST

START_TEST(the_frame_below_a_signal_handler_is_exact)
{
	compared = 0;
	handle_signals(_i);
	for (unsigned int i = 0; i < 50; i++)
		grow(i, take_signal);
	ck_assert_uint_eq(compared, 50);
	ck_assert_int_eq(landed, 50);
}
END_TEST

/* --- modules --- */

static uint32_t module_of(const void *address)
{
	const struct module_range *range = module_map_find(&subject.map, (uintptr_t)address);

	ck_assert_ptr_nonnull(range);
	return range->module;
}

START_TEST(rows_of_a_removed_module_are_forgotten)
{
	uint32_t module = module_of((void *)(uintptr_t)record_and_ask);
	struct pcs all, without;
	raddr sp;
	int fd;

	grow(10, record_and_ask);
	all = unwind_recorded(&subject, &recorded, PCS_MAX);
	unwinder_remove_module(subject.unwinder, module);
	sp = recorded.regs.reg[ARCH_DWARF_SP];
	set_word(&recorded, sp, word_of(&recorded, sp));
	without = unwind_recorded(&subject, &recorded, PCS_MAX);
	ck_assert_int_eq(without.truncated, TRUNCATED_NO_CFI);
	ck_assert_uint_eq(without.count, 1);
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(unwinder_add_module(subject.unwinder, module, fd), 0);
	close(fd);
	without = unwind_recorded(&subject, &recorded, PCS_MAX);
	ck_assert_uint_eq(without.count, all.count);
	ck_assert_mem_eq(without.at, all.at, all.count * sizeof(*all.at));
}
END_TEST

START_TEST(a_file_without_tables_is_refused)
{
	int fd = memfd_create("empty", MFD_CLOEXEC);

	ck_assert_int_eq(unwinder_add_module(subject.unwinder, 0, fd), -ENOEXEC);
	ck_assert_int_eq(write(fd, "\177ELF and nothing else", 21), 21);
	ck_assert_int_eq(unwinder_add_module(subject.unwinder, 0, fd), -ENOEXEC);
	ck_assert_int_eq(unwinder_add_module(subject.unwinder, MODULES_MAX, fd), -EINVAL);
	close(fd);
}
END_TEST

/* Stops at a displaced instruction look as if they were at the original. */
static void translate(void *data, struct arch_regs *regs, const struct reader *stack)
{
	raddr *pc = &regs->reg[ARCH_DWARF_PC];
	const raddr *pair = data;
	uint64_t word;

	ck_assert_int_eq(reader_u64(stack, regs->reg[ARCH_DWARF_SP], &word), 0);
	*pc = *pc == pair[0] ? pair[1] : *pc;
}

START_TEST(a_displaced_pc_is_looked_up_where_it_came_from)
{
	raddr pair[2] = { 0x55550000, 0 };
	struct pcs all, displaced;

	grow(10, record_and_ask);
	all = unwind_recorded(&subject, &recorded, PCS_MAX);
	pair[1] = recorded.regs.reg[ARCH_DWARF_PC];
	recorded.regs.reg[ARCH_DWARF_PC] = pair[0];
	unwinder_set_translation(subject.unwinder, translate, pair);
	displaced = unwind_recorded(&subject, &recorded, PCS_MAX);
	ck_assert_uint_eq(displaced.count, all.count);
	ck_assert_mem_eq(displaced.at, all.at, all.count * sizeof(*all.at));
}
END_TEST

/* By that it is judged whose it is. */
START_TEST(a_frame_of_a_chain_stands_where_its_pc_came_from)
{
	struct unwind_frame frames[UNWIND_CHAIN_MAX];
	raddr pair[2] = { 0x55550000, 0 };
	struct reader reader;
	bool whole;

	grow(10, record_and_ask);
	reader = recorded_reader(&recorded);
	pair[1] = recorded.regs.reg[ARCH_DWARF_PC];
	recorded.regs.reg[ARCH_DWARF_PC] = pair[0];
	unwinder_set_translation(subject.unwinder, translate, pair);
	ck_assert_uint_gt(unwinder_chain(subject.unwinder, &recorded.regs, &reader, UINT64_MAX, frames, &whole), 10);
	ck_assert_uint_eq(frames[0].pc, pair[1]);
}
END_TEST

/* --- what an unwind costs --- */

START_TEST(one_read_is_enough_once_a_stack_is_known)
{
	for (unsigned int depth = 0; depth < 90; depth += 3) {
		shape = depth;
		grow(depth, record_and_ask);
		unwind_recorded(&subject, &recorded, PCS_MAX);
		recorded.reads = 0;
		unwind_recorded(&subject, &recorded, PCS_MAX);
		ck_assert_uint_eq(recorded.reads, 1);
	}
}
END_TEST

static void *record_in_thread(void *unused)
{
	(void)unused;
	record_and_ask();
	return NULL;
}

static ucontext_t coroutine, creator;

static void record_in_coroutine(void)
{
	getcontext(&context);
	record_context(&recorded, &context);
}

/* Its outermost return address was written by makecontext: no call precedes it, as the code there shows. */
START_TEST(a_stack_made_by_makecontext_ends_there)
{
	static char stack[65536];
	struct pcs unknown, pcs;

	ck_assert_int_eq(getcontext(&coroutine), 0);
	coroutine.uc_stack.ss_sp = stack;
	coroutine.uc_stack.ss_size = sizeof(stack);
	coroutine.uc_link = &creator;
	makecontext(&coroutine, record_in_coroutine, 0);
	ck_assert_int_eq(swapcontext(&creator, &coroutine), 0);

	unknown = unwind_recorded(&subject, &recorded, PCS_MAX);
	ck_assert_uint_eq(unknown.count, 2);
	teardown();
	setup();
	record_other(&recorded, unknown.at[1]);
	for (unsigned int i = 0; i < 3; i++) {
		pcs = unwind_recorded(&subject, &recorded, PCS_MAX);
		ck_assert_uint_eq(pcs.count, 2);
		ck_assert_uint_eq(pcs.at[1], unknown.at[1]);
		ck_assert_int_eq(pcs.truncated, TRUNCATED_NONE);
	}
}
END_TEST

/* Near the end of a thread's stack more cannot be read than there is. */
START_TEST(one_read_is_enough_at_the_end_of_a_small_stack)
{
	size_t size = 65536, guard = 4096;
	char *stack = mmap(NULL, size + guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attributes;
	struct pcs pcs;
	pthread_t thread;

	ck_assert_int_eq(mprotect(stack, size, PROT_READ | PROT_WRITE), 0);
	pthread_attr_init(&attributes);
	ck_assert_int_eq(pthread_attr_setstack(&attributes, stack, size), 0);
	ck_assert_int_eq(pthread_create(&thread, &attributes, record_in_thread, NULL), 0);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(recorded.start + recorded.len, (uintptr_t)stack + size);
	unwind_recorded(&subject, &recorded, PCS_MAX);
	recorded.reads = 0;
	pcs = unwind_recorded(&subject, &recorded, PCS_MAX);
	compare(&pcs);
	ck_assert_uint_eq(recorded.reads, 1);
}
END_TEST

/* Counted by the linker's --wrap: every allocation of this project's code passes here. */
static unsigned int allocations;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
	allocations++;
	return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	allocations++;
	return __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	allocations++;
	return __real_realloc(old, size);
}

/* Expressions and signal frames included.  libdw, which is not counted, is asked at misses only. */
START_TEST(a_known_stack_allocates_nothing)
{
	struct reader reader = recorded_reader(&recorded);
	unsigned int before, after, same = 0;
	uint64_t misses;
	uint32_t node;

	handle_signals(true);
	for (unsigned int depth = 0; depth < 60; depth += 20) {
		shape = depth;
		grow(depth, die_in_a_leaf);
		node = unwinder_unwind(subject.unwinder, &recorded.regs, &reader, PCS_MAX, NULL);
		misses = unwinder_counters(subject.unwinder).row_misses;
		before = allocations;
		for (unsigned int i = 0; i < 100; i++)
			same += unwinder_unwind(subject.unwinder, &recorded.regs, &reader, PCS_MAX, NULL) == node;
		after = allocations;
		ck_assert_uint_gt(before, 0);
		ck_assert_uint_eq(after, before);
		ck_assert_uint_eq(unwinder_counters(subject.unwinder).row_misses, misses);
	}
	ck_assert_uint_eq(same, 300);
	ck_assert_uint_gt(unwinder_counters(subject.unwinder).expression_steps, 300);
}
END_TEST

START_TEST(memory_stays_within_what_its_parts_say)
{
	size_t before = unwinder_memory(subject.unwinder), after;

	ck_assert_uint_gt(before, 100000);
	for (unsigned int i = 0; i < 200; i++)
		grow(i % 60, record_and_compare);
	after = unwinder_memory(subject.unwinder);
	ck_assert_uint_ge(after, before);
	ck_assert_uint_lt(after - before, 1u << 20);
}
END_TEST

static Suite *unwind_suite(void)
{
	Suite *suite = suite_create("unwind");
	TCase *tcase = tcase_create("own");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, stacks_of_any_shape_equal_those_of_libgcc_and_libunwind);
	tcase_add_test(tcase, a_used_unwinder_says_what_a_new_one_says);
	tcase_add_test(tcase, a_changed_return_address_is_seen_at_any_depth);
	tcase_add_test(tcase, a_call_at_the_end_of_a_function_is_of_that_function);
	tcase_add_test(tcase, a_limit_is_told_as_the_outermost_frame);
	tcase_add_test(tcase, unreadable_memory_keeps_the_frames_before_it);
	tcase_add_test(tcase, a_chain_that_leads_back_is_cut);
	tcase_add_test(tcase, a_chain_that_goes_round_is_cut);
	tcase_add_test(tcase, a_change_of_stacks_by_go_is_told_as_the_outermost_frame);
	tcase_add_test(tcase, a_pc_in_no_module_is_recorded_and_ends_the_stack);
	tcase_add_test(tcase, a_full_table_gives_a_stack_that_says_so);
	tcase_add_loop_test(tcase, the_frame_below_a_signal_handler_is_exact, 0, 2);
	tcase_add_test(tcase, a_trampoline_without_tables_is_known_by_its_code);
	tcase_add_test(tcase, rows_of_a_removed_module_are_forgotten);
	tcase_add_test(tcase, a_file_without_tables_is_refused);
	tcase_add_test(tcase, a_displaced_pc_is_looked_up_where_it_came_from);
	tcase_add_test(tcase, a_frame_of_a_chain_stands_where_its_pc_came_from);
	tcase_add_test(tcase, one_read_is_enough_once_a_stack_is_known);
	tcase_add_test(tcase, a_stack_made_by_makecontext_ends_there);
	tcase_add_test(tcase, one_read_is_enough_at_the_end_of_a_small_stack);
	tcase_add_test(tcase, a_known_stack_allocates_nothing);
	tcase_add_test(tcase, memory_stays_within_what_its_parts_say);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(unwind_suite());
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
