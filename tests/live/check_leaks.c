/* What is left over, told from what is only busy: blocks by their age, on a victim with a known leak, a known churner
 * and a steady grower; tests/oracle/blocks_of_ages.py computes the same from the snapshots' files. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "base/clock.h"
#include "varlink/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define SOURCE "tests/victims/leaker.c"

static void do_times(struct subject *subject, char command, int times)
{
	for (int i = 0; i < times; i++)
		subject_command(subject, command);
}

/* Asks an oracle, which reads files only, about an answer of the client. */
static void ask_oracle(struct tool *tool, json_t *answer, const char *new, const char *old)
{
	const char *source = live_source();
	const char *path = live_text("%s/answer.json", live_folder());
	const char *file = live_text("%s/new.aw", live_folder()), *than = old;

	if (json_dump_file(answer, path, 0) < 0)
		live_fail("cannot write %s", path);
	remove(file);
	tool_out(tool, "dump", new, file, NULL);
	if (strchr(old, ':')) {
		than = live_text("%s/old.aw", live_folder());
		remove(than);
		tool_out(tool, "dump", old, than, NULL);
	}
	if (system(live_text("/usr/bin/python3 %s/tests/oracle/blocks_of_ages.py leaker.c %s %s %s", source, path, file,
			     than)) != 0)
		live_fail("the oracle does not agree");
}

static void only_what_was_born_between_two_snapshots_is_shown(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start("tests/victims/leaker", NULL);
	struct state *before = state_take(subject->pid);
	const char *old = live_text("%d:old", subject->pid), *new = live_text("%d:new", subject->pid);
	json_t *born;

	tool_attach(tool, subject->pid);
	do_times(subject, 'l', 3);
	do_times(subject, 's', 2);
	tool_out(tool, "snapshot", pid_text(subject->pid), "--name", "old", NULL);
	do_times(subject, 'l', 5);
	do_times(subject, 'c', 2);
	do_times(subject, 's', 4);
	tool_out(tool, "snapshot", pid_text(subject->pid), "--name", "new", "--blocks", NULL);
	do_times(subject, 'l', 7);
	born = tool_json(tool, "diff", old, new, "--born", NULL);
	require_row(born, SOURCE, "/* leaked block */", 500, 5);
	require_row(born, SOURCE, "/* session block */", 300, 1);
	require_equal((long long)json_array_size(json_object_get(born, "statistics")), 2);
	require_equal(json_number(born, "total.count"), 6);
	require(!json_object_get(json_array_get(json_object_get(born, "statistics"), 0), "size_diff"));
	ask_oracle(tool, born, new, old);
	/* a difference of totals takes the session for something that did not change */
	require(json_number(row_at(tool_diff(tool, old, new), SOURCE, line_of(SOURCE, "/* session block */")),
			    "count_diff") == 0);
	require_text(tool_out(tool, "diff", old, new, "--born", NULL), "count=5, average=100 B, age=");
	/* a fresh one has blocks by itself, and by other keys it is the same sum */
	require_equal(json_number(tool_json(tool, "diff", new, pid_text(subject->pid), "--born", "--by", "thread", NULL),
				  "total.count"), 7);
	require_equal(json_number(tool_json(tool, "diff", new, new, "--born", NULL), "total.count"), 0);
	require_text(tool_try(tool, "diff", new, old, "--born", NULL).err, "the older one comes first");
	tool_end(tool, subject, before);
}

/* Rows' ages, by the test's own clock; births are dated to 10 ms. */
static void require_age(json_t *row, uint64_t born_from, uint64_t born_to, uint64_t asked, uint64_t answered)
{
	double youngest = json_number_value(json_object_get(row, "youngest_seconds"));
	double oldest = json_number_value(json_object_get(row, "oldest_seconds"));

	live_note("ages %.3f to %.3f s", youngest, oldest);
	require(youngest <= oldest);
	require(youngest >= (double)(asked - born_to) / 1e9 - 0.02);
	require(oldest <= (double)(answered - born_from) / 1e9 + 0.02);
}

