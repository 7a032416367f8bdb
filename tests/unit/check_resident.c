#define _GNU_SOURCE              /* REG_RIP */
/* The code that lives in targets, run in this process and in traced children. */
#include "arch/arch.h"
#include "arch/resident.h"
#include "random.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096UL
#define SA_RESTORER_FLAG 0x04000000UL

extern const uint8_t sample_twice[], sample_twice_ret[], sample_twice_end[];
extern const uint8_t sample_dump[], sample_dump_end[];
extern void sample_handler(int sig);

static void *map_code(unsigned long at)
{
	int flags = MAP_SHARED | MAP_ANONYMOUS | (at ? MAP_FIXED_NOREPLACE : 0);
	void *memory = mmap((void *)at, 4 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, flags, -1, 0);

	ck_assert_ptr_ne(memory, MAP_FAILED);
	return memory;
}

/* --- areas, made as the tracer makes them --- */

static struct resident_header *make_area(uint32_t size, bool is_main)
{
	struct resident_code code = resident_code();
	struct resident_header *header = map_code(0);

	ck_assert_int_eq(resident_layout(size, is_main, header), 0);
	if (is_main)
		memcpy((uint8_t *)header + code.handler, code.bytes, code.length);
	return header;
}

/* Displaces the instruction at `at` into the next slot and puts an int3 there. */
static void plant(struct resident_header *header, uint8_t *at)
{
	uint8_t *base = (uint8_t *)header;
	uint32_t index = header->entry_count, length, jump;
	struct resident_entry *entry = (struct resident_entry *)(base + header->table_offset) + index;
	uint8_t *slot = base + header->slots_offset + index * ARCH_SLOT_SIZE;
	const char *reason = "";

	ck_assert_uint_lt(index, header->entry_capacity);
	ck_assert_int_eq(arch_displace(at, 15, (uint64_t)at, (uint64_t)slot, slot, &length, &jump, &reason), 0);
	entry->breakpoint = (uint64_t)at;
	entry->slot = (uint64_t)slot;
	header->entry_count = index + 1;
	*at = ARCH_BREAKPOINT_BYTE;
}

struct kernel_action {
	uint64_t handler, flags, restorer, mask;
};

static void set_action(int sig, const struct kernel_action *action)
{
	ck_assert_int_eq(syscall(SYS_rt_sigaction, sig, action, NULL, 8), 0);
}

static void install(struct resident_header *header)
{
	struct resident_code code = resident_code();
	struct kernel_action action = {
		.handler = (uint64_t)header + code.handler,
		.flags = SA_SIGINFO | SA_RESTORER_FLAG | SA_NODEFER | SA_ONSTACK | SA_RESTART,
		.restorer = (uint64_t)header + code.restorer,
	};

	set_action(SIGTRAP, &action);
}

typedef uint64_t (*twice_function)(uint64_t x);

static uint8_t *copy_twice(void)
{
	uint8_t *text = map_code(0);

	memcpy(text, sample_twice, (size_t)(sample_twice_end - sample_twice));
	return text;
}

#define THREADS 4
#define CALLS 250000

static void *call_often(void *argument)
{
	twice_function twice = argument;
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < CALLS; i++)
		wrong += twice(i) != 2 * i + 1;
	return (void *)wrong;
}

/* The entry's int3 is in the second area's table, the exit's in the third's. */
START_TEST(handler_continues_in_the_slot_in_any_number_of_threads)
{
	struct resident_header *main_area = make_area(2048, true), *second = make_area(512, false),
			       *third = make_area(512, false);
	uint8_t *text = copy_twice();
	pthread_t threads[THREADS];

	main_area->next_area = (uint64_t)second;
	second->next_area = (uint64_t)third;
	plant(second, text);
	plant(third, text + (sample_twice_ret - sample_twice));
	install(main_area);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, call_often, text), 0);
	for (int i = 0; i < THREADS; i++) {
		void *wrong = (void *)1;

		ck_assert_int_eq(pthread_join(threads[i], &wrong), 0);
		ck_assert_ptr_null(wrong);
	}
	printf("handler: %d calls through two int3 each\n", THREADS * CALLS);
}
END_TEST

START_TEST(last_entry_of_a_full_table_is_found)
{
	struct resident_header *area = make_area(2048, true);
	uint8_t *text = map_code(0);
	uint32_t capacity = area->entry_capacity;

	ck_assert_uint_gt(capacity, 20);
	for (uint32_t i = 0; i < capacity; i++) {
		uint8_t *copy = text + i * 64;

		memcpy(copy, sample_twice, (size_t)(sample_twice_end - sample_twice));
		plant(area, copy);
	}
	install(area);
	for (uint32_t i = 0; i < capacity; i++)
		ck_assert_uint_eq(((twice_function)(text + i * 64))(i), 2 * i + 1);
}
END_TEST

