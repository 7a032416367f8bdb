/* Allocator calls that do not return as expected: whatever happens between entry and return, the heap is what the
 * program says it is, to the block, and no call stays pending. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLERS "tests/victims/callers"
/* Of one command, which must be answered in time. */
#define ROUNDS 4
#define ROUNDS_TORTURE 20

/* manner: an option of the victim's, or NULL. */
static struct subject *start_callers(const char *manner)
{
	const char *rounds = live_text("%u", live_rounds(ROUNDS, ROUNDS_TORTURE));
	struct subject *callers;

	setenv("LD_PRELOAD", live_text("%s/tests/victims/wrapper.so", live_build()), 1);
	callers = victim_start(CALLERS, "--rounds", rounds, manner, NULL);
	unsetenv("LD_PRELOAD");
	return callers;
}

/* The victim's last line is true of this process. */
static void require_counts(struct tool *tool, const struct subject *victim, pid_t pid)
{
	json_t *status = tool_status(tool, pid);

	live_note("%s", victim->line);
	require_equal(json_number(status, "blocks"), subject_tally(victim, "blocks"));
	require_equal(json_number(status, "traced_current"), subject_tally(victim, "bytes"));
	require_equal(json_number(status, "pending_calls"), 0);
	require_nothing_unknown(status, 0);
}

static void require_exact(struct tool *tool, const struct subject *victim)
{
	require_counts(tool, victim, victim->pid);
}

/* ways: commands of the victim's.  After each, and after all of them. */
static void go_in_manner(const char *ways, const char *manner)
{
	struct tool *tool = tool_start();
	struct subject *callers = start_callers(manner);
	struct state *before = state_take(callers->pid);

	tool_attach(tool, callers->pid);
	for (const char *way = ways; *way; way++) {
		live_note("%c%s%s", *way, manner ? " " : "", manner ? manner : "");
		for (unsigned i = 0; i < live_rounds(1, 20); i++) {
			subject_command(callers, *way);
			require_exact(tool, callers);
		}
	}
	require_at_least(subject_tally(callers, "ways"), live_rounds(1, 20) * live_rounds(ROUNDS, ROUNDS_TORTURE));
	live_survey("calls that do not return as expected", (unsigned)subject_tally(callers, "ways"), 0, 1, 1);
	tool_end(tool, callers, before);
}

static void go(const char *ways)
{
	go_in_manner(ways, NULL);
	go_in_manner(ways, "--header");
	go_in_manner(ways, "--log");
}

static void a_wrapped_malloc_counts_once(void)
{
	go("k");
}

static void a_call_left_by_a_jump_is_not_pending(void)
{
	go("jJR");
}

static void a_thread_that_ends_in_a_call_leaves_nothing_pending(void)
{
	go("eEc");
}

static void a_call_that_forks_returns_once(void)
{
	go("fF");
}

/* Its memory is a copy, and so are its calls that have not returned. */
#define TRACED_MS 15000

static void a_followed_child_returns_from_the_call_that_forked(void)
{
	unsigned rounds = live_rounds(3, 30);

	for (unsigned i = 0; i < rounds; i++) {
		struct tool *tool = tool_start();
		struct subject *callers = start_callers(i % 3 == 0 ? NULL : i % 3 == 1 ? "--header" : "--log");
		pid_t child;

		tool_out(tool, "attach", pid_text(callers->pid), "--follow-forks", NULL);
		subject_command(callers, 'k');
		subject_command(callers, 'G');
		child = (pid_t)subject_tally(callers, "child");
		tool_wait_until_traced(tool, child, TRACED_MS);
		require_counts(tool, callers, child);
		subject_line(callers);
		require_exact(tool, callers);
		tool_detach(tool, child);
		require_unharmed(child, NULL);
		kill(child, SIGKILL);
		tool_end(tool, callers, NULL);
		tool_end_daemon(tool, SIGTERM);
	}
	live_survey("forks within calls, followed", rounds, 0, rounds, rounds);
}

/* Everything that runs in the case has numbers of a namespace of its own, which the victim may set back. */
static void in_own_pids(void (*run)(void))
{
	int status;
	pid_t child;

	if (unshare(CLONE_NEWPID | CLONE_NEWNS))
		live_skip("not permitted here: a PID namespace: %s", strerror(errno));
	fflush(stdout);
	child = fork();
	if (child == 0) {
		if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("proc", "/proc", "proc", 0, NULL))
			live_fail("mounting /proc: %s", strerror(errno));
		run();
		fflush(stdout);
		_exit(EXIT_SUCCESS);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		live_fail("fork: %s", strerror(errno));
	if (status)
		live_fail("in the namespace: wait status %#x", status);
}

