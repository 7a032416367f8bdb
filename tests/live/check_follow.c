/* --follow-forks: children are targets of their own, with what was live at the fork. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define FORKER "tests/victims/forker"
#define FORKER_C "tests/victims/forker.c"
#define LIST_MS 10000
#define LESS_BYTES (1 << 20)

static void attach_following(struct tool *tool, pid_t pid)
{
	tool_out(tool, "attach", "--follow-forks", pid_text(pid), NULL);
}

static pid_t fork_followed(struct tool *tool, struct subject *forker)
{
	pid_t child;

	subject_command(forker, 'g');
	child = (pid_t)subject_tally(forker, "child");
	tool_wait_until_traced(tool, child, LIST_MS);
	return child;
}

static void a_child_has_what_was_live_at_the_fork(void)
{
	struct tool *tool = tool_start();
	struct subject *forker = victim_start(FORKER, NULL);
	struct state *before = state_take(forker->pid);
	const char *exit_snapshot;

	attach_following(tool, forker->pid);
	for (int i = 1; i <= 3; i++) {
		pid_t child = fork_followed(tool, forker);

		require_row(tool_stats(tool, pid_text(child)), FORKER_C, "/* kept */", 104 * i, i);
		require_nothing_unknown(tool_status(tool, child), 0);
		subject_command(forker, 'g');
		require_equal(subject_tally(forker, "status"), 7);
		tool_wait_until_gone(tool, child, LIST_MS);
		exit_snapshot = live_text("%d:exit", child);
		require_row(tool_stats(tool, exit_snapshot), FORKER_C, "/* kept */", 104 * i, i);
		require_row(tool_stats(tool, exit_snapshot), FORKER_C, "/* the child's own */", 312, 3);
		require_row(tool_stats(tool, pid_text(forker->pid)), FORKER_C, "/* kept */", 104 * i, i);
		require(row_at(tool_stats(tool, pid_text(forker->pid)), FORKER_C,
			       line_of(FORKER_C, "/* the child's own */")) == NULL);
	}
	require_nothing_unknown(tool_status(tool, forker->pid), 0);
	tool_end(tool, forker, before);
}

/* Each of these commands allocates and ends: its exit snapshots are there, and not empty. */
static void require_spawned(struct tool *tool, const char *command, long long least)
{
	json_t *snapshots = json_object_get(tool_json(tool, "snapshots", NULL), "snapshots"), *snapshot;
	size_t i, found = 0;

	json_array_foreach(snapshots, i, snapshot) {
		const char *name = json_string_value(json_object_get(snapshot, "name"));

		if (name && !strcmp(name, "exit") && strstr(json_text(snapshot, "command"), command)) {
			require_at_least(json_number(snapshot, "count"), 1);
			found++;
		}
	}
	require_at_least((long long)found, least);
}

static void an_ordinary_user_follows_own_children(void)
{
	struct tool *tool;
	struct subject *forker;
	struct state *before;
	pid_t child;

	if (geteuid() != 0)
		live_skip("becoming an ordinary user needs root");
	tool = tool_start_ordinary();
	forker = victim_start_ordinary(FORKER, NULL);
	before = state_take(forker->pid);
	attach_following(tool, forker->pid);
	child = fork_followed(tool, forker);
	require_equal(status_number(tool_tracer(child), "Uid", 10), ORDINARY_UID);
	require_row(tool_stats(tool, pid_text(child)), FORKER_C, "/* kept */", 104, 1);
	require_nothing_unknown(tool_status(tool, child), 0);
	subject_command(forker, 'g');
	require_equal(subject_tally(forker, "status"), 7);
	tool_end(tool, forker, before);
}

