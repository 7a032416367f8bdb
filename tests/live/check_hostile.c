/* Targets that mean harm, or have met some: what they cost tracer, daemon and symbolizer is bounded and told, nobody else
 * notices, and they themselves go on as they would untraced. */
#include "file_server.h"
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What tools may take that have to wait for a file system in vain, on a busy machine, too. */
#define MUTE_MOST_MS 15000

static long long since_ms(uint64_t began_ns)
{
	return (long long)((clock_monotonic_ns() - began_ns) / NSEC_PER_MSEC);
}

/* The state of the first thread, 'S' or 'D' and the like. */
static void require_not_stuck(pid_t pid)
{
	if (thread_state(pid, pid) == 'D')
		live_fail("process %d waits in the kernel for what does not come", pid);
}

/* --- file systems that do not answer --- */

struct mute {
	struct file_server *server;
	struct tool *tool;
	struct subject *subject, *other;
	struct state *before, *other_before;
};

/* A program with a plugin from a file system that goes on, and another program.  Root opens what is mapped, others go by
 * its path. */
static struct mute start_mute(bool ordinary)
{
	const char *folder = live_text("%s/served", live_folder());
	struct mute mute = { .server = file_server_start("plugin.so", live_text("%s/tests/victims/plugin.so", live_build())) };

	if (ordinary) {
		mute.tool = tool_start_ordinary();
		mute.subject = victim_start_ordinary("tests/victims/plugins", folder, NULL);
		mute.other = victim_start_ordinary("tests/victims/turnover", NULL);
	} else {
		mute.tool = tool_start();
		mute.subject = victim_start("tests/victims/plugins", folder, NULL);
		mute.other = victim_start("tests/victims/turnover", NULL);
	}
	subject_command(mute.subject, 'o');
	mute.before = state_take(mute.subject->pid);
	mute.other_before = state_take(mute.other->pid);
	return mute;
}

/* Another process is served as ever: no process that serves all waits. */
static void require_others_served(struct mute *mute)
{
	uint64_t began_ns = clock_monotonic_ns();

	tool_attach(mute->tool, mute->other->pid);
	subject_command(mute->other, 'g');
	require_row(tool_stats(mute->tool, pid_text(mute->other->pid)), "tests/victims/turnover.c", "kept block", 72, 1);
	tool_end(mute->tool, mute->other, mute->other_before);
	require_not_stuck(tool_daemon(mute->tool));
	require_at_least(MUTE_MOST_MS, since_ms(began_ns));
}

/* What is compared at the end has to be read. */
static void end_mute(struct mute *mute)
{
	file_server_speak(mute->server);
	tool_end(mute->tool, mute->subject, mute->before);
	file_server_end(mute->server);
}

static void an_object_on_a_mute_file_system_holds_nobody(void)
{
	struct mute mute = start_mute(geteuid() == 0);
	struct tool_run run;
	uint64_t began_ns;
	json_t *status;

	file_server_go_mute(mute.server);
	began_ns = clock_monotonic_ns();
	run = tool_try(mute.tool, "attach", pid_text(mute.subject->pid), NULL);
	live_note("attached in %lld ms; %u requests without an answer", since_ms(began_ns),
		  file_server_unanswered(mute.server));
	require_equal(run.status, 0);
	require_text(run.err, "its file system does not answer in time");
	require_at_least(MUTE_MOST_MS, since_ms(began_ns));
	require_at_least(file_server_unanswered(mute.server), 1);
	require_not_stuck(tool_tracer(mute.subject->pid));
	subject_command(mute.subject, 'g');
	status = tool_status(mute.tool, mute.subject->pid);
	require_equal(json_number(status, "blocks"), 1);
	require_equal(json_number(status, "traced_current"), subject_tally(mute.subject, "plugin_bytes"));
	require(!json_is_true(json_object_get(status, "exact")));
	require_others_served(&mute);
	end_mute(&mute);
}

static void an_object_whose_file_system_falls_silent_holds_nobody(void)
{
	struct mute mute = start_mute(false);

	tool_attach(mute.tool, mute.subject->pid);
	file_server_go_mute(mute.server);
	subject_command(mute.subject, 'g');
	/* It has its names from the copy. */
	require_row(tool_stats(mute.tool, pid_text(mute.subject->pid)), "tests/victims/plugin.c", "plugin block", 333, 1);
	require_nothing_unknown(tool_status(mute.tool, mute.subject->pid), 0);
	require_others_served(&mute);
	require_equal(file_server_unanswered(mute.server), 0);
	end_mute(&mute);
}

static void a_program_on_a_mute_file_system_holds_nobody(void)
{
	struct file_server *server = file_server_start("turnover", live_text("%s/tests/victims/turnover", live_build()));
	struct tool *tool = tool_start();
	struct subject *subject = victim_start_as(geteuid(), file_server_path(server), NULL);
	struct state *before = state_take(subject->pid);
	struct tool_run run;

	subject_command(subject, 'g');
	file_server_go_mute(server);
	run = tool_try(tool, "attach", pid_text(subject->pid), NULL);
	require_equal(run.status, 0);
	require_text(run.err, "its file system does not answer in time");
	subject_command(subject, 'g');
	require_equal(json_number(tool_status(tool, subject->pid), "blocks"), 1);
	require_not_stuck(tool_daemon(tool));
	file_server_speak(server);
	tool_end(tool, subject, before);
	file_server_end(server);
}

static const struct live_case cases[] = {
	LIVE_CASE(an_object_on_a_mute_file_system_holds_nobody),
	LIVE_CASE(an_object_whose_file_system_falls_silent_holds_nobody),
	LIVE_CASE(a_program_on_a_mute_file_system_holds_nobody),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