/* A tracer that moved the thread and died before it continued it: the stop is delivered as a signal
 * whose pc lies in the slot. */
START_TEST(thread_already_moved_to_a_slot_goes_on_there)
{
	struct resident_header *area = make_area(2048, true);
	uint8_t *text = copy_twice();
	uint64_t slot;
	pid_t child;
	int status;
	struct user_regs_struct regs;

	plant(area, text);
	slot = (uint64_t)area + area->slots_offset;
	child = fork();
	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		install(area);
		_exit(((twice_function)text)(20) == 41 ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	ck_assert_int_eq(ptrace(PTRACE_GETREGS, child, NULL, &regs), 0);
	ck_assert_uint_eq(regs.rip, (uint64_t)text + 1);
	regs.rip = slot;
	ck_assert_int_eq(ptrace(PTRACE_SETREGS, child, NULL, &regs), 0);
	ck_assert_int_eq(ptrace(PTRACE_DETACH, child, NULL, SIGTRAP), 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
END_TEST

START_TEST(layout_fits_the_area_it_is_given)
{
	for (uint32_t size = 0; size < 3000; size++) {
		struct resident_header header;

		for (int is_main = 0; is_main < 2; is_main++) {
			if (resident_layout(size, is_main, &header) < 0) {
				ck_assert_uint_lt(size, is_main ? 700 : sizeof(header) + 64);
				continue;
			}
			ck_assert_uint_le(header.area_size, size);
			ck_assert_uint_le(header.slots_offset + header.entry_capacity * ARCH_SLOT_SIZE,
					  header.area_size);
			ck_assert_uint_ge(header.table_offset, sizeof(header) + (is_main ? resident_code().length : 0));
			ck_assert_uint_eq(header.entry_count, 0);
			ck_assert_mem_eq(header.magic, RESIDENT_MAGIC, RESIDENT_MAGIC_SIZE);
		}
	}
}
END_TEST

/* --- the program's own SIGTRAPs --- */

static volatile sig_atomic_t own_calls, own_code, own_masked, own_trap_masked;
static volatile uint64_t own_pc;

static void own_handler(int sig, siginfo_t *info, void *context)
{
	sigset_t mask;

	sigprocmask(SIG_BLOCK, NULL, &mask);
	own_calls += sig == SIGTRAP;
	own_code = info->si_code;
	own_pc = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	own_masked = sigismember(&mask, SIGUSR1);
	own_trap_masked = sigismember(&mask, SIGTRAP);
}

static void foreign_int3(void)
{
	__asm__ volatile("int3");
}

/* Runs `act` in a child whose resident handler stands for `old_handler`; its wait status. */
static int in_child(uint64_t old_handler, uint64_t chain_mask, int (*act)(void))
{
	struct resident_header *area = make_area(2048, true);
	int status;
	pid_t child;

	area->old_handler = old_handler;
	area->chain_mask = chain_mask;
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		install(area);
		_exit(act());
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	return status;
}

static int send_trap(void)
{
	kill(getpid(), SIGTRAP);
	return 7;
}

static int run_into_trap(void)
{
	foreign_int3();
	return 7;
}

static int queue_trap(void)
{
	union sigval value = {.sival_int = 5};

	sigqueue(getpid(), SIGTRAP, value);
	return own_calls == 1 && own_code == SI_QUEUE && own_masked == 0 ? 7 : 1;
}

static int expect_own_handler(void)
{
	sigset_t mask;

	kill(getpid(), SIGTRAP);
	if (own_calls != 1 || own_code != SI_USER || own_masked != 1 || own_trap_masked != 0)
		return 1;
	foreign_int3();
	if (own_calls != 2 || own_code != SI_KERNEL)
		return 2;
	if (((const uint8_t *)own_pc)[-1] != 0xcc)
		return 3;
	sigprocmask(SIG_BLOCK, NULL, &mask);
	return sigismember(&mask, SIGUSR1) ? 4 : 7;
}

START_TEST(programs_own_handler_gets_what_is_not_ours)
{
	int status = in_child((uint64_t)own_handler, 1 << (SIGUSR1 - 1), expect_own_handler);

	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 7);
	status = in_child((uint64_t)own_handler, 0, queue_trap);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 7);
}
END_TEST

START_TEST(ignored_trap_is_ignored_but_not_one_the_thread_ran_into)
{
	int status = in_child(1, 0, send_trap);

	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 7);
	status = in_child(1, 0, run_into_trap);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGTRAP);
}
END_TEST

