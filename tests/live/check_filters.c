/* Targets under a seccomp filter that kills for the system calls that a tracer makes in them: whenever the filter came
 * and whoever traces, nobody is killed, and what cannot be taken out is said, stays harmless and is taken out by root. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILTERED "tests/victims/filtered"
#define HEAL_MS 10000
#define SLEEP_MS 10000
#define SIGTRAP_BIT (1LL << (SIGTRAP - 1))
#define CHILD_GOOD (7 << 8)

static void require_root(void)
{
	if (geteuid())
		live_skip("needs root, to be others");
}

static bool is_healed(void *context)
{
	pid_t pid = *(pid_t *)context;
	size_t bytes;

	return status_number(pid, "TracerPid", 10) == 0 && !(status_number(pid, "SigCgt", 16) & SIGTRAP_BIT) &&
	       text_difference(pid, &bytes) == NULL;
}

static void require_works(struct subject *victim)
{
	long blocks = subject_tally(victim, "blocks");

	subject_command(victim, 'g');
	require_equal(subject_tally(victim, "blocks"), blocks + 1);
}

static bool all_sleep(void *context)
{
	pid_t pid = *(pid_t *)context;
	const char *path = live_text("/proc/%d/task", pid);
	DIR *tasks = opendir(path);
	struct dirent *entry;
	bool sleep = tasks != NULL;

	while (sleep && (entry = readdir(tasks)))
		sleep = entry->d_name[0] == '.' || thread_state(pid, atoi(entry->d_name)) == 'S';
	if (tasks)
		closedir(tasks);
	return sleep;
}

/* Counted from the attach to the detach, whose words are handed out.  A sleeper that was held is on its way into
 * restart_syscall(2) for a moment: a filter that comes just then kills it as it does after any stop. */
static struct tool_run trace_and_leave(struct tool *tool, struct subject *victim, unsigned int rounds)
{
	tool_attach(tool, victim->pid);
	require(live_wait(all_sleep, &victim->pid, SLEEP_MS));
	for (unsigned int i = 0; i < rounds; i++)
		subject_command(victim, 'g');
	require_row(tool_stats(tool, pid_text(victim->pid)), "tests/victims/filtered.c", "/* kept */", 100L * rounds,
		    rounds);
	require_nothing_unknown(tool_status(tool, victim->pid), 0);
	return tool_try(tool, "detach", pid_text(victim->pid), NULL);
}

static void require_left_as_it_was(struct tool *tool, struct subject *victim)
{
	struct tool_run run = trace_and_leave(tool, victim, 3);

	if (run.status)
		live_fail("the detach was not clean: %s", run.err);
	if (!live_wait(is_healed, &victim->pid, HEAL_MS))
		live_fail("not as it was: SigCgt %llx", status_number(victim->pid, "SigCgt", 16));
	require_unharmed(victim->pid, NULL);
	require_works(victim);
	subject_quit(victim);
}

/* Once it was seen, which each answer waits for, the ring's code asks the kernel for nothing: neither for an unknown stack nor for a turn. */
static void a_filter_that_comes_later_meets_no_call_of_the_ring(void)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(FILTERED, "--late", "--coroutine", NULL);

	require_root();
	tool_attach(tool, victim->pid);
	subject_command(victim, 'g');
	tool_status(tool, victim->pid);
	for (unsigned int i = 0; i < 3; i++)
		require_works(victim);
	require_nothing_unknown(tool_status(tool, victim->pid), 0);
	require_equal(tool_try(tool, "detach", pid_text(victim->pid), NULL).status, 0);
	require(live_wait(is_healed, &victim->pid, HEAL_MS));
	require_unharmed(victim->pid, NULL);
	subject_quit(victim);
}

/* A user may not lift it: the handler stays, is told, and a program's own SIGTRAP would pass through it. */
static void a_filter_that_comes_later_kills_nobody_of_a_user(void)
{
	static const char *const kinds[] = { "--late", "--trap", "--sleepers" };

	require_root();
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct tool *tool = tool_start_ordinary();
		struct subject *victim = victim_start_ordinary(FILTERED, "--late", kinds[i], NULL);
		struct tool_run run = trace_and_leave(tool, victim, 3);

		require_equal(run.status, 1);
		require_text(run.err, "its seccomp filter might kill it for a system call of ours");
		require_text(run.err, "'allocwatchd --heal' as root");
		require_equal(status_number(victim->pid, "TracerPid", 10), 0);
		require_works(victim);
		require_equal(tool_heal(pid_text(victim->pid)), 0);
		require(is_healed(&victim->pid));
		require_unharmed(victim->pid, NULL);
		require_works(victim);
		subject_quit(victim);
	}
}

/* The tracer has given up root's rights by then; the daemon has not. */
static void a_filter_that_comes_later_is_lifted_by_the_roots_daemon(void)
{
	static const char *const kinds[] = { "--late", "--trap", "--sleepers" };

	require_root();
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		require_left_as_it_was(tool_start(), victim_start_ordinary(FILTERED, "--late", kinds[i], NULL));
}

