/* What is leaned on while all threads of a process are held: what is known of one holds until it runs, and what is read of many
 * at once is what would be read of each. */
#include "target/attach.h"
#include "target/awaited.h"
#include "target/bp.h"
#include "target/handlers.h"
#include "target/holes.h"
#include "target/jumps.h"
#include "target/layout.h"
#include "target/maps.h"
#include "target/maps_query.h"
#include "target/process.h"
#include "target/ptrace.h"
#include "target/stacks.h"

#include "base/clock.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
#define THREADS 70                     /* more than are read at once */
#define STACK_ROOM (64u << 20)
#define MARK 0x5a5a00000000ULL
#define DEADLINE_NS (20 * NSEC_PER_SEC)

/* --- children --- */

/* inc %rax, for ever: no two looks see the same registers. */
static pid_t changing_child(void)
{
	static const uint8_t code[] = { 0x48, 0xff, 0xc0, 0xeb, 0xfb };
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*enter)(void) = (void (*)(void))(uintptr_t)page;
	pid_t pid;

	ck_assert_ptr_ne(page, MAP_FAILED);
	memcpy(page, code, sizeof(code));
	pid = fork();
	if (pid == 0)
		enter();
	return pid;
}

static pid_t sleeping_child(void)
{
	pid_t pid = fork();

	while (pid == 0)
		pause();
	return pid;
}

static struct target *hold(pid_t pid)
{
	struct sharers sharers = { .last_pid = 0 };
	struct target *target;

	ck_assert_int_eq(target_new(pid, &target), 0);
	ck_assert_int_eq(target_seize(target, &sharers), 0);
	ck_assert_int_eq(target_stop_all(target), 0);
	sharers_fini(&sharers);
	return target;
}

static void end_target(struct target *target, pid_t pid)
{
	kill(pid, SIGKILL);
	/* The end of the first thread is told when those of all others were heard. */
	for (size_t i = target->tasks.count; i-- > 0;)
		waitpid(target->tasks.items[i]->tid, NULL, __WALL);
	waitpid(pid, NULL, __WALL);
	target_free(target);
}

static uint64_t accumulator(struct task *task)
{
	struct user_regs_struct regs;

	ck_assert_int_eq(task_getregs(task, &regs), 0);
	return regs.rax;
}

/* Past what target/ hears of. */
static void set_accumulator(pid_t tid, uint64_t value)
{
	ck_assert_int_eq(ptrace(PTRACE_POKEUSER, tid, offsetof(struct user, regs.rax), value), 0);
}

/* --- registers --- */

START_TEST(the_kernel_is_asked_once_for_the_registers_of_who_is_held)
{
	pid_t pid = changing_child();
	struct target *target = hold(pid);
	struct task *task = target->tasks.items[0];
	uint64_t seen = accumulator(task);

	set_accumulator(pid, seen + 1);
	ck_assert_uint_eq(accumulator(task), seen);
	end_target(target, pid);
}
END_TEST

START_TEST(registers_are_asked_for_again_when_they_were_set)
{
	pid_t pid = changing_child();
	struct target *target = hold(pid);
	struct task *task = target->tasks.items[0];
	struct user_regs_struct regs;

	ck_assert_int_eq(task_getregs(task, &regs), 0);
	regs.rax = 42;
	ck_assert_int_eq(ptrace_setregs(pid, &regs), 0);
	ck_assert_uint_eq(accumulator(task), 42);
	ck_assert_int_eq(ptrace_set_pc(pid, regs.rip + 3), 0);
	ck_assert_int_eq(task_getregs(task, &regs), 0);
	ck_assert_uint_eq(accumulator(task), 42);
	set_accumulator(pid, 43);
	ck_assert_int_eq(ptrace_set_pc(pid, regs.rip), 0);
	ck_assert_uint_eq(accumulator(task), 43);
	end_target(target, pid);
}
END_TEST

static int resume(struct task *task)
{
	return task_resume(task);
}

static int run_until_syscall(struct task *task)
{
	task->stopped = false;
	return ptrace_until_syscall(task->tid, 0);
}

static int listen_on(struct task *task)
{
	task->stopped = false;
	return ptrace_listen(task->tid);
}

