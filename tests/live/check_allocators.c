/* What counts as an allocation: resizes, escapes, new, plugins, other mallocs, new threads. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Failed, from nothing, to nothing, growing: after each step the heap is what it should be. */
static void resizes_are_counted_rightly(void)
{
	struct tool *tool = tool_start();
	struct subject *v = victim_start("tests/victims/resizes", NULL);
	struct state *before = state_take(v->pid);

	tool_attach(tool, v->pid);
	for (int step = 1; step <= 7; step++) {
		json_t *status;

		subject_command(v, 'g');
		status = tool_status(tool, v->pid);
		require_equal(json_number(status, "blocks"), subject_tally(v, "blocks"));
		require_equal(json_number(status, "traced_current"), subject_tally(v, "bytes"));
		require_equal(json_number(status, "traced_peak"), subject_tally(v, "peak"));
		require_nothing_unknown(status, 0);
	}
	tool_end(tool, v, before);
}

static void a_failed_realloc_keeps_the_old_block_and_its_line(void)
{
	struct tool *tool = tool_start();
	struct subject *v = victim_start("tests/victims/resizes", NULL);
	const char *pid = pid_text(v->pid);

	tool_attach(tool, v->pid);
	subject_command(v, 'g');
	subject_command(v, 'g');
	require_row(tool_stats(tool, pid), "tests/victims/resizes.c", "/* kept */", 500, 1);
	subject_command(v, 'g');
	subject_command(v, 'g');
	require_row(tool_stats(tool, pid), "tests/victims/resizes.c", "/* grown from nothing */", 1024, 1);
	subject_command(v, 'g');
	require_row(tool_stats(tool, pid), "tests/victims/resizes.c", "/* grown */", 1024 * 1024, 1);
	require(!row_at(tool_stats(tool, pid), "resizes.c",
			line_of("tests/victims/resizes.c", "/* grown from nothing */")));
	tool_end(tool, v, NULL);
}

#define JEMALLOC "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"

/* preload: an allocator to put before libc's, or NULL. */
static struct subject *start_cxx(const char *victim, const char *preload)
{
	struct subject *subject;

	if (access(live_text("%s/%s", live_build(), victim), X_OK))
		live_fail("%s is not built: there was no C++ compiler", victim);
	if (preload && access(preload, R_OK))
		live_fail("%s is not installed; contrib/install-deps --test installs it", preload);
	if (preload)
		setenv("LD_PRELOAD", preload, 1);
	subject = victim_start(victim, NULL);
	unsetenv("LD_PRELOAD");
	return subject;
}

static void escapes_are_counted_rightly(const char *preload)
{
	struct tool *tool = tool_start();
	struct subject *v;
	struct state *before;

	v = start_cxx("tests/victims/escapes", preload);
	before = state_take(v->pid);
	tool_attach(tool, v->pid);
	for (int i = 0; i < 20; i++)
		subject_command(v, 'g');
	require_equal(subject_tally(v, "escapes"), 60);
	require_row(tool_stats(tool, pid_text(v->pid)), "tests/victims/escapes.cc", "// kept",
		    subject_tally(v, "bytes"), subject_tally(v, "blocks"));
	require_equal(json_number(tool_status(tool, v->pid), "unknown.unknown_frees"), 0);
	require_equal(json_number(tool_status(tool, v->pid), "unknown.lost_events"), 0);
	tool_end(tool, v, before);
}

/* By exceptions and by longjmp: no call is taken to be still pending afterwards. */
static void escapes_out_of_new_leave_no_pending_call(void)
{
	escapes_are_counted_rightly(NULL);
}

/* Its operator new is a function of the allocator's own, which the exception leaves. */
static void escapes_out_of_jemallocs_new_leave_no_pending_call(void)
{
	escapes_are_counted_rightly(JEMALLOC);
}

static void new_is_credited_rightly(const char *preload)
{
	struct tool *tool = tool_start();
	struct subject *v;
	struct state *before;
	json_t *stats;

	v = start_cxx("tests/victims/newonly", preload);
	before = state_take(v->pid);
	tool_attach(tool, v->pid);
	for (int i = 0; i < 10; i++)
		subject_command(v, 'g');
	stats = tool_stats(tool, pid_text(v->pid));
	require_row(stats, "tests/victims/newonly.cc", "// kept array", 1000, 10);
	require_row(stats, "tests/victims/newonly.cc", "// growing vector", 10 * 16384, 10);
	require_nothing_unknown(tool_status(tool, v->pid), 0);
	tool_end(tool, v, before);
}