/* A shell, the commands that it forks and executes, and theirs. */
static void run_follows_from_the_first_instruction(void)
{
	struct tool *tool = tool_start();
	struct tool_run result = tool_try(tool, "run", "--follow-forks", "--", "/bin/sh", "-c",
					  "/bin/sh -c 'exit 7'; (exit 5); /bin/sh -c '/bin/sh -c \"exit 7\"; exit 7'; exit 9",
					  NULL);

	require_equal(result.status, 9);
	require_spawned(tool, "exit 7", 3);
}

static void a_child_is_let_go_by_itself(void)
{
	struct tool *tool = tool_start();
	struct subject *forker = victim_start(FORKER, NULL);
	struct state *before = state_take(forker->pid);
	pid_t child;

	attach_following(tool, forker->pid);
	child = fork_followed(tool, forker);
	tool_detach(tool, child);
	require_unharmed(child, NULL);
	require(tool_lists(tool, forker->pid));
	subject_command(forker, 'g');
	require_equal(subject_tally(forker, "status"), 7);
	child = fork_followed(tool, forker);
	tool_detach(tool, forker->pid);
	require_unharmed(forker->pid, before);
	require(tool_lists(tool, child));
	subject_command(forker, 'g');
	require_equal(subject_tally(forker, "status"), 7);
	subject_quit(forker);
}

static void a_followed_tree_notices_nothing(void)
{
	struct tool *tool = tool_start();
	struct subject *tree = victim_start("tests/victims/forktree", NULL);
	struct state *before = state_take(tree->pid);
	unsigned rounds = live_rounds(2, 40);

	attach_following(tool, tree->pid);
	for (unsigned i = 0; i < rounds; i++) {
		subject_command(tree, 'g');
		require_equal(subject_tally(tree, "bad"), 0);
	}
	live_survey("followed fork trees", rounds, 0, rounds * 39 + 1, rounds * 39 + 1);
	require_row(tool_stats(tool, pid_text(tree->pid)), "tests/victims/forktree.c", "/* root block */",
		    (long long)rounds * 72, (long long)rounds);
	require_nothing_unknown(tool_status(tool, tree->pid), 0);
	tool_end(tool, tree, before);
}

static void spawned_programs_are_followed(void)
{
	struct tool *tool = tool_start();
	struct subject *spawner = victim_start("tests/victims/spawner", NULL);
	struct state *before = state_take(spawner->pid);

	attach_following(tool, spawner->pid);
	for (int i = 0; i < 2; i++) {
		subject_command(spawner, 'g');
		require_equal(subject_tally(spawner, "bad"), 0);
	}
	require_row(tool_stats(tool, pid_text(spawner->pid)), "tests/victims/spawner.c", "/* child block */",
		    subject_tally(spawner, "bytes"), subject_tally(spawner, "blocks"));
	require_nothing_unknown(tool_status(tool, spawner->pid), 0);
	require_spawned(tool, "exit 7", 6);
	require_spawned(tool, "exit 5", 6);
	tool_end(tool, spawner, before);
}

static void a_childs_tracer_killed_does_no_harm(void)
{
	struct tool *tool = tool_start();
	struct subject *forker = victim_start(FORKER, NULL);
	unsigned rounds = live_rounds(4, 100);

	attach_following(tool, forker->pid);
	for (unsigned i = 0; i < rounds; i++) {
		pid_t child = fork_followed(tool, forker);

		kill(tool_tracer(child), SIGKILL);
		subject_command(forker, 'g');
		require_equal(subject_tally(forker, "status"), 7);
	}
	live_survey("tracer of a followed child killed", rounds, rounds, rounds, rounds);
	tool_detach(tool, forker->pid);
	require_unharmed(forker->pid, NULL);
	subject_quit(forker);
}

/* Kills the first child process that this tracer has, as soon as there is one. */
static pid_t start_killer(pid_t tracer)
{
	const char *path = live_text("/proc/%d/task/%d/children", tracer, tracer);
	pid_t killer = fork(), child = 0;

	while (killer == 0 && child == 0) {
		FILE *f = fopen(path, "re");

		if (!f || (fscanf(f, "%d", &child) == 1 && kill(child, SIGKILL) < 0))
			_exit(1);
		fclose(f);
	}
	if (killer == 0)
		_exit(0);
	return killer;
}

