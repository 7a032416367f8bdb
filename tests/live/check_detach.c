/* A clean end at any moment: by detach, and by signals to the tracer and to the daemon. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define HAMMER "tests/victims/hammer"
#define LOAD_ROUNDS 12
#define LOAD_ROUNDS_LONG 1000
#define SIGNAL_ROUNDS 10
#define SIGNAL_ROUNDS_LONG 100
#define SOME_MS 40
#define GONE_MS 30000

static void require_released(struct subject *subject)
{
	if (!live_wait(state_is_untraced, &subject->pid, 30000))
		live_fail("process %d is not let go", subject->pid);
}

static void detaches_cleanly_under_load(const char *threads)
{
	unsigned rounds = live_rounds(LOAD_ROUNDS, LOAD_ROUNDS_LONG);
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", threads, "--ops", "100", NULL);
	struct state *quiet = state_take(hammer->pid);

	for (unsigned i = 0; i < rounds; i++) {
		subject_send(hammer, 'r');
		tool_attach(tool, hammer->pid);
		live_let_pass(live_random(SOME_MS * NSEC_PER_MSEC));
		tool_detach(tool, hammer->pid);
		require_unharmed(hammer->pid, NULL);
		subject_command(hammer, 's');
		state_require_same(hammer->pid, quiet, false);
	}
	live_note("%u detaches under %s busy threads", rounds, threads);
	subject_quit(hammer);
	live_survey(live_text("attach and detach, %s busy threads", threads), rounds, 0, 1, 1);
}

static void detaches_cleanly_from_one_busy_thread(void)
{
	detaches_cleanly_under_load("1");
}

static void detaches_cleanly_from_sixteen_busy_threads(void)
{
	detaches_cleanly_under_load("16");
}

struct left {
	struct tool *tool;
	pid_t pid;
};

static bool is_forgotten(void *context)
{
	struct left *left = context;
	const char *pid = pid_text(left->pid);

	return tool_try(left->tool, "status", pid, NULL).status != 0;
}

/* The daemon hears of it by the tracer's own word, a moment later. */
static void require_forgotten(struct tool *tool, pid_t pid)
{
	struct left left = { tool, pid };

	if (!live_wait(is_forgotten, &left, 30000))
		live_fail("the daemon still thinks that it traces process %d", pid);
}

/* After the tracer alone ended, its target is as it was, and the daemon can attach to it again. */
static void tracer_ends_by(int sig)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", "4", "--ops", "100", NULL);
	struct state *quiet = state_take(hammer->pid);
	unsigned rounds = live_rounds(SIGNAL_ROUNDS, SIGNAL_ROUNDS_LONG);

	for (unsigned i = 0; i < rounds; i++) {
		subject_send(hammer, 'r');
		tool_attach(tool, hammer->pid);
		live_let_pass(live_random(SOME_MS * NSEC_PER_MSEC));
		kill(tool_tracer(hammer->pid), sig);
		require_released(hammer);
		require_forgotten(tool, hammer->pid);
		require_unharmed(hammer->pid, NULL);
		subject_command(hammer, 's');
		state_require_same(hammer->pid, quiet, false);
	}
	live_note("the tracer ended %u times by signal %d", rounds, sig);
	subject_quit(hammer);
	live_survey(live_text("signal %d to the tracer", sig), rounds, rounds, 1, 1);
}

static void sigint_to_the_tracer_leaves_the_target_unharmed(void)
{
	tracer_ends_by(SIGINT);
}

static void sigterm_to_the_tracer_leaves_the_target_unharmed(void)
{
	tracer_ends_by(SIGTERM);
}

static void daemon_ends_by(int sig)
{
	struct subject *hammer = victim_start(HAMMER, "--threads", "4", "--ops", "100", NULL);
	struct state *quiet = state_take(hammer->pid);
	unsigned rounds = live_rounds(SIGNAL_ROUNDS, SIGNAL_ROUNDS_LONG);
	struct tool *tool = tool_start();

	for (unsigned i = 0; i < rounds; i++) {
		subject_send(hammer, 'r');
		tool_attach(tool, hammer->pid);
		live_let_pass(live_random(SOME_MS * NSEC_PER_MSEC));
		tool_end_daemon(tool, sig);
		require_released(hammer);
		require_unharmed(hammer->pid, NULL);
		subject_command(hammer, 's');
		state_require_same(hammer->pid, quiet, false);
		tool_start_again(tool);
	}
	live_note("the daemon ended %u times by signal %d", rounds, sig);
	subject_quit(hammer);
	live_survey(live_text("signal %d to the daemon", sig), rounds, rounds, 1, 1);
}

