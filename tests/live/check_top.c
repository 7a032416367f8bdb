/* allocwatch top on a real terminal, against the tally of the process that it shows. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "terminal.h"
#include "tool.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LET_GO_MS 10000
#define SAMPLE "contrib/sample/leaky"
#define SAMPLE_SOURCE "contrib/sample/leaky.c"
#define SCREEN_MS 30000
#define REFRESHES 50
#define DAEMON_GROWTH_KB 1024

struct stage {
	struct tool *tool;
	struct subject *subject;
	struct state *before;
	const char *leak;               /* "leaky.c:LINE" */
};

static const char *environment(const struct tool *tool, const char *more)
{
	return live_text("env -u NO_COLOR ALLOCWATCH_SOCKET=%s LC_ALL=C.UTF-8 HOME=%s %s", tool_socket(tool),
			 live_folder(), more);
}

static void start_top(const struct stage *stage, const char *arguments)
{
	terminal_keys(live_text("'clear; allocwatch top %d %s' Enter", stage->subject->pid, arguments));
}

/* The sample is traced, and shown. */
static struct stage set_stage(const char *arguments)
{
	struct stage stage = { .tool = tool_start(), .subject = victim_start(SAMPLE, "--commands", NULL) };

	stage.leak = live_text("leaky.c:%d", line_of(SAMPLE_SOURCE, "/* leak */"));
	stage.before = state_take(stage.subject->pid);
	tool_attach(stage.tool, stage.subject->pid);
	terminal_start(environment(stage.tool, ""), 110, 30);
	start_top(&stage, arguments);
	terminal_expect("events/s");
	return stage;
}

static void leave_and_clear(struct stage *stage)
{
	terminal_keys("q");
	terminal_expect(TERMINAL_READY);
	terminal_expect_status(0);
	terminal_end();
	tool_end(stage->tool, stage->subject, stage->before);
}

/* --- what a line says --- */

struct row {
	double size, share, growth, average;
	long count, count_growth;
};

static double bytes(double number, const char *unit)
{
	static const char *const units[] = { "B", "KiB", "MiB" };

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++, number *= 1024)
		if (strcmp(units[i], unit) == 0)
			return number;
	live_fail("'%s' is no unit", unit);
}

/* Takes "12.3 KiB", or "0" or "-" without a unit. */
static double take_size(const char **text)
{
	char unit[8] = "B";
	double number = 0;
	int n = 0;

	if (sscanf(*text, " -%n", &n) == 0 && n > 0 && (*text)[n] == ' ') {
		*text += n;
		return 0;
	}
	if (sscanf(*text, "%lf%n", &number, &n) != 1)
		live_fail("no size at '%s'", *text);
	*text += n;
	n = 0;
	if (sscanf(*text, " %7[BKMiG]%n", unit, &n) == 1)
		*text += n;
	return bytes(number, unit);
}

/* False when there is no line about it. */
static bool find_row(const char *name, struct row *row)
{
	const char *screen = terminal_screen(), *at = screen;
	int n;

	while ((at = strstr(at, name))) {
		if (at[strlen(name)] == '\n')
			break;
		at++;
	}
	if (!at)
		return false;
	while (at > screen && at[-1] != '\n')
		at--;
	row->size = take_size(&at);
	if (sscanf(at, "%lf%n", &row->share, &n) != 1)
		return false;
	at += n;
	row->growth = take_size(&at);
	if (sscanf(at, "%ld%ld%n", &row->count, &row->count_growth, &n) != 2)
		return false;
	at += n;
	row->average = take_size(&at);
	return true;
}

struct hope {
	const char *name;
	long count;
	struct row row;
};

static bool is_there(void *context)
{
	struct hope *hope = context;

	return find_row(hope->name, &hope->row) && hope->row.count == hope->count;
}

/* The line, once it has so many blocks. */
static struct row row_with(const char *name, long count)
{
	struct hope hope = { .name = name, .count = count };

	if (!live_wait(is_there, &hope, SCREEN_MS))
		live_fail("no line of %s with %ld blocks:\n%s", name, count, terminal_screen());
	return hope.row;
}