static bool is_clean(void *context)
{
	pid_t pid = *(pid_t *)context;
	size_t bytes;

	return status_number(pid, "TracerPid", 10) == 0 && text_difference(pid, &bytes) == NULL;
}

/* The child waits parked, for nobody: it goes on by itself, and is healed. */
static void a_childs_tracer_killed_at_its_birth_does_no_harm(void)
{
	struct tool *tool = tool_start();
	struct subject *forker = victim_start(FORKER, NULL);
	unsigned rounds = live_rounds(3, 60);

	attach_following(tool, forker->pid);
	for (unsigned i = 0; i < rounds; i++) {
		pid_t killer = start_killer(tool_tracer(forker->pid)), child;
		int status;

		subject_command(forker, 'g');
		child = (pid_t)subject_tally(forker, "child");
		require(waitpid(killer, &status, 0) == killer);
		require_equal(status, 0);
		require(live_wait(is_clean, &child, LIST_MS));
		subject_command(forker, 'g');
		require_equal(subject_tally(forker, "status"), 7);
	}
	live_survey("tracer of a followed child killed at its birth", rounds, rounds, rounds, rounds);
	tool_detach(tool, forker->pid);
	require_unharmed(forker->pid, NULL);
	subject_quit(forker);
}

struct not_followed {
	struct tool *tool;
	pid_t parent;
	int children;
};

static bool counts_as_not_followed(void *context)
{
	struct not_followed *awaited = context;

	return json_number(tool_status(awaited->tool, awaited->parent), "children_not_followed") == awaited->children;
}

/* Of what it has a child has all but the ring, and may not map a ring of its own then. */
static void limit_memory(pid_t pid)
{
	rlim_t bytes = (rlim_t)status_number(pid, "VmSize", 10) * 1024 - LESS_BYTES;
	struct rlimit limit = { bytes, bytes };

	require_equal(prlimit(pid, RLIMIT_AS, &limit, NULL), 0);
}

static void a_child_that_can_have_no_ring_is_counted_as_not_followed(void)
{
	struct tool *tool = tool_start();
	struct subject *forker = victim_start(FORKER, NULL);
	struct state *before = state_take(forker->pid);

	tool_out(tool, "attach", "--follow-forks", "--engine", "ring", pid_text(forker->pid), NULL);
	fork_followed(tool, forker);               /* so that it has a heap */
	subject_command(forker, 'g');
	limit_memory(forker->pid);
	for (int i = 1; i <= 3; i++) {
		struct not_followed awaited = { tool, forker->pid, i };
		pid_t child;

		subject_command(forker, 'g');
		child = (pid_t)subject_tally(forker, "child");
		require(live_wait(counts_as_not_followed, &awaited, LIST_MS));
		require(!tool_lists(tool, child));
		require_unharmed(child, NULL);
		subject_command(forker, 'g');
		require_equal(subject_tally(forker, "status"), 7);
	}
	require_nothing_unknown(tool_status(tool, forker->pid), 0);
	tool_end(tool, forker, before);
}

static const struct live_case cases[] = {
	LIVE_CASE(a_child_has_what_was_live_at_the_fork),
	LIVE_CASE(an_ordinary_user_follows_own_children),
	LIVE_CASE(run_follows_from_the_first_instruction),
	LIVE_CASE(a_child_is_let_go_by_itself),
	LIVE_CASE(a_followed_tree_notices_nothing),
	LIVE_CASE(spawned_programs_are_followed),
	LIVE_CASE(a_childs_tracer_killed_does_no_harm),
	LIVE_CASE(a_childs_tracer_killed_at_its_birth_does_no_harm),
	LIVE_CASE(a_child_that_can_have_no_ring_is_counted_as_not_followed),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
