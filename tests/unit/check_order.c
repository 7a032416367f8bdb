/* In which order the threads of a process are held and go on: who runs is held last and goes on first. */
#include "target/attach.h"
#include "target/jumps.h"
#include "target/layout.h"
#include "target/order.h"
#include "target/process.h"
#include "target/ptrace.h"

#include "base/clock.h"

#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLEEPERS 30
#define FEW_SLEEPERS 3
#define DEADLINE_NS (20 * NSEC_PER_SEC)

/* One thread runs, the others wait. */
struct crowd {
	atomic_uint ready;
	atomic_int runner;
	atomic_ulong turns;
};

static struct crowd *crowd;
static pid_t child;
static struct target *target;

static void *run(void *argument)
{
	atomic_store(&crowd->runner, (int)syscall(SYS_gettid));
	atomic_fetch_add(&crowd->ready, 1);
	for (;;)
		atomic_fetch_add(&crowd->turns, 1);
	return argument;
}

static void *sleep_on(void *argument)
{
	atomic_fetch_add(&crowd->ready, 1);
	for (;;)
		pause();
	return argument;
}

static void pause_a_little(void)
{
	const struct timespec pause = { 0, NSEC_PER_MSEC };

	nanosleep(&pause, NULL);
}

/* The runner is not the last one that is made: it stands among the others. */
static void begin_child(unsigned sleepers)
{
	crowd = mmap(NULL, sizeof(*crowd), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(crowd, MAP_FAILED);
	child = fork();
	if (child > 0)
		return;
	for (unsigned i = 0; i <= sleepers; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, i == 1 ? run : sleep_on, NULL) != 0)
			_exit(1);
	}
	for (;;)
		pause();
}

/* With all seized, and all but the runner in their waits. */
static void begin(unsigned sleepers)
{
	uint64_t deadline_ns = clock_monotonic_ns() + DEADLINE_NS;
	unsigned waiting = 0;

	begin_child(sleepers);
	while (atomic_load(&crowd->ready) <= sleepers && !clock_passed(deadline_ns))
		pause_a_little();
	ck_assert_int_eq(target_new(child, &target), 0);
	ck_assert_int_eq(target_seize(target, NULL), 0);
	ck_assert_uint_eq(target->tasks.count, sleepers + 2);
	while (waiting <= sleepers && !clock_passed(deadline_ns)) {
		waiting = 0;
		for (size_t i = 0; i < target->tasks.count; i++)
			waiting += process_thread_state(child, target->tasks.items[i]->tid) == 'S';
	}
	ck_assert_uint_eq(waiting, sleepers + 1);
}

static void end(void)
{
	kill(child, SIGKILL);
	for (size_t i = target->tasks.count; i-- > 0;)
		waitpid(target->tasks.items[i]->tid, NULL, __WALL);
	waitpid(child, NULL, __WALL);
	target_free(target);
	munmap(crowd, sizeof(*crowd));
}

static bool is_runner(const struct task *task)
{
	return task->tid == atomic_load(&crowd->runner);
}

static struct task *runner(void)
{
	return task_find(atomic_load(&crowd->runner));
}

START_TEST(who_runs_is_held_when_all_others_are)
{
	begin(SLEEPERS);
	ck_assert_int_eq(target_stop_all(target), 0);
	for (size_t i = 0; i < target->tasks.count; i++) {
		const struct task *task = target->tasks.items[i];

		ck_assert(task->stopped);
		ck_assert(task->ran == is_runner(task));
		ck_assert(is_runner(task) || task->running_ns < runner()->running_ns);
	}
	end();
}
END_TEST

/* In which they were let go, who are not. */
static struct task *went[SLEEPERS + 2];
static size_t went_count;

static void note_going(struct task *task)
{
	ck_assert_uint_lt(went_count, SLEEPERS + 2);
	went[went_count++] = task;
	task->stopped = false;
}

static void let_all_go(bool leader_last)
{
	const struct order_going going = { .leader_last = leader_last, .go = note_going };

	went_count = 0;
	order_let_go(target, &going);
	ck_assert_uint_eq(went_count, target->tasks.count);
	for (size_t i = 0; i < went_count; i++)
		went[i]->stopped = true;
}