static void blocks_older_than_a_time_are_counted_and_younger_ones_are_not(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start("tests/victims/leaker", NULL);
	struct state *before = state_take(subject->pid);
	const char *pid = pid_text(subject->pid), *snap = live_text("%d:all", subject->pid);
	uint64_t first[2], second[2], asked, answered;
	json_t *stats, *row;
	double limit;

	tool_attach(tool, subject->pid);
	first[0] = clock_monotonic_ns();
	do_times(subject, 'l', 4);
	first[1] = clock_monotonic_ns();
	/* time passes */
	while (clock_monotonic_ns() < first[1] + NSEC_PER_SEC / 2)
		subject_command(subject, 's');
	second[0] = clock_monotonic_ns();
	do_times(subject, 'l', 3);
	second[1] = clock_monotonic_ns();
	asked = clock_monotonic_ns();
	tool_out(tool, "snapshot", pid, "--name", "all", "--blocks", NULL);
	answered = clock_monotonic_ns();
	stats = tool_json(tool, "stats", snap, "--older-than", "0s", NULL);
	row = row_at(stats, SOURCE, line_of(SOURCE, "/* leaked block */"));
	require(row);
	require_equal(json_number(row, "count"), 7);
	require_age(row, first[0], second[1], asked, answered);
	/* a time between the youngest of the first four and the oldest of the others */
	limit = (json_number_value(json_object_get(row, "oldest_seconds")) +
		 json_number_value(json_object_get(row, "youngest_seconds"))) / 2;
	stats = tool_json(tool, "stats", snap, "--older-than", live_text("%dms", (int)(limit * 1000)), NULL);
	require_row(stats, SOURCE, "/* leaked block */", 400, 4);
	require_equal((long long)json_array_size(json_object_get(stats, "statistics")), 1);
	ask_oracle(tool, stats, snap, live_text("%d.%03d", (int)(limit * 1000) / 1000, (int)(limit * 1000) % 1000));
	require_equal(json_number(tool_json(tool, "stats", pid, "--older-than", "1h", NULL), "total.count"), 0);
	tool_out(tool, "snapshot", pid, "--name", "plain", NULL);
	require_text(tool_try(tool, "stats", live_text("%d:plain", subject->pid), "--older-than", "1s", NULL).err,
		     "--blocks");
	tool_end(tool, subject, before);
}

static void leaks_names_the_line_that_leaks_and_no_other(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start("tests/victims/leaker", NULL);
	struct state *before = state_take(subject->pid);
	long line = line_of(SOURCE, "/* leaked block */");
	json_t *leaks, *rows;

	subject_command(subject, 'w');
	leaks = tool_json(tool, "leaks", pid_text(subject->pid), "2s", NULL);
	subject_command(subject, 'i');
	rows = json_object_get(leaks, "statistics");
	require_equal((long long)json_array_size(rows), 1);
	require(row_at(leaks, SOURCE, (int)line));
	live_note("%lld blocks leaked and a second old, of %ld; %ld sessions", json_number(leaks, "total.count"),
		  subject_tally(subject, "leaked"), subject_tally(subject, "sessions"));
	require_at_least(json_number(leaks, "total.count"), 3);
	require_at_least(subject_tally(subject, "leaked"), json_number(leaks, "total.count") + 1);
	require_at_least(subject_tally(subject, "sessions"), 20);
	require_equal(json_number(leaks, "total.size"), 100 * json_number(leaks, "total.count"));
	require(json_number_value(json_object_get(json_array_get(rows, 0), "youngest_seconds")) >= 1.0);
	/* it was let go; one that is traced already stays so, and is known to the block */
	require(!tool_lists(tool, subject->pid));
	tool_attach(tool, subject->pid);
	do_times(subject, 'l', 6);
	do_times(subject, 'c', 1);
	leaks = tool_json(tool, "leaks", pid_text(subject->pid), "1s", NULL);
	require_row(leaks, SOURCE, "/* leaked block */", 600, 6);
	require_equal(json_number(leaks, "total.count"), 6);
	require(tool_lists(tool, subject->pid));
	tool_end(tool, subject, before);
}

