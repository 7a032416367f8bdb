/* A task on its way from one tracer to another: whoever comes in time has it as it was, and whoever comes too late leaves it alone. */
#include "target/attach.h"
#include "target/park.h"
#include "target/ptrace.h"
#include "target/target.h"
#include "arch/arch.h"

#include "base/clock.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
#define DEADLINE_NS (20 * NSEC_PER_SEC)
#define GOOD 21

struct shared {
	atomic_bool go, quit;
	atomic_uint rounds, gone;
};

static struct shared *shared;
static uint8_t *page;                  /* the same in the child: where the stub is put */

static void wait_for(atomic_uint *number, unsigned least, const char *what)
{
	uint64_t deadline_ns = clock_monotonic_ns() + DEADLINE_NS;

	while (atomic_load(number) < least) {
		if (clock_passed(deadline_ns))
			ck_abort_msg("not in time: %s", what);
		poll(NULL, 0, 1);
	}
}

/* Counts until it may go; that it has gone is once only, unless somebody puts it back. */
static void __attribute__((noreturn)) run_child(void)
{
	while (!atomic_load(&shared->go))
		atomic_fetch_add(&shared->rounds, 1);
	atomic_fetch_add(&shared->gone, 1);
	while (!atomic_load(&shared->quit))
		atomic_fetch_add(&shared->rounds, 1);
	_exit(atomic_load(&shared->gone) == 1 ? GOOD : EXIT_FAILURE);
}

static pid_t child_start(void)
{
	pid_t pid;

	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert(shared != MAP_FAILED && page != MAP_FAILED);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		run_child();
	wait_for(&shared->rounds, 1, "the child's first round");
	return pid;
}

static void require_good_end(pid_t pid)
{
	int status;

	atomic_store(&shared->go, true);
	wait_for(&shared->gone, 1, "the child's leave");
	atomic_store(&shared->quit, true);
	ck_assert_int_eq(waitpid(pid, &status, __WALL), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), GOOD);
}

static void leave(pid_t pid, struct parking *ret_parking)
{
	struct task task = { .tid = pid };

	ck_assert_int_eq(ptrace_seize(pid), 0);
	ck_assert_int_eq(ptrace_interrupt(pid), 0);
	ck_assert_int_eq(task_wait(&task, clock_monotonic_ns() + DEADLINE_NS), 0);
	ck_assert_int_eq(park_leave(pid, (raddr)(uintptr_t)page, 0, ret_parking), 0);
}

START_TEST(who_comes_in_time_has_it_as_it_was)
{
	static const uint8_t zeros[PAGE];
	pid_t pid = child_start();
	struct user_regs_struct regs;
	struct parking parking;
	struct target *target;
	struct task *task;
	unsigned rounds;

	leave(pid, &parking);
	rounds = atomic_load(&shared->rounds);
	ck_assert_int_eq(target_new(pid, &target), 0);
	ck_assert_int_eq(park_take(target, &parking, &task), 0);
	ck_assert_uint_eq(atomic_load(&shared->rounds), rounds);
	ck_assert_int_eq(ptrace_getregs(pid, &regs), 0);
	ck_assert_uint_eq(arch_pc(&regs), arch_pc(&parking.regs));
	ck_assert_int_eq(memcmp(page, zeros, sizeof(zeros)), 0);
	ck_assert_int_eq(task_detach(task), 0);
	require_good_end(pid);
	target_free(target);
}
END_TEST

/* As on a machine that lets a tracer wait for a processor longer than the other one waits for that. */
START_TEST(who_comes_too_late_does_not_put_it_back)
{
	pid_t pid = child_start();
	struct parking parking;
	struct target *target;
	struct task *task;

	leave(pid, &parking);
	atomic_store(&shared->go, true);
	wait_for(&shared->gone, 1, "that it goes on by itself");
	ck_assert_int_eq(target_new(pid, &target), 0);
	ck_assert_int_eq(park_take(target, &parking, &task), -ETIMEDOUT);
	ck_assert_uint_eq(target->tasks.count, 0);
	require_good_end(pid);
	target_free(target);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("park");
	SRunner *runner = srunner_create(suite);
	TCase *tcase = tcase_create("park");
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, who_comes_in_time_has_it_as_it_was);
	tcase_add_test(tcase, who_comes_too_late_does_not_put_it_back);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