START_TEST(who_ran_goes_on_first)
{
	begin(SLEEPERS);
	ck_assert_int_eq(target_stop_all(target), 0);
	let_all_go(false);
	ck_assert(is_runner(went[0]));
	/* The others as they were stopped. */
	ck_assert_int_eq(went[1]->tid, child);
	let_all_go(true);
	ck_assert(is_runner(went[0]));
	ck_assert_int_eq(went[went_count - 1]->tid, child);
	end();
}
END_TEST

/* It ended to wait when it had been looked at. */
START_TEST(who_is_held_outside_of_a_wait_goes_on_first)
{
	begin(SLEEPERS);
	ck_assert_int_eq(target_stop_all(target), 0);
	runner()->ran = false;
	let_all_go(false);
	ck_assert(is_runner(went[0]));
	end();
}
END_TEST

static unsigned times_due;
static size_t known_then;
static bool free_one_is_known;

static bool is_due_thrice(void *context)
{
	(void)context;
	return times_due < 3;
}

static void serve(void *context)
{
	(void)context;
	times_due++;
	known_then = target->tasks.count;
	for (size_t i = 0; i < target->tasks.count; i++)
		free_one_is_known |= !target->tasks.items[i]->stopped;
}

static unsigned forgotten;

static void count_forgotten(void *context, struct task *task)
{
	(void)context;
	(void)task;
	forgotten++;
}

/* Nothing that is read meanwhile is of a thread that is still to be forgotten. */
START_TEST(those_that_have_gone_are_forgotten_before_they_are_served)
{
	pid_t tids[SLEEPERS + 2];

	begin(SLEEPERS);
	ck_assert_int_eq(target_stop_all(target), 0);
	for (size_t i = 0; i < target->tasks.count; i++)
		tids[i] = target->tasks.items[i]->tid;
	target->free_are_due = is_due_thrice;
	target->serve_free = serve;
	target_let_go(target, count_forgotten, NULL);
	ck_assert_uint_eq(times_due, 3);
	ck_assert(!free_one_is_known);
	ck_assert_uint_eq(known_then, SLEEPERS + 2 - 3);
	ck_assert_uint_eq(forgotten, SLEEPERS + 2);
	ck_assert_uint_eq(target->tasks.count, 0);
	for (size_t i = 0; i < SLEEPERS + 2; i++)
		ck_assert_int_eq(process_tracer(tids[i]), 0);
	end();
}
END_TEST

START_TEST(few_threads_are_not_looked_at_before)
{
	begin(FEW_SLEEPERS);
	ck_assert_int_eq(target_stop_all(target), 0);
	for (size_t i = 0; i < target->tasks.count; i++)
		ck_assert(target->tasks.items[i]->ran);
	let_all_go(false);
	for (size_t i = 0; i < target->tasks.count; i++)
		ck_assert_ptr_eq(went[i], target->tasks.items[i]);
	end();
}
END_TEST

START_TEST(none_waits_for_looks_when_one_is_held_already)
{
	begin(SLEEPERS);
	target->tasks.items[3]->stopped = true;
	order_look(target);
	target->tasks.items[3]->stopped = false;
	for (size_t i = 0; i < target->tasks.count; i++)
		ck_assert(target->tasks.items[i]->ran);
	end();
}
END_TEST

/* --- what is found out of those that are held while the others run --- */

static const struct jump_range nowhere = { 16, 17 };
static struct layout_look *layout;
static unsigned held_then;
static bool ran_then;

static void look_ahead(void *context)
{
	uint64_t deadline_ns = clock_monotonic_ns() + DEADLINE_NS;
	unsigned long turns = atomic_load(&crowd->turns);

	(void)context;
	for (size_t i = 0; i < target->tasks.count; i++)
		held_then += target->tasks.items[i]->stopped;
	ran_then = !runner()->stopped;
	while (atomic_load(&crowd->turns) == turns && !clock_passed(deadline_ns))
		pause_a_little();
	ck_assert_uint_ne(atomic_load(&crowd->turns), turns);
	jumps_look_ahead(target, &nowhere, 1);
	thread_layout_look_ahead(target, &layout);
}

