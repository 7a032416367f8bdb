/* Processes by every combination of clone's flags: they end as untraced, and those with a copy of the memory find nothing
 * of ours in them. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <sys/wait.h>

#define CLONES "tests/victims/clones"
#define GOOD 21
#define KINDS 30

/* One of each, and the one that is ours to wait for. */
static void one_of_each(struct subject *clones)
{
	int status;

	subject_command(clones, 'g');
	if (subject_tally(clones, "bad") != 0)
		live_fail("a child did not end as untraced, or found something: %s", clones->line);
	require(waitpid((pid_t)subject_tally(clones, "parented"), &status, 0) > 0);
	require(WIFEXITED(status));
	require_equal(WEXITSTATUS(status), GOOD);
}

static void make_children(struct tool *tool, struct subject *clones, bool follow)
{
	unsigned rounds = live_rounds(2, 100);
	struct state *before;
	long made, skipped;

	one_of_each(clones);
	made = subject_tally(clones, "children");
	skipped = subject_tally(clones, "skipped");
	require_at_least(made + skipped, KINDS);
	require_at_least(made, KINDS - 6);
	before = state_take(clones->pid);
	for (unsigned i = 0; i < rounds; i++) {
		tool_out(tool, "attach", pid_text(clones->pid), follow ? "--follow-forks" : NULL, NULL);
		one_of_each(clones);
		one_of_each(clones);
		require_nothing_unknown(tool_status(tool, clones->pid), 0);
		tool_detach(tool, clones->pid);
		require_unharmed(clones->pid, before);
		one_of_each(clones);
	}
	require_equal(subject_tally(clones, "skipped"), skipped * (1 + 3 * (long)rounds));
	require_equal(subject_tally(clones, "children"), made * (1 + 3 * (long)rounds));
	live_note("%ld kinds are not to be had here", skipped);
	live_survey(follow ? "clone with all flags, followed" : "clone with all flags", rounds, 0,
		    (unsigned)subject_tally(clones, "children"), (unsigned)subject_tally(clones, "children"));
	subject_quit(clones);
}

static void children_end_as_untraced_and_find_nothing(void)
{
	make_children(tool_start(), victim_start(CLONES, NULL), false);
}

/* Where it clears handlers the flag clears the program's, and ours does not come in their place. */
static void those_of_a_program_with_a_handler_for_traps(void)
{
	make_children(tool_start(), victim_start(CLONES, "--own-trap", NULL), false);
}

static void those_of_an_ordinary_user(void)
{
	make_children(tool_start_ordinary(), victim_start_ordinary(CLONES, NULL), false);
}

static void followed_ones_end_as_untraced(void)
{
	make_children(tool_start(), victim_start(CLONES, "--blind", NULL), true);
}

static const struct live_case cases[] = {
	LIVE_CASE(children_end_as_untraced_and_find_nothing),
	LIVE_CASE(those_of_a_program_with_a_handler_for_traps),
	LIVE_CASE(those_of_an_ordinary_user),
	LIVE_CASE(followed_ones_end_as_untraced),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
