/* The most recent frame is the user's line: behind containers, runtimes and wrappers. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RELOADED_MS 30000
#define VICTIM(name) "tests/victims/" name

/* Built in the case's folder, from its source by its whole path: that is what the rows name. */
static struct subject *start_built(const char *compiler, const char *source, const char *options)
{
	const char *program = live_text("%s/program", live_folder()), *argv[] = { program, NULL };
	const char *command = live_text("%s -o %s $(realpath %s/%s) %s", compiler, program, live_source(), source, options);
	struct subject *subject;

	if (system(command) != 0)
		live_fail("'%s' does not work; contrib/install-deps --test installs what it needs", command);
	subject = subject_start(geteuid(), argv);
	require_text(subject_line(subject), "R");
	return subject;
}

/* Attached, and at work once. */
static void begin(struct tool *tool, struct subject *subject)
{
	tool_attach(tool, subject->pid);
	subject_command(subject, 'g');
}

static void cxx_containers_name_the_users_line(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = start_built("g++ -O2 -g", VICTIM("containers.cc"), "");
	struct state *before = state_take(subject->pid);
	json_t *stats;

	begin(tool, subject);
	stats = tool_stats(tool, pid_text(subject->pid));
	require_row(stats, VICTIM("containers.cc"), "// growing vector", 4096 * 8, 1);
	require_row(stats, VICTIM("containers.cc"), "// copied string", 100 * 1001, 100);
	tool_end(tool, subject, before);
}

static void a_rust_vec_names_the_users_line(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = start_built("rustc -O -g", VICTIM("vectors.rs"), "");
	struct state *before = state_take(subject->pid);
	json_t *stats;

	begin(tool, subject);
	stats = tool_stats(tool, pid_text(subject->pid));
	require_row(stats, VICTIM("vectors.rs"), "// growing Vec", 4096 * 8, 1);
	require_row(stats, VICTIM("vectors.rs"), "// built String", 100 * 1000 + 99 * 100 / 2, 100);
	tool_end(tool, subject, before);
}

static void a_glib_list_names_the_users_line(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = start_built("gcc -O2 -g", VICTIM("list.c"), "$(pkg-config --cflags --libs glib-2.0)");
	struct state *before = state_take(subject->pid);
	json_t *stats;

	begin(tool, subject);
	stats = tool_stats(tool, pid_text(subject->pid));
	require_row(stats, VICTIM("list.c"), "/* text */", 100 * 1001, 100);
	/* By slices: of those GLib has some more at hand. */
	require_text(tool_out(tool, "stats", pid_text(subject->pid), NULL),
		     live_text("list.c:%d: size=", line_of(VICTIM("list.c"), "/* list */")));
	tool_end(tool, subject, before);
}

/* With a build-id and without one, wherever the program itself lies. */
static void code_that_is_mapped_once_more_names_the_users_line(void)
{
	static const char *const options[] = { "", "-Wl,--build-id=none", "-no-pie" };

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		struct tool *tool = tool_start_named(live_text("%zu", i));
		struct subject *subject = start_built("gcc -O2 -g", VICTIM("twice.c"), options[i]);
		struct state *before = state_take(subject->pid);

		begin(tool, subject);
		require_row(tool_stats(tool, pid_text(subject->pid)), VICTIM("twice.c"), "/* in the piece */", 100 * 500, 100);
		require_text(tool_out(tool, "stats", pid_text(subject->pid), "--by", "traceback", NULL),
			     live_text("twice.c\", line %d\n", line_of(VICTIM("twice.c"), "/* calls it there */")));
		require_nothing_unknown(tool_status(tool, subject->pid), 0);
		tool_end(tool, subject, before);
	}
}

static struct subject *start_wrappers(void)
{
	return start_built("gcc -O2 -g", VICTIM("wrappers.c"), "");
}

static void require_users_lines(json_t *stats)
{
	require_row(stats, VICTIM("wrappers.c"), "/* by the function */", 100 * 1000, 100);
	require_row(stats, VICTIM("wrappers.c"), "/* inlined */", 100 * 2000, 100);
}

static void a_wrapper_that_is_named_is_hidden(void)
{
	static const char function[] = "xmalloc", file[] = "@file=wrappers.h";
	struct tool *tool = tool_start();
	struct subject *subject = start_wrappers();
	struct state *before = state_take(subject->pid);
	const char *who = pid_text(subject->pid), *saved = live_text("%s/saved", live_folder()), *text;

	begin(tool, subject);
	require_row(tool_stats(tool, who), VICTIM("wrappers.c"), "/* wrapped */", 100 * 1000, 100);
	require_users_lines(tool_json(tool, "stats", who, "--hide", function, "--hide", file, NULL));
	/* A kept one, a file, and a diff with both. */
	tool_out(tool, "snapshot", who, "--name", "one", NULL);
	require_users_lines(tool_json(tool, "stats", live_text("%s:one", who), "--hide", function, "--hide", file, NULL));
	tool_out(tool, "dump", live_text("%s:one", who), saved, NULL);
	require_users_lines(tool_json(tool, "stats", saved, "--hide", function, "--hide", file, NULL));
	text = tool_out(tool, "diff", saved, who, "--hide", function, NULL);
	require_text(text, live_text("wrappers.c:%d: ", line_of(VICTIM("wrappers.c"), "/* by the function */")));
	require_text(text, "wrappers.h:");
	tool_end(tool, subject, before);
}