static void hold_and_look_ahead(void)
{
	begin(SLEEPERS);
	target->some_held = look_ahead;
	ck_assert_int_eq(target_stop_all(target), 0);
	target->some_held = NULL;
}

START_TEST(who_runs_goes_on_while_the_others_are_looked_at)
{
	struct jump_words words = { 0 };

	hold_and_look_ahead();
	ck_assert_uint_eq(held_then, SLEEPERS + 1);
	ck_assert(ran_then);
	for (size_t i = 0; i < target->tasks.count; i++)
		ck_assert(target->tasks.items[i]->is_looked_at == !is_runner(target->tasks.items[i]));
	ck_assert_int_eq(jumps_look_at_stacks(target, &nowhere, 1, &words), 0);
	ck_assert(runner()->is_looked_at);
	jump_words_fini(&words);
	end();
}
END_TEST

START_TEST(nothing_is_looked_at_before_when_all_are_held_at_once)
{
	begin(FEW_SLEEPERS);
	target->some_held = look_ahead;
	ck_assert_int_eq(target_stop_all(target), 0);
	ck_assert_uint_eq(held_then, 0);
	end();
}
END_TEST

START_TEST(a_layout_in_steps_is_that_of_one_look)
{
	struct thread_layout in_steps, at_once;

	hold_and_look_ahead();
	thread_layout_look_last(target, &layout, &in_steps);
	thread_layout_look(target, &at_once);
	ck_assert(in_steps.has_tid && at_once.has_tid && in_steps.has_pointer);
	ck_assert_uint_eq(in_steps.tid, at_once.tid);
	ck_assert_uint_eq(in_steps.stack, at_once.stack);
	ck_assert_ptr_null(layout);
	end();
}
END_TEST

static void wipe_thread_data(struct task *task)
{
	static const uint8_t nothing[2048];
	struct user_regs_struct regs;

	ck_assert_int_eq(task_getregs(task, &regs), 0);
	ck_assert_int_eq(target_write(target, arch_thread_pointer(&regs), nothing, sizeof(nothing)), 0);
}

START_TEST(the_last_step_of_a_layout_looks_at_who_ran)
{
	struct thread_layout found;

	hold_and_look_ahead();
	wipe_thread_data(runner());
	thread_layout_look_last(target, &layout, &found);
	ck_assert(!found.has_tid);
	end();
}
END_TEST

static struct task *a_sleeper(void)
{
	return target->tasks.items[is_runner(target->tasks.items[4]) ? 5 : 4];
}

START_TEST(the_last_step_of_a_layout_spares_who_has_stood)
{
	struct thread_layout found;

	hold_and_look_ahead();
	wipe_thread_data(a_sleeper());
	thread_layout_look_last(target, &layout, &found);
	ck_assert(found.has_tid);
	end();
}
END_TEST

START_TEST(the_last_step_of_a_layout_looks_at_who_has_run_since)
{
	struct thread_layout found;

	hold_and_look_ahead();
	wipe_thread_data(a_sleeper());
	task_forget_seen(a_sleeper());
	thread_layout_look_last(target, &layout, &found);
	ck_assert(!found.has_tid);
	end();
}
END_TEST

/* --- masks --- */

static uint64_t mask_of(struct task *task)
{
	uint64_t mask;

	ck_assert_int_eq(task_getsigmask(task, &mask), 0);
	return mask;
}

/* Past what target/ hears of. */
static void set_mask(pid_t tid, uint64_t mask)
{
	ck_assert_int_eq(ptrace(PTRACE_SETSIGMASK, tid, sizeof(mask), &mask), 0);
}

