/* The main job: attach, look, compare, detach; as root and as an ordinary user. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEAKY "contrib/sample/leaky"
#define LEAKY_SOURCE "contrib/sample/leaky.c"

static void require_root(void)
{
	if (geteuid())
		live_skip("needs root, to be another user");
}

/* Two snapshots around 300 requests; the diff's first row must be the leak, to the byte. */
static void find_the_leak(struct tool *tool, struct subject *leaky)
{
	struct state *before = state_take(leaky->pid);
	const char *pid = pid_text(leaky->pid);
	json_t *diff, *first;

	tool_attach(tool, leaky->pid);
	require(tool_lists(tool, leaky->pid));
	subject_command(leaky, 'g');
	require_row(tool_stats(tool, pid), LEAKY_SOURCE, "/* leak */", 100 * 1000, 100);
	tool_out(tool, "snapshot", pid, "--name", "before", NULL);
	for (int i = 0; i < 3; i++)
		subject_command(leaky, 'g');
	diff = tool_diff(tool, live_text("%s:before", pid), pid);
	require_row(diff, LEAKY_SOURCE, "/* leak */", 400 * 1000, 400);
	first = json_array_get(json_object_get(diff, "statistics"), 0);
	require(first == row_at(diff, "leaky.c", line_of(LEAKY_SOURCE, "/* leak */")));
	require_equal(json_number(first, "size_diff"), 300 * 1000);
	require_equal(json_number(first, "count_diff"), 300);
	require_nothing_unknown(tool_status(tool, leaky->pid), 0);
	tool_end(tool, leaky, before);
}

static void the_leaking_line_is_named(void)
{
	find_the_leak(tool_start(), victim_start(LEAKY, "--commands", NULL));
}

static void an_ordinary_user_finds_the_leak_in_an_own_process(void)
{
	require_root();
	find_the_leak(tool_start_ordinary(), victim_start_ordinary(LEAKY, "--commands", NULL));
}

static void root_finds_the_leak_in_anothers_process(void)
{
	require_root();
	find_the_leak(tool_start(), victim_start_ordinary(LEAKY, "--commands", NULL));
}

/* The texts are tracemalloc's, as people and scripts read them. */
static void the_text_is_tracemallocs(void)
{
	struct tool *tool = tool_start();
	struct subject *leaky = victim_start(LEAKY, "--commands", NULL);
	struct state *before = state_take(leaky->pid);
	int line = line_of(LEAKY_SOURCE, "/* leak */");
	const char *pid = pid_text(leaky->pid), *text;

	tool_attach(tool, leaky->pid);
	subject_command(leaky, 'g');
	tool_out(tool, "snapshot", pid, "--name", "before", NULL);
	subject_command(leaky, 'g');
	text = tool_out(tool, "stats", pid, "--limit", "1", NULL);
	require_text(text, live_text("/leaky.c:%d: size=195 KiB, count=200, average=1000 B\n", line));
	text = tool_out(tool, "diff", live_text("%s:before", pid), pid, "--limit", "1", NULL);
	require_text(text, live_text("/leaky.c:%d: size=195 KiB (+97.7 KiB), count=200 (+100), average=1000 B\n",
				     line));
	text = tool_out(tool, "stats", pid, "--by", "traceback", "--limit", "1", NULL);
	require_text(text, "200 memory blocks: 195.3 KiB\n");
	require_text(text, live_text("/leaky.c\", line %d\n    char *copy = malloc(HEADER_BYTES);", line));
	tool_end(tool, leaky, before);
}

static void attach_again_after_detach_starts_anew(void)
{
	struct tool *tool = tool_start();
	struct subject *leaky = victim_start(LEAKY, "--commands", NULL);
	struct state *before = state_take(leaky->pid);

	for (int i = 0; i < 3; i++) {
		tool_attach(tool, leaky->pid);
		subject_command(leaky, 'g');
		require_row(tool_stats(tool, pid_text(leaky->pid)), LEAKY_SOURCE, "/* leak */", 100 * 1000, 100);
		tool_detach(tool, leaky->pid);
		require_unharmed(leaky->pid, before);
	}
	subject_quit(leaky);
}

