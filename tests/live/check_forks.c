/* Children of each kind, and storms of them: those that are not followed find nothing of ours in them, those that are
 * run as ever, and their parent loses no probe. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#define FORKS "tests/victims/forks"
#define FORKS_C "tests/victims/forks.c"
#define STORM 150
#define SESSIONS 64                /* of one daemon, see daemon/limits.h */

static void require_all_good(const struct subject *forks)
{
	if (subject_tally(forks, "bad") != 0)
		live_fail("a child found something: %s", forks->line);
}

static void make_children(const char *option, const char *value)
{
	struct tool *tool = tool_start();
	struct subject *forks = victim_start(FORKS, "--storm", live_text("%d", STORM), option, value, NULL);
	struct state *before;
	unsigned rounds = live_rounds(3, 200);

	/* Untraced they are good, too. */
	subject_command(forks, 'g');
	require_all_good(forks);
	before = state_take(forks->pid);
	for (unsigned i = 0; i < rounds; i++) {
		long blocks = subject_tally(forks, "blocks");

		tool_attach(tool, forks->pid);
		subject_command(forks, 'g');
		require_all_good(forks);
		subject_command(forks, 's');
		require_all_good(forks);
		blocks = subject_tally(forks, "blocks") - blocks;
		require_equal(blocks, 3);
		require_row(tool_stats(tool, pid_text(forks->pid)), FORKS_C, "/* after a failed exec */", 168 * blocks,
			    blocks);
		require_nothing_unknown(tool_status(tool, forks->pid),
					json_number(tool_status(tool, forks->pid), "unknown.before_attach_frees"));
		tool_detach(tool, forks->pid);
		require_unharmed(forks->pid, before);
	}
	require_at_least(subject_tally(forks, "children"), (long long)rounds * (STORM + 8));
	live_survey("children of each kind, unfollowed", rounds, 0, (unsigned)subject_tally(forks, "children"),
		    (unsigned)subject_tally(forks, "children"));
	subject_quit(forks);
}

static void children_of_each_kind_find_nothing_in_them(void)
{
	make_children(NULL, NULL);
}

static void children_of_threads_that_allocate_find_nothing_in_them(void)
{
	make_children("--threads", "2");
}

/* The attach takes SIGTRAP out of masks; children have it back. */
static void children_have_the_mask_of_an_untraced_parent(void)
{
	make_children("--block-trap", NULL);
}

/* More of them at the same time than a tracer and the daemon will follow. */
static void followed_children_of_each_kind_run_as_ever(void)
{
	struct tool *tool = tool_start();
	unsigned storm = live_rounds(150, 1500), rounds = live_rounds(2, 20);
	struct subject *forks = victim_start(FORKS, "--blind", "--storm", live_text("%u", storm), NULL);
	struct state *before;

	subject_command(forks, 'g');
	require_all_good(forks);
	before = state_take(forks->pid);
	tool_out(tool, "attach", "--follow-forks", pid_text(forks->pid), NULL);
	for (unsigned i = 1; i <= rounds; i++) {
		subject_command(forks, 'g');
		require_all_good(forks);
		subject_command(forks, 's');
		require_all_good(forks);
		require_row(tool_stats(tool, pid_text(forks->pid)), FORKS_C, "/* after a failed exec */", 504 * i,
			    3 * i);
		require_nothing_unknown(tool_status(tool, forks->pid),
					json_number(tool_status(tool, forks->pid), "unknown.before_attach_frees"));
		/* Who is past the limits is counted. */
		require_at_least(json_number(tool_status(tool, forks->pid), "children_not_followed"),
				 i * (storm - SESSIONS));
	}
	live_survey("children of each kind, followed, in storms", rounds, 0, rounds * (storm + 8), rounds * (storm + 8));
	tool_end(tool, forks, before);
}

static const struct live_case cases[] = {
	LIVE_CASE(children_of_each_kind_find_nothing_in_them),
	LIVE_CASE(children_of_threads_that_allocate_find_nothing_in_them),
	LIVE_CASE(followed_children_of_each_kind_run_as_ever),
	LIVE_CASE(children_have_the_mask_of_an_untraced_parent),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
