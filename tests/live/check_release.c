/* attach --release: a process that is traced by the ring alone, without ptrace, so that others can use that. */
#include "handlers.h"
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HAMMER "tests/victims/hammer"
#define FORKER_C "tests/victims/forker.c"
#define WAIT_MS 15000

struct traced {
	struct tool *tool;
	pid_t pid;
};

static bool is_gone(void *context)
{
	const struct traced *traced = context;

	return !tool_lists(traced->tool, traced->pid);
}

static bool is_traced_by_another(void *context)
{
	return !state_is_untraced(context);
}

/* One of its lines has this text. */
static void require_says(struct subject *subject, const char *text)
{
	while (!strstr(subject_line(subject), text))
		;
}

static bool is_inexact(void *context)
{
	const struct traced *traced = context;

	return !json_is_true(json_object_get(tool_status(traced->tool, traced->pid), "exact"));
}

static bool is_clean(void *context)
{
	const struct subject *subject = context;
	pid_t pid = subject->pid;

	return state_is_untraced(&pid) && state_text_is_intact(&pid);
}

static void release(struct tool *tool, pid_t pid)
{
	json_t *status;

	tool_out(tool, "attach", "--release", "--ring-wait", "30s", pid_text(pid), NULL);
	status = tool_status(tool, pid);
	require(json_is_true(json_object_get(status, "released")));
	require_text(json_text(status, "engine"), "ring");
	require_equal(status_number(pid, "TracerPid", 10), 0);
}