/* As text_size() rounds: to a tenth of the unit below 100 of it, else to a whole one. */
static void require_bytes(double is, long should)
{
	double unit = should >= 10 * 1024 ? 1024 : 1, error = is - (double)should;

	if (error > unit / 2 || error < -unit / 2)
		live_fail("%.1f bytes are shown and %ld are meant", is, should);
}

static void require_leak(const struct stage *stage, long blocks_before)
{
	long leaked = subject_tally(stage->subject, "leaked"), blocks = subject_tally(stage->subject, "blocks");
	struct row row = row_with(stage->leak, blocks);

	require_bytes(row.size, leaked);
	require_bytes(row.growth, leaked - blocks_before * 1000);
	require_equal(row.count_growth, blocks - blocks_before);
	require_equal((long)row.average, 1000);
}

/* --- cases --- */

static void the_figures_are_the_processs_own(void)
{
	struct stage stage = set_stage("--interval 100ms");
	long blocks = 0;

	for (unsigned int i = 0; i < live_rounds(4, 100); i++) {
		subject_command(stage.subject, 'g');
		require_leak(&stage, 0);
	}
	terminal_expect("Exact");
	terminal_expect("lost 0");
	blocks = subject_tally(stage.subject, "blocks");
	terminal_keys("b");
	terminal_expect("Growth counts from now on");
	require_equal(row_with(stage.leak, blocks).count_growth, 0);
	subject_command(stage.subject, 'g');
	require_leak(&stage, blocks);
	live_note("%ld blocks leaked, each shown", subject_tally(stage.subject, "blocks"));
	leave_and_clear(&stage);
}

/* The names of the lines that the first of all orders has on top. */
static bool is_first(const char *name)
{
	const char *titles = strstr(terminal_screen(), " AVERAGE "), *line, *end;

	if (!titles || !(line = strchr(titles, '\n')) || !(end = strchr(line + 1, '\n')))
		return false;
	return end - line > (long)strlen(name) && strncmp(end - strlen(name), name, strlen(name)) == 0;
}

static bool is_first_line(void *name)
{
	return is_first(name);
}

static void require_first(const char *name)
{
	if (!live_wait(is_first_line, (void *)name, SCREEN_MS))
		live_fail("%s is not the first:\n%s", name, terminal_screen());
}

static void each_key_does_what_the_help_says(void)
{
	struct stage stage = set_stage("--interval 100ms --key function --sort count");
	const char *session = live_text("leaky.c:%d", line_of(SAMPLE_SOURCE, "/* session */"));

	subject_command(stage.subject, 'g');
	row_with("copy_header", 100);
	require_first("copy_header");
	terminal_keys("g");
	terminal_expect("by definition, sorted by count");
	terminal_keys("g");
	terminal_expect("by traceback, sorted by count");
	terminal_keys("K");
	terminal_expect("by object");
	terminal_expect("contrib/sample/leaky\n");
	while (!terminal_shows("by lineno"))
		terminal_keys("g");
	row_with(stage.leak, 100);
	terminal_keys("r");
	terminal_expect("sorted by count, reversed");
	require_first(session);
	terminal_keys("r s s s");
	terminal_expect("sorted by name");
	require_first(stage.leak);
	terminal_keys("/ '-*leaky.c' Enter");
	terminal_expect("Nothing matches the filters");
	terminal_keys("/ C-u");
	terminal_keys(live_text("'*leaky.c:%d' Enter", line_of(SAMPLE_SOURCE, "/* session */")));
	require_first(session);
	terminal_expect_gone(live_text("%s\n", stage.leak));
	terminal_keys("/ C-u Enter");
	row_with(stage.leak, 100);
	terminal_keys("Home Enter");
	terminal_expect("Tracebacks of");
	terminal_expect(", in copy_header");
	terminal_expect("    char *copy = malloc(HEADER_BYTES); /* leak */");
	terminal_expect("100 memory blocks (+100): 97.7 KiB (+97.7 KiB)");
	terminal_keys("q c");
	terminal_expect("by lineno, cumulative");
	row_with(live_text("leaky.c:%d", line_of(SAMPLE_SOURCE, "header = copy_header(")), 100);
	terminal_keys("c ?");
	terminal_expect("next order: size, growth");
	terminal_keys("q");
	leave_and_clear(&stage);
}