/* Also when it is not root who asked. */
static void a_filter_that_comes_later_is_lifted_for_a_user_of_roots_daemon(void)
{
	struct tool *system;

	require_root();
	system = tool_start_system(NULL, NULL);
	require_left_as_it_was(tool_of_user(system, ORDINARY_UID), victim_start_ordinary(FILTERED, "--late", "--late", NULL));
}

static void a_filter_of_roots_own_process_is_lifted(void)
{
	static const char *const kinds[] = { "--late", "--trap", "--sleepers" };

	require_root();
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		require_left_as_it_was(tool_start(), victim_start(FILTERED, "--late", kinds[i], NULL));
}

/* What sleeps with a timeout goes on by restart_syscall(2), of which these filters do not know either. */
static void a_filter_that_is_there_before_is_lifted_by_root(void)
{
	static const char *const kinds[] = { NULL, "--trap", "--sleepers", "--main" };

	require_root();
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		require_left_as_it_was(tool_start(), victim_start(FILTERED, kinds[i], NULL));
		require_left_as_it_was(tool_start(), victim_start_ordinary(FILTERED, kinds[i], NULL));
	}
}

static void a_thread_without_the_filter_serves_a_user(void)
{
	require_root();
	require_left_as_it_was(tool_start_ordinary(), victim_start_ordinary(FILTERED, "--main", NULL));
	require_left_as_it_was(tool_start_ordinary(), victim_start_ordinary(FILTERED, "--late", "--main", NULL));
}

static void children_of_a_filtered_process_live_and_end_as_untraced(void)
{
	unsigned int rounds = live_rounds(4, 200), children = 0;
	struct tool *tools[3];

	require_root();
	tools[0] = tool_start_ordinary();
	tools[1] = tool_start();
	tools[2] = tool_start_named("third");
	for (size_t i = 0; i < 3; i++) {
		struct subject *victim = i < 2 ? victim_start_ordinary(FILTERED, "--late", "--forks", NULL) :
						 victim_start(FILTERED, "--late", "--forks", NULL);

		tool_out(tools[i], "attach", pid_text(victim->pid), i == 1 ? "--follow-forks" : NULL, NULL);
		for (unsigned int round = 0; round < rounds; round++) {
			subject_command(victim, 'g');
			require_equal(status_number((pid_t)subject_tally(victim, "child"), "TracerPid", 10), 0);
			if (round > 0)
				require_equal(subject_tally(victim, "status"), CHILD_GOOD);
			children += round > 0;
		}
		require_equal(tool_try(tools[i], "detach", pid_text(victim->pid), NULL).status, i == 0);
		require_works(victim);
		require_equal(subject_tally(victim, "status"), CHILD_GOOD);
		/* By this healer, or by the daemon's own, which is on its way. */
		require_equal(tool_heal(pid_text(victim->pid)), 0);
		require(live_wait(is_healed, &victim->pid, HEAL_MS));
		subject_quit(victim);
	}
	require_equal(children, 3 * (rounds - 1));
	live_note("%u children of filtered processes ended as untraced", children);
}

/* The filter outlives the exec: nothing can be put into the new program by a user. */
static void a_program_under_a_filter_is_run_to_its_end(void)
{
	const char *confined, *brief;
	struct tool *ordinary, *root;
	struct tool_run run;

	require_root();
	confined = public_copy("tests/victims/confined");
	brief = public_copy("tests/victims/brief");
	ordinary = tool_start_ordinary();
	run = tool_try(ordinary, "run", "--", confined, "ptrace", "1", brief, "5", NULL);
	require_equal(run.status, 5);
	require_text(run.out, "us=");
	root = tool_start();
	run = tool_try(root, "run", "--", confined, "ptrace", "1", brief, "5", NULL);
	require_equal(run.status, 5);
	require_text(run.err, "ended with 10048 B in 207 blocks");
}

static const struct live_case cases[] = {
	LIVE_CASE(a_filter_that_comes_later_meets_no_call_of_the_ring),
	LIVE_CASE(a_filter_that_comes_later_kills_nobody_of_a_user),
	LIVE_CASE(a_filter_that_comes_later_is_lifted_by_the_roots_daemon),
	LIVE_CASE(a_filter_that_comes_later_is_lifted_for_a_user_of_roots_daemon),
	LIVE_CASE(a_filter_of_roots_own_process_is_lifted),
	LIVE_CASE(a_filter_that_is_there_before_is_lifted_by_root),
	LIVE_CASE(a_thread_without_the_filter_serves_a_user),
	LIVE_CASE(children_of_a_filtered_process_live_and_end_as_untraced),
	LIVE_CASE(a_program_under_a_filter_is_run_to_its_end),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