START_TEST(default_action_ends_the_process_by_sigtrap)
{
	int status = in_child(0, 0, send_trap);

	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGTRAP);
	status = in_child(0, 0, run_into_trap);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGTRAP);
}
END_TEST

static int traced_trap(void)
{
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	return run_into_trap();
}

static void stopped_by_trap(pid_t child, struct user_regs_struct *regs, siginfo_t *info)
{
	int status;

	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSTOPPED(status));
	ck_assert_int_eq(WSTOPSIG(status), SIGTRAP);
	ck_assert_int_eq(ptrace(PTRACE_GETREGS, child, NULL, regs), 0);
	ck_assert_int_eq(ptrace(PTRACE_GETSIGINFO, child, NULL, info), 0);
}

/* A core file must show the place and the cause, not our handler. */
START_TEST(process_ends_with_the_registers_and_the_cause_it_had)
{
	struct resident_header *area = make_area(2048, true);
	struct user_regs_struct before, after;
	siginfo_t cause, again;
	pid_t child = fork();
	int status;

	ck_assert_int_ge(child, 0);
	if (child == 0) {
		install(area);
		_exit(traced_trap());
	}
	stopped_by_trap(child, &before, &cause);
	ck_assert_int_eq(ptrace(PTRACE_CONT, child, NULL, SIGTRAP), 0);
	stopped_by_trap(child, &after, &again);
	before.orig_rax = after.orig_rax = 0;
	ck_assert_mem_eq(&before, &after, sizeof(before));
	ck_assert_int_eq(again.si_code, SI_KERNEL);
	ck_assert_int_eq(ptrace(PTRACE_CONT, child, NULL, SIGTRAP), 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTRAP);
}
END_TEST

/* --- stubs --- */

#define STUB_PAGE 0x10000000UL
#define STACK_PAGE 0x10200000UL
#define DUMP_PAGE 0x10300000UL         /* SAMPLE_DUMP */
#define STUB (STUB_PAGE + 0x238)
#define DUMP_CODE (STUB_PAGE + 2 * PAGE)
#define RED_ZONE 128

static void map_stub_pages(void)
{
	map_code(STUB_PAGE);
	map_code(STACK_PAGE);
	map_code(DUMP_PAGE);
	memcpy((void *)DUMP_CODE, sample_dump, (size_t)(sample_dump_end - sample_dump));
}

static void random_regs(struct user_regs_struct *regs)
{
	unsigned long long *values[] = {
		&regs->rax, &regs->rbx, &regs->rcx, &regs->rdx, &regs->rsi, &regs->rdi, &regs->rbp,
		&regs->r8, &regs->r9, &regs->r10, &regs->r11, &regs->r12, &regs->r13, &regs->r14, &regs->r15,
	};

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		*values[i] = random_u64();
	regs->rsp = STACK_PAGE + 3 * PAGE + random_u64() % PAGE;
	regs->eflags = 0x202 | (random_u64() & 0xcd5);
	regs->rip = DUMP_CODE;
	regs->orig_rax = ~0ULL;
}

static pid_t start_tracee(void)
{
	pid_t child = fork();

	ck_assert_int_ge(child, 0);
	if (child == 0) {
		signal(SIGUSR1, sample_handler);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(1);
	}
	return child;
}

static void fill_stack(uint8_t red_zone[RED_ZONE], const struct user_regs_struct *regs)
{
	for (int i = 0; i < RED_ZONE; i++)
		red_zone[i] = (uint8_t)random_u64();
	memcpy((uint8_t *)regs->rsp - RED_ZONE, red_zone, RED_ZONE);
}

/* What sample_dump stored equals the registers the stub was given. */
static void check_dump(const struct user_regs_struct *regs, const uint8_t red_zone[RED_ZONE])
{
	const uint64_t *dump = (const uint64_t *)DUMP_PAGE;
	const uint64_t wanted[] = {
		regs->rax, regs->rcx, regs->rdx, regs->rbx, regs->rsp, regs->rbp, regs->rsi, regs->rdi,
		regs->r8, regs->r9, regs->r10, regs->r11, regs->r12, regs->r13, regs->r14, regs->r15,
		regs->eflags,
	};

	ck_assert_mem_eq(dump, wanted, sizeof(wanted));
	ck_assert_mem_eq(dump + 17, red_zone, RED_ZONE);
}