static void threads_have_their_own_tracebacks(void)
{
	struct stage stage = set_stage("--interval 100ms --by thread");

	subject_command(stage.subject, 'g');
	row_with(live_text("thread %d", stage.subject->pid), 164);
	terminal_keys("Enter");
	terminal_expect(live_text("Tracebacks of thread %d", stage.subject->pid));
	terminal_expect("100 memory blocks (+100): 97.7 KiB (+97.7 KiB)");
	terminal_expect(", in copy_header");
	terminal_keys("q");
	leave_and_clear(&stage);
}

static void freezing_holds_the_figures_and_asks_for_none(void)
{
	struct stage stage = set_stage("--interval 100ms");

	subject_command(stage.subject, 'g');
	row_with(stage.leak, 100);
	terminal_keys("f");
	terminal_expect("FROZEN");
	subject_command(stage.subject, 'g');
	terminal_keys("j k");
	require_equal(row_with(stage.leak, 100).count, 100);
	terminal_keys("Space");
	row_with(stage.leak, 200);
	leave_and_clear(&stage);
}

static void a_snapshot_is_kept_under_its_name(void)
{
	struct stage stage = set_stage("--interval 100ms");
	json_t *stats;

	subject_command(stage.subject, 'g');
	terminal_keys("S from.top Enter");
	terminal_expect("Kept as s");
	stats = tool_stats(stage.tool, live_text("%d:from.top", stage.subject->pid));
	require_row(stats, SAMPLE_SOURCE, "/* leak */", subject_tally(stage.subject, "leaked"), 100);
	terminal_keys("S from.top Enter");
	terminal_expect("Kept as s");
	terminal_keys("S a/b Enter");
	terminal_expect("letters, digits");
	terminal_keys("Escape");
	leave_and_clear(&stage);
}

static void windows_of_any_size_are_filled(void)
{
	struct stage stage = set_stage("--interval 100ms");

	subject_command(stage.subject, 'g');
	terminal_resize(20, 5);
	terminal_expect("     SIZE lineno\n");
	terminal_expect("97.7 KiB <");
	terminal_resize(200, 50);
	row_with(stage.leak, 100);
	terminal_expect("AVERAGE lineno");
	terminal_resize(1, 1);
	terminal_expect_gone("SIZE");
	terminal_resize(90, 24);
	row_with(stage.leak, 100);
	leave_and_clear(&stage);
}

static void a_job_stops_and_goes_on(void)
{
	struct stage stage = set_stage("--interval 100ms");

	for (unsigned int i = 0; i < live_rounds(2, 50); i++) {
		terminal_keys("C-z");
		terminal_expect("Stopped");
		terminal_expect_gone("events/s");
		subject_command(stage.subject, 'g');
		terminal_resize(100 + (int)i % 20, 28);
		terminal_keys("'clear; fg' Enter");
		terminal_expect("events/s");
		row_with(stage.leak, subject_tally(stage.subject, "blocks"));
	}
	leave_and_clear(&stage);
}

static void an_exec_has_a_baseline_of_its_own(void)
{
	struct stage stage = { .tool = tool_start(), .subject = victim_start("tests/victims/execer", NULL) };
	const char *kept = live_text("execer.c:%d", line_of("tests/victims/execer.c", "malloc(KEPT_BYTES)"));

	tool_attach(stage.tool, stage.subject->pid);
	terminal_start(environment(stage.tool, ""), 110, 30);
	start_top(&stage, "--interval 100ms");
	terminal_expect("events/s");
	for (long i = 1; i <= 3; i++)
		subject_command(stage.subject, 'a');
	require_equal(row_with(kept, 3).count_growth, 3);
	subject_command(stage.subject, 'g');
	terminal_expect("the baseline is new");
	terminal_expect_gone(kept);
	subject_command(stage.subject, 'a');
	require_equal(row_with(kept, 1).count_growth, 1);
	leave_and_clear(&stage);
}

