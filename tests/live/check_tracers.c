/* Other tracers, gdb and strace: those that want in (detach --keep, and attach again), and what they leave behind. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "base/clock.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define TURNOVER "tests/victims/turnover"
#define TURNOVER_SOURCE "tests/victims/turnover.c"
#define GAP_MS 10000

/* --- for a while --- */

static void keep_blocks(struct subject *subject, char command, unsigned count)
{
	while (count-- > 0)
		subject_command(subject, command);
}

static void detach_for_a_while(struct tool *tool, pid_t pid)
{
	uint64_t started_ns = clock_monotonic_ns(), took_ms;

	tool_out(tool, "detach", pid_text(pid), "--keep", NULL);
	took_ms = (clock_monotonic_ns() - started_ns) / NSEC_PER_MSEC;
	live_note("let go in %llu ms\n", (unsigned long long)took_ms);
	require(took_ms < 1000);
	require_equal(status_number(pid, "TracerPid", 10), 0);
}

/* Really attached, and it makes a call in the process. */
static void let_gdb_in(pid_t pid)
{
	const char *out = live_text("%s/gdb", live_folder());
	char text[8192];
	FILE *file;

	require_equal(system(live_text("gdb -q -nx -batch -p %d -ex 'print (int)getpid()' -ex detach >%s 2>&1 </dev/null", pid,
				       out)), 0);
	file = fopen(out, "r");
	require(file != NULL);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	require_text(text, live_text("$1 = %d", pid));
}

static void require_inexact(struct tool *tool, pid_t pid)
{
	json_t *status = tool_status(tool, pid);

	require_equal(json_is_true(json_object_get(status, "exact")), 0);
	require_at_least(json_number(status, "unknown.probe_gaps"), 1);
}

static void a_debugger_gets_in_and_tracing_goes_on(void)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(TURNOVER, NULL);
	struct state *before = state_take(victim->pid);
	const char *pid = pid_text(victim->pid);
	struct tool_run run;

	tool_attach_held(tool, victim->pid);
	keep_blocks(victim, 'g', 5);
	detach_for_a_while(tool, victim->pid);
	require_unharmed(victim->pid, before);
	require_text(json_text(tool_status(tool, victim->pid), "state"), "kept");
	/* What it knows can be asked for all the while. */
	require_row(tool_stats(tool, pid), TURNOVER_SOURCE, "/* kept block */", 5 * 72, 5);
	let_gdb_in(victim->pid);
	keep_blocks(victim, 'g', 2);             /* unseen */
	keep_blocks(victim, 'f', 1);             /* of a block that is known */
	run = tool_try(tool, "attach", pid, NULL);
	require_equal(run.status, 0);
	require_text(run.err, "traced before");
	require_at_least(tool_tracer(victim->pid), 1);
	keep_blocks(victim, 'g', 3);
	/* 5 and 3; of those, the one that was freed unseen stands there until its address is used again, which
	 * is counted. */
	require_row(tool_stats(tool, pid), TURNOVER_SOURCE, "/* kept block */",
		    72 * (8 - json_number(tool_status(tool, victim->pid), "unknown.lost_events")),
		    8 - json_number(tool_status(tool, victim->pid), "unknown.lost_events"));
	require_inexact(tool, victim->pid);
	keep_blocks(victim, 'f', 9);             /* two of them were born unseen */
	require_equal(subject_tally(victim, "kept"), 0);
	require_equal(json_number(tool_status(tool, victim->pid), "unknown.before_attach_frees") +
		      json_number(tool_status(tool, victim->pid), "unknown.unknown_frees"), 2);
	tool_end(tool, victim, before);
}