START_TEST(registers_are_asked_for_again_when_it_has_run)
{
	int (*const ways[])(struct task *task) = { resume, run_until_syscall, listen_on };
	pid_t pid = changing_child();
	struct target *target = hold(pid);
	struct task *task = target->tasks.items[0];
	struct user_regs_struct regs;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		accumulator(task);
		ck_assert(task->regs_known);
		task->is_frameless = task->is_outside = task->is_looked_at = true;
		ck_assert_int_eq(ways[i](task), 0);
		ck_assert(!task->regs_known && !task->is_frameless && !task->is_outside && !task->is_looked_at);
		ck_assert_int_eq(target_stop_all(target), 0);
		ck_assert_int_eq(ptrace_getregs(pid, &regs), 0);
		ck_assert_uint_eq(accumulator(task), regs.rax);
	}
	end_target(target, pid);
}
END_TEST

/* As the leader's number becomes another thread's by an exec, of which nobody asked us. */
START_TEST(registers_are_asked_for_again_at_another_stop)
{
	pid_t pid = changing_child();
	struct target *target = hold(pid);
	struct task *task = target->tasks.items[0];
	const struct stop stop = { STOP_SYSCALL, pid, 0 };

	accumulator(task);
	set_accumulator(pid, 44);
	task_take_stop(task, &stop);
	ck_assert_uint_eq(accumulator(task), 44);
	end_target(target, pid);
}
END_TEST

/* A stop that is only being looked at, and a task that no request finds by its number. */
START_TEST(registers_of_who_is_not_held_are_never_kept)
{
	pid_t pid = changing_child();
	struct target *target = hold(pid);
	struct task *task = target->tasks.items[0], copy = *task;

	copy.regs_known = task->regs_known = false;
	accumulator(&copy);
	ck_assert(!copy.regs_known);
	task->stopped = false;
	accumulator(task);
	ck_assert(!task->regs_known);
	end_target(target, pid);
}
END_TEST

/* --- mappings --- */

/* The executable mappings of files, by the text. */
static unsigned count_code(struct mapped_code code[], unsigned most)
{
	struct map_line map;
	struct maps maps;
	unsigned count = 0;

	ck_assert_int_eq(maps_open(getpid(), &maps), 0);
	while (maps_next(&maps.cursor, &map)) {
		if (!map.executable || map.inode == 0)
			continue;
		ck_assert_uint_lt(count, most);
		code[count++] = (struct mapped_code){ map.start, map.end, map.device, map.inode };
	}
	maps_close(&maps);
	return count;
}

START_TEST(the_kernel_says_of_code_what_the_text_says)
{
	struct mapped_code by_text[256], code = { .end = 0 };
	unsigned count = count_code(by_text, 256), i = 0;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), r;

	while ((r = maps_query_code(fd, code.end, &code)) == 0 && i < count) {
		ck_assert_uint_eq(code.start, by_text[i].start);
		ck_assert_uint_eq(code.end, by_text[i].end);
		ck_assert_uint_eq(code.device, by_text[i].device);
		ck_assert_uint_eq(code.inode, by_text[i].inode);
		i++;
	}
	close(fd);
	/* Before Linux 6.11 the text is all that there is. */
	if (r == -ENOTTY)
		return;
	ck_assert_int_eq(r, -ENOENT);
	ck_assert_uint_eq(i, count);
}
END_TEST

static bool has_changed(struct target *target)
{
	bool changed;

	ck_assert_int_eq(target_scan_modules(target, &changed), 0);
	return changed;
}

START_TEST(an_object_that_came_or_went_is_seen)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct target *target;
	void *at;

	ck_assert_int_eq(target_new(getpid(), &target), 0);
	ck_assert(has_changed(target));
	ck_assert(!has_changed(target));
	ck_assert_uint_gt(target->main_stack.end, target->main_stack.start);
	at = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	ck_assert_ptr_ne(at, MAP_FAILED);
	ck_assert(has_changed(target));
	ck_assert(!has_changed(target));
	/* Code in no file is no object. */
	ck_assert_ptr_ne(mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), MAP_FAILED);
	ck_assert(!has_changed(target));
	munmap(at, PAGE);
	ck_assert(has_changed(target));
	ck_assert(!has_changed(target));
	/* The last one of all, too, in the room that is left to the stack. */
	at = mmap((void *)(target->main_stack.start - STACK_ROOM), PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE,
		  fd, 0);
	ck_assert_ptr_ne(at, MAP_FAILED);
	ck_assert(has_changed(target));
	munmap(at, PAGE);
	ck_assert(has_changed(target));
	close(fd);
	target_free(target);
}
END_TEST

#define STACK_PAGES 8
#define STACKS 7

