/* Programs that are made to be watched in another way, or that watch themselves: sanitizers, valgrind, debuggers, and
 * those with breakpoints of their own. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define INT3S "tests/victims/int3s"
#define LEAKY "tests/victims/leaky.c"
#define TURNOVER "tests/victims/turnover"
#define START_MS 20000
#define REPORT_MAX 65536

/* --- sanitizers --- */

static const struct build {
	const char *compiler, *sanitizer;
	bool checks_leaks;
} builds[] = {
	{ "gcc", "address", true },   { "clang", "address", true },
	{ "gcc", "leak", true },      { "clang", "leak", true },
	{ "gcc", "undefined", false }, { "clang", "undefined", false },
	{ "gcc", "thread", false },   { "clang", "thread", false },
};
#define BUILDS (sizeof(builds) / sizeof(builds[0]))

/* NULL: this machine has not got that compiler, or not its runtime. */
static const char *sanitized(const struct build *build)
{
	const char *path = live_text("%s/leaky-%s-%s", live_folder(), build->compiler, build->sanitizer);
	const char *command = live_text("%s -g -fsanitize=%s %s/%s -o %s 2>%s.log", build->compiler, build->sanitizer,
					SOURCE_FOLDER, LEAKY, path, path);

	return system(command) == 0 ? path : NULL;
}

/* What the sanitizer says goes to a file of its own, PREFIX.PID. */
static struct subject *start_leaky(const char *program, const char *prefix)
{
	const char *argv[] = { program, NULL };
	const char *options = live_text("log_path=%s", prefix);
	struct subject *leaky;

	setenv("ASAN_OPTIONS", options, 1);
	setenv("LSAN_OPTIONS", options, 1);
	setenv("TSAN_OPTIONS", options, 1);
	leaky = subject_start(getuid(), argv);
	require(strcmp(subject_line(leaky), "R") == 0);
	return leaky;
}

/* The last line of its report, which says how much it was; "" without a report. */
static const char *summary_of(const char *prefix, pid_t pid)
{
	const char *summary = "";
	static char text[REPORT_MAX];
	FILE *file = fopen(live_text("%s.%d", prefix, pid), "r");

	if (!file)
		return summary;
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	if (strstr(text, "SUMMARY"))
		summary = live_text("%s", strstr(text, "SUMMARY"));
	return summary;
}

struct outcome {
	int status;
	const char *summary;
};

static struct outcome end_of(struct subject *leaky, const char *prefix)
{
	struct outcome outcome;
	pid_t pid = leaky->pid;

	subject_command(leaky, 'l');
	subject_send(leaky, 'q');
	outcome.status = subject_wait(leaky);
	outcome.summary = summary_of(prefix, pid);
	return outcome;
}

static void ends_as_untraced(struct tool *tool, const struct build *build, const char *program)
{
	const char *prefix = live_text("%s/said", live_folder());
	struct outcome untraced = end_of(start_leaky(program, prefix), prefix), traced;
	struct subject *leaky = start_leaky(program, prefix);
	struct tool_run run = tool_try(tool, "attach", pid_text(leaky->pid), NULL);

	live_note("%s -fsanitize=%s: %s", build->compiler, build->sanitizer, *run.err ? run.err : "attached\n");
	require_equal(run.status, 0);
	require_equal(strstr(run.err, "sanitizer") != NULL, build->checks_leaks);
	/* What the ring's code leaves on stacks would hide leaks from it. */
	if (build->checks_leaks)
		require_text(json_text(tool_status(tool, leaky->pid), "engine"), "int3");
	for (int i = 0; i < 3; i++)
		subject_command(leaky, 'g');
	require_row(tool_stats(tool, pid_text(leaky->pid)), LEAKY, "/* kept block */", 216, 3);
	traced = end_of(leaky, prefix);
	require_equal(traced.status, untraced.status);
	require_text(traced.summary, untraced.summary);
	require_equal(*untraced.summary != '\0', build->checks_leaks);
	require_equal(WEXITSTATUS(untraced.status) != 3, build->checks_leaks);
}

static void sanitized_programs_end_as_untraced(void)
{
	struct tool *tool = tool_start();
	unsigned done = 0;

	for (size_t i = 0; i < BUILDS; i++) {
		const char *program = sanitized(&builds[i]);

		if (!program)
			continue;
		ends_as_untraced(tool, &builds[i], program);
		done++;
	}
	live_note("%u builds of %zu", done, BUILDS);
	require_at_least(done, 4);
}

/* --- what runs under something else --- */

/* A child of the process, once its program is the one that is meant. */
struct awaited {
	pid_t parent, child;
	const char *comm;
};

