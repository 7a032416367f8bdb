/* When a tracer that is not heard is taken for stuck. */
#define _GNU_SOURCE
#include "daemon/heartbeat.h"

#include "base/clock.h"
#include "base/proc.h"
#include "model/engine_kind.h"

#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define STATE_MS 10000

/* One whose first thread waits, and whose second one would run, or waits as well. */
static struct tracer {
	atomic_bool runs, helps;
	_Atomic(pid_t) second;
} *shared;
static pid_t tracer;
static int ends[2];

static void *run_or_wait(void *unused)
{
	char byte;

	if (shared->helps)
		prctl(PR_SET_NAME, ENGINE_HELPER_NAME);
	shared->second = gettid();
	while (read(ends[0], &byte, 1) == 1)
		while (shared->runs)
			;
	return unused;
}

static void be_one(void)
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (pthread_create(&thread, NULL, run_or_wait, NULL))
		_exit(1);
	for (;;)
		pause();
}

static void await_state(pid_t tid, char state)
{
	uint64_t deadline_ns = clock_monotonic_ns() + STATE_MS * NSEC_PER_MSEC;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", tracer, tid);
	while (proc_stat_state(path) != state) {
		ck_assert(!clock_passed(deadline_ns));
		sched_yield();
	}
}

static void set_up(bool helps)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(shared, MAP_FAILED);
	shared->helps = helps;
	ck_assert_int_eq(pipe(ends), 0);
	tracer = fork();
	ck_assert_int_ge(tracer, 0);
	if (tracer == 0)
		be_one();
	while (shared->second == 0)
		sched_yield();
	await_state(tracer, 'S');
	await_state(shared->second, 'S');
}

static void setup(void)
{
	set_up(false);
}

static void teardown(void)
{
	kill(tracer, SIGKILL);
	waitpid(tracer, NULL, 0);
}

static void let_second_run(void)
{
	shared->runs = true;
	ck_assert_int_eq(write(ends[1], "", 1), 1);
	await_state(shared->second, 'R');
}

static void let_second_wait(void)
{
	shared->runs = false;
	await_state(shared->second, 'S');
}

/* It waits at each of four looks. */
static void require_stuck_at_the_fourth(struct heartbeat *heartbeat)
{
	const char *word;

	for (int i = 0; i < 3; i++)
		ck_assert_ptr_null(heartbeat_look(heartbeat, tracer));
	word = heartbeat_look(heartbeat, tracer);
	ck_assert_ptr_nonnull(word);
	ck_assert_str_eq(word, "waits for something that does not come");
}

START_TEST(one_that_waits_at_four_looks_in_turn_is_stuck)
{
	struct heartbeat heartbeat;

	heartbeat_heard(&heartbeat, tracer, 0);
	require_stuck_at_the_fourth(&heartbeat);
}
END_TEST

START_TEST(one_whose_other_thread_would_run_at_one_of_them_is_not)
{
	struct heartbeat heartbeat;

	heartbeat_heard(&heartbeat, tracer, 0);
	for (int i = 0; i < 3; i++)
		ck_assert_ptr_null(heartbeat_look(&heartbeat, tracer));
	let_second_run();
	ck_assert_ptr_null(heartbeat_look(&heartbeat, tracer));
	let_second_wait();
	require_stuck_at_the_fourth(&heartbeat);
}
END_TEST

/* One that was killed goes on to its end as soon as it is let. */
START_TEST(one_that_would_run_to_its_end_does_not_hang_in_the_kernel)
{
	ck_assert_ptr_nonnull(strstr(heartbeat_outlives_kill(tracer), "hangs in the kernel"));
	let_second_run();
	ck_assert_ptr_nonnull(strstr(heartbeat_outlives_kill(tracer), "no time on a CPU"));
}
END_TEST

/* Who helps to read a ring goes on by itself whatever the thread does that traces. */
START_TEST(one_whose_helper_would_run_is_stuck_all_the_same)
{
	struct heartbeat heartbeat;

	teardown();
	set_up(true);
	let_second_run();
	heartbeat_heard(&heartbeat, tracer, 0);
	require_stuck_at_the_fourth(&heartbeat);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("heartbeat");
	TCase *tests = tcase_create("heartbeat");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tests);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, one_that_waits_at_four_looks_in_turn_is_stuck);
	tcase_add_test(tests, one_whose_helper_would_run_is_stuck_all_the_same);
	tcase_add_test(tests, one_whose_other_thread_would_run_at_one_of_them_is_not);
	tcase_add_test(tests, one_that_would_run_to_its_end_does_not_hang_in_the_kernel);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