/* Its allocations until then, those under the debugger, and those after it. */
static void a_debugger_can_be_used_on_a_process_that_ptrace_has_let_go(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", "4", "--ops", "2000", NULL), *gdb;
	const char *const argv[] = { "/usr/bin/gdb", "-q", "-nx", "-batch", "-ex", "thread apply all bt", "-p", pid_text(hammer->pid),
				     NULL };
	struct state *before = state_take(hammer->pid);
	int status;

	require(access(argv[0], X_OK) == 0);
	release(tool, hammer->pid);
	subject_command(hammer, 'g');
	require_tally(tool, hammer, 0);
	gdb = subject_start(geteuid(), argv);
	require_says(gdb, "next_command");
	status = subject_wait(gdb);
	require(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	subject_command(hammer, 'g');
	require_tally(tool, hammer, 0);
	tool_end(tool, hammer, before);
}

/* Longer than a record may stay unfinished, by threads that are held in the midst of them. */
static void a_debugger_may_hold_threads_in_the_midst_of_allocations(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", "4", NULL);
	const char *const argv[] = { "/usr/bin/gdb", "-q", "-nx", "-batch", "-ex", "shell sleep 1.3", "-p", pid_text(hammer->pid),
				     NULL };
	struct state *before = state_take(hammer->pid);

	require(access(argv[0], X_OK) == 0);
	release(tool, hammer->pid);
	subject_send(hammer, 'r');
	for (unsigned i = 0; i < live_rounds(3, 30); i++)
		subject_wait(subject_start(geteuid(), argv));
	subject_command(hammer, 's');
	require_tally(tool, hammer, 0);
	tool_end(tool, hammer, before);
}

static struct subject *begin_strace(pid_t pid)
{
	const char *const argv[] = { "/usr/bin/strace", "-f", "-o", "/dev/null", "-p", pid_text(pid), NULL };
	struct subject *strace;

	require(access(argv[0], X_OK) == 0);
	strace = subject_start(geteuid(), argv);
	require(live_wait(is_traced_by_another, &pid, WAIT_MS));
	return strace;
}

/* What cannot be taken out while a debugger has it is taken out afterwards. */
static void a_daemon_that_ends_under_a_debugger_leaves_what_heals(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", "2", "--ops", "500", NULL), *strace;
	struct state *before = state_take(hammer->pid);

	release(tool, hammer->pid);
	strace = begin_strace(hammer->pid);
	subject_command(hammer, 'g');
	tool_end_daemon(tool, SIGTERM);
	subject_command(hammer, 'g');
	kill(strace->pid, SIGINT);
	subject_wait(strace);
	require_equal(tool_heal(pid_text(hammer->pid)), 0);
	require_unharmed(hammer->pid, before);
	subject_command(hammer, 'g');
	subject_quit(hammer);
}

/* Which it would be in a moment if its tracer were dead. */
static void another_daemon_leaves_it_alone(void)
{
	struct tool *tool = tool_start(), *other = tool_start_named("other");
	struct subject *hammer = victim_start(HAMMER, "--threads", "2", "--ops", "500", NULL);
	struct state *before = state_take(hammer->pid);

	release(tool, hammer->pid);
	require_text(tool_try(other, "attach", pid_text(hammer->pid), NULL).err, "traced by another daemon");
	require_equal(tool_heal(pid_text(hammer->pid)), 0);
	subject_command(hammer, 'g');
	require_tally(tool, hammer, 0);
	tool_end(tool, hammer, before);
}

static void strace_can_be_used_while_it_allocates(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", "4", "--ops", "20000", NULL), *strace;
	struct state *before = state_take(hammer->pid);

	release(tool, hammer->pid);
	strace = begin_strace(hammer->pid);
	subject_command(hammer, 'g');
	/* It has it: nothing can be taken out now, and that is said. */
	require_text(tool_try(tool, "detach", pid_text(hammer->pid), NULL).err, "another tracer has it");
	kill(strace->pid, SIGINT);
	subject_wait(strace);
	require(live_wait(state_is_untraced, &hammer->pid, WAIT_MS));
	require_tally(tool, hammer, 0);
	subject_command(hammer, 'g');
	require_tally(tool, hammer, 0);
	tool_end(tool, hammer, before);
}

static bool exit_is_kept(void *context)
{
	const struct traced *gone = context;

	return tool_try(gone->tool, "stats", live_text("%d:exit", gone->pid), NULL).status == 0;
}

/* Its memory goes a little before it does: that is no program that it executes. */
static void the_end_of_a_process_without_ptrace_is_seen(void)
{
	struct tool *tool = tool_start();

	for (unsigned i = 0; i < live_rounds(5, 200); i++) {
		struct subject *hammer = victim_start(HAMMER, "--threads", "2", "--ops", "500", NULL);
		struct traced gone = { tool, hammer->pid };
		long blocks;

		release(tool, hammer->pid);
		subject_command(hammer, 'g');
		blocks = subject_tally(hammer, "blocks");
		subject_quit(hammer);
		require(live_wait(is_gone, &gone, WAIT_MS));
		require(live_wait(exit_is_kept, &gone, WAIT_MS));
		require_equal(json_number(tool_stats(tool, live_text("%d:exit", gone.pid)), "total.count"), blocks);
	}
}

static void who_cannot_be_without_ptrace_is_refused_and_untouched(void)
{
	struct tool *tool = tool_start();
	struct subject *plugins = victim_start("tests/victims/newonly", NULL);
	struct state *before = state_take(plugins->pid);
	struct tool_run run = tool_try(tool, "attach", "--release", "--domains", "malloc,new", pid_text(plugins->pid), NULL);

	require_equal(run.status, 1);
	require_text(run.err, "cannot be traced without ptrace");
	require_text(run.err, "without --release");
	require_unharmed(plugins->pid, before);
	subject_quit(plugins);
}

/* Nobody puts a thread out of a record that a signal comes into: it is finished when the handler has ended. */
static void a_handler_at_1_khz_allocates(void)
{
	require_handlers_blocks(release, "--no-altstack");
}

static void a_handler_on_a_sigaltstack_allocates(void)
{
	require_handlers_blocks(release, NULL);
}

/* Jumps that do nothing stay in them, of which nobody tells. */
static void children_of_a_process_without_ptrace_run_as_ever(void)
{
	struct tool *tool = tool_start();
	struct subject *forker = victim_start("tests/victims/forker", NULL);
	struct state *before = state_take(forker->pid);

	release(tool, forker->pid);
	for (int i = 1; i <= 3; i++) {
		subject_command(forker, 'g');
		subject_command(forker, 'g');
		require_equal(subject_tally(forker, "status"), 7);
		require_row(tool_stats(tool, pid_text(forker->pid)), FORKER_C, "/* kept */", 104LL * i, i);
		require(row_at(tool_stats(tool, pid_text(forker->pid)), FORKER_C, line_of(FORKER_C, "/* the child's own */")) ==
			NULL);
	}
	require_nothing_unknown(tool_status(tool, forker->pid), 0);
	tool_end(tool, forker, before);
}

static void a_program_that_it_executes_is_not_traced(void)
{
	struct tool *tool = tool_start();
	struct subject *execer = victim_start("tests/victims/execer", "--threads", "2", NULL);
	struct traced gone = { tool, execer->pid };

	release(tool, execer->pid);
	subject_command(execer, 'g');
	require(live_wait(is_gone, &gone, WAIT_MS));
	require_unharmed(execer->pid, NULL);
	subject_command(execer, 'a');
	subject_quit(execer);
}

static void an_allocator_that_it_loads_makes_answers_inexact(void)
{
	struct tool *tool = tool_start();
	struct subject *plugins = victim_start("tests/victims/plugins", live_text("%s/tests/victims", live_build()), NULL);
	struct traced inexact = { tool, plugins->pid };

	release(tool, plugins->pid);
	require(json_is_true(json_object_get(tool_status(tool, plugins->pid), "exact")));
	subject_command(plugins, 'O');
	subject_command(plugins, 'G');
	require(live_wait(is_inexact, &inexact, WAIT_MS));
	tool_detach(tool, plugins->pid);
	require_unharmed(plugins->pid, NULL);
	subject_quit(plugins);
}

/* The daemon has it healed, for which it is seized once more. */
static void a_tracer_without_ptrace_that_is_killed_does_no_harm(void)
{
	struct tool *tool = tool_start();
	unsigned rounds = live_rounds(4, 100);

	tool_keep_healers_out();
	for (unsigned i = 0; i < rounds; i++) {
		struct subject *hammer = victim_start(HAMMER, "--threads", "4", "--ops", "2000", NULL);
		struct state *before = state_take(hammer->pid);

		tool_out(tool, "attach", "--release", pid_text(hammer->pid), NULL);
		subject_send(hammer, 'g');
		kill(tool_daemons_child(tool, false), SIGKILL);
		subject_line(hammer);
		require(live_wait(is_clean, hammer, WAIT_MS));
		require_unharmed(hammer->pid, before);
		subject_command(hammer, 'g');
		subject_quit(hammer);
	}
	live_survey("tracer without ptrace killed", rounds, rounds, rounds, rounds);
}

static const struct live_case cases[] = {
	LIVE_CASE(a_debugger_can_be_used_on_a_process_that_ptrace_has_let_go),
	LIVE_CASE(a_debugger_may_hold_threads_in_the_midst_of_allocations),
	LIVE_CASE(a_daemon_that_ends_under_a_debugger_leaves_what_heals),
	LIVE_CASE(another_daemon_leaves_it_alone),
	LIVE_CASE(strace_can_be_used_while_it_allocates),
	LIVE_CASE(the_end_of_a_process_without_ptrace_is_seen),
	LIVE_CASE(a_handler_at_1_khz_allocates),
	LIVE_CASE(a_handler_on_a_sigaltstack_allocates),
	LIVE_CASE(children_of_a_process_without_ptrace_run_as_ever),
	LIVE_CASE(a_program_that_it_executes_is_not_traced),
	LIVE_CASE(an_allocator_that_it_loads_makes_answers_inexact),
	LIVE_CASE(a_tracer_without_ptrace_that_is_killed_does_no_harm),
	LIVE_CASE(who_cannot_be_without_ptrace_is_refused_and_untouched),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