static void reuse_numbers(void)
{
	struct tool *tool = tool_start();
	struct subject *callers = start_callers(NULL);
	struct state *before = state_take(callers->pid);

	tool_attach(tool, callers->pid);
	for (unsigned i = 1; i <= live_rounds(3, 50); i++) {
		subject_command(callers, 'T');
		require_exact(tool, callers);
		require_equal(subject_tally(callers, "reused"), i * live_rounds(ROUNDS, ROUNDS_TORTURE));
	}
	live_survey("threads' numbers reused with calls left", (unsigned)subject_tally(callers, "reused"), 0, 1, 1);
	tool_end(tool, callers, before);
}

static void a_threads_number_may_be_reused_at_once(void)
{
	in_own_pids(reuse_numbers);
}

static void what_a_hook_allocates_is_its_own(void)
{
	go("nr");
}

static void a_coroutine_switched_within_a_call_returns_from_it(void)
{
	go("xX");
}

static void a_handler_within_a_call_allocates(void)
{
	go("hH");
}

static void a_handler_within_operator_delete_allocates(void)
{
	go("d");
}

static void a_handler_at_1_khz_jumps_out_of_calls(void)
{
	go("a");
}

/* The program's own malloc, which does not mind.  Without ptrace one or two blocks of 1,000 are nobody's (check_settle). */
static void a_handler_at_1_khz_jumps_out_of_malloc_at_any_instruction(void)
{
	struct tool *tool = tool_start();
	struct subject *jumper = victim_start("tests/victims/jumper", NULL);
	struct state *before = state_take(jumper->pid);
	unsigned rounds = live_rounds(10, 500);

	tool_attach_held(tool, jumper->pid);
	for (unsigned i = 0; i < rounds; i++) {
		subject_command(jumper, 'g');
		require_exact(tool, jumper);
	}
	require_at_least(subject_tally(jumper, "within"), 1);
	live_survey("jumps out of malloc at 1 kHz", (unsigned)subject_tally(jumper, "jumps"), 0, 1, 1);
	tool_end(tool, jumper, before);
}

static void signals_that_are_waited_for_change_nothing(void)
{
	go("w");
}

static void one_way_after_the_other(void)
{
	go_in_manner("kjJReEcfFnrxXhHdaw", "--log");
}

#define JEMALLOC "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"

/* preload: an allocator to put before libc's, or NULL. */
static void new_handlers_allocate(const char *preload)
{
	struct tool *tool = tool_start();
	struct subject *v;
	struct state *before;
	unsigned rounds = live_rounds(8, 500);

	if (access(live_text("%s/tests/victims/newhandlers", live_build()), X_OK))
		live_fail("tests/victims/newhandlers is not built: there was no C++ compiler");
	if (preload && access(preload, R_OK))
		live_fail("%s is not installed; contrib/install-deps --test installs it", preload);
	if (preload)
		setenv("LD_PRELOAD", preload, 1);
	v = victim_start("tests/victims/newhandlers", NULL);
	unsetenv("LD_PRELOAD");
	before = state_take(v->pid);
	tool_attach(tool, v->pid);
	for (unsigned i = 0; i < rounds; i++) {
		subject_command(v, 'g');
		require_exact(tool, v);
	}
	require_equal(subject_tally(v, "escapes"), 10 * rounds);
	live_survey("new-handlers that allocate and leave", rounds, 0, 1, 1);
	tool_end(tool, v, before);
}

static void a_new_handler_allocates_and_leaves(void)
{
	new_handlers_allocate(NULL);
}

static void a_new_handler_of_jemallocs_new_allocates_and_leaves(void)
{
	new_handlers_allocate(JEMALLOC);
}

static const struct live_case cases[] = {
	LIVE_CASE(a_wrapped_malloc_counts_once),
	LIVE_CASE(a_call_left_by_a_jump_is_not_pending),
	LIVE_CASE(a_thread_that_ends_in_a_call_leaves_nothing_pending),
	LIVE_CASE(a_call_that_forks_returns_once),
	LIVE_CASE(a_followed_child_returns_from_the_call_that_forked),
	LIVE_CASE(a_threads_number_may_be_reused_at_once),
	LIVE_CASE(what_a_hook_allocates_is_its_own),
	LIVE_CASE(a_coroutine_switched_within_a_call_returns_from_it),
	LIVE_CASE(a_handler_within_a_call_allocates),
	LIVE_CASE(a_handler_within_operator_delete_allocates),
	LIVE_CASE(a_handler_at_1_khz_jumps_out_of_calls),
	LIVE_CASE(a_handler_at_1_khz_jumps_out_of_malloc_at_any_instruction),
	LIVE_CASE(signals_that_are_waited_for_change_nothing),
	LIVE_CASE(a_new_handler_allocates_and_leaves),
	LIVE_CASE(a_new_handler_of_jemallocs_new_allocates_and_leaves),
	LIVE_CASE(one_way_after_the_other),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