static void a_busy_process_is_let_go_and_taken_again(void)
{
	struct tool *tool = tool_start();
	unsigned rounds = live_rounds(10, 500);
	struct subject *victim = victim_start(TURNOVER, NULL);
	long turns = 0;

	subject_command(victim, 'w');
	for (unsigned i = 0; i < rounds; i++) {
		tool_attach(tool, victim->pid);
		subject_command(victim, 'g');
		require_at_least(subject_tally(victim, "turns"), turns);
		turns = subject_tally(victim, "turns");
		detach_for_a_while(tool, victim->pid);
		text_require_intact(victim->pid);
	}
	require_row(tool_stats(tool, pid_text(victim->pid)), TURNOVER_SOURCE, "/* kept block */", 72LL * rounds, rounds);
	subject_command(victim, 'i');
	tool_detach(tool, victim->pid);
	require(!tool_lists(tool, victim->pid));
	live_survey("let go and taken again", rounds, 0, 1, 1);
	require_unharmed(victim->pid, NULL);
	subject_quit(victim);
}

static bool is_unlisted(void *context)
{
	struct tool **tool = context;

	return json_array_size(json_object_get(tool_json(*tool, "list", NULL), "targets")) == 0;
}

struct ended {
	struct tool *tool;
	pid_t pid;
};

static bool has_left_its_snapshot(void *context)
{
	const struct ended *ended = context;

	return tool_try(ended->tool, "stats", live_text("%d:detach", ended->pid), NULL).status == 0;
}

/* It leaves its last snapshot, and a new process of the same program is a new one. */
static void a_kept_process_that_ends_leaves_its_snapshot(void)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(TURNOVER, NULL);
	pid_t pid = victim->pid;

	tool_attach(tool, pid);
	keep_blocks(victim, 'g', 4);
	detach_for_a_while(tool, pid);
	subject_quit(victim);
	require(live_wait(is_unlisted, &tool, GAP_MS));
	require(live_wait(has_left_its_snapshot, &(struct ended){ tool, pid }, GAP_MS));
	require_row(tool_stats(tool, live_text("%d:detach", pid)), TURNOVER_SOURCE, "/* kept block */", 4 * 72, 4);
}

/* --- who wants in while we trace --- */

static const char *file_text(const char *path)
{
	static char text[65536];
	FILE *file = fopen(path, "r");

	require(file != NULL);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	return text;
}

/* It fails by the kernel's word, and nothing of what is traced is missed meanwhile. */
static void others_are_kept_out_by_the_kernel(void)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(TURNOVER, NULL);
	struct state *before = state_take(victim->pid);
	const char *out = live_text("%s/others", live_folder());

	tool_attach_held(tool, victim->pid);
	keep_blocks(victim, 'g', 5);
	require(system(live_text("strace -f -p %d -o /dev/null >%s 2>&1 </dev/null", victim->pid, out)) != 0);
	require_text(file_text(out), "Operation not permitted");
	keep_blocks(victim, 'g', 2);
	system(live_text("gdb -q -nx -batch -p %d -ex 'info threads' >%s 2>&1 </dev/null", victim->pid, out));
	require_text(file_text(out), "Operation not permitted");
	require_text(file_text(out), live_text("already traced by process %d", tool_tracer(victim->pid)));
	keep_blocks(victim, 'g', 2);
	require_row(tool_stats(tool, pid_text(victim->pid)), TURNOVER_SOURCE, "/* kept block */", 9 * 72, 9);
	require_nothing_unknown(tool_status(tool, victim->pid), 0);
	tool_end(tool, victim, before);
}

/* Whoever traces it now. */
struct taken {
	pid_t pid, tracer;
};

static bool is_taken(void *context)
{
	const struct taken *taken = context;

	return status_number(taken->pid, "TracerPid", 10) == taken->tracer;
}