typedef int look_for_holes(struct target *target, struct stack_bounds *stacks, bool *has_hole, size_t count);

/* Pages of one, from its lowest: which can be read, '.' none is mapped; from which on all can up to its end; whether there is a hole. */
static const struct piece_of_stack {
	const char *pages;
	unsigned start;
	bool has_hole;
} kinds_of_stack[STACKS] = {
	{ "rrrrrrrr", 0, false }, { "-rrrrrrr", 1, false }, { "--.rrrrr", 3, false }, { "rrr-rrrr", 4, true }, { "-rr.rrrr", 4, true },
	{ "r-r-rrrr", 4, true }, { "--------", 0, false },
};

static void make_stack(char *at, const char *pages)
{
	for (unsigned i = 0; i < STACK_PAGES; i++) {
		if (pages[i] == '.')
			ck_assert_int_eq(munmap(at + i * PAGE, PAGE), 0);
		else
			ck_assert_int_eq(mprotect(at + i * PAGE, PAGE, pages[i] == 'r' ? PROT_READ | PROT_WRITE : PROT_NONE), 0);
	}
}

static void require_holes_are_found(look_for_holes *look)
{
	char *at = mmap(NULL, STACKS * STACK_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct stack_bounds stacks[STACKS];
	struct target *target;
	bool has_hole[STACKS];
	int r;

	ck_assert_int_eq(target_new(getpid(), &target), 0);
	for (size_t i = 0; i < STACKS; i++) {
		make_stack(at + i * STACK_PAGES * PAGE, kinds_of_stack[i].pages);
		stacks[i].start = (uintptr_t)at + i * STACK_PAGES * PAGE;
		stacks[i].end = stacks[i].start + STACK_PAGES * PAGE - 64;
	}
	r = look(target, stacks, has_hole, STACKS);
	/* Before Linux 6.11 the text is all that there is. */
	ck_assert(r == 0 || (r == -ENOTTY && look == holes_look));
	for (size_t i = 0; r == 0 && i < STACKS; i++) {
		ck_assert_int_eq(has_hole[i], kinds_of_stack[i].has_hole);
		ck_assert_uint_eq(stacks[i].start, (uintptr_t)at + (i * STACK_PAGES + kinds_of_stack[i].start) * PAGE);
	}
	target_free(target);
	munmap(at, STACKS * STACK_PAGES * PAGE);
}

START_TEST(a_page_of_a_stack_that_cannot_be_read_is_found)
{
	require_holes_are_found(holes_look);
	require_holes_are_found(holes_look_by_text);
}
END_TEST

/* --- memory --- */

START_TEST(parts_are_read_as_each_alone_would_be)
{
	enum { COUNT = 200 };
	char *pages = mmap(NULL, COUNT * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct target_part parts[COUNT];
	uint32_t words[COUNT];
	struct target *target;

	ck_assert_int_eq(target_new(getpid(), &target), 0);
	for (uint32_t i = 0; i < COUNT; i++) {
		memcpy(pages + i * PAGE, &i, sizeof(i));
		parts[i] = (struct target_part){ (uintptr_t)pages + i * PAGE, &words[i], sizeof(words[i]), i % 2 };
	}
	for (unsigned i = 0; i < COUNT; i += 7)
		ck_assert_int_eq(munmap(pages + i * PAGE, PAGE), 0);
	target_read_parts(target, parts, COUNT);
	for (uint32_t i = 0; i < COUNT; i++) {
		ck_assert_int_eq(parts[i].is_there, i % 7 != 0);
		if (parts[i].is_there)
			ck_assert_uint_eq(words[i], i);
	}
	target_free(target);
}
END_TEST

START_TEST(our_int3_is_hidden_in_a_part)
{
	static uint8_t text[2] = { 0xcc, 0xcc };
	struct breakpoint *bp = calloc(1, sizeof(*bp)), **slot;
	uint8_t seen[2];
	struct target_part parts[] = { { (uintptr_t)&text[0], &seen[0], 1, false }, { (uintptr_t)&text[1], &seen[1], 1, false } };
	struct target *target;

	ck_assert_int_eq(target_new(getpid(), &target), 0);
	*bp = (struct breakpoint){ .address = (uintptr_t)&text[1], .original = 0x55, .planted = true };
	slot = vec_push(&target->breakpoints);
	*slot = bp;
	target->bp_lowest = target->bp_highest = bp->address;
	target_read_parts(target, parts, 2);
	ck_assert_uint_eq(seen[0], 0xcc);
	ck_assert_uint_eq(seen[1], 0x55);
	target_free(target);
}
END_TEST

/* --- stacks --- */

struct crowd {
	atomic_uint ready;
};

static void *wait_with_mark(void *argument)
{
	struct crowd *crowd = argument;
	volatile uint64_t mark = MARK + 1 + atomic_fetch_add(&crowd->ready, 1);

	while (mark != 0)
		pause();
	return NULL;
}

/* Of many threads, on whose stacks stand the words from MARK + 1 on. */
static pid_t crowded_child(unsigned count, void *(*wait)(void *crowd))
{
	struct crowd *crowd = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t deadline_ns = clock_monotonic_ns() + DEADLINE_NS;
	pthread_t thread;
	pid_t pid = fork();

	if (pid == 0) {
		for (unsigned i = 0; i < count; i++)
			pthread_create(&thread, NULL, wait, crowd);
		for (;;)
			pause();
	}
	while (atomic_load(&crowd->ready) < count && !clock_passed(deadline_ns))
		poll(NULL, 0, 1);
	ck_assert_uint_eq(atomic_load(&crowd->ready), count);
	return pid;
}

START_TEST(what_each_thread_comes_back_to_is_found)
{
	const struct jump_range range = { MARK, MARK + THREADS + 1 };
	pid_t pid = crowded_child(THREADS, wait_with_mark);
	struct target *target = hold(pid);
	bool found[THREADS + 1] = { false };
	struct jump_words words = { 0 };

	ck_assert_uint_eq(target->tasks.count, THREADS + 1);
	ck_assert_int_eq(jumps_look_at_stacks(target, &range, 1, &words), 0);
	for (size_t i = 0; i < words.words.count; i++)
		found[words.words.items[i] - MARK] = true;
	for (unsigned i = 1; i <= THREADS; i++)
		ck_assert_msg(found[i], "thread %u was not looked at", i);
	for (size_t i = 0; i < target->tasks.count; i++)
		ck_assert(target->tasks.items[i]->is_looked_at);
	jump_words_fini(&words);
	target->tasks.items[THREADS / 2]->stopped = false;
	ck_assert_int_eq(jumps_look_at_stacks(target, &range, 1, &words), -EBUSY);
	end_target(target, pid);
}
END_TEST

/* Every word of the newest part of a stack that is `from` becomes `to`. */
static unsigned replace_on_stack(struct task *task, uint64_t from, uint64_t to)
{
	struct user_regs_struct regs;
	unsigned replaced = 0;

	ck_assert_int_eq(task_getregs(task, &regs), 0);
	for (raddr at = arch_sp(&regs) & ~(raddr)7; at < arch_thread_pointer(&regs); at += sizeof(uint64_t)) {
		uint64_t word;

		if (target_read(task->target, at, &word, sizeof(word)) == 0 && word == from &&
		    target_write(task->target, at, &to, sizeof(to)) == 0)
			replaced++;
	}
	return replaced;
}

/* The one that has this word on its stack, which is another one then. */
static struct task *replace_on_any_stack(struct target *target, uint64_t from, uint64_t to)
{
	struct task *found = NULL;

	for (size_t i = 0; i < target->tasks.count; i++) {
		if (replace_on_stack(target->tasks.items[i], from, to) > 0)
			found = target->tasks.items[i];
	}
	ck_assert_ptr_nonnull(found);
	return found;
}

static bool finds(struct target *target, uint64_t word)
{
	const struct jump_range range = { word - 1, word + 1 };
	struct jump_words words = { 0 };
	bool found;

	ck_assert_int_eq(jumps_look_at_stacks(target, &range, 1, &words), 0);
	found = words.words.count > 0;
	jump_words_fini(&words);
	return found;
}

START_TEST(a_stack_is_looked_at_once_while_its_thread_stands)
{
	const struct jump_range range = { MARK, MARK + 2 * THREADS };
	const uint64_t other = MARK + THREADS + 5;
	pid_t pid = crowded_child(THREADS, wait_with_mark);
	struct target *target = hold(pid);
	struct jump_words words = { 0 };
	struct task *task;

	ck_assert_int_eq(jumps_look_at_stacks(target, &range, 1, &words), 0);
	jump_words_fini(&words);
	task = replace_on_any_stack(target, MARK + 3, other);
	ck_assert(finds(target, MARK + 3));
	ck_assert(!finds(target, other));
	/* As it does when a call has been made in it. */
	task_forget_seen(task);
	ck_assert(finds(target, other));
	ck_assert(finds(target, MARK + 4));
	end_target(target, pid);
}
END_TEST

START_TEST(other_code_is_looked_for_on_all_stacks_in_the_same_stop)
{
	const uint64_t far = 2 * MARK + 9;
	pid_t pid = crowded_child(THREADS, wait_with_mark);
	struct target *target = hold(pid);

	ck_assert(finds(target, MARK + 3));
	ck_assert(!finds(target, far));
	replace_on_any_stack(target, MARK + 7, far);
	ck_assert_msg(!finds(target, far), "it was looked for before, and nothing of it was there");
	ck_assert(finds(target, far + 0x100) == false);
	ck_assert_msg(finds(target, far), "what is looked for beside that reads all anew");
	ck_assert(finds(target, MARK + 3));
	end_target(target, pid);
}
END_TEST

#define FULL_WORDS 8000u               /* of those that are looked at of one stack */
#define FULL_THREADS (JUMP_WORDS_MAX / FULL_WORDS + 1)

static void *wait_with_marks(void *argument)
{
	struct crowd *crowd = argument;
	volatile uint64_t marks[FULL_WORDS];

	for (size_t i = 0; i < FULL_WORDS; i++)
		marks[i] = MARK + 1;
	atomic_fetch_add(&crowd->ready, 1);
	while (marks[0] != 0)
		pause();
	return NULL;
}

START_TEST(how_many_words_are_kept_of_stacks_has_a_limit)
{
	const struct jump_range range = { MARK, MARK + 2 }, other = { MARK + 8, MARK + 10 };
	pid_t pid = crowded_child(FULL_THREADS, wait_with_marks);
	struct target *target = hold(pid);
	struct jump_words words = { 0 };

	ck_assert_int_eq(jumps_look_at_stacks(target, &range, 1, &words), -E2BIG);
	ck_assert_uint_eq(words.words.count, 0);
	ck_assert_uint_le(target->code_words.count, JUMP_WORDS_MAX);
	/* A thread less, and they are not too many. */
	target->tasks.items[target->tasks.count - 1]->stop.kind = STOP_EXITED;
	ck_assert_int_eq(jumps_look_at_stacks(target, &range, 1, &words), 0);
	ck_assert_uint_ge(words.words.count, (size_t)(FULL_THREADS - 1) * FULL_WORDS);
	jump_words_fini(&words);
	ck_assert_int_eq(jumps_look_at_stacks(target, &other, 1, &words), 0);
	ck_assert_uint_eq(words.words.count, 0);
	end_target(target, pid);
}
END_TEST

START_TEST(the_number_of_each_thread_is_where_the_layout_says)
{
	pid_t pid = crowded_child(THREADS, wait_with_mark);
	struct target *target = hold(pid);
	struct thread_layout layout;

	thread_layout_look(target, &layout);
	ck_assert(layout.has_pointer && layout.has_tid);
	for (size_t i = 0; i < target->tasks.count; i++) {
		struct user_regs_struct regs;
		uint32_t word;

		ck_assert_int_eq(task_getregs(target->tasks.items[i], &regs), 0);
		ck_assert_int_eq(target_read(target, arch_thread_pointer(&regs) + layout.tid, &word, sizeof(word)), 0);
		ck_assert_int_eq((pid_t)word, target->tasks.items[i]->tid);
	}
	end_target(target, pid);
}
END_TEST

/* A number that only one of them has not. */
START_TEST(a_thread_without_its_number_leaves_no_layout)
{
	const uint8_t nothing[2048] = { 0 };
	pid_t pid = crowded_child(THREADS, wait_with_mark);
	struct target *target = hold(pid);
	struct thread_layout layout;
	struct user_regs_struct regs;

	ck_assert_int_eq(task_getregs(target->tasks.items[THREADS], &regs), 0);
	ck_assert_int_eq(target_write(target, arch_thread_pointer(&regs), nothing, sizeof(nothing)), 0);
	thread_layout_look(target, &layout);
	ck_assert(!layout.has_tid);
	end_target(target, pid);
}
END_TEST

/* As one that was being made when all others were seized. */
START_TEST(a_thread_that_nobody_told_of_is_held_with_the_others)
{
	struct sharers sharers = { .last_pid = 0 };
	pid_t pid = crowded_child(THREADS, wait_with_mark);
	struct target *target = hold(pid);
	struct task *unseen = target->tasks.items[THREADS];

	ck_assert_int_eq(task_detach(unseen), 0);
	task_remove(unseen);
	ck_assert_uint_eq(target->tasks.count, THREADS);
	ck_assert_int_eq(target_hold_all(target, &sharers), 0);
	ck_assert_uint_eq(target->tasks.count, THREADS + 1);
	for (size_t i = 0; i < target->tasks.count; i++)
		ck_assert(target->tasks.items[i]->stopped);
	sharers_fini(&sharers);
	end_target(target, pid);
}
END_TEST

static void *wait_in_handler(void *argument)
{
	struct crowd *crowd = argument;

	atomic_fetch_add(&crowd->ready, 1);
	for (;;)
		pause();
	return NULL;
}

static struct crowd *handlers;

static void stay(int sig)
{
	(void)sig;
	wait_in_handler(handlers);
}

static void *loop_in(void *argument)
{
	void (*enter)(void) = (void (*)(void))(uintptr_t)argument;

	enter();
	return NULL;
}

/* A thread that a handler has interrupted in an endless loop in `page`. */
static pid_t child_with_thread_in_handler(void *page)
{
	static const uint8_t code[] = { 0xeb, 0xfe };
	const struct sigaction action = { .sa_handler = stay };
	uint64_t deadline_ns = clock_monotonic_ns() + DEADLINE_NS;
	pthread_t thread;
	pid_t pid;

	handlers = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memcpy(page, code, sizeof(code));
	pid = fork();
	if (pid == 0) {
		sigaction(SIGUSR1, &action, NULL);
		pthread_create(&thread, NULL, loop_in, page);
		/* Until it has come there. */
		while (atomic_load(&handlers->ready) == 0) {
			poll(NULL, 0, 20);
			pthread_kill(thread, SIGUSR1);
		}
		for (;;)
			pause();
	}
	while (atomic_load(&handlers->ready) == 0 && !clock_passed(deadline_ns))
		poll(NULL, 0, 1);
	ck_assert_uint_gt(atomic_load(&handlers->ready), 0);
	return pid;
}

/* Its stack is looked at up to its thread pointer, and no further. */
START_TEST(a_frame_on_a_threads_own_stack_is_found)
{
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t pid = child_with_thread_in_handler(page);
	struct target *target = hold(pid);
	bool changed;

	ck_assert_int_eq(target_scan_modules(target, &changed), 0);
	ck_assert_uint_eq(target->tasks.count, 2);
	target->stub = (uintptr_t)page;
	ck_assert(!task_returns_inside(target->tasks.items[0]));
	ck_assert(task_returns_inside(target->tasks.items[1]));
	target_look_for_frames(target);
	ck_assert(task_returns_inside(target->tasks.items[1]));
	end_target(target, pid);
}
END_TEST

START_TEST(who_is_in_no_handler_needs_no_look_of_its_own)
{
	pid_t pid = crowded_child(THREADS, wait_with_mark);
	struct target *target = hold(pid);

	target_look_for_frames(target);
	for (size_t i = 1; i < target->tasks.count; i++)
		ck_assert_msg(target->tasks.items[i]->is_frameless, "thread %zu was not looked at", i);
	end_target(target, pid);
}
END_TEST

START_TEST(a_stack_is_looked_at_up_to_the_thread_pointer)
{
	ck_assert_uint_eq(stack_look_length(0x1000, 0x1804, 4096), 0x800);
	ck_assert_uint_eq(stack_look_length(0x1000, 0x9000, 4096), 4096);
	ck_assert_uint_eq(stack_look_length(0x1000, 0x800, 4096), 4096);
}
END_TEST

/* --- going --- */

static void all_are_free(void *context, struct task *task)
{
	const struct target *target = context;

	(void)task;
	for (size_t i = 0; i < target->tasks.count; i++)
		ck_assert_int_eq(process_tracer(target->tasks.items[i]->tid), 0);
}

START_TEST(no_thread_waits_for_what_is_forgotten_of_another)
{
	pid_t pid = crowded_child(THREADS, wait_with_mark);
	struct target *target = hold(pid);

	target_let_go(target, all_are_free, target);
	ck_assert_uint_eq(target->tasks.count, 0);
	end_target(target, pid);
}
END_TEST

/* --- a stop of a thread that is not known --- */

static volatile sig_atomic_t had;

static void note_signal(int sig)
{
	had = sig;
}

/* Ends with 0 when it has had the signal. */
static pid_t child_that_awaits_a_signal(void)
{
	const struct sigaction action = { .sa_handler = note_signal };
	sigset_t blocked, before;
	pid_t pid;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	pid = fork();
	if (pid == 0) {
		sigaction(SIGUSR1, &action, NULL);
		alarm(20);
		sigsuspend(&before);
		_exit(had == SIGUSR1 ? 0 : 1);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

START_TEST(a_thread_that_is_let_go_has_its_signal)
{
	pid_t pid = child_that_awaits_a_signal();
	struct stop stop;
	int status;

	ck_assert_int_eq(ptrace(PTRACE_SEIZE, pid, NULL, NULL), 0);
	ck_assert_int_eq(kill(pid, SIGUSR1), 0);
	ck_assert_int_eq(stop_wait(&stop), 0);
	ck_assert_int_eq(stop.kind, STOP_SIGNAL);
	ck_assert_int_eq(stop.tid, pid);
	ck_assert_int_eq(stop_let_go(&stop), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

START_TEST(a_thread_that_is_let_go_at_another_stop_has_no_signal)
{
	pid_t pid = sleeping_child();
	struct stop stop;

	ck_assert_int_eq(ptrace(PTRACE_SEIZE, pid, NULL, NULL), 0);
	ck_assert_int_eq(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
	ck_assert_int_eq(stop_wait(&stop), 0);
	ck_assert_int_eq(stop.kind, STOP_INTERRUPTED);
	ck_assert_int_eq(stop_let_go(&stop), 0);
	ck_assert_int_eq(process_tracer(pid), 0);
	ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
END_TEST

/* --- who runs freely, and is awaited --- */

static bool is_in_vain(struct awaited *awaited, pid_t pid, pid_t tid, unsigned looks)
{
	const struct timespec pause = { 0, AWAITED_PAUSE_MS * NSEC_PER_MSEC };
	bool in_vain = false;

	for (unsigned i = 0; !in_vain && i < looks; i++) {
		in_vain = awaited_in_vain(awaited, pid, tid);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
	return in_vain;
}

static void end_child(pid_t pid, struct awaited *awaited)
{
	awaited_end(awaited);
	ck_assert_ptr_null(awaited->threads.items.items);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void require_given_up(pid_t pid, bool known)
{
	struct awaited awaited = { 0 };

	ck_assert(!is_in_vain(&awaited, pid, known ? pid : 0, AWAITED_LOOKS));
	ck_assert(is_in_vain(&awaited, pid, known ? pid : 0, 50 * AWAITED_LOOKS));
	end_child(pid, &awaited);
}

START_TEST(who_could_have_gone_on_is_given_up)
{
	require_given_up(sleeping_child(), true);
	require_given_up(sleeping_child(), false);
	require_given_up(changing_child(), true);
}
END_TEST

START_TEST(a_moment_is_soon_over)
{
	pid_t pid = sleeping_child();
	struct awaited awaited = { 0 };
	uint64_t began_ns = clock_monotonic_ns();
	unsigned looks = 1;

	ck_assert(!awaited_briefly(&awaited, pid, pid));
	while (!awaited_briefly(&awaited, pid, pid))
		looks++;
	ck_assert_uint_ge(looks, AWAITED_BRIEFLY_LOOKS);
	ck_assert_uint_ge(clock_monotonic_ns() - began_ns, AWAITED_BRIEFLY_LOOKS * AWAITED_BRIEFLY_PAUSE_US * NSEC_PER_USEC);
	awaited_end(&awaited);
	/* But not for who is held. */
	ck_assert_int_eq(kill(pid, SIGSTOP), 0);
	ck_assert_int_eq(waitpid(pid, NULL, WUNTRACED), pid);
	for (uint64_t end_ns = clock_monotonic_ns() + 100 * NSEC_PER_MSEC; !clock_passed(end_ns);)
		ck_assert(!awaited_briefly(&awaited, pid, pid));
	end_child(pid, &awaited);
}
END_TEST

static void require_awaited_while_held(pid_t pid, bool known)
{
	struct awaited awaited = { 0 };
	pid_t tid = known ? pid : 0;

	ck_assert(!is_in_vain(&awaited, pid, tid, AWAITED_LOOKS / 2));
	ck_assert_int_eq(kill(pid, SIGSTOP), 0);
	ck_assert_int_eq(waitpid(pid, NULL, WUNTRACED), pid);
	ck_assert(!is_in_vain(&awaited, pid, tid, 2 * AWAITED_LOOKS));
	ck_assert_int_eq(kill(pid, SIGCONT), 0);
	/* It has the rest of its time from then on. */
	ck_assert(!is_in_vain(&awaited, pid, tid, AWAITED_LOOKS / 2));
	end_child(pid, &awaited);
}

START_TEST(who_is_held_is_awaited)
{
	require_awaited_while_held(sleeping_child(), true);
	require_awaited_while_held(sleeping_child(), false);
}
END_TEST

/* In vfork it is in the state of one whose page does not come. */
static pid_t waiting_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (vfork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
		_exit(0);
	}
	ck_assert_int_gt(pid, 0);
	for (uint64_t end_ns = clock_monotonic_ns() + 5 * NSEC_PER_SEC; process_thread_state(pid, pid) != 'D';)
		ck_assert(!clock_passed(end_ns));
	return pid;
}

START_TEST(a_writer_whose_page_does_not_come_is_awaited)
{
	pid_t pid = waiting_child();
	struct awaited awaited = { 0 };

	ck_assert(!is_in_vain(&awaited, pid, pid, 3 * AWAITED_LOOKS));
	end_child(pid, &awaited);
	/* Who waits for an exec holds back nobody else's. */
	require_given_up(waiting_child(), false);
}
END_TEST

/* Whoever looks may have been without a processor itself. */
START_TEST(a_long_time_between_two_looks_is_one_look)
{
	pid_t pid = sleeping_child();
	struct awaited awaited = { 0 };

	ck_assert(!awaited_in_vain(&awaited, pid, pid));
	awaited.looked_ns -= 60 * NSEC_PER_SEC;
	ck_assert(!awaited_in_vain(&awaited, pid, pid));
	ck_assert_uint_eq(awaited.threads.items.items[0].looks, 1);
	end_child(pid, &awaited);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("holding");
	TCase *tcase = tcase_create("holding");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, the_kernel_is_asked_once_for_the_registers_of_who_is_held);
	tcase_add_test(tcase, registers_are_asked_for_again_when_they_were_set);
	tcase_add_test(tcase, registers_are_asked_for_again_when_it_has_run);
	tcase_add_test(tcase, registers_are_asked_for_again_at_another_stop);
	tcase_add_test(tcase, registers_of_who_is_not_held_are_never_kept);
	tcase_add_test(tcase, the_kernel_says_of_code_what_the_text_says);
	tcase_add_test(tcase, an_object_that_came_or_went_is_seen);
	tcase_add_test(tcase, a_page_of_a_stack_that_cannot_be_read_is_found);
	tcase_add_test(tcase, parts_are_read_as_each_alone_would_be);
	tcase_add_test(tcase, our_int3_is_hidden_in_a_part);
	tcase_add_test(tcase, what_each_thread_comes_back_to_is_found);
	tcase_add_test(tcase, a_stack_is_looked_at_once_while_its_thread_stands);
	tcase_add_test(tcase, other_code_is_looked_for_on_all_stacks_in_the_same_stop);
	tcase_add_test(tcase, how_many_words_are_kept_of_stacks_has_a_limit);
	tcase_add_test(tcase, the_number_of_each_thread_is_where_the_layout_says);
	tcase_add_test(tcase, a_thread_without_its_number_leaves_no_layout);
	tcase_add_test(tcase, a_thread_that_nobody_told_of_is_held_with_the_others);
	tcase_add_test(tcase, a_frame_on_a_threads_own_stack_is_found);
	tcase_add_test(tcase, who_is_in_no_handler_needs_no_look_of_its_own);
	tcase_add_test(tcase, a_stack_is_looked_at_up_to_the_thread_pointer);
	tcase_add_test(tcase, no_thread_waits_for_what_is_forgotten_of_another);
	tcase_add_test(tcase, a_thread_that_is_let_go_has_its_signal);
	tcase_add_test(tcase, a_thread_that_is_let_go_at_another_stop_has_no_signal);
	tcase_add_test(tcase, who_could_have_gone_on_is_given_up);
	tcase_add_test(tcase, a_moment_is_soon_over);
	tcase_add_test(tcase, who_is_held_is_awaited);
	tcase_add_test(tcase, a_writer_whose_page_does_not_come_is_awaited);
	tcase_add_test(tcase, a_long_time_between_two_looks_is_one_look);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
