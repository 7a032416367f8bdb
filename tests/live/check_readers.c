/* Several threads that read a ring: stacks are what one reader says they are, whatever happens to the process meanwhile. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HAMMER "tests/victims/hammer"
#define PLUGINS "tests/victims/plugins"
#define READERS "3"
#define TAKEN 300                      /* stacks of helpers that a case wants to have been taken */
#define TAKEN_MS 60000
#define HEAL_MS 15000

struct traced {
	struct tool *tool;
	struct subject *subject;
	struct state *before;
	long long want;
};

static bool are_taken(void *context)
{
	const struct traced *traced = context;
	json_t *status = tool_status(traced->tool, traced->subject->pid);

	return json_object_get(status, "ring_stacks_ahead") && json_number(status, "ring_stacks_ahead") >= traced->want;
}

/* From now on so many more. */
static void wait_until_taken(struct traced *traced)
{
	json_t *status = tool_status(traced->tool, traced->subject->pid);

	traced->want = TAKEN + (json_object_get(status, "ring_stacks_ahead") ? json_number(status, "ring_stacks_ahead") : 0);
	if (!live_wait(are_taken, traced, TAKEN_MS))
		live_fail("of helpers %lld stacks were not taken in time", traced->want);
}

static void attach(struct traced *traced, const char *more)
{
	tool_out(traced->tool, "attach", "--engine", "ring", "--ring-readers", READERS, pid_text(traced->subject->pid), more, NULL);
	require_text(json_text(tool_status(traced->tool, traced->subject->pid), "engine"), "ring");
}

static struct traced begin(struct subject *subject, const char *more)
{
	struct traced traced = { .tool = tool_start(), .subject = subject, .before = state_take(subject->pid) };

	attach(&traced, more);
	return traced;
}

static struct subject *busy(void)
{
	return victim_start(HAMMER, "--threads", "4", "--ops", "20000", NULL);
}

/* The victim's own tally, by lines: a stack that is another's would be in the wrong row. */
static void what_several_readers_count_is_exact(void)
{
	struct traced traced = begin(busy(), NULL);

	for (unsigned i = 0; i < live_rounds(3, 30); i++)
		subject_command(traced.subject, 'g');
	require_tally(traced.tool, traced.subject, 0);
	tool_end(traced.tool, traced.subject, traced.before);
}

static struct subject *loader(void)
{
	return victim_start(PLUGINS, live_text("%s/tests/victims", live_build()), "--threads", "2", NULL);
}

/* Two by turns at the same addresses, whose code is the same. */
static void objects_come_and_go_while_stacks_are_unwound_ahead(void)
{
	struct traced traced = begin(loader(), NULL);
	long long kept = 0, turns = 0;
	json_t *statistics;

	wait_until_taken(&traced);
	for (; kept < 3; kept++) {
		subject_command(traced.subject, 'o');
		subject_command(traced.subject, 'g');
		subject_command(traced.subject, 'c');
	}
	/* Each call of the loader waits for all that was recorded: for long on a busy machine. */
	for (; turns < live_rounds(0, 5); turns++)
		subject_command(traced.subject, 't');
	wait_until_taken(&traced);
	statistics = tool_json(traced.tool, "stats", pid_text(traced.subject->pid), "--by", "object", NULL);
	require_equal(json_count_of(statistics, "/plugin.so"), kept + 20 * turns);
	require_equal(json_count_of(statistics, "/otherplugin.so"), 20 * turns);
	tool_end(traced.tool, traced.subject, traced.before);
}

static void snapshots_and_detaches_come_while_helpers_work(void)
{
	struct traced traced = begin(loader(), NULL);

	for (unsigned i = 0; i < live_rounds(3, 30); i++) {
		wait_until_taken(&traced);
		tool_out(traced.tool, "snapshot", pid_text(traced.subject->pid), NULL);
		tool_detach(traced.tool, traced.subject->pid);
		require_unharmed(traced.subject->pid, NULL);
		attach(&traced, NULL);
	}
	tool_end(traced.tool, traced.subject, traced.before);
}

static void a_process_forks_while_helpers_work(void)
{
	struct traced traced = begin(loader(), "--follow-forks");

	for (unsigned i = 0; i < live_rounds(3, 30); i++) {
		wait_until_taken(&traced);
		subject_command(traced.subject, 'f');
	}
	wait_until_taken(&traced);
	tool_end(traced.tool, traced.subject, traced.before);
}

static bool is_healed(void *context)
{
	FILE *maps = fopen(live_text("/proc/%d/maps", *(const pid_t *)context), "r");
	bool found = false;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		found |= strstr(line, "memfd:allocwatch") != NULL;
	if (maps)
		fclose(maps);
	return maps && !found;
}

static void a_tracer_with_helpers_is_killed(void)
{
	struct traced traced = begin(loader(), NULL);
	pid_t tracer;

	wait_until_taken(&traced);
	tracer = tool_tracer(traced.subject->pid);
	kill(tracer, SIGKILL);
	if (!live_wait(is_healed, &traced.subject->pid, HEAL_MS) || !live_wait(state_has_no_tracer, &traced.subject->pid, HEAL_MS))
		live_fail("what its tracer has left is still there");
	require_unharmed(traced.subject->pid, traced.before);
	subject_command(traced.subject, 'o');
	subject_quit(traced.subject);
}

static unsigned count_threads(pid_t pid)
{
	DIR *folder = opendir(live_text("/proc/%d/task", pid));
	unsigned count = 0;

	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	return count - 2;
}

static void status_says_how_many_read(void)
{
	struct traced traced = begin(loader(), NULL);
	json_t *status;

	wait_until_taken(&traced);
	status = tool_status(traced.tool, traced.subject->pid);
	require_equal(json_number(status, "ring_readers"), 3);
	/* Who traces, who speaks with the daemon, and two who help. */
	require_equal(count_threads(tool_tracer(traced.subject->pid)), 4);
	require_text(tool_out(traced.tool, "status", pid_text(traced.subject->pid), NULL), "3, which have unwound ");
	tool_detach(traced.tool, traced.subject->pid);
	tool_out(traced.tool, "attach", "--engine", "ring", "--ring-readers", "1", pid_text(traced.subject->pid), NULL);
	status = tool_status(traced.tool, traced.subject->pid);
	require_equal(json_number(status, "ring_readers"), 1);
	require(!json_object_get(status, "ring_stacks_ahead"));
	tool_end(traced.tool, traced.subject, traced.before);
}

int main(int argc, char **argv)
{
	static const struct live_case cases[] = {
		LIVE_CASE(what_several_readers_count_is_exact),
		LIVE_CASE(objects_come_and_go_while_stacks_are_unwound_ahead),
		LIVE_CASE(snapshots_and_detaches_come_while_helpers_work),
		LIVE_CASE(a_process_forks_while_helpers_work),
		LIVE_CASE(a_tracer_with_helpers_is_killed),
		LIVE_CASE(status_says_how_many_read),
	};

	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