static void the_end_of_the_process_is_said_and_the_last_figures_stay(void)
{
	struct stage stage = set_stage("--interval 100ms");

	subject_command(stage.subject, 'g');
	subject_command(stage.subject, 'g');
	subject_quit(stage.subject);
	terminal_expect("ENDED");
	terminal_expect("The process has ended");
	row_with(stage.leak, 200);
	terminal_keys("g s");
	terminal_expect("by filename, sorted by growth");
	terminal_keys("q");
	terminal_expect(TERMINAL_READY);
	terminal_expect_status(0);
	terminal_end();
}

static bool is_untraced(void *context)
{
	return status_number(*(pid_t *)context, "TracerPid", 10) == 0;
}

static void the_end_of_the_daemon_is_said_and_the_last_figures_stay(void)
{
	struct stage stage = set_stage("--interval 100ms");

	subject_command(stage.subject, 'g');
	row_with(stage.leak, 100);
	/* One that is told to end answers until the last snapshots are kept. */
	tool_kill_daemon(stage.tool);
	terminal_expect("NO DAEMON");
	row_with(stage.leak, 100);
	terminal_keys("S Enter");
	terminal_expect("no daemon that could keep it");
	terminal_keys("g");
	terminal_expect("by filename");
	terminal_keys("q");
	terminal_expect("the daemon was gone");
	terminal_expect_status(1);
	terminal_end();
	require(live_wait(is_untraced, &stage.subject->pid, LET_GO_MS));
	require_unharmed(stage.subject->pid, stage.before);
	subject_quit(stage.subject);
}

static void keys_are_obeyed_while_the_daemon_is_silent(void)
{
	struct stage stage = set_stage("--interval 100ms");

	subject_command(stage.subject, 'g');
	row_with(stage.leak, 100);
	kill(tool_daemon(stage.tool), SIGSTOP);
	terminal_expect("Waiting for the daemon");
	terminal_keys("?");
	terminal_expect("Left Right");
	terminal_keys("q g");
	terminal_expect("by filename");
	kill(tool_daemon(stage.tool), SIGCONT);
	terminal_expect_gone("Waiting for the daemon");
	subject_command(stage.subject, 'g');
	terminal_keys("K K K K K K");
	leave_and_clear(&stage);
}

/* --- nothing stays behind --- */

static long descriptors_of(pid_t pid)
{
	DIR *folder = opendir(live_text("/proc/%d/fd", pid));
	long count = 0;

	if (!folder)
		live_fail("/proc/%d/fd: %s", pid, strerror(errno));
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

struct limit {
	pid_t daemon;
	long descriptors;
};

/* A client that has left may be on its way out of the daemon. */
static bool has_no_more(void *context)
{
	const struct limit *limit = context;

	return descriptors_of(limit->daemon) <= limit->descriptors;
}

static void refreshes_leave_nothing_in_the_daemon(void)
{
	struct stage stage = set_stage("--interval 100ms");
	pid_t daemon = tool_daemon(stage.tool);
	struct limit limit = { .daemon = daemon };
	unsigned int rounds = live_rounds(1, 50);
	long memory;

	subject_command(stage.subject, 'g');
	row_with(stage.leak, 100);
	terminal_keys("q");
	terminal_expect(TERMINAL_READY);
	limit.descriptors = descriptors_of(daemon);
	memory = status_number(daemon, "VmRSS", 10);
	for (unsigned int i = 0; i < rounds; i++) {
		start_top(&stage, live_text("--interval 50ms -n %d; echo \"sta$((6*7))tus=$?.%u.\"", REFRESHES, i));
		terminal_expect(live_text("sta42tus=0.%u.", i));
	}
	require_equal((long)json_array_size(json_object_get(tool_json(stage.tool, "snapshots", NULL), "snapshots")), 0);
	if (!live_wait(has_no_more, &limit, SCREEN_MS))
		live_fail("the daemon has %ld descriptors, and had %ld before", descriptors_of(daemon), limit.descriptors);
	live_note("%u refreshes: the daemon has %ld descriptors and %lld kB, before %ld and %ld kB",
		  rounds * REFRESHES,
		  descriptors_of(daemon), status_number(daemon, "VmRSS", 10), limit.descriptors, memory);
	require_at_least(memory + DAEMON_GROWTH_KB, status_number(daemon, "VmRSS", 10));
	terminal_end();
	tool_end(stage.tool, stage.subject, stage.before);
}

static void who_closes_the_terminal_lets_go_as_well(void)
{
	struct stage stage = { .tool = tool_start(), .subject = victim_start(SAMPLE, "--commands", NULL) };

	stage.before = state_take(stage.subject->pid);
	terminal_start(environment(stage.tool, ""), 110, 30);
	start_top(&stage, "--interval 100ms");
	terminal_expect("events/s");
	terminal_end();
	if (!live_wait(state_is_untraced, &stage.subject->pid, SCREEN_MS))
		live_fail("it is still traced");
	require_unharmed(stage.subject->pid, stage.before);
	subject_quit(stage.subject);
}

static void an_untraced_process_is_attached_to_and_let_go(void)
{
	static const char *const ends[] = { "q", "C-c" };
	struct stage stage = { .tool = tool_start(), .subject = victim_start(SAMPLE, "--commands", NULL) };

	stage.leak = live_text("leaky.c:%d", line_of(SAMPLE_SOURCE, "/* leak */"));
	stage.before = state_take(stage.subject->pid);
	terminal_start(environment(stage.tool, ""), 110, 30);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		start_top(&stage, "--interval 100ms");
		terminal_expect("events/s");
		subject_command(stage.subject, 'g');
		row_with(stage.leak, 100);
		terminal_keys(ends[i]);
		terminal_expect(TERMINAL_READY);
		terminal_expect_status(0);
		if (!live_wait(state_is_untraced, &stage.subject->pid, SCREEN_MS))
			live_fail("it is still traced");
		require_unharmed(stage.subject->pid, stage.before);
	}
	terminal_end();
	subject_quit(stage.subject);
}

