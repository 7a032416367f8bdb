/* Before it is too late: snapshots that the daemon takes by itself when a process's memory runs out, in real cgroups, up to a
 * real OOM kill, and what they say afterwards; also across an upgrade. */
#include "cgroup.h"
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOURCE "tests/victims/eater.c"
#define EATEN "/* eaten block */"
#define BOX_BYTES (64L << 20)
#define MANY_MS 60000

/* One of version 2, for its pressure. */
static const char *make_pressure_box(void)
{
	const char *parent = cgroup_own("/sys/fs/cgroup", "0::");
	const char *box;

	if (!parent || access(live_text("%s/cgroup.procs", parent), F_OK) != 0 ||
	    access(live_text("%s/cgroup.controllers", parent), F_OK) != 0)
		parent = cgroup_own("/sys/fs/cgroup/unified", "0::");
	if (!parent || access(live_text("%s/cgroup.controllers", parent), F_OK) != 0)
		live_skip("cgroups of version 2 are not mounted here");
	box = cgroup_make(parent);
	if (access(live_text("%s/memory.pressure", box), F_OK) == 0)
		return box;
	rmdir(box);
	live_skip("this kernel tells no pressure");
}

/* Fills the page cache in these cgroups, so that much of it has to go again. */
static void write_much(const char *const *boxes)
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		for (; *boxes; boxes++)
			cgroup_move(*boxes, getpid());
		execlp("dd", "dd", "if=/dev/zero", live_text("of=%s/much", live_folder()), "bs=1M", "count=400",
		       "status=none", (char *)NULL);
		_exit(127);
	}
	/* Where the file is in memory itself, it is killed for want of memory. */
	require(waitpid(pid, &status, 0) == pid && (status == 0 || WIFSIGNALED(status)));
	unlink(live_text("%s/much", live_folder()));
}

/* --- a daemon and what it watches --- */

static struct tool *start(const char *alarms)
{
	const char *path = live_text("%s/daemon.conf", live_folder());
	FILE *file = fopen(path, "w");

	require(file);
	fprintf(file, "[Alarms]\nLeastTime=1\n%s", alarms);
	fclose(file);
	require(chmod(path, 0644) == 0);
	return tool_start_system("--config", path);
}

static const char *copy_of(const char *program)
{
	const char *path = live_text("%s/watched-program", live_folder());

	if (system(live_text("cp -f '%s/%s' '%s.new' && mv '%s.new' '%s'", live_build(), program, path, path, path)) != 0)
		live_fail("%s cannot be copied", program);
	return path;
}

/* The snapshots of its run with that number; 0 is the first. */
static json_t *snapshots_of(struct tool *tool, const char *program, size_t run)
{
	json_t *history = tool_json(tool, "history", "--exe", program, NULL);

	return json_object_get(json_array_get(json_object_get(history, "runs"), run), "snapshots");
}

struct wanted {
	struct tool *tool;
	const char *program, *name;
	size_t run;
	const char *id, *reason;        /* filled in */
};

static bool is_kept(void *context)
{
	struct wanted *wanted = context;
	json_t *info;
	size_t i;

	json_array_foreach(snapshots_of(wanted->tool, wanted->program, wanted->run), i, info) {
		if (strcmp(json_text(info, "name"), wanted->name) != 0)
			continue;
		wanted->id = live_text("%s", json_text(info, "id"));
		if (json_is_string(json_object_get(info, "reason")))
			wanted->reason = live_text("%s", json_text(info, "reason"));
		return true;
	}
	return false;
}

static struct wanted wait_for(struct tool *tool, const char *program, size_t run, const char *name)
{
	struct wanted wanted = { .tool = tool, .program = program, .name = name, .run = run };

	if (!live_wait(is_kept, &wanted, MANY_MS))
		live_fail("no snapshot %s of run %zu is kept", name, run);
	live_note("%s: %s", name, wanted.reason ? wanted.reason : "");
	return wanted;
}

static struct subject *start_watched(struct tool *tool, const char *program, const char *option, const char *value)
{
	struct subject *subject = victim_start_as(geteuid(), program, NULL);

	tool_out(tool, "watch", "--exe", program, "--every", "1h", option, value, NULL);
	wait_for(tool, program, 0, "watch");
	return subject;
}

static void end(struct tool *tool, struct subject *subject, const char *program)
{
	tool_out(tool, "unwatch", "--exe", program, NULL);
	require(live_wait(state_is_untraced, &subject->pid, 10000));
	require_unharmed(subject->pid, NULL);
	subject_quit(subject);
}

/* --- the cases --- */