static void leaks_of_a_process_that_ends_meanwhile_says_so(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start("tests/victims/leaker", NULL);
	pid_t pid = subject->pid, client;
	int status;

	client = tool_begin(tool, "leaks", pid_text(pid), "1h", NULL);
	while (tool_try(tool, "stats", pid_text(pid), NULL).status != 0)
		subject_command(subject, 's');
	subject_quit(subject);
	require(waitpid(client, &status, 0) == client);
	require(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

static void require_churn(json_t *document, const char *text, long long made, long long size, long long freed,
			  long long temporary)
{
	json_t *row = row_at(document, SOURCE, line_of(SOURCE, text));

	if (!row)
		live_fail("no row for %s", text);
	require_equal(json_number(row, "allocations"), made);
	require_equal(json_number(row, "allocated_size"), size);
	require_equal(json_number(row, "frees"), freed);
	require_equal(json_number(row, "temporary"), temporary);
}

static void churn_stands_next_to_growth(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start("tests/victims/leaker", NULL);
	struct state *before = state_take(subject->pid);
	const char *pid = pid_text(subject->pid), *old = live_text("%d:old", subject->pid);
	json_t *stats, *diff;

	tool_attach(tool, subject->pid);
	do_times(subject, 's', 1);
	do_times(subject, 'l', 2);
	do_times(subject, 'b', 1);
	do_times(subject, 'c', 1);
	stats = tool_json(tool, "stats", pid, "--churn", NULL);
	require_churn(stats, "/* churned block */", 50, 50000, 50, 50);
	require_churn(stats, "/* leaked block */", 2, 200, 0, 0);
	require_churn(stats, "/* session block */", 1, 300, 0, 0);
	/* the busiest first, although nothing of it is left */
	require(json_array_get(json_object_get(stats, "statistics"), 0) ==
		row_at(stats, SOURCE, line_of(SOURCE, "/* churned block */")));
	require_text(tool_out(tool, "stats", pid, "--churn", NULL), "size=0 B, count=0, made=50 (48.8 KiB), freed=50, temporary=50");
	tool_out(tool, "snapshot", pid, "--name", "old", NULL);
	do_times(subject, 'b', 2);
	do_times(subject, 'c', 3);
	do_times(subject, 's', 4);
	do_times(subject, 'l', 1);
	diff = tool_json(tool, "diff", old, pid, "--sort", "churn", NULL);
	require_churn(diff, "/* churned block */", 150, 150000, 150, 150);
	require_churn(diff, "/* buffer block */", 2, 384, 2, 1);
	/* the first of the four was followed by other blocks; the others were the youngest when they went */
	require_churn(diff, "/* session block */", 4, 1200, 4, 3);
	require_churn(diff, "/* leaked block */", 1, 100, 0, 0);
	require(json_is_true(json_object_get(row_at(diff, SOURCE, line_of(SOURCE, "/* buffer block */")), "bigger")));
	require(!json_object_get(row_at(diff, SOURCE, line_of(SOURCE, "/* leaked block */")), "bigger"));
	require_text(tool_out(tool, "diff", old, pid, "--sort", "growth", "--limit", "1", NULL),
		     "size=256 B (+192 B), count=1 (+0), average=256 B, bigger, not more");
	/* unless asked for, the text is tracemalloc's */
	require(!strstr(tool_out(tool, "diff", old, pid, NULL), "bigger"));
	tool_end(tool, subject, before);
}

static void what_made_up_the_peak_is_known_after_it(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start("tests/victims/leaker", NULL);
	struct state *before = state_take(subject->pid);
	const char *pid = pid_text(subject->pid), *file = live_text("%s/peak.aw", live_folder());
	json_t *stats;

	tool_attach(tool, subject->pid);
	do_times(subject, 'l', 2);
	do_times(subject, 'c', 1);              /* 200 and one block of 1000 */
	do_times(subject, 'l', 3);
	do_times(subject, 's', 2);
	stats = tool_json(tool, "stats", pid, "--peak", NULL);
	require_row(stats, SOURCE, "/* leaked block */", 200, 2);
	require_row(stats, SOURCE, "/* churned block */", 1000, 1);
	require_equal((long long)json_array_size(json_object_get(stats, "statistics")), 2);
	require_equal(json_number(stats, "total.size"), json_number(tool_status(tool, subject->pid), "traced_peak"));
	tool_out(tool, "dump", pid, file, NULL);
	require(json_equal(json_object_get(tool_json(tool, "stats", file, "--peak", NULL), "statistics"),
			   json_object_get(stats, "statistics")));
	tool_out(tool, "reset-peak", pid, NULL);
	require_equal(json_number(tool_json(tool, "stats", pid, "--peak", NULL), "total.size"), 800);
	require_text(tool_try(tool, "stats", pid, "--peak", "--churn", NULL).err, "either what lived at the peak");
	tool_end(tool, subject, before);
}

/* A leak that grows each time, a buffer that doubles once, sessions that stay, blocks that come and go. */
static void a_trend_ranks_the_steady_grower_first(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start("tests/victims/leaker", NULL);
	struct state *before = state_take(subject->pid);
	const char *source = live_source(), *file[5];
	const char *path = live_text("%s/trend.json", live_folder());
	json_t *trend, *rows;

	tool_attach(tool, subject->pid);
	for (int i = 0; i < 5; i++) {
		do_times(subject, 'l', 2 + i % 2);
		do_times(subject, 's', 1);
		do_times(subject, 'c', 1);
		do_times(subject, 'b', i == 0 || i == 3);
		file[i] = live_text("%s/%d.aw", live_folder(), i);
		tool_out(tool, "dump", pid_text(subject->pid), file[i], NULL);
	}
	trend = tool_json(tool, "trend", file[0], file[1], file[2], file[3], file[4], NULL);
	rows = json_object_get(trend, "statistics");
	require_equal((long long)json_array_size(rows), 3);
	require(json_array_get(rows, 0) == row_at(trend, SOURCE, line_of(SOURCE, "/* leaked block */")));
	require(json_number_value(json_object_get(json_array_get(rows, 0), "steadiness")) == 1.0);
	require(json_number_value(json_object_get(row_at(trend, SOURCE, line_of(SOURCE, "/* session block */")),
						  "growth_per_hour")) == 0.0);
	if (json_dump_file(trend, path, 0) < 0)
		live_fail("cannot write %s", path);
	if (system(live_text("/usr/bin/python3 %s/tests/oracle/trends.py %s/src/allocwatch %s %s %s %s %s %s", source,
			     live_build(), path, file[0], file[1], file[2], file[3], file[4])) != 0)
		live_fail("the oracle does not agree");
	require_text(tool_out(tool, "trend", file[0], file[2], file[4], "--limit", "1", NULL), "/h, steadiness +1.00: ");
	require_text(tool_try(tool, "trend", file[0], file[2], file[1], NULL).err, "in the order");
	tool_end(tool, subject, before);
}

static long long in_step(json_t *row, long long least, long long most)
{
	json_t *step;
	size_t i;

	json_array_foreach(json_object_get(row, "histogram"), i, step) {
		if (json_number(step, "least") == least && json_number(step, "most") == most)
			return json_number(step, "count");
	}
	return 0;
}

static void a_groups_histogram_has_each_of_its_blocks_once(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start("tests/victims/leaker", NULL);
	struct state *before = state_take(subject->pid);
	const char *pid = pid_text(subject->pid);
	json_t *stats, *row;

	tool_attach(tool, subject->pid);
	do_times(subject, 'l', 6);
	do_times(subject, 's', 3);
	do_times(subject, 'b', 4);
	stats = tool_json(tool, "stats", pid, "--histogram", NULL);
	row = row_at(stats, SOURCE, line_of(SOURCE, "/* leaked block */"));
	require_equal(in_step(row, 64, 127), 6);
	require_equal((long long)json_array_size(json_object_get(row, "histogram")), 1);
	require_equal(in_step(row_at(stats, SOURCE, line_of(SOURCE, "/* session block */")), 256, 511), 1);
	require_equal(in_step(row_at(stats, SOURCE, line_of(SOURCE, "/* buffer block */")), 512, 1023), 1);
	row = json_array_get(json_object_get(tool_json(tool, "stats", pid, "--histogram", "--by", "filename", NULL),
					     "statistics"), 0);
	require_equal(in_step(row, 64, 127), 6);
	require_equal(in_step(row, 256, 511), 1);
	require_equal(in_step(row, 512, 1023), 1);
	require_equal((long long)json_array_size(json_object_get(row, "histogram")), 3);
	require_text(tool_out(tool, "stats", pid, "--histogram", NULL), "    64 to 127 B: 6 ########################################\n");
	require_text(tool_try(tool, "stats", pid, "--histogram", "--cumulative", NULL).err, "each counted once");
	tool_end(tool, subject, before);
}

enum asks { ABOUT_ONE, ABOUT_TWO, ABOUT_MANY };

/* A query to the daemon and what is written for it on the client's command line, which works on the tables itself. */
static const struct question {
	const char *query;
	const char *arguments[4];
	enum asks asks;
} questions[] = {
	{ "{\"key\":\"thread\"}", { "--by", "thread" }, ABOUT_ONE },
	{ "{\"churn\":true,\"sort\":\"churn\"}", { "--churn" }, ABOUT_ONE },
	{ "{\"peak\":true}", { "--peak" }, ABOUT_ONE },
	{ "{\"histogram\":true}", { "--histogram" }, ABOUT_ONE },
	{ "{\"older_than_ms\":20}", { "--older-than", "20ms" }, ABOUT_ONE },
	{ "{\"born\":true}", { "--born" }, ABOUT_TWO },
	{ "{\"churn\":true}", { "--churn" }, ABOUT_TWO },
	{ "{\"sort\":\"churn\"}", { "--sort", "churn" }, ABOUT_TWO },
	{ "{}", { NULL }, ABOUT_MANY },
	{ "{\"key\":\"traceback\"}", { "--by", "traceback" }, ABOUT_MANY },
	{ "{\"key\":\"function\",\"cumulative\":true,\"filters\":[\"-@domain=mmap\"]}",
	  { "--by=function", "--cumulative", "--filter=-@domain=mmap" }, ABOUT_MANY },
	{ "{\"key\":\"thread\"}", { "--by", "thread" }, ABOUT_MANY },
};

static json_t *ask_daemon(struct tool *tool, const struct question *question, const char *old, const char *middle,
			  const char *new)
{
	static const char *const methods[] = { "Statistics", "Compare", "Trend" };
	json_t *query = json_loads(question->query, 0, NULL), *reply = NULL, *error = NULL;
	json_t *parameters = question->asks == ABOUT_ONE ? json_pack("{s:s}", "snapshot", new) :
			     question->asks == ABOUT_TWO ? json_pack("{s:s, s:s}", "old", old, "new", new) :
							   json_pack("{s:[s, s, s]}", "snapshots", old, middle, new);
	struct varlink_client *client;
	int r;

	require(parameters && json_object_set_new(parameters, "query", query) == 0 &&
		varlink_client_open(tool_socket(tool), &client) == 0);
	r = varlink_client_call(client, methods[question->asks], parameters, &reply, &error);
	if (r < 0)
		live_fail("%s: %s", question->query, error ? json_dumps(error, 0) : strerror(-r));
	varlink_client_close(client);
	return reply;
}

static void the_daemon_says_what_the_client_works_out_itself(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start("tests/victims/leaker", NULL);
	struct state *before = state_take(subject->pid);
	const char *old = live_text("%d:old", subject->pid), *new = live_text("%d:new", subject->pid);
	const char *middle = live_text("%d:middle", subject->pid);
	size_t rows = 0;

	tool_attach(tool, subject->pid);
	do_times(subject, 'l', 3);
	tool_out(tool, "snapshot", pid_text(subject->pid), "--name", "old", "--blocks", NULL);
	live_let_pass(40 * NSEC_PER_MSEC);
	do_times(subject, 'l', 5);
	do_times(subject, 'c', 2);
	tool_out(tool, "snapshot", pid_text(subject->pid), "--name", "middle", "--blocks", NULL);
	do_times(subject, 's', 4);
	tool_out(tool, "snapshot", pid_text(subject->pid), "--name", "new", "--blocks", NULL);
	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		const struct question *question = &questions[i];
		const char *const *a = question->arguments;
		json_t *ours = question->asks == ABOUT_ONE ? tool_json(tool, "stats", new, a[0], a[1], NULL) :
			       question->asks == ABOUT_TWO ? tool_json(tool, "diff", old, new, a[0], a[1], NULL) :
			       tool_json(tool, "trend", old, middle, new, a[0], a[1], a[2], NULL);
		json_t *theirs = ask_daemon(tool, question, old, middle, new);

		if (!json_equal(json_object_get(ours, "statistics"), json_object_get(theirs, "statistics")) ||
		    !json_equal(json_object_get(ours, "total"), json_object_get(theirs, "total")))
			live_fail("%s: the client says %s, the daemon %s", question->query, json_dumps(ours, 0),
				  json_dumps(theirs, 0));
		require_at_least((long long)json_array_size(json_object_get(theirs, "statistics")), 1);
		rows += json_array_size(json_object_get(theirs, "statistics"));
	}
	live_note("%zu rows in %zu answers compared", rows, sizeof(questions) / sizeof(questions[0]));
	tool_end(tool, subject, before);
}

static const struct live_case cases[] = {
	LIVE_CASE(the_daemon_says_what_the_client_works_out_itself),
	LIVE_CASE(a_groups_histogram_has_each_of_its_blocks_once),
	LIVE_CASE(a_trend_ranks_the_steady_grower_first),
	LIVE_CASE(churn_stands_next_to_growth),
	LIVE_CASE(what_made_up_the_peak_is_known_after_it),
	LIVE_CASE(only_what_was_born_between_two_snapshots_is_shown),
	LIVE_CASE(blocks_older_than_a_time_are_counted_and_younger_ones_are_not),
	LIVE_CASE(leaks_names_the_line_that_leaks_and_no_other),
	LIVE_CASE(leaks_of_a_process_that_ends_meanwhile_says_so),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