static void another_ones_detach_is_said(void)
{
	struct stage stage = set_stage("--interval 100ms");

	subject_command(stage.subject, 'g');
	row_with(stage.leak, 100);
	tool_detach(stage.tool, stage.subject->pid);
	terminal_expect("ENDED");
	terminal_expect("no longer traced");
	row_with(stage.leak, 100);
	terminal_keys("q");
	terminal_expect(TERMINAL_READY);
	terminal_expect_status(0);
	terminal_end();
	require_unharmed(stage.subject->pid, stage.before);
	subject_quit(stage.subject);
}

/* One document a refresh: with the first one's figures as the baseline of the second. */
static void programs_get_documents_and_need_no_terminal(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start(SAMPLE, "--commands", NULL);
	struct tool_run run;
	char *second;
	json_t *row;

	subject_command(subject, 'g');
	run = tool_try(tool, "top", pid_text(subject->pid), "--json", "-n", "2", "--interval", "50ms", NULL);
	require_equal(run.status, 0);
	second = strchr(run.out, '\n');
	require(second && json_loads(second, 0, NULL));
	require_equal(json_number(json_loads(second, 0, NULL), "traced_current"), 0);
	require_unharmed(subject->pid, NULL);
	tool_attach(tool, subject->pid);
	subject_command(subject, 'g');
	row = row_at(tool_json(tool, "top", pid_text(subject->pid), "-n", "1", "--sort", "growth", NULL), SAMPLE_SOURCE,
		     line_of(SAMPLE_SOURCE, "/* leak */"));
	require(row != NULL);
	require_equal(json_number(row, "size"), 100000);
	require_equal(json_number(row, "count"), 100);
	require_equal(json_number(row, "size_diff"), 0);
	tool_end(tool, subject, NULL);
}

/* --- terminals --- */

/* "\033[39m" is the terminal's own. */
static void require_no_colours(const char *screen)
{
	for (const char *at = screen; (at = strstr(at, "\033[")); at++)
		if ((at[2] == '3' || at[2] == '4') && at[3] >= '0' && at[3] <= '7')
			live_fail("there are colours:\n%s", screen);
}