static void configure(const char *text)
{
	const char *folder = live_text("%s/allocwatch", live_folder());
	FILE *file;

	file = fopen(live_text("%s/allocwatchd.conf", folder), "w");
	require(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static struct tool *start_configured(const char *text)
{
	const char *const wrapper[] = { "env", live_text("XDG_CONFIG_HOME=%s", live_folder()), NULL };

	require_equal(mkdir(live_text("%s/allocwatch", live_folder()), 0700), 0);
	configure(text);
	return tool_start_wrapped(wrapper);
}

static void what_the_configuration_hides_is_hidden_everywhere(void)
{
	struct tool *tool = start_configured("[Frames]\nHide=xmalloc\nHide=@file=wrappers.h\n");
	struct subject *subject = start_wrappers();
	struct state *before = state_take(subject->pid);
	const char *who = pid_text(subject->pid), *users, *text;

	users = live_text("wrappers.c:%d", line_of(VICTIM("wrappers.c"), "/* by the function */"));
	begin(tool, subject);
	require_users_lines(tool_stats(tool, who));
	/* What the client works out by itself. */
	tool_out(tool, "snapshot", who, "--name", "one", NULL);
	tool_out(tool, "snapshot", who, "--name", "two", NULL);
	text = tool_out(tool, "trend", live_text("%s:one", who), live_text("%s:two", who), who, NULL);
	require_text(text, users);
	text = tool_out(tool, "top", who, "--json", "--iterations", "1", NULL);
	require_text(text, "wrappers.c");
	require(!strstr(text, "wrappers.h"));
	text = tool_out(tool, "stats", who, "--hide", "nothing_of_this_name", NULL);
	require_text(text, users);
	tool_end(tool, subject, before);
}

static struct {
	struct tool *tool;
	const char *snap;
	int line;
} shown;

static bool is_shown(void *context)
{
	(void)context;
	return row_at(tool_stats(shown.tool, shown.snap), "wrappers.c", shown.line) != NULL;
}

/* Which the daemon, when it has read its configuration again, shows of what it has kept already. */
static void configure_until_shown(const char *text, const char *line)
{
	configure(text);
	shown.line = line_of(VICTIM("wrappers.c"), line);
	require_equal(kill(tool_daemon(shown.tool), SIGHUP), 0);
	require(live_wait(is_shown, NULL, RELOADED_MS));
}

static void what_a_reload_hides_is_hidden_from_then_on(void)
{
	struct tool *tool = start_configured("[Frames]\n");
	struct subject *subject = start_wrappers();
	struct state *before = state_take(subject->pid);
	const char *who = pid_text(subject->pid);

	begin(tool, subject);
	tool_out(tool, "snapshot", who, "--name", "one", NULL);
	shown.tool = tool;
	shown.snap = live_text("%s:one", who);
	for (int i = 0; i < 2; i++)
		require_row(tool_stats(tool, shown.snap), VICTIM("wrappers.c"), "/* wrapped */", 100 * 1000, 100);
	configure_until_shown("[Frames]\nHide=xmalloc\nHide=@file=wrappers.h\n", "/* by the function */");
	for (int i = 0; i < 2; i++)
		require_users_lines(tool_stats(tool, shown.snap));
	require_users_lines(tool_stats(tool, who));
	configure_until_shown("[Frames]\nHide=other\n", "/* wrapped */");
	require_row(tool_stats(tool, who), VICTIM("wrappers.c"), "/* wrapped */", 100 * 1000, 100);
	tool_end(tool, subject, before);
}

static const struct live_case cases[] = {
	LIVE_CASE(cxx_containers_name_the_users_line),
	LIVE_CASE(a_rust_vec_names_the_users_line),
	LIVE_CASE(a_glib_list_names_the_users_line),
	LIVE_CASE(code_that_is_mapped_once_more_names_the_users_line),
	LIVE_CASE(a_wrapper_that_is_named_is_hidden),
	LIVE_CASE(what_the_configuration_hides_is_hidden_everywhere),
	LIVE_CASE(what_a_reload_hides_is_hidden_from_then_on),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
