/* Frees that should not have been: by another form, twice, of no block; each with where it was. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SOURCE "tests/victims/misuses.cc"
#define POOL "pool pool_get(size) pool_put(old)"

static const char *build_of(const char *source, const char *options)
{
	const char *program = live_text("%s/program", live_folder());

	require_equal(system(live_text("g++ -O1 -g -fno-builtin -w %s -o %s $(realpath %s/%s)", options, program, live_source(),
				       source)), 0);
	return program;
}

static const char *build(void)
{
	return build_of(SOURCE, "");
}

static struct subject *start(void)
{
	const char *argv[] = { build(), NULL };
	struct subject *subject = subject_start(geteuid(), argv);

	require_text(subject_line(subject), "R");
	return subject;
}

/* The line of the source that the traceback ends at. */
static long long last_line(json_t *traceback)
{
	json_t *frame = json_array_get(traceback, json_array_size(traceback) - 1);

	return json_integer_value(json_object_get(frame, "line"));
}

static json_t *list_of(struct tool *tool, pid_t pid)
{
	return json_object_get(tool_json(tool, "mismatches", pid_text(pid), NULL), "mismatches");
}

static void require_mismatch(json_t *list, const char *line, const char *made, const char *freed, long long size, long long count)
{
	size_t i;
	json_t *item;

	json_array_foreach(list, i, item) {
		if (last_line(json_object_get(item, "freed")) != line_of(SOURCE, line))
			continue;
		require_text(json_text(item, "kind"), "mismatch");
		require_equal(strcmp(json_text(item, "made_by"), made), 0);
		require_equal(strcmp(json_text(item, "freed_by"), freed), 0);
		require_equal(json_number(item, "size"), size);
		require_equal(json_number(item, "count"), count);
		require_equal(last_line(json_object_get(item, "made")), line_of(SOURCE, line));
		return;
	}
	live_fail("there is no mismatch at '%s'", line);
}

static void require_mismatches_told(const char *engine)
{
	struct tool *tool = tool_start_named(engine);
	struct subject *subject = start();
	struct state *before = state_take(subject->pid);
	const char *text;
	json_t *list;

	tool_out(tool, "attach", pid_text(subject->pid), "--domains", "malloc,new", "--engine", engine, NULL);
	require_text(json_text(tool_status(tool, subject->pid), "engine"), engine);
	for (int i = 0; i < 3; i++)
		subject_command(subject, 'w');
	list = list_of(tool, subject->pid);
	require_equal((long long)json_array_size(list), 4);
	require_mismatch(list, "// array by free", "new[]", "free", 100, 3);
	require_mismatch(list, "// array by delete", "new[]", "delete", 200, 3);
	require_mismatch(list, "// malloc by delete", "malloc", "delete", 300, 3);
	require_mismatch(list, "// new by free", "new", "free", 8, 3);
	text = tool_out(tool, "mismatches", pid_text(subject->pid), NULL);
	require_text(text, "mismatch: made by new[], freed by free: 3 times, first 0x");
	require_text(text, "of 100 bytes");
	/* They are frees all the same. */
	require_nothing_unknown(tool_status(tool, subject->pid), 0);
	tool_end(tool, subject, before);
}

static void what_one_form_made_and_another_freed_is_told_with_both_places(void)
{
	require_mismatches_told("int3");
}

static void so_it_is_with_the_ring(void)
{
	require_mismatches_told("ring");
}

static void right_frees_are_no_mismatches(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = start();
	struct state *before = state_take(subject->pid);

	tool_out(tool, "attach", pid_text(subject->pid), "--domains", "malloc,new", NULL);
	for (int i = 0; i < 20; i++)
		subject_command(subject, 'g');
	require_equal((long long)json_array_size(list_of(tool, subject->pid)), 0);
	require_nothing_unknown(tool_status(tool, subject->pid), 0);
	tool_end(tool, subject, before);
}

static void without_the_domain_new_no_form_is_told(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = start();
	struct state *before = state_take(subject->pid);

	tool_attach(tool, subject->pid);
	subject_command(subject, 'w');
	require_equal((long long)json_array_size(list_of(tool, subject->pid)), 0);
	tool_end(tool, subject, before);
}

/* Stops of threads so far, as metrics tell them. */
static long long stops_of(struct tool *tool, pid_t pid)
{
	const char *text = tool_out(tool, "metrics", NULL), *mark = live_text("pid=\"%d\"", pid), *line;

	for (line = strstr(text, "\nallocwatch_stops_total{"); line; line = strstr(line + 1, "\nallocwatch_stops_total{")) {
		const char *at = strstr(line, mark), *value = strstr(line, "} ");

		if (at && value && at < value)
			return atoll(value + 2);
	}
	live_fail("no count of stops for %d in:\n%s", pid, text);
}

#define ROUNDS 100
#define NEWS "tests/victims/news.cc"

static struct subject *start_news(const char *options)
{
	const char *argv[] = { build_of(NEWS, options), NULL };
	struct subject *subject = subject_start(geteuid(), argv);

	require_text(subject_line(subject), "R");
	return subject;
}

#define OWN_NEWS "-O2 $(realpath %s/tests/victims/ownnews.cc)"