/* rt_sigaction(SIGUSR2, data, NULL, 8): what it did is seen in the tracee's /proc status. */
static struct arch_stub make_sigaction_stub(const struct user_regs_struct *regs)
{
	static const struct kernel_action ignore = {.handler = 1};
	const struct arch_stub_call call = {
		.number = SYS_rt_sigaction,
		.args = {SIGUSR2, 0xdead, 0, 8, 0, 0},
		.data = &ignore,
		.data_length = sizeof(ignore),
		.data_arg = 1,
	};
	struct arch_stub stub;

	ck_assert_int_eq(arch_build_stub(STUB, &call, regs, (uint8_t *)STUB, PAGE, &stub), 0);
	ck_assert_uint_le(stub.length, ARCH_STUB_MAX + sizeof(ignore));
	return stub;
}

static uint64_t ignored_signals(pid_t pid)
{
	char path[64], line[256];
	unsigned long long mask = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "SigIgn: %llx", &mask) == 1)
			break;
	fclose(file);
	return mask;
}

/* Puts the child with known registers at the stub's start. */
static void enter_stub(pid_t child, struct user_regs_struct *regs, uint8_t red_zone[RED_ZONE],
		       struct arch_stub *stub)
{
	struct user_regs_struct at_stub;
	int status;

	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(ptrace(PTRACE_GETREGS, child, NULL, regs), 0);
	random_regs(regs);
	fill_stack(red_zone, regs);
	memset((void *)DUMP_PAGE, 0, PAGE);
	*stub = make_sigaction_stub(regs);
	at_stub = *regs;
	at_stub.rip = STUB;
	ck_assert_int_eq(ptrace(PTRACE_SETREGS, child, NULL, &at_stub), 0);
}

/* Single steps would leave their mark in the flags, and a tracer that dies in one leaves the child
 * stepping.  So the child is brought to an instruction of the stub by an int3 that is gone again
 * before anything else happens. */
