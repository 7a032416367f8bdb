/* Children: forked, vforked, spawned, cloned, exec'd; not followed, and none may notice. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <signal.h>
#include <stdlib.h>

static void forked_children_are_let_go_clean(void)
{
	struct tool *tool = tool_start();
	struct subject *tree = victim_start("tests/victims/forktree", NULL);
	struct state *before = state_take(tree->pid);

	tool_attach(tool, tree->pid);
	for (int i = 0; i < 5; i++) {
		subject_command(tree, 'g');
		require_equal(subject_tally(tree, "bad"), 0);
	}
	require_at_least(subject_tally(tree, "children"), 5 * 39);
	require_row(tool_stats(tool, pid_text(tree->pid)), "tests/victims/forktree.c", "/* root block */", 5 * 72, 5);
	require_nothing_unknown(tool_status(tool, tree->pid), 0);
	tool_end(tool, tree, before);
}

/* What children allocate who share the memory is the parent's; and the parent keeps its probes. */
static void children_that_share_memory_belong_to_the_heap(void)
{
	struct tool *tool = tool_start();
	struct subject *spawner = victim_start("tests/victims/spawner", NULL);
	struct state *before = state_take(spawner->pid);

	tool_attach(tool, spawner->pid);
	for (int i = 0; i < 4; i++) {
		subject_command(spawner, 'g');
		require_equal(subject_tally(spawner, "bad"), 0);
		require_row(tool_stats(tool, pid_text(spawner->pid)), "tests/victims/spawner.c",
			    "/* child block */", subject_tally(spawner, "bytes"), subject_tally(spawner, "blocks"));
	}
	require_at_least(subject_tally(spawner, "spawned"), 4 * 15);
	require_nothing_unknown(tool_status(tool, spawner->pid), 0);
	tool_end(tool, spawner, before);
}

/* One that was there before the attach, with dispositions of its own, meets our int3s as the threads do. */
static void a_process_that_shares_memory_already_is_taken_in(void)
{
	struct tool *tool = tool_start();
	struct subject *sharer = victim_start("tests/victims/sharer", NULL);
	struct state *before, *clone_before;
	pid_t clone;
	long blocks;

	subject_command(sharer, 'g');
	clone = (pid_t)subject_tally(sharer, "child");
	blocks = subject_tally(sharer, "blocks");
	before = state_take(sharer->pid);
	clone_before = state_take(clone);
	tool_attach(tool, sharer->pid);
	for (int i = 0; i < 3; i++)
		subject_command(sharer, 'g');
	blocks = subject_tally(sharer, "blocks") - blocks;
	require_row(tool_stats(tool, pid_text(sharer->pid)), "tests/victims/sharer.c", "/* shared block */",
		    136 * blocks, blocks);
	require_nothing_unknown(tool_status(tool, sharer->pid), 0);
	tool_detach(tool, sharer->pid);
	require_unharmed(clone, clone_before);
	require_unharmed(sharer->pid, before);
	subject_command(sharer, 'g');
	subject_quit(sharer);
}

static void a_sharer_survives_its_tracers_death(void)
{
	struct tool *tool = tool_start();

	for (int i = 0; i < 4; i++) {
		struct subject *sharer = victim_start("tests/victims/sharer", NULL);

		tool_attach(tool, sharer->pid);
		subject_send(sharer, 'g');
		kill(tool_tracer(sharer->pid), SIGKILL);
		subject_line(sharer);
		subject_command(sharer, 'g');
		subject_quit(sharer);
	}
}

/* The only thread waits in vfork, uninterruptibly, and cannot be given a SIGTRAP handler now. */
static void a_process_in_vfork_is_let_go_unchanged(void)
{
	struct tool *tool = tool_start();
	struct subject *sharer = victim_start("tests/victims/sharer", "vfork", NULL);
	struct tool_run result;
	pid_t clone;

	subject_command(sharer, 'g');
	clone = (pid_t)subject_tally(sharer, "child");
	for (int i = 0; i < 3; i++) {
		result = tool_try(tool, "attach", pid_text(sharer->pid), NULL);
		require_equal(result.status, 1);
		require_text(result.err, "in vfork");
		subject_command(sharer, 'g');
		require_equal(subject_tally(sharer, "own"), 0);
		text_require_intact(clone);
	}
	require_unharmed(clone, NULL);
	subject_quit(sharer);
}

/* After the detach the children of the target are nobody's business; before it, all were let go. */
static void children_alive_at_the_detach_are_unharmed(void)
{
	struct tool *tool = tool_start();
	struct subject *tree = victim_start("tests/victims/forktree", NULL);
	struct state *before = state_take(tree->pid);

	for (int i = 0; i < 6; i++) {
		tool_attach(tool, tree->pid);
		subject_send(tree, 'g');
		subject_send(tree, 'g');
		tool_detach(tool, tree->pid);
		subject_line(tree);
		subject_line(tree);
		require_equal(subject_tally(tree, "bad"), 0);
	}
	require_unharmed(tree->pid, before);
	subject_quit(tree);
}

static void an_exec_starts_a_new_heap(void)
{
	struct tool *tool = tool_start();
	struct subject *execer = victim_start("tests/victims/execer", NULL);
	const char *pid = pid_text(execer->pid);

	tool_attach(tool, execer->pid);
	for (int i = 1; i <= 3; i++) {
		subject_command(execer, 'a');
		subject_command(execer, 'a');
		require_equal(subject_tally(execer, "execs"), i - 1);
		require_row(tool_stats(tool, pid), "tests/victims/execer.c", "/* kept */", 416, 2);
		subject_command(execer, 'g');
	}
	subject_command(execer, 'a');
	require_row(tool_stats(tool, pid), "tests/victims/execer.c", "/* kept */", 208, 1);
	require_nothing_unknown(tool_status(tool, execer->pid), 0);
	tool_end(tool, execer, NULL);
}

static const struct live_case cases[] = {
	LIVE_CASE(forked_children_are_let_go_clean),
	LIVE_CASE(children_that_share_memory_belong_to_the_heap),
	LIVE_CASE(a_process_that_shares_memory_already_is_taken_in),
	LIVE_CASE(a_sharer_survives_its_tracers_death),
	LIVE_CASE(a_process_in_vfork_is_let_go_unchanged),
	LIVE_CASE(children_alive_at_the_detach_are_unharmed),
	LIVE_CASE(an_exec_starts_a_new_heap),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
