/* What is leaned on while all threads of a process are held: what is known of one holds until it runs, and what is read of many
 * at once is what would be read of each. */
#include "target/attach.h"
#include "target/maps.h"
#include "target/maps_query.h"
#include "target/ptrace.h"

#include "base/clock.h"
#include "base/fd.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

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
		ck_assert_int_eq(ways[i](task), 0);
		ck_assert(!task->regs_known);
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
	char *text, *cursor;
	struct map_line map;
	unsigned count = 0;

	ck_assert_int_eq(file_read_text("/proc/self/maps", MAPS_TEXT_MAX, &text, NULL), 0);
	cursor = text;
	while (maps_next(&cursor, &map)) {
		if (!map.executable || map.inode == 0)
			continue;
		ck_assert_uint_lt(count, most);
		code[count++] = (struct mapped_code){ map.start, map.end, map.device, map.inode };
	}
	free(text);
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
	close(fd);
	target_free(target);
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
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