static void snapshots_outlive_the_process_and_its_end_leaves_one(void)
{
	struct tool *tool = tool_start();
	struct subject *leaky = victim_start(LEAKY, "--commands", NULL);
	const char *pid = pid_text(leaky->pid), *id;

	tool_attach(tool, leaky->pid);
	subject_command(leaky, 'g');
	id = json_text(tool_json(tool, "snapshot", pid, "--name", "kept", NULL), "id");
	subject_command(leaky, 'g');
	subject_quit(leaky);
	tool_wait_until_gone(tool, leaky->pid, 30000);
	require_row(tool_stats(tool, id), LEAKY_SOURCE, "/* leak */", 100 * 1000, 100);
	require_row(tool_stats(tool, live_text("%s:kept", pid)), LEAKY_SOURCE, "/* leak */", 100 * 1000, 100);
	require_row(tool_stats(tool, live_text("%s:exit", pid)), LEAKY_SOURCE, "/* leak */", 200 * 1000, 200);
	require_row(tool_stats(tool, pid), LEAKY_SOURCE, "/* leak */", 200 * 1000, 200);
}

static void a_process_killed_in_the_middle_leaves_its_snapshots(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start("tests/victims/hammer", "--threads", "4", NULL);
	struct tool_run again;

	tool_attach(tool, hammer->pid);
	subject_command(hammer, 'g');
	tool_out(tool, "snapshot", pid_text(hammer->pid), "--name", "last", NULL);
	subject_send(hammer, 'r');
	subject_kill(hammer);
	tool_wait_until_gone(tool, hammer->pid, 30000);
	require_at_least(json_number(tool_stats(tool, live_text("%d:last", hammer->pid)), "total.count"), 1);
	again = tool_try(tool, "status", pid_text(hammer->pid), NULL);
	require_equal(again.status, 1);
	/* the daemon is as good as before */
	find_the_leak(tool, victim_start(LEAKY, "--commands", NULL));
}

static bool is_stopped(void *context)
{
	pid_t pid = *(pid_t *)context;

	return thread_state(pid, pid) == 'T';
}

/* It would have read what waits for it, if it had run for a moment. */
static void require_untouched_input(const struct subject *subject)
{
	int waiting = 0;

	require(ioctl(subject->to, FIONREAD, &waiting) == 0);
	require_equal(waiting, 1);
}

static void a_stopped_process_stays_stopped(void)
{
	struct tool *tool = tool_start();
	struct subject *leaky = victim_start(LEAKY, "--commands", NULL);
	struct state *before;

	kill(leaky->pid, SIGSTOP);
	require(live_wait(is_stopped, &leaky->pid, 10000));
	before = state_take(leaky->pid);
	subject_send(leaky, 'g');
	tool_attach(tool, leaky->pid);
	tool_out(tool, "snapshot", pid_text(leaky->pid), NULL);
	require_equal(json_number(tool_status(tool, leaky->pid), "allocations"), 0);
	require_untouched_input(leaky);
	tool_detach(tool, leaky->pid);
	require_unharmed(leaky->pid, before);
	require_equal(thread_state(leaky->pid, leaky->pid), 'T');
	require_untouched_input(leaky);
	kill(leaky->pid, SIGCONT);
	subject_line(leaky);
	subject_quit(leaky);
}

/* SIGCONT while it is traced: it runs and is traced on. */
static void a_stopped_process_goes_on_when_it_is_told_to(void)
{
	struct tool *tool = tool_start();
	struct subject *leaky = victim_start(LEAKY, "--commands", NULL);
	struct state *before = state_take(leaky->pid);

	kill(leaky->pid, SIGSTOP);
	require(live_wait(is_stopped, &leaky->pid, 10000));
	tool_attach(tool, leaky->pid);
	kill(leaky->pid, SIGCONT);
	subject_command(leaky, 'g');
	require_row(tool_stats(tool, pid_text(leaky->pid)), LEAKY_SOURCE, "/* leak */", 100 * 1000, 100);
	tool_end(tool, leaky, before);
}

