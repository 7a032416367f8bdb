/* The ring engine: it serves where it is asked for, and says why where it cannot; what it brings into a process leaves again, also
 * when its tracer died, and the process runs on meanwhile.  All other live tests run with it as LIVE_ENGINE=ring. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define HAMMER "tests/victims/hammer"

static bool maps_say(pid_t pid, const char *text)
{
	FILE *maps = fopen(live_text("/proc/%d/maps", pid), "r");
	char line[512];
	bool found = false;

	while (maps && !found && fgets(line, sizeof(line), maps))
		found = strstr(line, text);
	if (maps)
		fclose(maps);
	return found;
}

static void attach_by_ring(struct tool *tool, pid_t pid)
{
	tool_out(tool, "attach", "--engine", "ring", pid_text(pid), NULL);
	if (strcmp(json_text(tool_status(tool, pid), "engine"), "ring"))
		live_fail("it is traced by %s: %s", json_text(tool_status(tool, pid), "engine"),
			  json_text(tool_status(tool, pid), "engine_reason"));
}

static void require_exact(struct tool *tool, const struct subject *hammer)
{
	json_t *status = tool_status(tool, hammer->pid);

	require_equal(json_number(status, "blocks"), subject_tally(hammer, "blocks"));
	require_equal(json_number(status, "traced_current"), subject_tally(hammer, "bytes"));
	require_equal(json_number(status, "allocations"), subject_tally(hammer, "allocations"));
	require_nothing_unknown(status, 0);
}

static void a_ring_serves_and_is_gone_after_the_detach(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", "4", "--ops", "2000", NULL);
	struct state *before = state_take(hammer->pid);

	for (unsigned i = 0; i < 2; i++) {
		attach_by_ring(tool, hammer->pid);
		require(maps_say(hammer->pid, "/memfd:allocwatch-ring"));
		tool_detach(tool, hammer->pid);
		require(!maps_say(hammer->pid, "/memfd:allocwatch-ring"));
		require_unharmed(hammer->pid, before);
	}
	attach_by_ring(tool, hammer->pid);
	subject_command(hammer, 'g');
	require_exact(tool, hammer);
	tool_end(tool, hammer, before);
}

static void snapshots_and_their_difference_are_of_the_moment_they_are_asked_for(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", "4", "--ops", "500", NULL);
	struct state *before = state_take(hammer->pid);

	attach_by_ring(tool, hammer->pid);
	for (unsigned i = 0; i < 10; i++) {
		json_t *stats;

		subject_command(hammer, 'g');
		stats = tool_stats(tool, pid_text(hammer->pid));
		require_equal(json_number(stats, "total.size"), subject_tally(hammer, "bytes"));
		require_equal(json_number(stats, "total.count"), subject_tally(hammer, "blocks"));
	}
	tool_end(tool, hammer, before);
}

/* Nobody reads the ring any more: the program waits for room once, and never again. */
static void a_program_whose_tracer_is_dead_runs_on_and_is_healed(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", "4", "--ops", "20000", NULL);
	struct state *before = state_take(hammer->pid);
	int status;

	attach_by_ring(tool, hammer->pid);
	kill(tool_daemon(tool), SIGSTOP);
	kill(tool_tracer(hammer->pid), SIGKILL);
	require(live_wait(state_is_untraced, &hammer->pid, 5000));
	kill(tool_daemon(tool), SIGKILL);
	waitpid(tool_daemon(tool), &status, 0);
	for (unsigned i = 0; i < 3; i++)
		subject_command(hammer, 'g');
	require(maps_say(hammer->pid, "/memfd:allocwatch-ring"));
	require_equal(tool_heal(pid_text(hammer->pid)), 0);
	require(!maps_say(hammer->pid, "/memfd:allocwatch-ring"));
	require_unharmed(hammer->pid, before);
	subject_command(hammer, 'g');
	subject_quit(hammer);
}

static void who_follows_children_is_told_why_int3_serves(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", "1", "--ops", "100", NULL);
	struct state *before = state_take(hammer->pid);

	tool_out(tool, "attach", "--engine", "ring", "--follow-forks", pid_text(hammer->pid), NULL);
	require(!strcmp(json_text(tool_status(tool, hammer->pid), "engine"), "int3"));
	require(strstr(json_text(tool_status(tool, hammer->pid), "engine_reason"), "children"));
	require(strstr(tool_out(tool, "status", pid_text(hammer->pid), NULL), "children"));
	tool_end(tool, hammer, before);
}

static const struct live_case cases[] = {
	LIVE_CASE(a_ring_serves_and_is_gone_after_the_detach),
	LIVE_CASE(snapshots_and_their_difference_are_of_the_moment_they_are_asked_for),
	LIVE_CASE(a_program_whose_tracer_is_dead_runs_on_and_is_healed),
	LIVE_CASE(who_follows_children_is_told_why_int3_serves),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