static void sigint_to_the_daemon_leaves_the_target_unharmed(void)
{
	daemon_ends_by(SIGINT);
}

static void sigterm_to_the_daemon_leaves_the_target_unharmed(void)
{
	daemon_ends_by(SIGTERM);
}

/* The attach itself is cut short: the client may fail, the target must not notice. */
static void a_signal_in_the_middle_of_the_attach_does_no_harm(void)
{
	struct subject *hammer = victim_start(HAMMER, "--threads", "8", "--ops", "100", NULL);
	struct state *quiet = state_take(hammer->pid);
	unsigned rounds = live_rounds(SIGNAL_ROUNDS, SIGNAL_ROUNDS_LONG);
	struct tool *tool = tool_start();

	for (unsigned i = 0; i < rounds; i++) {
		int status;
		pid_t client;

		subject_send(hammer, 'r');
		client = tool_begin(tool, "attach", pid_text(hammer->pid), NULL);
		live_let_pass(live_random(SOME_MS * NSEC_PER_MSEC));
		tool_end_daemon(tool, i % 2 ? SIGINT : SIGTERM);
		require(waitpid(client, &status, 0) == client);
		require_released(hammer);
		require_unharmed(hammer->pid, NULL);
		subject_command(hammer, 's');
		state_require_same(hammer->pid, quiet, false);
		tool_start_again(tool);
	}
	subject_quit(hammer);
	live_survey("daemon ended in the middle of the attach", rounds, rounds, 1, 1);
}

/* From the moment on at which its socket is there. */
static void a_signal_at_its_start_ends_the_daemon_cleanly(void)
{
	struct tool *tool = tool_start();
	unsigned rounds = live_rounds(40, 1000);

	for (unsigned i = 0; i < rounds; i++) {
		tool_end_daemon(tool, i % 2 ? SIGINT : SIGTERM);
		tool_start_again(tool);
	}
	live_survey("daemon ended at its start", rounds, rounds, rounds, rounds);
}

/* The program writes its libc's text anew, and nobody asks for anything before it is let go. */
static void require_a_last_look(const char *option, bool asked)
{
	struct tool *tool = tool_start();
	struct subject *hostile = victim_start("tests/victims/hostile", "0", NULL);
	json_t *last;

	tool_out(tool, "attach", "--engine", "ring", pid_text(hostile->pid), option, NULL);
	require_nothing_unknown(tool_status(tool, hostile->pid), 0);
	subject_command(hostile, 'r');
	if (asked)
		tool_detach(tool, hostile->pid);
	else
		kill(tool_tracer(hostile->pid), SIGTERM);
	require_released(hostile);
	tool_wait_until_gone(tool, hostile->pid, GONE_MS);
	last = tool_stats(tool, live_text("%d:detach", hostile->pid));
	require(!json_is_true(json_object_get(last, "exact")));
	require_at_least(json_number(last, "unknown.probe_gaps"), 1);
	require_unharmed(hostile->pid, NULL);
	subject_quit(hostile);
}

static void the_last_snapshot_says_that_jumps_were_overwritten(void)
{
	require_a_last_look("--hold", true);
	require_a_last_look("--release", true);
	require_a_last_look("--hold", false);
	require_a_last_look("--release", false);
}

static const struct live_case cases[] = {
	LIVE_CASE(detaches_cleanly_from_one_busy_thread),
	LIVE_CASE(detaches_cleanly_from_sixteen_busy_threads),
	LIVE_CASE(sigint_to_the_tracer_leaves_the_target_unharmed),
	LIVE_CASE(sigterm_to_the_tracer_leaves_the_target_unharmed),
	LIVE_CASE(sigint_to_the_daemon_leaves_the_target_unharmed),
	LIVE_CASE(sigterm_to_the_daemon_leaves_the_target_unharmed),
	LIVE_CASE(a_signal_in_the_middle_of_the_attach_does_no_harm),
	LIVE_CASE(the_last_snapshot_says_that_jumps_were_overwritten),
	LIVE_CASE(a_signal_at_its_start_ends_the_daemon_cleanly),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
