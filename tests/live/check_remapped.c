/* Stacks that are unmapped and mapped again all the time, with other threads' mappings next to them: how much the code in the process
 * may copy of a stack is never what was mapped a moment ago. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <stdbool.h>

#define REMAPPED "tests/victims/remapped"
#define MANY 10000                     /* mappings that come or go, at least */

static void require_counts(struct tool *tool, const struct subject *victim)
{
	json_t *status = tool_status(tool, victim->pid);

	live_note("%s", victim->line);
	require(json_is_true(json_object_get(status, "exact")));
	require_equal(json_number(status, "blocks"), subject_tally(victim, "blocks"));
	require_equal(json_number(status, "traced_current"), subject_tally(victim, "bytes"));
	require_nothing_unknown(status, 0);
}

static void attach(struct tool *tool, const struct subject *victim, bool held)
{
	if (held)
		tool_attach_held(tool, victim->pid);
	else
		tool_attach(tool, victim->pid);
}

static void go(char command, const char *option, bool held)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(REMAPPED, "--rounds", live_text("%u", live_rounds(500, 20000)), option, NULL);
	struct state *before = state_take(victim->pid);
	long changed = 0;

	live_note("%c %s%s", command, option ? option : "", held ? " held" : "");
	attach(tool, victim, held);
	while (changed < MANY) {
		subject_command(victim, command);
		require_counts(tool, victim);
		changed = 2 * (subject_tally(victim, "stacks") + subject_tally(victim, "neighbours"));
	}
	require_at_least(subject_tally(victim, "blocks"), 1);
	tool_end(tool, victim, before);
}

static void in_all_ways(char command)
{
	go(command, NULL, false);
	go(command, "--raw", false);
	go(command, "--raw", true);
}

static void stacks_of_coroutines_come_and_go(void)
{
	in_all_ways('c');
}

static void alternate_stacks_come_and_go(void)
{
	in_all_ways('s');
}

static void threads_own_stacks_come_and_go(void)
{
	in_all_ways('t');
}

static void what_is_next_to_a_stack_comes_and_goes(void)
{
	in_all_ways('n');
}

static const struct live_case cases[] = {
	LIVE_CASE(stacks_of_coroutines_come_and_go),
	LIVE_CASE(alternate_stacks_come_and_go),
	LIVE_CASE(threads_own_stacks_come_and_go),
	LIVE_CASE(what_is_next_to_a_stack_comes_and_goes),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
