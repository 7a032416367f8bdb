/* A traced process becomes another program: from any thread, and also one that cannot be traced. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "base/clock.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXECER "tests/victims/execer"
#define EXECER_C "tests/victims/execer.c"
#define KEPT_MS 10000
#define LET_GO_MS 10000

struct expected {
	struct tool *tool;
	pid_t pid;
};

static bool is_let_go(void *context)
{
	const struct expected *expected = context;

	return !tool_lists(expected->tool, expected->pid) && status_number(expected->pid, "TracerPid", 10) == 0;
}

static void exec_in_rounds(bool follow, unsigned rounds)
{
	struct tool *tool = tool_start();
	struct subject *execer = victim_start(EXECER, "--threads", "3", NULL);
	const char *pid = pid_text(execer->pid);

	tool_out(tool, "attach", pid, follow ? "--follow-forks" : NULL, NULL);
	for (unsigned i = 0; i < rounds; i++) {
		subject_command(execer, 'a');
		subject_command(execer, 'a');
		require_equal(subject_tally(execer, "execs"), i);
		require_row(tool_stats(tool, pid), EXECER_C, "/* kept */", 416, 2);
		require_nothing_unknown(tool_status(tool, execer->pid), i ? 0 : json_number(tool_status(tool, execer->pid),
							  "unknown.before_attach_frees"));
		require_text(subject_command(execer, 't'), "R");
		require_row(tool_stats(tool, live_text("%s:exec", pid)), EXECER_C, "/* kept */", 416, 2);
	}
	live_survey("exec from a thread that is not the leader", rounds, 0, rounds, rounds);
	tool_end(tool, execer, NULL);
}

static void an_exec_from_another_thread_starts_a_new_heap(void)
{
	exec_in_rounds(false, live_rounds(4, 200));
}

static void a_followed_exec_from_another_thread_starts_a_new_heap(void)
{
	exec_in_rounds(true, live_rounds(2, 100));
}

/* As soon as the program has its libc, which the tracer looks at next. */
static bool interrupt_with_libc(void *context)
{
	pid_t pid = *(pid_t *)context;
	FILE *maps = fopen(live_text("/proc/%d/maps", pid), "re");
	bool executed = false, found = false;
	char line[4096];

	while (maps && fgets(line, sizeof(line), maps)) {
		executed |= strstr(line, "/cat\n") != NULL;
		found |= strstr(line, "/libc.so") != NULL;
	}
	if (maps)
		fclose(maps);
	return executed && found && kill(pid, SIGINT) == 0;
}

/* Ctrl-C when a shell has just executed what it was to run: the signal is on its way when the program's objects are looked at, and ends
 * it there.  A tracer that waited for the daemon's next word then told of no end, and `allocwatch run' waited with it. */
static void a_signal_that_ends_a_program_at_its_exec_is_its_end(void)
{
	unsigned rounds = live_rounds(20, 200);
	struct tool *tool = tool_start();

	for (unsigned i = 0; i < rounds; i++) {
		struct subject *execer = victim_start(EXECER, "--to", "/bin/cat", NULL);
		uint64_t deadline_ns = clock_monotonic_ns() + KEPT_MS * NSEC_PER_MSEC;

		tool_out(tool, "attach", pid_text(execer->pid), NULL);
		subject_send(execer, 'g');
		/* Without a pause between two looks: it is a matter of a millisecond. */
		while (!interrupt_with_libc(&execer->pid))
			require(!clock_passed(deadline_ns));
		require_equal(subject_wait(execer), SIGINT);
		tool_wait_until_gone(tool, execer->pid, LET_GO_MS);
	}
	live_survey("a signal at an exec", rounds, 0, rounds, rounds);
}

/* Attach and detach meet an exec at any point of theirs. */
static void coming_and_going_in_a_storm_of_execs_does_no_harm(void)
{
	enum { BURST = 12 };
	struct tool *tool = tool_start();
	struct subject *execer = victim_start(EXECER, NULL);
	unsigned rounds = live_rounds(40, 1000), attached = 0, sent = 0, i;
	struct tool_run attach;

	/* Most attaches come too early or too late, all of them where it never comes to the end of what it was sent: so it is sent more or
	 * less, and there are more of them on a busy machine. */
	for (i = 0; i < rounds || (attached < rounds / 10 && i < 10 * rounds); i++) {
		for (uint64_t k = live_random(BURST + 1); k > 0; k--, sent++)
			subject_send(execer, 'g');
		attach = tool_try(tool, "attach", pid_text(execer->pid), NULL);
		if (attach.status != 0) {
			/* Before it has loaded its libraries, or once it has begun another program. */
			require(strstr(attach.err, "no allocator found") || strstr(attach.err, "try again"));
			continue;
		}
		attached++;
		tool_detach(tool, execer->pid);
	}
	for (unsigned k = 0; k < sent; k++)
		require_text(subject_line(execer), "R");
	subject_command(execer, 'a');
	require_equal(subject_tally(execer, "execs"), sent);
	live_note("%u execs, %u of %u attaches", sent, attached, i);
	require_at_least(attached, rounds / 10);
	require_unharmed(execer->pid, NULL);
	subject_quit(execer);
}

