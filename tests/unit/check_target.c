#define _GNU_SOURCE              /* clone */
/* The pure parts of target/: what a stop is, what a line of maps says, what becomes of a broken-off call. */
#include "target/action.h"
#include "target/attach.h"
#include "target/handlers.h"
#include "target/inject.h"
#include "target/layout.h"
#include "target/maps.h"
#include "target/process.h"
#include "target/resident.h"
#include "target/resident_area.h"
#include "target/sharers.h"
#include "target/stop.h"
#include "arch/syscall.h"

#include "base/clock.h"
#include "base/fd.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct stop classify(int code, int status)
{
	siginfo_t info = { 0 };

	info.si_pid = 42;
	info.si_code = code;
	info.si_status = status;
	return stop_classify(&info);
}

START_TEST(a_stop_is_told_by_its_status)
{
	ck_assert_int_eq(classify(CLD_TRAPPED, SIGTRAP).kind, STOP_SIGNAL);
	ck_assert_int_eq(classify(CLD_TRAPPED, SIGUSR1).sig, SIGUSR1);
	ck_assert_int_eq(classify(CLD_TRAPPED, SIGTRAP | 0x80).kind, STOP_SYSCALL);
	ck_assert_int_eq(classify(CLD_TRAPPED, SIGTRAP | PTRACE_EVENT_STOP << 8).kind, STOP_INTERRUPTED);
	ck_assert_int_eq(classify(CLD_TRAPPED, SIGTRAP | PTRACE_EVENT_CLONE << 8).kind, STOP_CLONE);
	ck_assert_int_eq(classify(CLD_TRAPPED, SIGTRAP | PTRACE_EVENT_FORK << 8).kind, STOP_FORK);
	ck_assert_int_eq(classify(CLD_TRAPPED, SIGTRAP | PTRACE_EVENT_VFORK << 8).kind, STOP_VFORK);
	ck_assert_int_eq(classify(CLD_TRAPPED, SIGTRAP | PTRACE_EVENT_EXEC << 8).kind, STOP_EXEC);
	ck_assert_int_eq(classify(CLD_EXITED, 3).kind, STOP_EXITED);
	ck_assert_int_eq(classify(CLD_EXITED, 3).sig, 3);
	ck_assert_int_eq(classify(CLD_DUMPED, SIGSEGV).kind, STOP_KILLED);
}
END_TEST

START_TEST(job_controls_stop_is_no_interruption)
{
	struct stop stop = classify(CLD_TRAPPED, SIGTSTP | PTRACE_EVENT_STOP << 8);

	ck_assert_int_eq(stop.kind, STOP_GROUP);
	ck_assert_int_eq(stop.sig, SIGTSTP);
}
END_TEST

START_TEST(signal_stops_are_never_reaped_and_all_others_are)
{
	ck_assert(!stop_is_reaped(STOP_SIGNAL));
	ck_assert(stop_is_reaped(STOP_INTERRUPTED));
	ck_assert(stop_is_reaped(STOP_GROUP));
	ck_assert(stop_is_reaped(STOP_EXITED));
}
END_TEST

START_TEST(no_child_is_no_stop)
{
	siginfo_t info = { 0 };

	ck_assert_int_eq(stop_classify(&info).kind, STOP_NONE);
}
END_TEST

START_TEST(a_line_of_maps_is_read_whole)
{
	char text[] = "7f00deadb000-7f00deadc000 r-xp 00026000 fe:01 1234567    /usr/lib/a file (deleted)\n"
		      "not a line\n"
		      "7ffc0000-7ffd0000 rw-p 00000000 00:00 0 [stack]";
	char *cursor = text;
	struct map_line map;

	ck_assert(maps_next(&cursor, &map));
	ck_assert_uint_eq(map.start, 0x7f00deadb000);
	ck_assert_uint_eq(map.end, 0x7f00deadc000);
	ck_assert(map.executable && map.readable && !map.writable && !map.shared);
	ck_assert_uint_eq(map.offset, 0x26000);
	ck_assert_uint_eq(map.device, makedev(0xfe, 1));
	ck_assert_uint_eq(map.inode, 1234567);
	ck_assert_str_eq(map.path, "/usr/lib/a file");
	ck_assert(map.deleted);
	ck_assert(maps_next(&cursor, &map));
	ck_assert_str_eq(map.path, "[stack]");
	ck_assert(!map.executable && !map.deleted);
	ck_assert(!maps_next(&cursor, &map));
}
END_TEST