static void run_to(pid_t child, uint64_t pc, struct user_regs_struct *now)
{
	uint8_t *at = (uint8_t *)pc, original = *at;
	int status;

	*at = ARCH_BREAKPOINT_BYTE;
	ck_assert_int_eq(ptrace(PTRACE_CONT, child, NULL, NULL), 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	*at = original;
	ck_assert_int_eq(ptrace(PTRACE_GETREGS, child, NULL, now), 0);
	ck_assert_uint_eq(now->rip, pc + 1);
	now->rip = pc;
	ck_assert_int_eq(ptrace(PTRACE_SETREGS, child, NULL, now), 0);
}

START_TEST(stub_makes_its_call_and_restores_everything)
{
	map_stub_pages();
	for (int n = 0; n < 100; n++) {
		struct user_regs_struct regs, now;
		uint8_t red_zone[RED_ZONE];
		struct arch_stub stub;
		pid_t child = start_tracee();
		int status;

		enter_stub(child, &regs, red_zone, &stub);
		run_to(child, STUB + stub.syscall_offset, &now);
		ck_assert_uint_eq(now.rax, SYS_rt_sigaction);
		ck_assert(!(ignored_signals(child) & 1 << (SIGUSR2 - 1)));
		run_to(child, STUB + stub.after_offset, &now);
		ck_assert_uint_eq(now.rax, 0);
		ck_assert(ignored_signals(child) & 1 << (SIGUSR2 - 1));
		run_to(child, DUMP_CODE, &now);
		now.orig_rax = regs.orig_rax;
		ck_assert_mem_eq(&now, &regs, sizeof(regs));
		ck_assert_int_eq(ptrace(PTRACE_CONT, child, NULL, NULL), 0);
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		check_dump(&regs, red_zone);
	}
}
END_TEST

struct told {
	struct user_regs_struct regs;
	uint8_t red_zone[RED_ZONE];
};

#define STUB_STEPS_MAX 64

/* The offsets of the stub's instructions, found by stepping through it once. */
static int stub_steps(uint32_t offsets[STUB_STEPS_MAX])
{
	struct user_regs_struct now;
	struct arch_stub stub;
	struct told told;
	pid_t child = start_tracee();
	int status, count = 0;

	enter_stub(child, &told.regs, told.red_zone, &stub);
	for (;;) {
		ck_assert_int_eq(ptrace(PTRACE_GETREGS, child, NULL, &now), 0);
		if (now.rip == DUMP_CODE)
			break;
		ck_assert_int_lt(count, STUB_STEPS_MAX);
		ck_assert_uint_ge(now.rsp, told.regs.rsp - RED_ZONE - 8);
		offsets[count++] = (uint32_t)(now.rip - STUB);
		ck_assert_int_eq(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return count;
}

/* In a tracer of its own: into the stub, up to one of its instructions, perhaps a signal, and death. */
static void trace_and_die(uint32_t offset, bool with_signal, int report)
{
	struct user_regs_struct now;
	struct told told;
	struct arch_stub stub;
	pid_t child = start_tracee();

	memset(&told, 0, sizeof(told));
	enter_stub(child, &told.regs, told.red_zone, &stub);
	if (write(report, &told, sizeof(told)) != sizeof(told))
		_exit(1);
	if (offset > 0)
		run_to(child, STUB + offset, &now);
	if (with_signal)
		kill(child, SIGUSR1);
	raise(SIGKILL);
}

/* The orphan ends as if nobody had ever traced it. */
static void orphan_a_stub(uint32_t offset, bool with_signal)
{
	int pipe_fds[2], status, ended_count = 0;
	struct told told;
	pid_t tracer, ended;

	ck_assert_int_eq(pipe(pipe_fds), 0);
	tracer = fork();
	ck_assert_int_ge(tracer, 0);
	if (tracer == 0)
		trace_and_die(offset, with_signal, pipe_fds[1]);
	close(pipe_fds[1]);
	ck_assert_int_eq(read(pipe_fds[0], &told, sizeof(told)), sizeof(told));
	close(pipe_fds[0]);
	while ((ended = waitpid(-1, &status, 0)) > 0) {
		ended_count++;
		if (ended == tracer)
			ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		else
			ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	ck_assert_int_eq(ended_count, 2);
	check_dump(&told.regs, told.red_zone);
}

START_TEST(stub_ends_by_itself_when_the_tracer_dies_at_any_instruction)
{
	uint32_t offsets[STUB_STEPS_MAX];
	int count;

	map_stub_pages();
	ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	count = stub_steps(offsets);
	for (int i = 0; i < count; i++)
		orphan_a_stub(offsets[i], _i);
	printf("stub: tracer killed at each of %d instructions%s\n", count,
	       _i ? ", with a signal pending" : "");
	ck_assert_int_gt(count, 20);
}
END_TEST

START_TEST(stub_does_not_exceed_the_space)
{
	static const uint8_t data[32];
	const struct arch_stub_call call = {.data = data, .data_length = sizeof(data), .data_arg = 1};
	struct user_regs_struct regs = {0};
	struct arch_stub stub = {0};
	size_t space = 0;

	for (;; space++) {
		uint8_t *out = malloc(space ? space : 1);
		int r = arch_build_stub(0x400000, &call, &regs, out, space, &stub);

		free(out);
		if (r == 0)
			break;
		ck_assert_int_eq(r, -ENOSPC);
	}
	ck_assert_uint_eq(stub.length, space);
	ck_assert_uint_le(space, ARCH_STUB_MAX + sizeof(data));
}
END_TEST

static void add_handler_tests(Suite *suite)
{
	TCase *handler = tcase_create("handler");

	suite_add_tcase(suite, handler);
	tcase_set_timeout(handler, 120);
	tcase_add_test(handler, handler_continues_in_the_slot_in_any_number_of_threads);
	tcase_add_test(handler, last_entry_of_a_full_table_is_found);
	tcase_add_test(handler, thread_already_moved_to_a_slot_goes_on_there);
	tcase_add_test(handler, layout_fits_the_area_it_is_given);
	tcase_add_test(handler, programs_own_handler_gets_what_is_not_ours);
	tcase_add_test(handler, ignored_trap_is_ignored_but_not_one_the_thread_ran_into);
	tcase_add_test(handler, default_action_ends_the_process_by_sigtrap);
	tcase_add_test(handler, process_ends_with_the_registers_and_the_cause_it_had);
}

static void add_stub_tests(Suite *suite)
{
	TCase *stub = tcase_create("stub");

	suite_add_tcase(suite, stub);
	tcase_set_timeout(stub, 120);
	tcase_add_test(stub, stub_makes_its_call_and_restores_everything);
	tcase_add_loop_test(stub, stub_ends_by_itself_when_the_tracer_dies_at_any_instruction, 0, 2);
	tcase_add_test(stub, stub_does_not_exceed_the_space);
}

int main(void)
{
	Suite *suite = suite_create("resident");
	SRunner *runner = srunner_create(suite);
	int failed;

	setvbuf(stdout, NULL, _IOLBF, 0);
	add_handler_tests(suite);
	add_stub_tests(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