struct named {
	struct tool *tool;
	const char *snap;
};

static bool is_kept(void *context)
{
	const struct named *named = context;

	return tool_try(named->tool, "stats", named->snap, NULL).status == 0;
}

/* What the daemon keeps by itself is kept a moment after what it is of. */
static void require_kept(struct tool *tool, pid_t pid, const char *name)
{
	struct named named = { tool, live_text("%d:%s", pid, name) };

	require(live_wait(is_kept, &named, KEPT_MS));
	require_row(tool_stats(tool, named.snap), EXECER_C, "/* kept */", 208, 1);
}

static void a_program_without_an_allocator_holds_nothing(void)
{
	struct tool *tool = tool_start();
	struct subject *execer = victim_start(EXECER, "--to", live_text("%s/tests/victims/nomalloc", live_build()), NULL);

	tool_attach(tool, execer->pid);
	subject_command(execer, 'a');
	require_text(subject_command(execer, 'g'), "R");
	require_equal(json_number(tool_status(tool, execer->pid), "blocks"), 0);
	require_kept(tool, execer->pid, "exec");
	/* The end of a program, and the process lives on. */
	require_kept(tool, execer->pid, "exit");
	tool_end(tool, execer, NULL);
}

/* Let go by itself, with the reason in the log; it runs as it would untraced. */
static void require_let_go(struct tool *tool, struct subject *execer, const char *wrapped)
{
	struct expected expected = { tool, execer->pid };

	require_text(subject_command(execer, 'g'), "R");
	require(live_wait(is_let_go, &expected, LET_GO_MS));
	require_kept(tool, execer->pid, "exec");
	if (wrapped)
		require_text(subject_command(execer, 'a'), wrapped);
	subject_quit(execer);
}

static void a_32_bit_program_is_let_go(void)
{
	struct tool *tool = tool_start();
	struct subject *execer = victim_start(EXECER, "--to", live_text("%s/tests/victims/tiny32", live_build()), NULL);

	tool_attach(tool, execer->pid);
	subject_command(execer, 'a');
	require_let_go(tool, execer, NULL);
}

/* The kernel lets nobody look into it who could not read its file. */
static void a_program_that_its_user_may_not_read_is_let_go(void)
{
	const char *unreadable;
	struct tool *tool;
	struct subject *execer;

	if (geteuid() != 0)
		live_skip("becoming an ordinary user needs root");
	tool = tool_start_ordinary();
	unreadable = live_text("%s/unreadable", live_folder());
	require_equal(system(live_text("cp '%s' '%s'", public_copy(EXECER), unreadable)), 0);
	require_equal(chmod(unreadable, 0111), 0);
	execer = victim_start_ordinary(EXECER, "--to", unreadable, NULL);
	tool_attach(tool, execer->pid);
	subject_command(execer, 'a');
	require_let_go(tool, execer, "execs=0 blocks=1");
}

/* The shell starts its commands by vfork. */
static void a_followed_childs_32_bit_program_is_let_go(void)
{
	struct tool *tool = tool_start();
	struct tool_run result = tool_try(tool, "run", "--follow-forks", "--", "/bin/sh", "-c",
					  live_text("%s/tests/victims/tiny32 </dev/null && exit 9", live_build()), NULL);

	require_text(result.out, "R");
	require_equal(result.status, 9);
}

static const struct live_case cases[] = {
	LIVE_CASE(an_exec_from_another_thread_starts_a_new_heap),
	LIVE_CASE(a_followed_exec_from_another_thread_starts_a_new_heap),
	LIVE_CASE(a_signal_that_ends_a_program_at_its_exec_is_its_end),
	LIVE_CASE(coming_and_going_in_a_storm_of_execs_does_no_harm),
	LIVE_CASE(a_program_without_an_allocator_holds_nothing),
	LIVE_CASE(a_32_bit_program_is_let_go),
	LIVE_CASE(a_followed_childs_32_bit_program_is_let_go),
	LIVE_CASE(a_program_that_its_user_may_not_read_is_let_go),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