static bool child_is_there(void *context)
{
	struct awaited *awaited = context;
	char path[64], name[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", awaited->parent, awaited->parent);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (fscanf(file, "%d", &awaited->child) != 1)
		awaited->child = 0;
	fclose(file);
	snprintf(path, sizeof(path), "/proc/%d/comm", awaited->child);
	file = awaited->child ? fopen(path, "r") : NULL;
	if (!file)
		return false;
	if (!fgets(name, sizeof(name), file))
		name[0] = '\0';
	fclose(file);
	return strncmp(name, awaited->comm, strlen(awaited->comm)) == 0 &&
	       status_number(awaited->child, "TracerPid", 10) == awaited->parent;
}

static bool has(const char *program)
{
	return system(live_text("command -v %s >/dev/null 2>&1", program)) == 0;
}

/* Started by a tracer: the error names it, and the program goes on under it. */
static void is_refused_and_named(const char *tracer, const char *const *argv)
{
	struct tool *tool = tool_start();
	struct subject *subject = subject_start(getuid(), argv);
	struct awaited awaited = { subject->pid, 0, "turnover" };
	struct tool_run run;

	while (strcmp(subject_line(subject), "R") != 0)
		;                                /* what the tracer says on the way */
	require(live_wait(child_is_there, &awaited, START_MS));
	run = tool_try(tool, "attach", pid_text(awaited.child), NULL);
	live_note("%s", run.err);
	require(run.status != 0);
	require_text(run.err, live_text("process %d (", subject->pid));
	require_text(run.err, tracer);
	require_equal(status_number(awaited.child, "TracerPid", 10), subject->pid);
	subject_send(subject, 'q');
	subject_wait(subject);
}

static void a_program_under_gdb_is_refused(void)
{
	const char *victim = live_text("%s/%s", live_build(), TURNOVER);
	const char *argv[] = { "/usr/bin/gdb", "-q", "-nx", "-batch", "-ex", "run", "--args", victim, NULL };

	require(has("gdb"));
	is_refused_and_named("gdb", argv);
}

static void a_program_under_strace_is_refused(void)
{
	const char *victim = live_text("%s/%s", live_build(), TURNOVER);
	const char *argv[] = { "/usr/bin/strace", "-f", "-o", "/dev/null", victim, NULL };

	require(has("strace"));
	is_refused_and_named("strace", argv);
}

/* rr needs the CPU's event counters, which virtual machines seldom have; it then says so and starts nothing.  To be
 * refused by name needs no more of a tracer than that it traces: strace under its name stands in for it. */
static void a_program_under_rr_is_refused(void)
{
	const char *victim = live_text("%s/%s", live_build(), TURNOVER), *stand_in = live_text("%s/rr", live_folder());
	const char *real[] = { "/usr/bin/rr", "record", "-o", live_text("%s/trace", live_folder()), victim, NULL };
	const char *named[] = { stand_in, "-f", "-o", "/dev/null", victim, NULL };
	const char *said = live_text("%s/said", live_folder());

	if (has("rr") && system(live_text("rr record -o %s/try /bin/true >%s 2>&1", live_folder(), said)) == 0) {
		is_refused_and_named("rr", real);
		return;
	}
	if (has("rr"))
		require_equal(system(live_text("grep -q 'performance counter' %s", said)), 0);
	live_note("rr %s; a stand-in is used", has("rr") ? "finds no performance counters here" : "is not installed");
	require_equal(system(live_text("cp /usr/bin/strace %s", stand_in)), 0);
	is_refused_and_named("/rr -f", named);
}

static void a_program_under_valgrind_is_refused(void)
{
	const char *victim = live_text("%s/%s", live_build(), TURNOVER);
	const char *argv[] = { "/usr/bin/valgrind", "-q", victim, NULL };
	struct tool *tool = tool_start();
	struct subject *subject;
	struct tool_run run;

	require(has("valgrind"));
	subject = subject_start(getuid(), argv);
	require(strcmp(subject_line(subject), "R") == 0);
	run = tool_try(tool, "attach", pid_text(subject->pid), NULL);
	live_note("%s", run.err);
	require(run.status != 0);
	require_text(run.err, "valgrind");
	subject_command(subject, 'g');
	require_equal(subject_tally(subject, "kept"), 1);
	subject_send(subject, 'q');
	require_equal(subject_wait(subject), 0);
}

/* --- int3s of its own --- */

static void its_own_int3s_reach_its_handler(void)
{
	struct tool *tool = tool_start();
	unsigned rounds = live_rounds(50, 5000);

	for (int first = 0; first < 2; first++) {       /* the handler set before the attach, and after it */
		struct subject *victim = victim_start(INT3S, NULL);
		struct state *before;

		if (first)
			subject_command(victim, 'h');
		before = state_take(victim->pid);
		tool_attach(tool, victim->pid);
		if (!first)
			subject_command(victim, 'h');
		for (unsigned i = 0; i < rounds; i++)
			subject_command(victim, 'g');
		require_equal(subject_tally(victim, "met"), rounds);
		require_equal(subject_tally(victim, "caught"), rounds);
		require_nothing_unknown(tool_status(tool, victim->pid), 0);
		tool_detach(tool, victim->pid);
		for (unsigned i = 0; i < rounds; i++)
			subject_command(victim, 'g');
		require_equal(subject_tally(victim, "caught"), 2 * rounds);
		require_unharmed(victim->pid, first ? before : NULL);
		subject_quit(victim);
	}
	live_survey("its own int3s", 4 * rounds, 0, 2, 2);
}

static int status_at_int3(struct subject *victim)
{
	subject_send(victim, 'g');
	return subject_wait(victim);
}

static void without_a_handler_it_dies_as_untraced(void)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(INT3S, NULL);
	int untraced = status_at_int3(victim);

	require(WIFSIGNALED(untraced) && WTERMSIG(untraced) == SIGTRAP);
	victim = victim_start(INT3S, NULL);
	tool_attach(tool, victim->pid);
	require_equal(status_at_int3(victim), untraced);
	victim = victim_start(INT3S, NULL);
	tool_attach(tool, victim->pid);
	tool_detach(tool, victim->pid);
	require_equal(status_at_int3(victim), untraced);
}

static const struct live_case cases[] = {
	LIVE_CASE(sanitized_programs_end_as_untraced),
	LIVE_CASE(a_program_under_gdb_is_refused),
	LIVE_CASE(a_program_under_strace_is_refused),
	LIVE_CASE(a_program_under_rr_is_refused),
	LIVE_CASE(a_program_under_valgrind_is_refused),
	LIVE_CASE(its_own_int3s_reach_its_handler),
	LIVE_CASE(without_a_handler_it_dies_as_untraced),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