static long long stops_of_rounds(const char *options, const char *domains)
{
	struct tool *tool = tool_start_named(live_text("%s%zu", domains, strlen(options)));
	struct subject *subject = start_news(options);
	struct state *before = state_take(subject->pid);
	long long stops;

	tool_out(tool, "attach", pid_text(subject->pid), "--domains", domains, "--engine", "int3", NULL);
	stops = stops_of(tool, subject->pid);
	for (int i = 0; i < ROUNDS; i++)
		subject_command(subject, 'g');
	stops = stops_of(tool, subject->pid) - stops;
	tool_end(tool, subject, before);
	live_note("'%s', %s: %lld stops for %d rounds of 10 news", options, domains, stops, ROUNDS);
	return stops;
}

/* That of libstdc++, linked in or not, and one of the program's own that hands on what malloc returns. */
static void to_tell_new_from_malloc_costs_no_stop(void)
{
	const char *const options[] = { "", "-static-libstdc++ -static-libgcc", "-static",
					live_text(OWN_NEWS, live_source()) };

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		require_equal(stops_of_rounds(options[i], "malloc,new"), stops_of_rounds(options[i], "malloc"));
}

/* Of every form, called by way of the linker's stub and through its pointer. */
static void require_news_told(const char *engine)
{
	const char *const options[] = { "", "-fno-plt", "-O2 -fcf-protection=full -Wl,-z,now",
					"-static-libstdc++ -static-libgcc", "-static", "-static-pie",
					live_text(OWN_NEWS, live_source()), live_text("-DPOOL " OWN_NEWS, live_source()) };

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		struct tool *tool = tool_start_named(live_text("%s%zu", engine, i));
		struct subject *subject = start_news(options[i]);
		struct state *before = state_take(subject->pid);
		json_t *status;

		tool_out(tool, "attach", pid_text(subject->pid), "--domains", "new", "--engine", engine, NULL);
		for (int k = 0; k < ROUNDS; k++)
			subject_command(subject, 'g');
		status = tool_status(tool, subject->pid);
		require_equal(json_number(status, "domains.new.blocks"), 5 * ROUNDS);
		require_equal(json_number(status, "domains.new[].blocks"), 5 * ROUNDS);
		for (int k = 0; k < ROUNDS; k++)
			subject_command(subject, 'f');
		require_equal((long long)json_array_size(list_of(tool, subject->pid)), 0);
		require_nothing_unknown(tool_status(tool, subject->pid), 0);
		tool_end(tool, subject, before);
	}
}

static void new_and_its_array_are_told_by_who_calls_malloc(void)
{
	require_news_told("int3");
	require_news_told("ring");
}

static void a_second_free_is_counted_and_shown_with_its_place(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = start();
	struct state *before = state_take(subject->pid);
	json_t *list;

	tool_out(tool, "attach", pid_text(subject->pid), "--allocator", POOL, NULL);
	subject_command(subject, 't');
	subject_command(subject, 't');
	list = list_of(tool, subject->pid);
	require_equal((long long)json_array_size(list), 1);
	require_text(json_text(json_array_get(list, 0), "kind"), "double-free");
	require_equal(json_number(json_array_get(list, 0), "count"), 2);
	require_equal(last_line(json_object_get(json_array_get(list, 0), "freed")), line_of(SOURCE, "// the second time"));
	require_equal(json_number(tool_status(tool, subject->pid), "unknown.unknown_frees"), 2);
	require_text(tool_out(tool, "mismatches", pid_text(subject->pid), NULL), "double-free: 2 times, first 0x");
	tool_end(tool, subject, before);
}

struct wait {
	struct tool *tool;
	pid_t pid;
};

static bool has_freed(void *context)
{
	struct wait *wait = context;
	json_t *targets = json_object_get(tool_json(wait->tool, "list", NULL), "targets");

	if (json_array_size(targets) == 0)
		return false;
	if (strcmp(json_text(json_array_get(targets, 0), "state"), "tracing") != 0)
		return false;
	wait->pid = (pid_t)json_number(json_array_get(targets, 0), "pid");
	return json_array_size(list_of(wait->tool, wait->pid)) > 0;
}

static void a_free_of_no_block_is_told_of_a_program_that_is_run(void)
{
	struct wait wait = { tool_start(), 0 };
	json_t *list;

	tool_begin(wait.tool, "run", "--allocator", POOL, "--", build(), "wild", NULL);
	require(live_wait(has_freed, &wait, 20000));
	list = list_of(wait.tool, wait.pid);
	require_text(json_text(json_array_get(list, 0), "kind"), "wild-free");
	require_equal(last_line(json_object_get(json_array_get(list, 0), "freed")), line_of(SOURCE, "// no block"));
	require_equal(json_number(tool_status(wait.tool, wait.pid), "unknown.unknown_frees"), 1);
	tool_detach(wait.tool, wait.pid);
	require_equal(kill(wait.pid, SIGTERM), 0);
}

static const struct live_case cases[] = {
	LIVE_CASE(what_one_form_made_and_another_freed_is_told_with_both_places),
	LIVE_CASE(so_it_is_with_the_ring),
	LIVE_CASE(right_frees_are_no_mismatches),
	LIVE_CASE(without_the_domain_new_no_form_is_told),
	LIVE_CASE(to_tell_new_from_malloc_costs_no_stop),
	LIVE_CASE(new_and_its_array_are_told_by_who_calls_malloc),
	LIVE_CASE(a_second_free_is_counted_and_shown_with_its_place),
	LIVE_CASE(a_free_of_no_block_is_told_of_a_program_that_is_run),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