static void strace_gets_in_and_tracing_goes_on(void)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(TURNOVER, NULL), *strace;
	struct state *before = state_take(victim->pid);
	const char *pid = pid_text(victim->pid), *log = live_text("%s/strace", live_folder());
	const char *argv[] = { "/usr/bin/strace", "-f", "-e", "trace=write", "-p", pid, "-o", log, NULL };
	struct tool_run run;

	tool_attach_held(tool, victim->pid);
	keep_blocks(victim, 'g', 5);
	detach_for_a_while(tool, victim->pid);
	strace = subject_start(getuid(), argv);
	require(live_wait(is_taken, &(struct taken){ victim->pid, strace->pid }, GAP_MS));
	keep_blocks(victim, 'g', 2);
	/* Named, and what is kept stays kept. */
	run = tool_try(tool, "attach", pid, NULL);
	live_note("%s", run.err);
	require(run.status != 0);
	require_text(run.err, live_text("process %d (", strace->pid));
	require_text(run.err, "strace");
	require_text(json_text(tool_status(tool, victim->pid), "state"), "kept");
	require_row(tool_stats(tool, pid), TURNOVER_SOURCE, "/* kept block */", 5 * 72, 5);
	keep_blocks(victim, 'g', 1);
	kill(strace->pid, SIGINT);
	subject_wait(strace);
	/* It has seen what it sees alone: an answer for each round. */
	require_equal(system(live_text("[ $(grep -c 'write(1, \"kept=' %s) = 3 ]", log)), 0);
	run = tool_try(tool, "attach", pid, NULL);
	require_equal(run.status, 0);
	require_text(run.err, "traced before");
	keep_blocks(victim, 'g', 4);
	require_row(tool_stats(tool, pid), TURNOVER_SOURCE, "/* kept block */", 72 * 9, 9);
	require_inexact(tool, victim->pid);
	tool_end(tool, victim, before);
}

/* --- what debuggers have started, and leave --- */

/* gdb says its number, lets it go, and is gone; it is this process's child then. */
static struct subject *start_by_gdb(const char *victim)
{
	const char *path = live_text("%s/%s", live_build(), victim);
	const char *argv[] = { "/usr/bin/gdb", "-q", "-nx", "-batch", "-ex", "break main", "-ex", "run", "-ex",
			       "info inferiors", "-ex", "next", "-ex", "detach", "--args", path, NULL };
	struct subject *subject;
	pid_t gdb, pid = 0;

	require_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	subject = subject_start(getuid(), argv);
	gdb = subject->pid;
	/* Its R may come in the middle of a line of gdb's. */
	while (subject_line(subject)[0] == '\0' || subject->line[strlen(subject->line) - 1] != 'R')
		sscanf(subject->line, "* 1 process %d", &pid);
	require(pid > 0);
	subject_wait(subject);
	require_equal(kill(gdb, 0), -1);
	subject->pid = pid;
	require_equal(status_number(pid, "TracerPid", 10), 0);
	return subject;
}

static void what_gdb_started_and_let_go_is_traced(void)
{
	struct tool *tool = tool_start();
	struct subject *victim = start_by_gdb(TURNOVER);
	struct state *before = state_take(victim->pid);

	tool_attach(tool, victim->pid);
	keep_blocks(victim, 'g', 20);
	keep_blocks(victim, 'f', 7);
	require_row(tool_stats(tool, pid_text(victim->pid)), TURNOVER_SOURCE, "/* kept block */", 13 * 72, 13);
	require_nothing_unknown(tool_status(tool, victim->pid), 0);
	tool_end(tool, victim, before);
}

static uint64_t address_in(pid_t pid, const char *function, uint8_t *ret_byte)
{
	unsigned long long base = 0, own_base = 0;
	uint64_t address;
	Dl_info info;
	FILE *maps = fopen(live_text("/proc/%d/maps", pid), "r");
	char line[1024];
	int mem = open(live_text("/proc/%d/mem", pid), O_RDONLY | O_CLOEXEC);

	require(maps && mem >= 0);
	require(dladdr(dlsym(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD), function), &info) != 0);
	own_base = (uintptr_t)info.dli_fbase;
	while (base == 0 && fgets(line, sizeof(line), maps)) {
		if (strstr(line, "/libc.so.6"))
			sscanf(line, "%llx", &base);
	}
	fclose(maps);
	require(base != 0);
	address = (uintptr_t)info.dli_saddr - own_base + base;
	require(pread(mem, ret_byte, 1, (off_t)address) == 1);
	close(mem);
	return address;
}