static void new_is_credited_to_the_line_that_says_new(void)
{
	new_is_credited_rightly(NULL);
}

static void jemallocs_new_counts_once(void)
{
	new_is_credited_rightly(JEMALLOC);
}

static void plugins_that_come_and_go_are_named(void)
{
	struct tool *tool = tool_start();
	struct subject *v = victim_start("tests/victims/plugins", live_text("%s/tests/victims", live_build()), NULL);
	const char *pid = pid_text(v->pid);

	tool_attach(tool, v->pid);
	subject_command(v, 'o');
	for (int i = 0; i < 5; i++)
		subject_command(v, 'g');
	require_row(tool_stats(tool, pid), "tests/victims/plugin.c", "/* plugin block */", 5 * 333, 5);
	subject_command(v, 'c');
	require_row(tool_stats(tool, pid), "tests/victims/plugin.c", "/* plugin block */", 5 * 333, 5);
	require_equal(json_number(tool_status(tool, v->pid), "unknown.unknown_frees"), 0);
	tool_end(tool, v, NULL);
}

/* The loader tells of it, and the new malloc is watched before its first call. */
static void a_malloc_that_is_loaded_later_is_watched(void)
{
	struct tool *tool = tool_start();
	struct subject *v = victim_start("tests/victims/plugins", live_text("%s/tests/victims", live_build()), NULL);
	const char *pid = pid_text(v->pid);

	tool_attach(tool, v->pid);
	subject_command(v, 'O');
	for (int i = 0; i < 7; i++)
		subject_command(v, 'G');
	require_row(tool_stats(tool, pid), "tests/victims/plugins.c", "/* own block */", 7 * 444, 7);
	subject_command(v, 'F');
	subject_command(v, 'F');
	require_row(tool_stats(tool, pid), "tests/victims/plugins.c", "/* own block */", 5 * 444, 5);
	require_nothing_unknown(tool_status(tool, v->pid), 0);
	tool_end(tool, v, NULL);
}

/* The call that was left must not swallow those that come after it. */
static void a_malloc_left_by_siglongjmp_is_not_pending(void)
{
	struct tool *tool = tool_start();
	struct subject *v = victim_start("tests/victims/plugins", live_text("%s/tests/victims", live_build()), NULL);

	tool_attach(tool, v->pid);
	subject_command(v, 'O');
	for (int i = 0; i < 9; i++)
		subject_command(v, 'J');
	require_equal(subject_tally(v, "escapes"), 9);
	require_row(tool_stats(tool, pid_text(v->pid)), "tests/victims/plugins.c", "/* own block */", 9 * 444, 9);
	require_nothing_unknown(tool_status(tool, v->pid), 0);
	tool_end(tool, v, NULL);
}

static void a_recursion_of_100000_frames_is_cut_and_told(void)
{
	struct tool *tool = tool_start();
	struct subject *v = victim_start("tests/victims/recursion", NULL);
	struct state *before = state_take(v->pid);
	json_t *stats, *row;

	tool_attach(tool, v->pid);
	for (int i = 0; i < 3; i++)
		subject_command(v, 'g');
	stats = tool_json(tool, "stats", pid_text(v->pid), "--by", "traceback", NULL);
	row = row_at(stats, "recursion.c", line_of("tests/victims/recursion.c", "/* kept */"));
	require(row);
	require_equal(json_number(row, "count"), 3);
	require_equal((long long)json_array_size(json_object_get(row, "traceback")), 25);
	require(json_text(row, "truncated"));
	require_equal(json_number(tool_status(tool, v->pid), "blocks"), 3);
	live_note("longest stop: %lld us", json_number(tool_status(tool, v->pid), "longest_stop_us"));
	tool_end(tool, v, before);
}

