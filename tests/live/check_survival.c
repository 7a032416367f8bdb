/* What must not harm a target: the tracer's sudden death at any moment, coming and going without end, a
 * filter that kills for system calls that are not its own. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "base/clock.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARIES 500                  /* loaded and unloaded in each round */
#define HEALED_MS 10000
#define HAMMER "tests/victims/hammer"
#define FILTERED "tests/victims/filtered"
#define KILLS 12
#define KILLS_LONG 300
#define CYCLES 60
#define CYCLES_LONG 1000
#define SOME_MS 30

/* It still obeys, its tally is sound and it ends as it should: by its own will. */
static void require_alive(struct subject *hammer)
{
	if (!live_wait(state_is_untraced, &hammer->pid, 30000))
		live_fail("process %d is not let go", hammer->pid);
	subject_command(hammer, 's');
	require_at_least(subject_tally(hammer, "allocations"), 1);
	subject_quit(hammer);
}

static void kill_tracer(pid_t pid)
{
	pid_t tracer = tool_find_tracer(pid);

	if (tracer > 0)
		kill(tracer, SIGKILL);
}

static void a_tracer_killed_while_it_traces_does_no_harm(void)
{
	struct tool *tool = tool_start();
	unsigned kills = live_rounds(KILLS, KILLS_LONG);

	for (unsigned i = 0; i < kills; i++) {
		struct subject *hammer = victim_start(HAMMER, "--threads", i % 2 ? "16" : "1", "--ops", "100", NULL);

		subject_send(hammer, 'r');
		tool_attach(tool, hammer->pid);
		live_let_pass(live_random(SOME_MS * NSEC_PER_MSEC));
		kill_tracer(hammer->pid);
		require_alive(hammer);
	}
	live_survey("tracer killed while it traces", kills, kills, kills, kills);
}

/* The client and the daemon report a failure; that is theirs to do. */
static void kill_during(struct tool *tool, struct subject *hammer, const char *command)
{
	pid_t client = tool_begin(tool, command, pid_text(hammer->pid), NULL);
	int status;

	if (!strcmp(command, "attach"))
		live_wait(state_is_traced, &hammer->pid, 5000);
	live_let_pass(live_random(6 * NSEC_PER_MSEC));
	kill_tracer(hammer->pid);
	require(waitpid(client, &status, 0) == client);
}

static void a_tracer_killed_in_the_attach_does_no_harm(void)
{
	struct tool *tool = tool_start();
	unsigned kills = live_rounds(KILLS, KILLS_LONG);

	for (unsigned i = 0; i < kills; i++) {
		struct subject *hammer = victim_start(HAMMER, "--threads", "16", "--ops", "100", NULL);

		subject_send(hammer, 'r');
		kill_during(tool, hammer, "attach");
		require_alive(hammer);
	}
	live_survey("tracer killed in the attach", kills, kills, kills, kills);
}

static void a_tracer_killed_in_the_detach_does_no_harm(void)
{
	struct tool *tool = tool_start();
	unsigned kills = live_rounds(KILLS, KILLS_LONG);

	for (unsigned i = 0; i < kills; i++) {
		struct subject *hammer = victim_start(HAMMER, "--threads", "16", "--ops", "100", NULL);

		subject_send(hammer, 'r');
		tool_attach(tool, hammer->pid);
		kill_during(tool, hammer, "detach");
		require_alive(hammer);
	}
	live_survey("tracer killed in the detach", kills, kills, kills, kills);
}

static void coming_and_going_without_a_pause_does_no_harm(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", "16", "--ops", "100", NULL);
	unsigned cycles = live_rounds(CYCLES, CYCLES_LONG);
	uint64_t started_ns = clock_monotonic_ns();

	subject_send(hammer, 'r');
	for (unsigned i = 0; i < cycles; i++) {
		tool_attach(tool, hammer->pid);
		tool_detach(tool, hammer->pid);
	}
	live_note("%u cycles of attach and detach, %.1f ms each", cycles,
		  (double)(clock_monotonic_ns() - started_ns) / (double)NSEC_PER_MSEC / cycles);
	require_unharmed(hammer->pid, NULL);
	require_alive(hammer);
	live_survey("attach and detach without a pause", cycles, 0, 1, 1);
}

static void a_filtered_process_is_traced_by_root(void)
{
	struct tool *tool;
	struct subject *filtered;
	struct state *before;

	if (geteuid() != 0)
		live_skip("lifting a seccomp filter needs CAP_SYS_ADMIN");
	tool = tool_start();
	filtered = victim_start(FILTERED, NULL);
	before = state_take(filtered->pid);
	tool_attach(tool, filtered->pid);
	subject_command(filtered, 'g');
	require_equal(json_number(tool_status(tool, filtered->pid), "blocks"), subject_tally(filtered, "blocks"));
	tool_end(tool, filtered, before);
}

static void a_filtered_process_is_refused_to_an_ordinary_user(void)
{
	struct tool *tool;
	struct subject *filtered;
	struct tool_run result;

	if (geteuid() != 0)
		live_skip("becoming an ordinary user needs root");
	tool = tool_start_ordinary();
	filtered = victim_start_ordinary(FILTERED, NULL);
	result = tool_try(tool, "attach", pid_text(filtered->pid), NULL);
	require_equal(result.status, 1);
	require(strstr(result.err, "seccomp") != NULL);
	require(state_is_untraced(&filtered->pid));
	subject_command(filtered, 'g');
	subject_quit(filtered);
}

/* The mappings that the attach has looked at are others when it acts. */
static void libraries_that_come_and_go_in_the_attach_and_the_detach_do_no_harm(void)
{
	struct tool *tool = tool_start();
	struct subject *plugins = victim_start("tests/victims/plugins", live_text("%s/tests/victims", live_build()), NULL);
	unsigned rounds = live_rounds(8, 200);
	struct state *before;

	subject_command(plugins, 'o');
	subject_command(plugins, 'c');
	before = state_take(plugins->pid);
	for (unsigned i = 0; i < rounds; i++) {
		for (unsigned k = 0; k < LIBRARIES; k++) {
			subject_send(plugins, 'o');
			subject_send(plugins, 'c');
		}
		if (i % 2) {
			kill_during(tool, plugins, "attach");
			/* none was there yet */
			if (tool_lists(tool, plugins->pid))
				tool_try(tool, "detach", pid_text(plugins->pid), NULL);
		} else {
			tool_attach(tool, plugins->pid);
			tool_detach(tool, plugins->pid);
		}
		for (unsigned k = 0; k < 2 * LIBRARIES; k++)
			subject_line(plugins);
		require(live_wait(state_is_untraced, &plugins->pid, HEALED_MS));
		require(live_wait(state_text_is_intact, &plugins->pid, HEALED_MS));
	}
	require_unharmed(plugins->pid, before);
	subject_quit(plugins);
	live_survey("libraries that come and go in the attach", rounds, rounds / 2, rounds, rounds);
}

static const struct live_case cases[] = {
	LIVE_CASE(a_tracer_killed_while_it_traces_does_no_harm),
	LIVE_CASE(a_tracer_killed_in_the_attach_does_no_harm),
	LIVE_CASE(a_tracer_killed_in_the_detach_does_no_harm),
	LIVE_CASE(coming_and_going_without_a_pause_does_no_harm),
	LIVE_CASE(libraries_that_come_and_go_in_the_attach_and_the_detach_do_no_harm),
	LIVE_CASE(a_filtered_process_is_traced_by_root),
	LIVE_CASE(a_filtered_process_is_refused_to_an_ordinary_user),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
