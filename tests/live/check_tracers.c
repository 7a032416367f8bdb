/* Another tracer that wants in for a while: detach --keep, and attach again. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURNOVER "tests/victims/turnover"
#define TURNOVER_SOURCE "tests/victims/turnover.c"
#define GAP_MS 10000

/* --- for a while --- */

static void keep_blocks(struct subject *subject, char command, unsigned count)
{
	while (count-- > 0)
		subject_command(subject, command);
}

static void detach_for_a_while(struct tool *tool, pid_t pid)
{
	uint64_t started_ns = clock_monotonic_ns(), took_ms;

	tool_out(tool, "detach", pid_text(pid), "--keep", NULL);
	took_ms = (clock_monotonic_ns() - started_ns) / NSEC_PER_MSEC;
	live_note("let go in %llu ms\n", (unsigned long long)took_ms);
	require(took_ms < 1000);
	require_equal(status_number(pid, "TracerPid", 10), 0);
}

/* Really attached, and it makes a call in the process. */
static void let_gdb_in(pid_t pid)
{
	const char *out = live_text("%s/gdb", live_folder());
	char text[8192];
	FILE *file;

	require_equal(system(live_text("gdb -q -nx -batch -p %d -ex 'print (int)getpid()' -ex detach >%s 2>&1 </dev/null", pid,
				       out)), 0);
	file = fopen(out, "r");
	require(file != NULL);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	require_text(text, live_text("$1 = %d", pid));
}

static void require_inexact(struct tool *tool, pid_t pid)
{
	json_t *status = tool_status(tool, pid);

	require_equal(json_is_true(json_object_get(status, "exact")), 0);
	require_at_least(json_number(status, "unknown.probe_gaps"), 1);
}

static void a_debugger_gets_in_and_tracing_goes_on(void)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(TURNOVER, NULL);
	struct state *before = state_take(victim->pid);
	const char *pid = pid_text(victim->pid);
	struct tool_run run;

	tool_attach(tool, victim->pid);
	keep_blocks(victim, 'g', 5);
	detach_for_a_while(tool, victim->pid);
	require_unharmed(victim->pid, before);
	require_text(json_text(tool_status(tool, victim->pid), "state"), "kept");
	/* What it knows can be asked for all the while. */
	require_row(tool_stats(tool, pid), TURNOVER_SOURCE, "/* kept block */", 5 * 72, 5);
	let_gdb_in(victim->pid);
	keep_blocks(victim, 'g', 2);             /* unseen */
	keep_blocks(victim, 'f', 1);             /* of a block that is known */
	run = tool_try(tool, "attach", pid, NULL);
	require_equal(run.status, 0);
	require_text(run.err, "traced before");
	require_equal(status_number(victim->pid, "TracerPid", 10), tool_tracer(victim->pid));
	keep_blocks(victim, 'g', 3);
	/* 5 and 3; of those, the one that was freed unseen stands there until its address is used again, which
	 * is counted. */
	require_row(tool_stats(tool, pid), TURNOVER_SOURCE, "/* kept block */",
		    72 * (8 - json_number(tool_status(tool, victim->pid), "unknown.lost_events")),
		    8 - json_number(tool_status(tool, victim->pid), "unknown.lost_events"));
	require_inexact(tool, victim->pid);
	keep_blocks(victim, 'f', 9);             /* two of them were born unseen */
	require_equal(subject_tally(victim, "kept"), 0);
	require_equal(json_number(tool_status(tool, victim->pid), "unknown.before_attach_frees") +
		      json_number(tool_status(tool, victim->pid), "unknown.unknown_frees"), 2);
	tool_end(tool, victim, before);
}

static void a_busy_process_is_let_go_and_taken_again(void)
{
	struct tool *tool = tool_start();
	unsigned rounds = live_rounds(10, 500);
	struct subject *victim = victim_start(TURNOVER, NULL);
	long turns = 0;

	subject_command(victim, 'w');
	for (unsigned i = 0; i < rounds; i++) {
		tool_attach(tool, victim->pid);
		subject_command(victim, 'g');
		require_at_least(subject_tally(victim, "turns"), turns);
		turns = subject_tally(victim, "turns");
		detach_for_a_while(tool, victim->pid);
		text_require_intact(victim->pid);
	}
	require_row(tool_stats(tool, pid_text(victim->pid)), TURNOVER_SOURCE, "/* kept block */", 72LL * rounds, rounds);
	subject_command(victim, 'i');
	tool_detach(tool, victim->pid);
	require(!tool_lists(tool, victim->pid));
	live_survey("let go and taken again", rounds, 0, 1, 1);
	require_unharmed(victim->pid, NULL);
	subject_quit(victim);
}

static bool is_unlisted(void *context)
{
	struct tool **tool = context;

	return json_array_size(json_object_get(tool_json(*tool, "list", NULL), "targets")) == 0;
}

/* It leaves its last snapshot, and a new process of the same program is a new one. */
static void a_kept_process_that_ends_leaves_its_snapshot(void)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(TURNOVER, NULL);
	pid_t pid = victim->pid;

	tool_attach(tool, pid);
	keep_blocks(victim, 'g', 4);
	detach_for_a_while(tool, pid);
	subject_quit(victim);
	require(live_wait(is_unlisted, &tool, GAP_MS));
	require_row(tool_stats(tool, live_text("%d:detach", pid)), TURNOVER_SOURCE, "/* kept block */", 4 * 72, 4);
}

static const struct live_case cases[] = {
	LIVE_CASE(a_debugger_gets_in_and_tracing_goes_on),
	LIVE_CASE(a_busy_process_is_let_go_and_taken_again),
	LIVE_CASE(a_kept_process_that_ends_leaves_its_snapshot),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
