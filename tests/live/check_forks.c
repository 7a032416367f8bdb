/* Children of each kind, and storms of them: those that are not followed find nothing of ours in them, those that are
 * run as ever, and their parent loses no probe. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <string.h>

#define FORKS "tests/victims/forks"
#define FORKS_C "tests/victims/forks.c"
#define STORM 150
#define KEPT 3                     /* blocks, in each round, of which the children of the storm after it have copies */
#define COUNTED_MS 30000

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

struct storm {
	struct tool *tool;
	pid_t pid;
	long long children, kept, refused_before;
};

/* Those that were followed have left a snapshot each. */
static long long followed(const struct storm *storm)
{
	json_t *snapshots = json_object_get(tool_json(storm->tool, "snapshots", NULL), "snapshots"), *snapshot;
	long long count = 0;
	size_t i;

	json_array_foreach(snapshots, i, snapshot)
		count += strcmp(json_text(snapshot, "name"), "exit") == 0 &&
			 json_number(snapshot, "count") == storm->kept;
	return count;
}

static long long refused(const struct storm *storm)
{
	return json_number(tool_status(storm->tool, storm->pid), "children_not_followed");
}

/* How many of them are followed is a matter of time: a daemon that hears of one late may have room for it again. */
static bool all_are_counted(void *context)
{
	const struct storm *storm = context;

	return followed(storm) + refused(storm) - storm->refused_before >= storm->children;
}

/* More of them at the same time than a tracer and the daemon will follow. */
static void followed_children_of_each_kind_run_as_ever(void)
{
	struct tool *tool = tool_start();
	unsigned storm = live_rounds(150, 1500), rounds = live_rounds(2, 20);
	struct subject *forks = victim_start(FORKS, "--blind", "--storm", live_text("%u", storm), NULL);
	struct state *before;
	struct storm one;

	subject_command(forks, 'g');
	require_all_good(forks);
	before = state_take(forks->pid);
	tool_out(tool, "attach", "--follow-forks", pid_text(forks->pid), NULL);
	for (unsigned i = 1; i <= rounds; i++) {
		subject_command(forks, 'g');
		require_all_good(forks);
		one = (struct storm){ tool, forks->pid, storm, KEPT * i, 0 };
		one.refused_before = refused(&one);
		subject_command(forks, 's');
		require_all_good(forks);
		require_row(tool_stats(tool, pid_text(forks->pid)), FORKS_C, "/* after a failed exec */", 504 * i,
			    KEPT * i);
		require_nothing_unknown(tool_status(tool, forks->pid),
					json_number(tool_status(tool, forks->pid), "unknown.before_attach_frees"));
		if (!live_wait(all_are_counted, &one, COUNTED_MS))
			live_fail("of %u children %lld were followed, and %lld counted as not followed", storm,
				  followed(&one), refused(&one) - one.refused_before);
		live_note("storm %u: %lld followed, %lld not", i, followed(&one), refused(&one) - one.refused_before);
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
