/* Two builds of one program under one path, each traced for a while: their snapshots are compared by function and file. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct tool *tool;

/* As a package does it: the old program's processes keep their file. */
static const char *install(const char *program, const char *afterwards)
{
	const char *path = live_text("%s/served", live_folder());

	if (system(live_text("cp '%s/%s' '%s.new' && %s '%s.new' && mv '%s.new' '%s'", live_build(), program, path, afterwards,
			     path, path, path)) != 0)
		live_fail("%s cannot be installed", program);
	return path;
}

static void allocate(struct subject *subject, int own, int others)
{
	for (int i = 0; i < own; i++)
		subject_command(subject, 'a');
	for (int i = 0; i < others; i++)
		subject_command(subject, 'b');
}

/* Runs it for so many blocks of each; the snapshot's file. */
static const char *snapshot_of(const char *program, const char *name, int own, int others)
{
	struct subject *subject = victim_start_as(geteuid(), program, NULL);
	struct state *before = state_take(subject->pid);
	const char *file = live_text("%s/%s.aw", live_folder(), name);

	tool_attach(tool, subject->pid);
	allocate(subject, own, others);
	tool_out(tool, "dump", pid_text(subject->pid), file, NULL);
	tool_end(tool, subject, before);
	return file;
}

/* file: the end of its name; NULL: there is none. */
static json_t *row_of(json_t *answer, const char *file, const char *function)
{
	json_t *row, *rows = json_object_get(answer, "statistics");
	size_t i;

	json_array_foreach(rows, i, row) {
		json_t *frame = json_array_get(json_object_get(row, "traceback"), 0);
		const char *name = json_string_value(json_object_get(frame, "file"));
		const char *of = json_string_value(json_object_get(frame, "function"));
		bool is_file = file && name ? strlen(name) >= strlen(file) &&
			       strcmp(name + strlen(name) - strlen(file), file) == 0 : !file && !name;

		if (is_file && of && strcmp(of, function) == 0)
			return row;
	}
	live_fail("no row of %s in %s: %s", function, file ? file : "an object", json_dumps(answer, 0));
}

static void require_change(json_t *row, long long size, long long size_diff, long long count_diff)
{
	require_equal(json_number(row, "size"), size);
	require_equal(json_number(row, "size_diff"), size_diff);
	require_equal(json_number(row, "count_diff"), count_diff);
}

static void require_twins(json_t *diff)
{
	require(strcmp(json_text(diff, "key"), "definition") == 0);
	require_equal((long long)json_array_size(json_object_get(diff, "statistics")), 2);
	require_change(row_of(diff, "/twins.c", "make"), 5000, 3000, 3);
	require_change(row_of(diff, "/twins_other.c", "make"), 300, -1200, -4);
	require_equal(json_number(diff, "total.size_diff"), 1800);
}

/* The second build's lines have moved, and its sources lie in another folder. */
static void functions_of_one_name_are_told_apart_across_an_upgrade(void)
{
	const char *old, *new;
	struct tool_run run;

	tool = tool_start();
	old = snapshot_of(install("tests/victims/twins", "true"), "old", 2, 5);
	new = snapshot_of(install("tests/victims/twins_moved", "true"), "new", 5, 1);
	require_twins(tool_json(tool, "diff", old, new, NULL));
	run = tool_try(tool, "diff", old, new, NULL);
	require_text(run.out, "/moved/twins.c(make): size=5000 B (+3000 B), count=5 (+3), average=1000 B\n");
	require_text(run.out, "/moved/twins_other.c(make): size=300 B (-1200 B), count=1 (-4), average=300 B\n");
	require_text(run.err, "compared by definition");
	/* by function they are one */
	require_equal((long long)json_array_size(json_object_get(tool_json(tool, "diff", old, new, "--by", "function", NULL),
								 "statistics")), 1);
	/* the same, asked of the daemon */
	tool_out(tool, "load", old, NULL);
	tool_out(tool, "load", new, NULL);
	require_twins(tool_json(tool, "diff", "s1", "s2", NULL));
}

static void a_trend_goes_on_across_an_upgrade(void)
{
	const char *old, *middle, *new;
	struct tool_run run;
	json_t *trend, *sizes;

	tool = tool_start();
	old = snapshot_of(install("tests/victims/twins", "true"), "old", 2, 5);
	middle = snapshot_of(install("tests/victims/twins", "true"), "middle", 3, 5);
	new = snapshot_of(install("tests/victims/twins_moved", "true"), "new", 5, 1);
	trend = tool_json(tool, "trend", old, middle, new, NULL);
	require(strcmp(json_text(trend, "key"), "definition") == 0);
	require_equal((long long)json_array_size(json_object_get(trend, "statistics")), 2);
	sizes = json_object_get(row_of(trend, "/twins.c", "make"), "sizes");
	require_equal(json_integer_value(json_array_get(sizes, 0)), 2000);
	require_equal(json_integer_value(json_array_get(sizes, 1)), 3000);
	require_equal(json_integer_value(json_array_get(sizes, 2)), 5000);
	run = tool_try(tool, "trend", old, middle, new, NULL);
	require_text(run.out, "/moved/twins.c(make): size=5000 B");
	require_text(run.err, "compared by definition");
}

/* It knows no files, so both functions are one. */
static void a_stripped_build_is_compared_by_function_and_object(void)
{
	const char *old, *new;
	json_t *diff;

	tool = tool_start();
	old = snapshot_of(install("tests/victims/twins", "true"), "old", 2, 5);
	new = snapshot_of(install("tests/victims/twins_moved", "strip --strip-debug"), "new", 5, 1);
	diff = tool_json(tool, "diff", old, new, NULL);
	require_equal((long long)json_array_size(json_object_get(diff, "statistics")), 1);
	require_change(row_of(diff, NULL, "make"), 5300, 1800, -1);
	require_text(tool_out(tool, "diff", old, new, NULL), "/served(make): size=5300 B (+1800 B)");
	new = snapshot_of(install("tests/victims/twins_moved", "strip"), "bare", 5, 1);
	diff = tool_json(tool, "diff", old, new, NULL);
	require_equal((long long)json_array_size(json_object_get(diff, "statistics")), 1);
	require_text(tool_out(tool, "diff", old, new, NULL), "/served: size=5300 B (+1800 B)");
}

/* ld --build-id=none */
static void builds_without_build_ids_are_told_apart(void)
{
	const char *old, *new, *again;

	tool = tool_start();
	old = snapshot_of(install("tests/victims/twins_plain", "true"), "old", 2, 5);
	again = snapshot_of(install("tests/victims/twins_plain", "true"), "again", 3, 4);
	new = snapshot_of(install("tests/victims/twins_plain_moved", "true"), "new", 5, 1);
	require(strcmp(json_text(tool_json(tool, "diff", old, again, NULL), "key"), "lineno") == 0);
	require_twins(tool_json(tool, "diff", old, new, NULL));
}

static const struct live_case cases[] = {
	LIVE_CASE(functions_of_one_name_are_told_apart_across_an_upgrade),
	LIVE_CASE(a_trend_goes_on_across_an_upgrade),
	LIVE_CASE(a_stripped_build_is_compared_by_function_and_object),
	LIVE_CASE(builds_without_build_ids_are_told_apart),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