static void colours_are_left_out_when_they_are_not_wanted(void)
{
	struct stage stage = set_stage("--interval 100ms");

	subject_command(stage.subject, 'g');
	row_with(stage.leak, 100);
	require_text(terminal_tmux("capture-pane -p -e"), "\033[31m");
	terminal_keys("q");
	terminal_expect(TERMINAL_READY);
	terminal_keys(live_text("'clear; NO_COLOR=1 allocwatch top %d --interval 100ms' Enter", stage.subject->pid));
	terminal_expect("events/s");
	subject_command(stage.subject, 'g');
	row_with(stage.leak, 200);
	require_no_colours(terminal_tmux("capture-pane -p -e"));
	leave_and_clear(&stage);
}

static void what_is_no_terminal_to_draw_on_is_refused_with_a_remedy(void)
{
	struct stage stage = set_stage("--interval 100ms");
	const char *pid = pid_text(stage.subject->pid);
	struct tool_run run = tool_try(stage.tool, "top", pid, NULL);

	require_equal(run.status, 1);
	require_text(run.err, "not both a terminal");
	require_text(run.err, "'allocwatch stats PID'");
	terminal_keys("q");
	terminal_expect(TERMINAL_READY);
	terminal_keys(live_text("'clear; TERM=dumb allocwatch top %s' Enter", pid));
	terminal_expect("cannot be drawn on");
	terminal_expect("set TERM to its type");
	terminal_expect_status(1);
	terminal_keys(live_text("'clear; TERM=no-such allocwatch top %s' Enter", pid));
	terminal_expect("nothing is known of terminals");
	terminal_expect_status(1);
	terminal_end();
	tool_end(stage.tool, stage.subject, stage.before);
}

static void a_hostile_name_does_not_reach_the_terminal(void)
{
	static const char name[] = "a\033]2;stolen\a\033[31m\xe2\x80\xae";
	struct stage stage = { .tool = tool_start() };
	const char *path = live_text("%s/%s", live_folder(), name);

	if (rename(public_copy(SAMPLE), path))
		live_fail("rename: %s", strerror(errno));
	stage.subject = subject_start(geteuid(), (const char *const[]){ path, "--commands", NULL });
	subject_line(stage.subject);
	stage.before = state_take(stage.subject->pid);
	tool_attach(stage.tool, stage.subject->pid);
	terminal_start(environment(stage.tool, ""), 110, 30);
	start_top(&stage, "--interval 100ms --by object");
	subject_command(stage.subject, 'g');
	terminal_expect("a\\x1b]2;stolen\\x07\\x1b[31m\\xe2\\x80\\xae\n");
	if (strstr(terminal_tmux("display-message -p '#{pane_title}'"), "stolen"))
		live_fail("the title of the terminal is taken over");
	leave_and_clear(&stage);
}

static const struct live_case cases[] = {
	LIVE_CASE(the_figures_are_the_processs_own),
	LIVE_CASE(each_key_does_what_the_help_says),
	LIVE_CASE(threads_have_their_own_tracebacks),
	LIVE_CASE(freezing_holds_the_figures_and_asks_for_none),
	LIVE_CASE(a_snapshot_is_kept_under_its_name),
	LIVE_CASE(windows_of_any_size_are_filled),
	LIVE_CASE(a_job_stops_and_goes_on),
	LIVE_CASE(an_exec_has_a_baseline_of_its_own),
	LIVE_CASE(the_end_of_the_process_is_said_and_the_last_figures_stay),
	LIVE_CASE(the_end_of_the_daemon_is_said_and_the_last_figures_stay),
	LIVE_CASE(keys_are_obeyed_while_the_daemon_is_silent),
	LIVE_CASE(refreshes_leave_nothing_in_the_daemon),
	LIVE_CASE(an_untraced_process_is_attached_to_and_let_go),
	LIVE_CASE(who_closes_the_terminal_lets_go_as_well),
	LIVE_CASE(another_ones_detach_is_said),
	LIVE_CASE(programs_get_documents_and_need_no_terminal),
	LIVE_CASE(colours_are_left_out_when_they_are_not_wanted),
	LIVE_CASE(what_is_no_terminal_to_draw_on_is_refused_with_a_remedy),
	LIVE_CASE(a_hostile_name_does_not_reach_the_terminal),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