START_TEST(hostile_maps_end_without_harm)
{
	static const char alphabet[] = "0123456789abcdef- rwxp:/\n\t()";
	unsigned seed = 1, lines = 0;

	for (unsigned round = 0; round < 20000; round++) {
		char text[200], *cursor = text;
		struct map_line map;

		for (size_t i = 0; i + 1 < sizeof(text); i++)
			text[i] = alphabet[(unsigned)rand_r(&seed) % (sizeof(alphabet) - 1)];
		text[sizeof(text) - 1] = '\0';
		if (round % 2)
			memcpy(text, "1000-2000 r-xp 0 0:0 ", 21);
		while (maps_next(&cursor, &map)) {
			ck_assert_uint_lt(map.start, map.end);
			lines++;
		}
	}
	ck_assert_uint_gt(lines, 0);
}
END_TEST

static struct user_regs_struct in_call(long number, long result)
{
	return (struct user_regs_struct){ .orig_rax = (unsigned long long)number,
					  .rax = (unsigned long long)result, .rip = 0x1000 };
}

START_TEST(a_call_that_fails_for_no_signal_is_made_again)
{
	struct user_regs_struct regs = in_call(SYS_epoll_wait, -EINTR);

	ck_assert(syscall_was_broken_off(&regs));
	syscall_make_restart(&regs);
	ck_assert_uint_eq(regs.rip, 0x1000 - 2);
	ck_assert_uint_eq(regs.rax, SYS_epoll_wait);
	ck_assert((long)regs.orig_rax < 0);
}
END_TEST

START_TEST(a_finished_call_is_left_alone)
{
	struct user_regs_struct done = in_call(SYS_epoll_wait, 3), outside = in_call(-1, -EINTR),
				closing = in_call(SYS_close, -EINTR);

	ck_assert(!syscall_was_broken_off(&done));
	ck_assert(!syscall_was_broken_off(&outside));
	/* The descriptor is closed, and by now perhaps another file's. */
	ck_assert(!syscall_was_broken_off(&closing));
	syscall_settle(&done);
	ck_assert_uint_eq(done.rip, 0x1000);
	ck_assert_uint_eq(done.rax, 3);
}
END_TEST

START_TEST(the_kernels_own_restarts_are_foreseen)
{
	struct user_regs_struct plain = in_call(SYS_read, -512), block = in_call(SYS_nanosleep, -516);

	syscall_settle(&plain);
	ck_assert_uint_eq(plain.rax, SYS_read);
	ck_assert_uint_eq(plain.rip, 0x1000 - 2);
	syscall_settle(&block);
	ck_assert_uint_eq(block.rax, SYS_restart_syscall);
	ck_assert_uint_eq(block.rip, 0x1000 - 2);
}
END_TEST

START_TEST(a_restart_by_the_kernel_is_made_the_call_itself)
{
	struct user_regs_struct first = in_call(SYS_nanosleep, -516), again = in_call(SYS_restart_syscall, -516),
				strange = again, before = first;

	ck_assert(syscall_restarts_by_call(&first) && syscall_restarts_by_call(&again));
	syscall_restart_itself(&first, &before);
	ck_assert_uint_eq(first.rax, SYS_nanosleep);
	ck_assert_uint_eq(first.rip, 0x1000 - 2);
	syscall_restart_itself(&again, &before);
	ck_assert_uint_eq(again.rax, SYS_nanosleep);
	ck_assert_uint_eq(again.rip, 0x1000 - 2);
	before.rdi++;
	syscall_restart_itself(&strange, &before);
	ck_assert_int_eq((long)strange.rax, -EINTR);
	ck_assert_uint_eq(strange.rip, 0x1000);
	ck_assert((long)strange.orig_rax < 0);
}
END_TEST

START_TEST(both_forms_of_exec_are_known)
{
	struct user_regs_struct a = in_call(SYS_execve, 0), b = in_call(SYS_execveat, 0), c = in_call(SYS_read, 0);

	ck_assert(syscall_is_exec(&a) && syscall_is_exec(&b) && !syscall_is_exec(&c));
}
END_TEST

static pid_t child_that(bool ends)
{
	pid_t pid = fork();

	if (pid == 0 && ends)
		_exit(0);
	while (pid == 0)
		pause();
	return pid;
}

/* The child of a vfork or a clone shares the memory for a moment only: an attach must not be refused for one that was seen
 * and has ended since. */
START_TEST(who_ended_since_the_look_is_no_stranger)
{
	pid_t pid = child_that(false), ended = child_that(true), *slot;
	struct sharers sharers = { .last_pid = 0 };
	struct target *target;

	while (!process_thread_is_dead(ended, ended))
		;
	ck_assert_int_eq(target_new(pid, &target), 0);
	ck_assert_int_eq(sharers_look(target, &sharers), 0);
	slot = vec_push(&sharers.found);
	*slot = ended;
	ck_assert_int_eq(target_seize(target, &sharers), 0);
	ck_assert_int_eq(target->stranger, 0);
	sharers_fini(&sharers);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, __WALL);
	waitpid(ended, NULL, 0);
	target_free(target);
}
END_TEST