static void after_the_oom_killer_the_line_that_grew_is_known(void)
{
	const char *box = cgroup_make_memory(BOX_BYTES, true), *program = copy_of("tests/victims/eater");
	struct tool *tool = start("MemoryPressure=0\n");
	struct subject *subject = start_watched(tool, program, "--rss-limit", "30M");
	struct wanted first = wait_for(tool, program, 0, "watch"), last;
	json_t *diff, *row;
	int status;

	cgroup_move(box, subject->pid);
	subject_command(subject, 'o');
	subject_command(subject, 'e');
	require_text(wait_for(tool, program, 0, "rss-limit").reason, "resident memory");
	subject_send(subject, 'k');
	status = subject_wait(subject);
	require(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	last = wait_for(tool, program, 0, "exit");
	require_text(tool_out(tool, "history", "--exe", program, NULL), "was killed by signal 9");
	diff = tool_json(tool, "diff", first.id, last.id, NULL);
	row = json_array_get(json_object_get(diff, "statistics"), 0);
	require(row == row_at(diff, SOURCE, line_of(SOURCE, EATEN)));
	live_note("the eaten line grew by %lld bytes in %lld blocks", json_number(row, "size_diff"), json_number(row, "count_diff"));
	require_at_least(json_number(row, "size_diff"), 45L << 20);
	require(json_number(row, "size_diff") < BOX_BYTES);
	require_equal(json_number(row_at(diff, SOURCE, line_of(SOURCE, "/* other block */")), "size_diff"), 10000);
	require_text(tool_out(tool, "diff", first.id, last.id, "--limit", "1", NULL), "eater.c");
	cgroup_remove(box);
}

static void a_cgroup_at_its_limit_makes_a_snapshot(void)
{
	const char *box = cgroup_make_memory(BOX_BYTES, false), *program = copy_of("tests/victims/eater");
	const char *const boxes[] = { box, NULL };
	struct tool *tool = start("MemoryPressure=0\n");
	struct subject *subject = victim_start_as(geteuid(), program, NULL);

	cgroup_move(box, subject->pid);
	tool_out(tool, "watch", "--exe", program, "--every", "1h", NULL);
	wait_for(tool, program, 0, "watch");
	write_much(boxes);
	wait_for(tool, program, 0, "memory-max");
	end(tool, subject, program);
	cgroup_remove(box);
}

struct filled {
	const char *const *boxes;
	struct wanted wanted;
};

/* A cgroup is counted in from the look that finds the process there, so what came before is repeated. */
static bool is_kept_of_filled(void *context)
{
	struct filled *filled = context;

	write_much(filled->boxes);
	return is_kept(&filled->wanted);
}

static void a_cgroup_that_a_process_moved_to_makes_a_snapshot(void)
{
	const char *box = cgroup_make_memory(BOX_BYTES, false), *program = copy_of("tests/victims/eater");
	const char *const boxes[] = { box, NULL };
	struct tool *tool = start("MemoryPressure=0\n");
	struct subject *subject = victim_start_as(geteuid(), program, NULL);
	struct filled filled = { boxes, { .tool = tool, .program = program, .name = "memory-max" } };

	tool_out(tool, "watch", "--exe", program, "--every", "1h", NULL);
	wait_for(tool, program, 0, "watch");
	cgroup_move(box, subject->pid);
	require(live_wait(is_kept_of_filled, &filled, MANY_MS));
	live_note("%s", filled.wanted.reason ? filled.wanted.reason : "");
	end(tool, subject, program);
	cgroup_remove(box);
}

static void a_cgroup_that_is_throttled_makes_a_snapshot(void)
{
	const char *box = cgroup_make_memory_2(), *program = copy_of("tests/victims/eater");
	struct tool *tool;
	struct subject *subject;

	if (!box)
		live_skip("the memory controller is none of version 2 here, and version 1 has no memory.high");
	require(cgroup_write(live_text("%s/memory.high", box), live_text("%d", 4 << 20)));
	tool = start("MemoryPressure=0\n");
	subject = victim_start_as(geteuid(), program, NULL);
	cgroup_move(box, subject->pid);
	tool_out(tool, "watch", "--exe", program, "--every", "1h", NULL);
	wait_for(tool, program, 0, "watch");
	for (int i = 0; i < 3; i++)
		subject_command(subject, 's');
	wait_for(tool, program, 0, "memory-high");
	require(cgroup_write(live_text("%s/memory.high", box), "max"));
	end(tool, subject, program);
	cgroup_remove(box);
}

/* Version 1 limits memory, and version 2 tells of the pressure that comes of it. */
static void waiting_for_memory_makes_a_snapshot(void)
{
	const char *box = cgroup_make_memory(BOX_BYTES, false), *program = copy_of("tests/victims/eater");
	bool is_1 = access(live_text("%s/memory.limit_in_bytes", box), F_OK) == 0;
	const char *boxes[] = { box, is_1 ? make_pressure_box() : NULL, NULL };
	struct tool *tool = start("MemoryPressure=10ms\nMemoryEvents=no\n");
	struct subject *subject = victim_start_as(geteuid(), program, NULL);

	for (size_t i = 0; boxes[i]; i++)
		cgroup_move(boxes[i], subject->pid);
	tool_out(tool, "watch", "--exe", program, "--every", "1h", NULL);
	wait_for(tool, program, 0, "watch");
	write_much(boxes);
	wait_for(tool, program, 0, "memory-pressure");
	end(tool, subject, program);
	for (size_t i = 0; boxes[i]; i++)
		cgroup_remove(boxes[i]);
}

struct growing {
	struct subject *subject;
	struct wanted wanted;
};

static bool has_grown_enough(void *context)
{
	struct growing *growing = context;

	subject_command(growing->subject, 's');
	return is_kept(&growing->wanted);
}

static void fast_growth_makes_a_snapshot(void)
{
	const char *program = copy_of("tests/victims/eater");
	struct tool *tool = start("SlopeTime=2\nMemoryPressure=0\n");
	struct growing growing = { .wanted = { .tool = tool, .program = program, .name = "rss-slope" } };

	growing.subject = start_watched(tool, program, "--rss-slope", "10M");
	require(live_wait(has_grown_enough, &growing, MANY_MS));
	require_text(growing.wanted.reason, "too fast");
	end(tool, growing.subject, program);
}

/* The second build has other lines above the same functions. */
static void across_an_upgrade_definitions_are_compared(void)
{
	const char *program = copy_of("tests/victims/eater");
	struct tool *tool = start("MemoryPressure=0\n");
	struct subject *subject = start_watched(tool, program, "--keep", "10");
	struct wanted old, new;
	struct tool_run run;
	json_t *diff, *row;

	subject_command(subject, 's');
	subject_quit(subject);
	old = wait_for(tool, program, 0, "exit");
	copy_of("tests/victims/eater_moved");
	subject = victim_start_as(geteuid(), program, NULL);
	wait_for(tool, program, 1, "watch");
	subject_command(subject, 's');
	subject_command(subject, 's');
	subject_quit(subject);
	new = wait_for(tool, program, 1, "exit");
	diff = tool_json(tool, "diff", old.id, new.id, NULL);
	require(strcmp(json_text(diff, "key"), "definition") == 0);
	row = json_array_get(json_object_get(diff, "statistics"), 0);
	require_equal(json_number(row, "size"), 4L << 20);
	require_equal(json_number(row, "size_diff"), 2L << 20);
	run = tool_try(tool, "diff", old.id, new.id, NULL);
	require_text(run.out, "eater.c(eat_one): size=4096 KiB (+2048 KiB)");
	require_text(run.err, "built anew between them");
	/* from files, without a daemon, the same */
	tool_out(tool, "dump", old.id, live_text("%s/old.aw", live_folder()), NULL);
	tool_out(tool, "dump", new.id, live_text("%s/new.aw", live_folder()), NULL);
	require_text(tool_out(tool, "diff", live_text("%s/old.aw", live_folder()), live_text("%s/new.aw", live_folder()), NULL),
		     "eater.c(eat_one): size=4096 KiB (+2048 KiB)");
	/* lines are two rows */
	diff = tool_json(tool, "diff", old.id, new.id, "--by", "lineno", NULL);
	require_equal(json_number(row_at(diff, SOURCE, line_of(SOURCE, EATEN)), "size"), 0);
	/* a restart of the same build is compared by line */
	subject = victim_start_as(geteuid(), program, NULL);
	wait_for(tool, program, 2, "watch");
	require(strcmp(json_text(tool_json(tool, "diff", new.id, pid_text(subject->pid), NULL), "key"), "lineno") == 0);
	end(tool, subject, program);
}

static const struct live_case cases[] = {
	LIVE_CASE(after_the_oom_killer_the_line_that_grew_is_known),
	LIVE_CASE(a_cgroup_at_its_limit_makes_a_snapshot),
	LIVE_CASE(a_cgroup_that_a_process_moved_to_makes_a_snapshot),
	LIVE_CASE(a_cgroup_that_is_throttled_makes_a_snapshot),
	LIVE_CASE(waiting_for_memory_makes_a_snapshot),
	LIVE_CASE(fast_growth_makes_a_snapshot),
	LIVE_CASE(across_an_upgrade_definitions_are_compared),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
