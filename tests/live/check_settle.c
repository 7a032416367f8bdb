/* attach --release, and handlers of signals that come in the midst of records: the process is seized for a moment, and the record is
 * written when the handler has ended, or never was one. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <stdio.h>
#include <string.h>

#define INTERRUPTED "tests/victims/interrupted"
#define INTERRUPTED_C "tests/victims/interrupted.c"

static void release(struct tool *tool, pid_t pid)
{
	tool_out(tool, "attach", "--release", pid_text(pid), NULL);
	require(json_is_true(json_object_get(tool_status(tool, pid), "released")));
	require_equal(status_number(pid, "TracerPid", 10), 0);
}

static void require_kept(struct tool *tool, const struct subject *victim)
{
	long kept = subject_tally(victim, "kept");

	if (kept > 0)
		require_row(tool_stats(tool, pid_text(victim->pid)), INTERRUPTED_C, "/* kept by the handler */", kept * 56, kept);
}

/* Its ring holds what the other thread allocates in some milliseconds, and calls wait for room for a tenth of a second. */
static void go(char way, const char *threads, const char *hits, const char *sleep_ms, const char *option)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(INTERRUPTED, "--threads", threads, "--hits", hits, "--sleep-ms", sleep_ms, option, NULL);
	struct state *before = state_take(victim->pid);

	release(tool, victim->pid);
	for (unsigned i = 0; i < live_rounds(1, 20); i++) {
		subject_command(victim, way);
		require_tally(tool, victim, 0);
		require_kept(tool, victim);
		require(json_is_true(json_object_get(tool_status(tool, victim->pid), "released")));
	}
	live_note("%ld handlers in the midst of records, %ld allocations, none missed", subject_tally(victim, "hits"),
		  subject_tally(victim, "allocations"));
	live_survey("handlers in the midst of records without ptrace", (unsigned)subject_tally(victim, "hits"), 0, 1, 1);
	tool_end(tool, victim, before);
}

static void a_handler_that_sleeps_in_the_midst_of_a_record_holds_nobody_up(void)
{
	go('s', "1", "4", "2000", NULL);
}

static void a_handler_that_allocates_and_sleeps_there_holds_nobody_up(void)
{
	go('a', "1", "8", "400", NULL);
}

static void a_handler_on_a_sigaltstack_sleeps_there(void)
{
	go('a', "1", "8", "400", "--altstack");
}

static void a_handler_within_a_handler_sleeps_there(void)
{
	go('n', "1", "8", "400", NULL);
}

static void handlers_of_8_threads_sleep_there(void)
{
	go('a', "8", "32", "400", NULL);
}

/* What metrics say of how long its threads were held, as text. */
static const char *held_of(struct tool *tool, pid_t pid)
{
	const char *text = tool_out(tool, "metrics", NULL), *mark = live_text("pid=\"%d\"", pid), *line;

	for (line = strstr(text, "\nallocwatch_held_seconds_total{"); line; line = strstr(line + 1, "\nallocwatch_held_seconds_total{")) {
		const char *at = strstr(line, mark), *value = strstr(line, "} ");

		if (at && value && at < value)
			return live_text("%.*s", (int)strcspn(value + 2, "\n"), value + 2);
	}
	live_fail("%d is not in:\n%s", pid, text);
}

/* A profiler's. */
static void short_handlers_at_1_khz_have_nobody_seized(void)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(INTERRUPTED, "--threads", "2", "--hits", "1000", NULL);
	struct state *before = state_take(victim->pid);
	const char *held;

	release(tool, victim->pid);
	/* Pages of the ring are touched for the first time. */
	subject_command(victim, 'g');
	held = held_of(tool, victim->pid);
	for (unsigned i = 0; i < live_rounds(3, 100); i++) {
		subject_command(victim, 'g');
		require_tally(tool, victim, 0);
	}
	if (strcmp(held_of(tool, victim->pid), held) != 0)
		live_fail("its threads were held for %s s, and for %s s before that", held_of(tool, victim->pid), held);
	tool_end(tool, victim, before);
}

/* Whether a block counts whose return was recorded, and had not come yet when the handler jumped, is not known to the program.  Returns how
 * many of these do. */
static long require_known(struct tool *tool, const struct subject *jumper)
{
	json_t *status = tool_status(tool, jumper->pid);
	long more = (long)json_number(status, "blocks") - subject_tally(jumper, "blocks");

	require_at_least(more, 0);
	require_at_least(subject_tally(jumper, "unclear"), more);
	require_nothing_unknown(status, 0);
	return more;
}

/* Each one that leaves a record half-written has the process seized. */
static void a_handler_at_1_khz_jumps_out_of_malloc_at_any_instruction(void)
{
	struct tool *tool = tool_start();
	struct subject *jumper = victim_start("tests/victims/jumper", NULL);
	struct state *before = state_take(jumper->pid);
	long more = 0;

	release(tool, jumper->pid);
	for (unsigned i = 0; i < live_rounds(20, 500); i++) {
		subject_command(jumper, 'g');
		more = require_known(tool, jumper);
	}
	live_note("%ld jumps, %ld blocks that nobody has", subject_tally(jumper, "jumps"), more);
	live_survey("jumps out of malloc at 1 kHz without ptrace", (unsigned)subject_tally(jumper, "jumps"), 0, 1, 1);
	tool_end(tool, jumper, before);
}

/* Then it costs less to be stopped for each signal; and nothing is unclear any more. */
static void who_would_be_seized_all_the_time_is_held(void)
{
	struct tool *tool = tool_start();
	struct subject *jumper = victim_start("tests/victims/jumper", "--jumps", "500", "--turns", "1", NULL);
	struct state *before = state_take(jumper->pid);
	json_t *status;
	long more;

	release(tool, jumper->pid);
	for (unsigned i = 0; status_number(jumper->pid, "TracerPid", 10) == 0; i++) {
		require(i < 60);
		subject_command(jumper, 'g');
		require_known(tool, jumper);
	}
	status = tool_status(tool, jumper->pid);
	require(!json_is_true(json_object_get(status, "released")));
	require_text(json_text(status, "hold_reason"), "signals");
	subject_command(jumper, 'g');
	more = require_known(tool, jumper);
	for (unsigned i = 0; i < live_rounds(3, 100); i++) {
		subject_command(jumper, 'g');
		require_equal(require_known(tool, jumper), more);
	}
	tool_end(tool, jumper, before);
}

static const struct live_case cases[] = {
	LIVE_CASE(a_handler_that_sleeps_in_the_midst_of_a_record_holds_nobody_up),
	LIVE_CASE(a_handler_that_allocates_and_sleeps_there_holds_nobody_up),
	LIVE_CASE(a_handler_on_a_sigaltstack_sleeps_there),
	LIVE_CASE(a_handler_within_a_handler_sleeps_there),
	LIVE_CASE(handlers_of_8_threads_sleep_there),
	LIVE_CASE(short_handlers_at_1_khz_have_nobody_seized),
	LIVE_CASE(a_handler_at_1_khz_jumps_out_of_malloc_at_any_instruction),
	LIVE_CASE(who_would_be_seized_all_the_time_is_held),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