/* It is in another program by then, and what would be done with it as with one that shares the memory would be its end. */
START_TEST(who_has_executed_a_program_since_the_look_is_given_back)
{
	pid_t pid = child_that(false), executed = child_that(false), *slot;
	struct sharers sharers = { .last_pid = 0 };
	struct target *target;

	ck_assert_int_eq(target_new(pid, &target), 0);
	ck_assert_int_eq(sharers_look(target, &sharers), 0);
	slot = vec_push(&sharers.found);
	*slot = executed;
	ck_assert_int_eq(target_seize(target, &sharers), 0);
	ck_assert_uint_eq(target->tasks.count, 1);
	ck_assert_int_eq(process_tracer(executed), 0);
	ck_assert(!process_thread_is_dead(executed, executed));
	sharers_fini(&sharers);
	kill(pid, SIGKILL);
	kill(executed, SIGKILL);
	waitpid(pid, NULL, __WALL);
	waitpid(executed, NULL, __WALL);
	target_free(target);
}
END_TEST

static void end(struct target *target, pid_t pid, struct sharers *sharers)
{
	sharers_fini(sharers);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, __WALL);
	target_free(target);
}

/* Told to, it forks, and says what came of it. */
static pid_t forker(int *ret_to, int *ret_from)
{
	int to[2], from[2];
	char told;
	pid_t pid, born;

	ck_assert(pipe(to) == 0 && pipe(from) == 0);
	pid = fork();
	if (pid == 0) {
		if (read(to[0], &told, 1) != 1)
			_exit(1);
		born = fork();
		if (born == 0)
			_exit(0);
		if (write(from[1], &born, sizeof(born)) != sizeof(born))
			_exit(1);
		for (;;)
			pause();
	}
	*ret_to = to[1];
	*ret_from = from[0];
	return pid;
}

/* At the event of a fork the call has not returned, and its result would be written over by whoever sets registers there. */
START_TEST(who_has_just_forked_is_held_after_the_call)
{
	struct sharers sharers = { .last_pid = 0 };
	struct target *target;
	int to, from;
	pid_t pid = forker(&to, &from), born = 0;

	ck_assert_int_eq(target_new(pid, &target), 0);
	ck_assert_int_eq(target_seize(target, &sharers), 0);
	ck_assert_int_eq(write(to, "f", 1), 1);
	ck_assert_int_eq(target_wait_for_any(target), 0);
	ck_assert_uint_eq(target->tasks.count, 1);
	ck_assert(target->tasks.items[0]->stopped && !stop_is_birth(target->tasks.items[0]->stop.kind));
	ck_assert_ptr_eq(inject_find_task(target), target->tasks.items[0]);
	task_detach(target->tasks.items[0]);
	ck_assert_int_eq(read(from, &born, sizeof(born)), sizeof(born));
	ck_assert_int_gt(born, 0);
	end(target, pid, &sharers);
}
END_TEST

static uint8_t ours = 0xcc, anothers = 0xcc, clean = 0x55;

static void add_breakpoint(struct target *target, uint8_t *at, bool was_planted)
{
	struct breakpoint *bp = calloc(1, sizeof(*bp)), **slot = vec_push(&target->breakpoints);

	*bp = (struct breakpoint){ .address = (uintptr_t)at, .original = 0x55, .was_planted = was_planted };
	*slot = bp;
}

static uint8_t byte_at(struct target *target, uint8_t *at)
{
	uint8_t byte = 0;

	ck_assert_int_eq(target_read_surely(target, (uintptr_t)at, &byte, 1), 0);
	return byte;
}

