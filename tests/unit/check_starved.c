/* Who waits for a processor, and has had none, is told from who sleeps, who is held and who has run. */
#define _GNU_SOURCE
#include "target/awaited.h"

#include "base/clock.h"
#include "base/proc.h"

#include <check.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE_NS (20 * NSEC_PER_SEC)
#define LOOKS 20
#define HOGS 2

static struct target target;
static struct task task;
static struct task *tasks[1] = { &task };
static pid_t children[1 + HOGS];

static pid_t child(bool busy, int processor)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid > 0)
		return pid;
	if (processor >= 0) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(processor, &set);
		sched_setaffinity(0, sizeof(set), &set);
	}
	while (!busy)
		pause();
	for (;;)
		;
}

static void watch(pid_t pid)
{
	children[0] = pid;
	task = (struct task){ .tid = pid, .target = &target };
	memset(&target, 0, sizeof(target));
	target.pid = pid;
	target.tasks.items = tasks;
	target.tasks.count = 1;
}

static void teardown(void)
{
	for (size_t i = 0; i < 1 + HOGS; i++) {
		if (children[i] <= 0)
			continue;
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
		children[i] = 0;
	}
}

static void require_state(pid_t pid, char state)
{
	char path[64];
	uint64_t end_ns = clock_monotonic_ns() + DEADLINE_NS;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	while (proc_stat_state(path) != state) {
		ck_assert(!clock_passed(end_ns));
		poll(NULL, 0, 1);
	}
}

static uint64_t ran_ns(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	return proc_schedstat_ran_ns(path);
}

/* Not before it is time for another look. */
static bool look(struct awaited *awaited)
{
	uint64_t looked_ns = awaited->looked_ns;
	bool starves;

	do {
		poll(NULL, 0, 1);
		starves = awaited_starves(awaited, &target);
	} while (awaited->looked_ns == looked_ns);
	return starves;
}

/* Where the kernel has other work for the processor than the threads that are asked for: a thread that may have it when nobody wants it. */
static void starve(void)
{
	const struct sched_param none = { 0 };
	int processor = sched_getcpu();

	for (size_t i = 1; i <= HOGS; i++)
		children[i] = child(true, processor);
	watch(child(true, processor));
	ck_assert_int_eq(sched_setscheduler(children[0], SCHED_IDLE, &none), 0);
	require_state(children[0], 'R');
}

START_TEST(who_sleeps_or_is_held_does_not_starve)
{
	struct awaited awaited = { 0 };

	watch(child(false, -1));
	require_state(children[0], 'S');
	ck_assert(!look(&awaited));
	awaited_end(&awaited);
	teardown();
	watch(child(true, -1));
	ck_assert_int_eq(kill(children[0], SIGSTOP), 0);
	require_state(children[0], 'T');
	ck_assert(!look(&awaited));
	awaited_end(&awaited);
	ck_assert_int_eq(kill(children[0], SIGCONT), 0);
	require_state(children[0], 'R');
	ck_assert(look(&awaited));
	ck_assert_int_eq(kill(children[0], SIGSTOP), 0);
	require_state(children[0], 'T');
	ck_assert(!look(&awaited));
	awaited_end(&awaited);
	ck_assert_int_eq(kill(children[0], SIGCONT), 0);
	require_state(children[0], 'R');
	task.stopped = true;
	ck_assert(!look(&awaited));
	awaited_end(&awaited);
}
END_TEST

START_TEST(who_has_run_does_not_starve)
{
	struct awaited awaited = { 0 };
	uint64_t end_ns = clock_monotonic_ns() + DEADLINE_NS;

	watch(child(true, -1));
	require_state(children[0], 'R');
	/* It may have been for a moment: three times. */
	for (unsigned i = 0; i < AWAITED_BRIEFLY_LOOKS; i++)
		ck_assert(look(&awaited));
	while (look(&awaited))
		ck_assert(!clock_passed(end_ns));
	ck_assert_uint_gt(ran_ns(children[0]), 0);
	/* And never again: what it does now is another thing. */
	for (unsigned i = 0; i < LOOKS; i++)
		ck_assert(!look(&awaited));
	awaited_end(&awaited);
	ck_assert_ptr_null(awaited.threads.items.items);
}
END_TEST

START_TEST(who_waits_for_a_processor_starves_until_he_has_it)
{
	struct awaited awaited = { 0 };
	uint64_t end_ns = clock_monotonic_ns() + DEADLINE_NS, before_ns, after_ns;
	unsigned starved = 0;

	starve();
	/* It has the processor now and then: each time it is looked at anew. */
	while (starved < LOOKS) {
		ck_assert(!clock_passed(end_ns));
		before_ns = ran_ns(children[0]);
		awaited_end(&awaited);
		ck_assert(awaited_starves(&awaited, &target));
		for (unsigned i = 0; i < LOOKS; i++) {
			bool starves = look(&awaited);

			after_ns = ran_ns(children[0]);
			if (after_ns != before_ns)
				break;
			ck_assert_msg(before_ns == 0 || starves, "it has had no processor, and does not starve");
			starved += before_ns != 0;
		}
	}
	for (size_t i = 1; i <= HOGS; i++)
		kill(children[i], SIGKILL);
	while (look(&awaited))
		ck_assert(!clock_passed(end_ns));
	awaited_end(&awaited);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("starved");
	TCase *tcase = tcase_create("starved");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, NULL, teardown);
	tcase_add_test(tcase, who_sleeps_or_is_held_does_not_starve);
	tcase_add_test(tcase, who_has_run_does_not_starve);
	tcase_add_test(tcase, who_waits_for_a_processor_starves_until_he_has_it);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