static void a_process_without_its_main_thread_is_traced(void)
{
	struct tool *tool = tool_start();
	struct subject *mainless = victim_start("tests/victims/mainless", NULL);
	struct state *before = state_take(mainless->pid);

	tool_attach(tool, mainless->pid);
	for (int i = 0; i < 10; i++)
		subject_command(mainless, 'g');
	require_row(tool_stats(tool, pid_text(mainless->pid)), "tests/victims/mainless.c", "/* kept */", 1040, 10);
	tool_end(tool, mainless, before);
}

/* The id of the last snapshot taken. */
static const char *last_snapshot(struct tool *tool)
{
	json_t *list = json_object_get(tool_json(tool, "snapshots", NULL), "snapshots");

	require_at_least((long long)json_array_size(list), 1);
	return json_text(json_array_get(list, json_array_size(list) - 1), "id");
}

/* The third step of resizes leaves one block of 500 bytes; an exec comes first. */
static void run_traces_from_the_first_instruction(void)
{
	struct tool *tool = tool_start();
	const char *program = live_text("%s/tests/victims/resizes", live_build());
	const char *input = live_text("%s/input", live_folder());
	FILE *f = fopen(input, "w");
	json_t *stats;

	require(f && fputs("gggq", f) >= 0 && fclose(f) == 0);
	tool_out(tool, "run", "--", "/bin/sh", "-c", live_text("exec %s <%s", program, input), NULL);
	stats = tool_stats(tool, last_snapshot(tool));
	require_row(stats, "tests/victims/resizes.c", "/* kept */", 500, 1);
	require(json_is_true(json_object_get(stats, "exact")));
	require_equal(json_number(stats, "unknown.before_attach_frees"), 0);
	require_equal(json_number(stats, "unknown.unknown_frees"), 0);
}

static int status_of_run(struct tool *tool, const char *command)
{
	return tool_try(tool, "run", "--", "/bin/sh", "-c", command, NULL).status;
}

static void run_exits_as_the_command_does(void)
{
	struct tool *tool = tool_start();

	require_equal(status_of_run(tool, "exit 0"), 0);
	require_equal(status_of_run(tool, "exit 7"), 7);
	require_equal(status_of_run(tool, "kill -9 $$"), 128 + SIGKILL);
	require_equal(status_of_run(tool, "kill -15 $$"), 128 + SIGTERM);
	require_equal(tool_try(tool, "run", "--", "/nowhere/no-such-program", NULL).status, 127);
	require_equal(tool_try(tool, "run", "--", "/etc/passwd", NULL).status, 126);
}

static void the_daemon_ends_cleanly_and_lets_its_processes_go(void)
{
	struct tool *tool = tool_start();
	struct subject *leaky = victim_start(LEAKY, "--commands", NULL);
	struct state *before = state_take(leaky->pid);

	tool_attach(tool, leaky->pid);
	subject_command(leaky, 'g');
	tool_end_daemon(tool, SIGTERM);
	require_unharmed(leaky->pid, before);
	subject_command(leaky, 'g');
	subject_quit(leaky);
}

static const struct live_case cases[] = {
	LIVE_CASE(the_leaking_line_is_named),
	LIVE_CASE(an_ordinary_user_finds_the_leak_in_an_own_process),
	LIVE_CASE(root_finds_the_leak_in_anothers_process),
	LIVE_CASE(the_text_is_tracemallocs),
	LIVE_CASE(attach_again_after_detach_starts_anew),
	LIVE_CASE(snapshots_outlive_the_process_and_its_end_leaves_one),
	LIVE_CASE(a_process_killed_in_the_middle_leaves_its_snapshots),
	LIVE_CASE(a_stopped_process_stays_stopped),
	LIVE_CASE(a_stopped_process_goes_on_when_it_is_told_to),
	LIVE_CASE(a_process_without_its_main_thread_is_traced),
	LIVE_CASE(run_traces_from_the_first_instruction),
	LIVE_CASE(run_exits_as_the_command_does),
	LIVE_CASE(the_daemon_ends_cleanly_and_lets_its_processes_go),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
