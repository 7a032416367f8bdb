/* Allocator calls that do not return as expected: whatever happens between entry and return, the heap is what the
 * program says it is, to the block, and no call stays pending. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <stdlib.h>

#define CALLERS "tests/victims/callers"

/* manner: an option of the victim's, or NULL. */
static struct subject *start_callers(const char *manner)
{
	const char *rounds = live_text("%u", live_rounds(4, 400));
	struct subject *callers;

	setenv("LD_PRELOAD", live_text("%s/tests/victims/wrapper.so", live_build()), 1);
	callers = victim_start(CALLERS, "--rounds", rounds, manner, NULL);
	unsetenv("LD_PRELOAD");
	return callers;
}

static void require_exact(struct tool *tool, const struct subject *victim)
{
	json_t *status = tool_status(tool, victim->pid);

	live_note("%s", victim->line);
	require_equal(json_number(status, "blocks"), subject_tally(victim, "blocks"));
	require_equal(json_number(status, "traced_current"), subject_tally(victim, "bytes"));
	require_equal(json_number(status, "pending_calls"), 0);
	require_nothing_unknown(status, 0);
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
		subject_command(callers, *way);
		require_exact(tool, callers);
	}
	require_at_least(subject_tally(callers, "ways"), live_rounds(4, 400));
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

static void signals_that_are_waited_for_change_nothing(void)
{
	go("w");
}

static void one_way_after_the_other(void)
{
	go_in_manner("kjJReEcfFnrxXhHdaw", "--log");
}

static const struct live_case cases[] = {
	LIVE_CASE(a_wrapped_malloc_counts_once),
	LIVE_CASE(a_call_left_by_a_jump_is_not_pending),
	LIVE_CASE(a_thread_that_ends_in_a_call_leaves_nothing_pending),
	LIVE_CASE(a_call_that_forks_returns_once),
	LIVE_CASE(what_a_hook_allocates_is_its_own),
	LIVE_CASE(a_coroutine_switched_within_a_call_returns_from_it),
	LIVE_CASE(a_handler_within_a_call_allocates),
	LIVE_CASE(a_handler_within_operator_delete_allocates),
	LIVE_CASE(a_handler_at_1_khz_jumps_out_of_calls),
	LIVE_CASE(signals_that_are_waited_for_change_nothing),
	LIVE_CASE(one_way_after_the_other),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