struct left {
	pid_t pid;
	const char *function;
};

static bool int3_is_there(void *context)
{
	const struct left *left = context;
	uint8_t byte;

	address_in(left->pid, left->function, &byte);
	return byte == 0xcc;
}

/* gdb inserts its breakpoints when it lets the process run, and one that is killed then leaves them there: this one, and
 * its own where the loader tells of new objects. */
static void leave_breakpoint(pid_t pid, const char *function)
{
	const char *argv[] = { "/usr/bin/gdb", "-q", "-nx", "-batch", "-p", pid_text(pid), "-ex",
			       live_text("break *%s", function), "-ex", "continue", NULL };
	struct left left = { pid, function };
	struct subject *gdb = subject_start(getuid(), argv);

	require(live_wait(int3_is_there, &left, 5 * GAP_MS));
	subject_kill(gdb);
	require_equal(status_number(pid, "TracerPid", 10), 0);
	require(int3_is_there(&left));
}

static void a_breakpoint_that_gdb_left_stays_as_it_is(void)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(TURNOVER, NULL);
	struct left left = { victim->pid, "raise" };
	struct state *before;
	json_t *status;

	leave_breakpoint(victim->pid, "raise");
	before = state_take(victim->pid);
	tool_attach(tool, victim->pid);
	keep_blocks(victim, 'g', 20);
	require_row(tool_stats(tool, pid_text(victim->pid)), TURNOVER_SOURCE, "/* kept block */", 20 * 72, 20);
	/* What is loaded from now on is not seen: the loader's is in our place. */
	status = tool_status(tool, victim->pid);
	require_equal(json_is_true(json_object_get(status, "exact")), 0);
	require_equal(json_number(status, "unknown.lost_events"), 0);
	require_equal(json_number(status, "unknown.probe_gaps"), 0);
	tool_detach(tool, victim->pid);
	require(int3_is_there(&left));
	state_require_same(victim->pid, before, false);
	subject_quit(victim);
}

static int status_at_left_breakpoint(struct tool *tool)
{
	struct subject *victim = victim_start(TURNOVER, NULL);

	leave_breakpoint(victim->pid, "malloc");
	if (tool)
		tool_attach(tool, victim->pid);
	subject_send(victim, 'g');
	return subject_wait(victim);
}

/* Nobody serves it any more: its process dies of it at the next call, and of the same signal when it is traced. */
static void a_breakpoint_that_gdb_left_in_malloc_kills_as_untraced(void)
{
	struct tool *tool = tool_start();
	int traced = status_at_left_breakpoint(tool);

	require(WIFSIGNALED(traced) && WTERMSIG(traced) == SIGTRAP);
	if (live_rounds(0, 1))                  /* gdb takes its time */
		require_equal(traced, status_at_left_breakpoint(NULL));
}

static const struct live_case cases[] = {
	LIVE_CASE(a_debugger_gets_in_and_tracing_goes_on),
	LIVE_CASE(a_busy_process_is_let_go_and_taken_again),
	LIVE_CASE(a_kept_process_that_ends_leaves_its_snapshot),
	LIVE_CASE(others_are_kept_out_by_the_kernel),
	LIVE_CASE(strace_gets_in_and_tracing_goes_on),
	LIVE_CASE(what_gdb_started_and_let_go_is_traced),
	LIVE_CASE(a_breakpoint_that_gdb_left_stays_as_it_is),
	LIVE_CASE(a_breakpoint_that_gdb_left_in_malloc_kills_as_untraced),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