/* A fork that takes its time copies the text before the int3s are taken out, and is seen afterwards. */
START_TEST(a_copy_that_is_older_than_the_removal_is_cleaned_all_the_same)
{
	pid_t pid = child_that(false);
	struct target *target;

	ck_assert_int_eq(target_new(pid, &target), 0);
	add_breakpoint(target, &ours, true);
	add_breakpoint(target, &anothers, false);
	add_breakpoint(target, &clean, true);
	ck_assert_uint_eq(bp_restore_copy(target), 0);
	ck_assert_uint_eq(byte_at(target, &ours), 0x55);
	ck_assert_uint_eq(byte_at(target, &anothers), 0xcc);
	ck_assert_uint_eq(byte_at(target, &clean), 0x55);
	bp_drop_all(target);
	target_free(target);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
END_TEST

/* --- calls made for us --- */

static raddr code_page(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(page, MAP_FAILED);
	return (raddr)(uintptr_t)page;
}

static pid_t counting_child(volatile uint64_t *count)
{
	pid_t pid = fork();

	while (pid == 0)
		++*count;
	return pid;
}

static bool counts_on(volatile uint64_t *count)
{
	uint64_t before = *count, deadline_ns = clock_monotonic_ns() + 20 * NSEC_PER_SEC;

	while (*count == before && !clock_passed(deadline_ns))
		poll(NULL, 0, 1);
	return *count != before;
}

/* The first process of a PID namespace, whose number stands in a word of its thread data that glibc does not use, too. */
static pid_t first_process(uint32_t decoy)
{
	pid_t pid = unshare(CLONE_NEWPID) < 0 ? -1 : fork();

	if (pid == 0) {
		*(volatile uint32_t *)((uint8_t *)__builtin_thread_pointer() + decoy) = 1;
		while (true)
			pause();
	}
	return pid;
}

static void find_small_number(void)
{
	const uint32_t decoy = 256;
	struct sharers sharers = { .last_pid = 0 };
	struct thread_layout layout;
	struct target *target;
	pid_t pid = first_process(decoy);

	if (pid < 0)
		return;            /* not permitted here */
	ck_assert_int_eq(target_new(pid, &target), 0);
	ck_assert_int_eq(target_seize(target, &sharers), 0);
	target_stop_all(target);
	ck_assert_int_eq(target->tasks.items[0]->own_number, 1);
	ck_assert_ptr_eq(task_find_own(target, 1), target->tasks.items[0]);
	thread_layout_look(target, &layout);
	ck_assert(layout.has_tid);
	ck_assert_uint_ne(layout.tid, decoy);
	/* It is a fork of this one. */
	ck_assert_int_eq(*(int32_t *)((uint8_t *)__builtin_thread_pointer() + layout.tid), getpid());
	end(target, pid, &sharers);
}

/* In a process of its own, which can make no other when the first one of the namespace has ended. */
START_TEST(a_small_number_is_found_where_the_c_library_keeps_it)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		find_small_number();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

/* Its registers stand in the stub's words: another call's would become its own. */
START_TEST(a_stub_is_left_alone_while_a_thread_is_in_it)
{
	volatile uint64_t *count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct arch_stub_call wait = { .number = SYS_nanosleep, .data_arg = -1 };
	struct arch_stub_call ask = { .number = SYS_getpid, .data_arg = -1 };
	struct sharers sharers = { .last_pid = 0 };
	struct timespec *span = (void *)(count + 8);
	raddr stub = code_page();
	struct target *target;
	int64_t result;
	pid_t pid;

	*span = (struct timespec){ .tv_sec = INJECT_DEADLINE_MS / 1000, .tv_nsec = 200000000 };
	wait.args[0] = (uintptr_t)span;
	pid = counting_child(count);
	ck_assert_int_eq(target_new(pid, &target), 0);
	ck_assert_int_eq(target_seize(target, &sharers), 0);
	target_stop_all(target);
	target->stub = stub;
	ck_assert_int_eq(inject_syscall(target->tasks.items[0], stub, &wait, &result), -ETIMEDOUT);
	ck_assert_int_eq(inject_syscall(target->tasks.items[0], stub, &ask, &result), -EBUSY);
	/* It comes to the call's end, where it is held, and goes on from there by itself. */
	target_stop_all(target);
	ck_assert_int_eq(inject_syscall(target->tasks.items[0], stub, &ask, &result), -EBUSY);
	ck_assert_int_eq(task_resume(target->tasks.items[0]), 0);
	ck_assert(counts_on(count));
	target_stop_all(target);
	ck_assert_int_eq(inject_syscall(target->tasks.items[0], stub, &ask, &result), 0);
	ck_assert_int_eq(result, pid);
	ck_assert_int_eq(task_resume(target->tasks.items[0]), 0);
	ck_assert(counts_on(count));
	end(target, pid, &sharers);
}
END_TEST

/* Where its code is to be again, of a tracer before us: what only the handler of that one was left of. */
START_TEST(our_own_handler_is_never_taken_for_the_programs)
{
	volatile uint64_t *count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	raddr start = code_page();
	struct kernel_sigaction left = { .handler = start + resident_code().handler, .flags = SA_SIGINFO | 0x04000000,
					 .restorer = start + resident_code().restorer }, before, after = { 0 };
	struct sharers sharers = { .last_pid = 0 };
	struct target *target;
	pid_t pid;

	/* What this process has is set again at once: the child's is what counts. */
	ck_assert_int_eq(syscall(SYS_rt_sigaction, SIGTRAP, &left, &before, 8), 0);
	pid = counting_child(count);
	ck_assert_int_eq(syscall(SYS_rt_sigaction, SIGTRAP, &before, NULL, 8), 0);
	ck_assert(counts_on(count));
	ck_assert_int_eq(target_new(pid, &target), 0);
	ck_assert_int_eq(target_seize(target, &sharers), 0);
	target_stop_all(target);
	ck_assert_int_eq(resident_area_new(start, 2048, true, &target->areas), 0);
	target->stub = start + 2048;
	ck_assert_int_eq(resident_install_handler(target), 0);
	ck_assert_mem_eq(target->old_action, &after, sizeof(after));
	ck_assert_int_eq(action_get(target->tasks.items[0], &after), 0);
	ck_assert_uint_eq(after.handler, left.handler);
	ck_assert_int_eq(task_resume(target->tasks.items[0]), 0);
	ck_assert(counts_on(count));
	end(target, pid, &sharers);
}
END_TEST

/* An address that no page begins at: the system call for it fails. */
START_TEST(what_cannot_be_taken_out_stays_noted)
{
	volatile uint64_t *count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	raddr start = code_page(), odd = start + 8;
	struct sharers sharers = { .last_pid = 0 };
	struct resident_header header;
	struct target *target;
	pid_t pid = counting_child(count);

	ck_assert_int_eq(target_new(pid, &target), 0);
	ck_assert_int_eq(target_seize(target, &sharers), 0);
	target_stop_all(target);
	ck_assert_int_eq(resident_area_new(start, 2048, true, &target->areas), 0);
	ck_assert_int_eq(resident_area_new(odd, 2048, false, &target->areas->next), 0);
	target->areas->next->injected = true;
	target->stub = start + 2048;
	ck_assert_int_eq(resident_area_write_header(target, target->areas), 0);
	ck_assert_int_eq(resident_remove(target), -EINVAL);
	ck_assert_int_eq(target_read(target, start, &header, sizeof(header)), 0);
	ck_assert_mem_eq(&header, RESIDENT_MAGIC, RESIDENT_MAGIC_SIZE);
	ck_assert_uint_eq(header.begun, odd);
	target->areas->next->injected = false;
	end(target, pid, &sharers);
}
END_TEST

/* Two processes with one memory: the second executes a program when it is told to, the first hears what becomes of it. */
struct pair {
	volatile pid_t second;
	volatile int go, status;         /* -1: it has not ended */
};

static int execute_when_told(void *argument)
{
	const struct pair *pair = argument;

	while (!pair->go)
		;
	execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
	_exit(127);
}

static pid_t start_pair(struct pair *pair)
{
	static char stack[65536] __attribute__((aligned(16)));
	int status;
	pid_t pid;

	*pair = (struct pair){ .status = -1 };
	pid = fork();
	if (pid == 0) {
		pair->second = clone(execute_when_told, stack + sizeof(stack), CLONE_VM | SIGCHLD, pair);
		while (waitpid(pair->second, &status, __WALL) != pair->second)
			;
		pair->status = status;
		for (;;)
			pause();
	}
	while (pair->second == 0)
		poll(NULL, 0, 1);
	return pid;
}

static void drop(void *context, struct task *task)
{
	(void)context;
	task_remove(task);
}

static void wait_for_stop(pid_t tid, enum stop_kind kind)
{
	uint64_t deadline_ns = clock_monotonic_ns() + 20 * NSEC_PER_SEC;
	struct stop stop = { .kind = STOP_NONE };

	while (stop.kind != kind) {
		ck_assert(!clock_passed(deadline_ns));
		poll(NULL, 0, 1);
		ck_assert_int_eq(stop_look(tid, &stop), 0);
	}
}

/* As a healer looks at one of several that have the memory: what it still has of it lives on in the other, and to make a call
 * there in the new program would be that one's end. */
START_TEST(who_executes_a_program_is_not_used_for_its_old_memory)
{
	struct pair *pair = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	raddr start = code_page();
	pid_t first = start_pair(pair);
	struct sharers sharers = { .last_pid = 0 };
	uint64_t blocked, ignored, caught, deadline_ns = clock_monotonic_ns() + 20 * NSEC_PER_SEC;
	struct target *target;
	const char *text;

	ck_assert_int_eq(target_new(pair->second, &target), 0);
	target->task_gone = drop;
	ck_assert_int_eq(sharers_look(target, &sharers), 0);
	ck_assert_int_eq(target_seize(target, &sharers), 0);
	ck_assert_uint_eq(target->tasks.count, 2);
	ck_assert_int_eq(target_stop_all(target), 0);
	ck_assert_int_eq(resident_area_new(start, 2048, true, &target->areas), 0);
	target->stub = start + 2048;
	ck_assert_int_eq(resident_install_handler(target), 0);
	ck_assert_int_eq(process_signal_masks(first, &blocked, &ignored, &caught), 0);
	ck_assert(caught & 1ULL << (SIGTRAP - 1));
	for (size_t i = 0; i < target->tasks.count; i++)
		ck_assert_int_eq(task_resume(target->tasks.items[i]), 0);
	pair->go = 1;
	wait_for_stop(pair->second, STOP_EXEC);
	ck_assert_msg(target_undo(target, &text), "%s", text);
	target_let_go(target, NULL, NULL);
	while (pair->status == -1 && !clock_passed(deadline_ns))
		poll(NULL, 0, 1);
	ck_assert_int_eq(pair->status, 7 << 8);
	ck_assert_int_eq(process_signal_masks(first, &blocked, &ignored, &caught), 0);
	ck_assert(!(caught & 1ULL << (SIGTRAP - 1)));
	sharers_fini(&sharers);
	kill(first, SIGKILL);
	waitpid(first, NULL, __WALL);
	target_free(target);
}
END_TEST

/* Two areas of their own; mappings that touch would be one. */
static raddr two_injected(void)
{
	char *at = mmap(NULL, 5 * INJECTED_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(at, MAP_FAILED);
	ck_assert_int_eq(mprotect(at + INJECTED_SIZE, INJECTED_SIZE, PROT_READ | PROT_EXEC), 0);
	ck_assert_int_eq(mprotect(at + 3 * INJECTED_SIZE, INJECTED_SIZE, PROT_READ | PROT_EXEC), 0);
	return (raddr)(uintptr_t)at + INJECTED_SIZE;
}

static bool is_mapped(struct target *target, raddr at)
{
	uint8_t byte;

	return target_read(target, at, &byte, 1) == 0;
}

/* A tracer that died after it had mapped a second area, and before that was linked. */
START_TEST(what_was_begun_is_taken_out_with_what_is_linked)
{
	volatile uint64_t *count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	raddr start = code_page(), linked = two_injected(), begun = linked + 2 * INJECTED_SIZE;
	struct sharers sharers = { .last_pid = 0 };
	pid_t pid = counting_child(count);
	struct target *target;

	ck_assert_int_eq(target_new(pid, &target), 0);
	ck_assert_int_eq(target_seize(target, &sharers), 0);
	target_stop_all(target);
	ck_assert_int_eq(resident_area_new(start, 2048, true, &target->areas), 0);
	ck_assert_int_eq(resident_area_new(linked, 2048, false, &target->areas->next), 0);
	target->areas->next->injected = true;
	target->stub = start + 2048;
	target->areas->header.next_area = linked;
	target->areas->header.begun = begun;
	ck_assert_int_eq(resident_area_write_header(target, target->areas), 0);
	ck_assert(is_mapped(target, linked) && is_mapped(target, begun));
	ck_assert_int_eq(resident_remove(target), 0);
	ck_assert(!is_mapped(target, linked));
	ck_assert(!is_mapped(target, begun));
	end(target, pid, &sharers);
}
END_TEST

static struct target *target_of(pid_t pid, raddr area)
{
	struct sharers sharers = { .last_pid = 0 };
	struct target *target;

	ck_assert_int_eq(target_new(pid, &target), 0);
	ck_assert_int_eq(target_seize(target, &sharers), 0);
	ck_assert_int_eq(resident_area_new(area, 2048, true, &target->areas), 0);
	target->stub = area + 2048;
	sharers_fini(&sharers);
	return target;
}

static void end_target(struct target *target, pid_t pid)
{
	for (size_t i = 0; i < target->tasks.count; i++)
		kill(target->tasks.items[i]->tid, SIGKILL);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, __WALL);
	target_free(target);
}

/* The page of this program's code with `code` in it, mapped once more. */
static raddr map_again(const void *code, void *hint)
{
	raddr page = (raddr)(uintptr_t)code & ~4095ULL;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct map_line map = { .start = 0 };
	char *text, *cursor;
	void *at;

	ck_assert_int_eq(file_read_text("/proc/self/maps", 1u << 20, &text, NULL), 0);
	cursor = text;
	while (maps_next(&cursor, &map) && map.end <= page)
		;
	ck_assert_uint_le(map.start, page);
	at = mmap(hint, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, (off_t)(map.offset + page - map.start));
	ck_assert_ptr_ne(at, MAP_FAILED);
	close(fd);
	free(text);
	return (raddr)(uintptr_t)at;
}

static const struct module *module_at(const struct target *target, raddr address)
{
	const struct module_range *range = module_map_find(&target->modules, address);

	ck_assert_ptr_nonnull(range);
	return &target->modules.modules.items[range->module];
}

static void require_piece(const struct target *target, raddr at, const void *code)
{
	const struct module *whole = module_at(target, (raddr)(uintptr_t)code), *piece = module_at(target, at);

	ck_assert(piece->piece && !whole->piece);
	ck_assert_uint_ne(piece->id, whole->id);
	ck_assert_uint_eq(at - piece->bias, ((raddr)(uintptr_t)code & ~4095ULL) - whole->bias);
	ck_assert_int_ge(target_module_fd(target, piece->id), 0);
	ck_assert_uint_gt(piece->build_id_len, 0);
	ck_assert_mem_eq(piece->build_id, whole->build_id, BUILD_ID_MAX);
	for (size_t i = 0; i < target->slacks.count; i++)
		ck_assert_uint_ne(target->slacks.items[i].module, piece->id);
}

/* Wherever it lies, before the file itself and behind it, and when it comes later. */
START_TEST(a_piece_of_a_file_that_is_mapped_once_more_is_known_as_one)
{
	volatile uint64_t *count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const void *code = (const void *)(uintptr_t)map_again;
	raddr below = map_again(code, (void *)(uintptr_t)0x10000000), above = map_again(code, NULL);
	pid_t pid = counting_child(count);
	struct target *target;
	bool changed;

	ck_assert_uint_lt(below, (raddr)(uintptr_t)code);
	ck_assert_uint_gt(above, (raddr)(uintptr_t)code);
	target = target_of(pid, code_page());
	ck_assert_int_eq(target_scan_modules(target, &changed), 0);
	require_piece(target, below, code);
	require_piece(target, above, code);
	ck_assert_int_eq(target_scan_modules(target, &changed), 0);
	ck_assert(!changed);
	end_target(target, pid);
}
END_TEST

/* As one that was interrupted and waits for a CPU, on a busy machine, when the others have stopped. */
START_TEST(who_was_not_stopped_is_not_taken_to_be_out_of_our_code)
{
	volatile uint64_t *count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	raddr area = code_page();
	pid_t pid = counting_child(count);
	struct target *target;

	ck_assert(counts_on(count));
	target = target_of(pid, area);
	ck_assert(!target->tasks.items[0]->stopped);
	ck_assert(target_leave_resident(target));
	ck_assert(target->tasks.items[0]->stopped);
	end_target(target, pid);
}
END_TEST

static volatile sig_atomic_t *handled;

static void stay(int sig)
{
	(void)sig;
	for (*handled = 1;;)
		;
}

/* In a handler that came over an endless loop in `page`. */
static pid_t child_in_handler(void *page)
{
	static const uint8_t code[] = { 0xeb, 0xfe };
	void (*enter)(void) = (void (*)(void))(uintptr_t)page;
	uint64_t deadline_ns = clock_monotonic_ns() + 20 * NSEC_PER_SEC;
	struct sigaction action = { .sa_handler = stay };
	pid_t pid;

	handled = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_int_eq(mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	memcpy(page, code, sizeof(code));
	pid = fork();
	if (pid == 0) {
		sigaction(SIGALRM, &action, NULL);
		ualarm(20000, 0);
		enter();
	}
	while (!*handled && !clock_passed(deadline_ns))
		poll(NULL, 0, 1);
	ck_assert(*handled);
	return pid;
}

/* Nobody lived who would have moved it out of there before the signal. */
START_TEST(who_returns_from_a_handler_into_our_code_is_not_out_of_it)
{
	raddr page = code_page(), elsewhere = code_page();
	pid_t pid = child_in_handler((void *)(uintptr_t)page);
	struct target *target = target_of(pid, elsewhere);
	bool changed;

	ck_assert_int_eq(target_scan_modules(target, &changed), 0);
	ck_assert_int_eq(target_stop_all(target), 0);
	ck_assert(!task_returns_inside(target->tasks.items[0]));
	resident_forget(target);
	ck_assert_int_eq(resident_area_new(page, 2048, true, &target->areas), 0);
	ck_assert(task_returns_inside(target->tasks.items[0]));
	target->adopted = true;
	ck_assert(!target_leave_resident(target));
	end_target(target, pid);
}
END_TEST

static bool waits_for_good(pid_t pid)
{
	uint64_t deadline_ns = clock_monotonic_ns() + 20 * NSEC_PER_SEC;

	while (process_thread_state(pid, pid) != 'D' && !clock_passed(deadline_ns))
		poll(NULL, 0, 1);
	return process_thread_state(pid, pid) == 'D';
}

/* vfork(), called from `page`; the child pauses there. */
static pid_t child_in_vfork(void *page)
{
	static const uint8_t code[] = { 0xb8, 58, 0, 0, 0, 0x0f, 0x05, 0x85, 0xc0, 0x75, 0x09, 0xb8, 34, 0, 0, 0, 0x0f, 0x05,
					0xeb, 0xf7, 0xeb, 0xfe };
	void (*enter)(void) = (void (*)(void))(uintptr_t)page;
	pid_t pid;

	ck_assert_int_eq(mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	memcpy(page, code, sizeof(code));
	pid = fork();
	if (pid == 0)
		enter();
	return pid;
}

START_TEST(who_waits_in_the_kernel_is_where_it_goes_on)
{
	raddr page = code_page(), elsewhere = code_page();
	pid_t pid = child_in_vfork((void *)(uintptr_t)page);
	struct target *target;

	ck_assert(waits_for_good(pid));
	target = target_of(pid, elsewhere);
	target_stop_all(target);
	ck_assert(target_leave_resident(target));
	resident_forget(target);
	ck_assert_int_eq(resident_area_new(page, 2048, true, &target->areas), 0);
	ck_assert(!target_leave_resident(target));
	end_target(target, pid);
}
END_TEST

#define UNSEEN_MS 50

/* As one that came to an int3 while the tracer was busy with another, and then all are stopped: what it stood until somebody
 * looked was a hold, too. */
START_TEST(who_stood_unseen_was_held_since_it_ran)
{
	struct timespec unseen = { 0, UNSEEN_MS * NSEC_PER_MSEC };
	pid_t pid = child_that(false);
	struct sharers sharers = { .last_pid = 0 };
	struct target *target;

	ck_assert_int_eq(target_new(pid, &target), 0);
	ck_assert_int_eq(target_seize(target, &sharers), 0);
	sharers_fini(&sharers);
	ck_assert_int_eq(target_stop_all(target), 0);
	ck_assert_int_eq(task_resume(target->tasks.items[0]), 0);
	kill(pid, SIGUSR1);
	wait_for_stop(pid, STOP_SIGNAL);
	clock_nanosleep(CLOCK_MONOTONIC, 0, &unseen, NULL);
	ck_assert_int_eq(target_stop_all(target), 0);
	ck_assert_int_eq(task_resume(target->tasks.items[0]), 0);
	ck_assert_uint_ge(target->longest_stop_ns, UNSEEN_MS * NSEC_PER_MSEC);
	end_target(target, pid);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("target");
	TCase *stops = tcase_create("stops"), *maps = tcase_create("maps"), *calls = tcase_create("system calls");
	TCase *sharers = tcase_create("sharers");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(stops, a_stop_is_told_by_its_status);
	tcase_add_test(stops, job_controls_stop_is_no_interruption);
	tcase_add_test(stops, signal_stops_are_never_reaped_and_all_others_are);
	tcase_add_test(stops, no_child_is_no_stop);
	tcase_add_test(maps, a_line_of_maps_is_read_whole);
	tcase_add_test(maps, hostile_maps_end_without_harm);
	tcase_add_test(calls, a_call_that_fails_for_no_signal_is_made_again);
	tcase_add_test(calls, a_finished_call_is_left_alone);
	tcase_add_test(calls, the_kernels_own_restarts_are_foreseen);
	tcase_add_test(calls, a_restart_by_the_kernel_is_made_the_call_itself);
	tcase_add_test(calls, both_forms_of_exec_are_known);
	tcase_add_test(sharers, who_ended_since_the_look_is_no_stranger);
	tcase_add_test(sharers, who_has_executed_a_program_since_the_look_is_given_back);
	tcase_add_test(sharers, who_has_just_forked_is_held_after_the_call);
	tcase_add_test(sharers, a_piece_of_a_file_that_is_mapped_once_more_is_known_as_one);
	tcase_add_test(sharers, a_copy_that_is_older_than_the_removal_is_cleaned_all_the_same);
	tcase_add_test(calls, a_stub_is_left_alone_while_a_thread_is_in_it);
	tcase_add_test(calls, our_own_handler_is_never_taken_for_the_programs);
	tcase_add_test(calls, what_cannot_be_taken_out_stays_noted);
	tcase_add_test(calls, who_executes_a_program_is_not_used_for_its_old_memory);
	tcase_add_test(calls, what_was_begun_is_taken_out_with_what_is_linked);
	tcase_add_test(calls, who_was_not_stopped_is_not_taken_to_be_out_of_our_code);
	tcase_add_test(calls, who_waits_in_the_kernel_is_where_it_goes_on);
	tcase_add_test(calls, who_returns_from_a_handler_into_our_code_is_not_out_of_it);
	tcase_add_test(stops, who_stood_unseen_was_held_since_it_ran);
	tcase_add_test(stops, a_small_number_is_found_where_the_c_library_keeps_it);
	tcase_set_timeout(stops, 60);
	tcase_set_timeout(calls, 60);
	tcase_set_timeout(maps, 60);
	suite_add_tcase(suite, sharers);
	suite_add_tcase(suite, stops);
	suite_add_tcase(suite, maps);
	suite_add_tcase(suite, calls);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