START_TEST(the_kernel_is_asked_once_for_the_mask_of_who_is_held)
{
	struct task *task;

	begin(FEW_SLEEPERS);
	ck_assert_int_eq(target_stop_all(target), 0);
	task = a_sleeper();
	ck_assert_uint_eq(mask_of(task), 0);
	set_mask(task->tid, 1);
	ck_assert_uint_eq(mask_of(task), 0);
	ck_assert_int_eq(ptrace_setsigmask(task->tid, 3), 0);
	ck_assert_uint_eq(mask_of(task), 3);
	set_mask(task->tid, 1);
	ck_assert_int_eq(ptrace_interrupt(task->tid), 0);
	ck_assert_int_eq(ptrace_cont(task->tid, 0), 0);
	task->stopped = false;
	ck_assert_int_eq(task_wait(task, clock_monotonic_ns() + DEADLINE_NS), 0);
	ck_assert_uint_eq(mask_of(task), 1);
	end();
}
END_TEST

START_TEST(the_mask_of_who_is_not_held_is_never_kept)
{
	struct task *task;

	begin(FEW_SLEEPERS);
	ck_assert_int_eq(target_stop_all(target), 0);
	task = a_sleeper();
	task->stopped = false;
	ck_assert_uint_eq(mask_of(task), 0);
	set_mask(task->tid, 1);
	ck_assert_uint_eq(mask_of(task), 1);
	end();
}
END_TEST

/* Its signal is for us to deliver. */
START_TEST(none_waits_for_looks_when_one_stands_at_a_stop)
{
	uint64_t deadline_ns = clock_monotonic_ns() + DEADLINE_NS;
	struct stop stop = { .kind = STOP_NONE };

	begin(SLEEPERS);
	ck_assert_int_eq(syscall(SYS_tgkill, child, target->tasks.items[3]->tid, SIGUSR1), 0);
	while (stop.kind == STOP_NONE && !clock_passed(deadline_ns))
		ck_assert_int_eq(stop_look_at_any(&stop), 0);
	ck_assert_int_eq(stop.kind, STOP_SIGNAL);
	order_look(target);
	for (size_t i = 0; i < target->tasks.count; i++)
		ck_assert(target->tasks.items[i]->ran);
	end();
}
END_TEST

static bool somebody_waits(void *context)
{
	(void)context;
	return true;
}

START_TEST(none_waits_for_looks_when_one_waits_for_the_owner)
{
	begin(SLEEPERS);
	order_look(target);
	ck_assert(!target->tasks.items[0]->ran);
	target->is_awaited = somebody_waits;
	order_look(target);
	for (size_t i = 0; i < target->tasks.count; i++)
		ck_assert(target->tasks.items[i]->ran);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("order");
	TCase *tcase = tcase_create("order");
	SRunner *runner_of_all;
	int failed;

	tcase_add_test(tcase, who_runs_is_held_when_all_others_are);
	tcase_add_test(tcase, who_ran_goes_on_first);
	tcase_add_test(tcase, who_is_held_outside_of_a_wait_goes_on_first);
	tcase_add_test(tcase, those_that_have_gone_are_forgotten_before_they_are_served);
	tcase_add_test(tcase, few_threads_are_not_looked_at_before);
	tcase_add_test(tcase, none_waits_for_looks_when_one_is_held_already);
	tcase_add_test(tcase, none_waits_for_looks_when_one_stands_at_a_stop);
	tcase_add_test(tcase, none_waits_for_looks_when_one_waits_for_the_owner);
	tcase_add_test(tcase, who_runs_goes_on_while_the_others_are_looked_at);
	tcase_add_test(tcase, nothing_is_looked_at_before_when_all_are_held_at_once);
	tcase_add_test(tcase, a_layout_in_steps_is_that_of_one_look);
	tcase_add_test(tcase, the_last_step_of_a_layout_looks_at_who_ran);
	tcase_add_test(tcase, the_last_step_of_a_layout_spares_who_has_stood);
	tcase_add_test(tcase, the_last_step_of_a_layout_looks_at_who_has_run_since);
	tcase_add_test(tcase, the_kernel_is_asked_once_for_the_mask_of_who_is_held);
	tcase_add_test(tcase, the_mask_of_who_is_not_held_is_never_kept);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	runner_of_all = srunner_create(suite);
	srunner_run_all(runner_of_all, CK_NORMAL);
	failed = srunner_ntests_failed(runner_of_all);
	srunner_free(runner_of_all);
	return failed ? 1 : 0;
}