/* The stack goes on from the handler to what was interrupted in the kernel's own code, and to who called that. */
static void a_handler_that_interrupts_the_vdso_has_its_whole_stack(void)
{
	struct tool *tool = tool_start();
	struct subject *v = victim_start("tests/victims/clockwork", NULL);
	struct state *before = state_take(v->pid);
	int keeps = line_of("tests/victims/clockwork.c", "/* above the vdso */");
	long long kept = 0;
	json_t *stats, *row;
	size_t i;

	tool_attach(tool, v->pid);
	subject_command(v, 'g');
	stats = tool_json(tool, "stats", pid_text(v->pid), "--by", "traceback", NULL);
	json_array_foreach(json_object_get(stats, "statistics"), i, row) {
		if (!has_frame_at(row, "clockwork.c", keeps))
			continue;
		require(has_frame_at(row, "clockwork.c", line_of("tests/victims/clockwork.c", "/* asks the time */")));
		require(!json_object_get(row, "truncated"));
		kept += json_number(row, "count");
	}
	require_equal(kept, subject_tally(v, "blocks"));
	tool_end(tool, v, before);
}

static void threads_born_while_attaching_are_all_traced(void)
{
	struct tool *tool = tool_start();
	struct subject *v = victim_start("tests/victims/births", NULL);

	for (int i = 0; i < 5; i++) {
		subject_send(v, 'r');
		tool_attach(tool, v->pid);
		subject_command(v, 's');
		subject_command(v, 'g');
		require_row(tool_stats(tool, pid_text(v->pid)), "tests/victims/births.c", "/* kept in a round */",
			    200 * 40, 200);
		require_equal(json_number(tool_status(tool, v->pid), "unknown.unknown_frees"), 0);
		require_equal(json_number(tool_status(tool, v->pid), "unknown.lost_events"), 0);
		tool_detach(tool, v->pid);
		require_unharmed(v->pid, NULL);
	}
	subject_quit(v);
}

/* musl has no pvalloc, and its compiler's folder no headers of the kernel. */
#define MUSL "cd %s && musl-gcc -O2 -g -fno-builtin -pthread -D_GNU_SOURCE -Dpvalloc=valloc -idirafter /usr/include " \
	     "-idirafter /usr/include/x86_64-linux-gnu %s %s/hammer.c %s/victim.c -o hammer"

static void require_musl_counted(const char *flags)
{
	const char *sources = realpath(live_text("%s/tests/victims", live_source()), NULL), *command;
	struct tool *tool = tool_start();
	struct subject *hammer;
	struct state *before;

	command = live_text(MUSL, live_folder(), flags, sources, sources);
	if (system(command) != 0)
		live_fail("'%s' does not work; contrib/install-deps --test installs what it needs", command);
	hammer = subject_start(geteuid(), (const char *const[]){ live_text("%s/hammer", live_folder()), "--threads", "4", "--ops",
								  live_text("%u", live_rounds(2000, 20000)), NULL });
	require_text(subject_line(hammer), "R");
	before = state_take(hammer->pid);
	tool_attach(tool, hammer->pid);
	for (int i = 0; i < 3; i++) {
		subject_command(hammer, 'g');
		require_tally(tool, hammer, 0);
	}
	require_equal(json_number(tool_status(tool, hammer->pid), "unknown.truncated_stacks"), 0);
	tool_end(tool, hammer, before);
}

/* Also stacks: libc's own frames, of which no table says anything, are gone through. */
static void musls_blocks_are_counted_to_the_byte(void)
{
	require_musl_counted("");
}

static void so_are_those_of_a_static_musl(void)
{
	require_musl_counted("-static");
}

static const struct live_case cases[] = {
	LIVE_CASE(resizes_are_counted_rightly),
	LIVE_CASE(a_failed_realloc_keeps_the_old_block_and_its_line),
	LIVE_CASE(escapes_out_of_new_leave_no_pending_call),
	LIVE_CASE(escapes_out_of_jemallocs_new_leave_no_pending_call),
	LIVE_CASE(new_is_credited_to_the_line_that_says_new),
	LIVE_CASE(jemallocs_new_counts_once),
	LIVE_CASE(plugins_that_come_and_go_are_named),
	LIVE_CASE(a_malloc_that_is_loaded_later_is_watched),
	LIVE_CASE(a_malloc_left_by_siglongjmp_is_not_pending),
	LIVE_CASE(a_recursion_of_100000_frames_is_cut_and_told),
	LIVE_CASE(a_handler_that_interrupts_the_vdso_has_its_whole_stack),
	LIVE_CASE(threads_born_while_attaching_are_all_traced),
	LIVE_CASE(musls_blocks_are_counted_to_the_byte),
	LIVE_CASE(so_are_those_of_a_static_musl),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
