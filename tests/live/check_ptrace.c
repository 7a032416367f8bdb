/* Whether ptrace is held where nobody says, and what attach and status say of it. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "../victims/tallies.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HAMMER "tests/victims/hammer"
#define FILTERED "tests/victims/filtered"
#define SHARER "tests/victims/sharer"
#define JEMALLOC "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
#define FOURTH "fourth fourth_get(-, -, -, size)"
#define WAIT_MS 30000

struct traced {
	struct tool *tool;
	pid_t pid;
};

/* As with nothing in the environment of the test. */
static struct tool *start(void)
{
	unsetenv("LIVE_HOLD");
	setenv("LIVE_ENGINE", "auto", 1);
	return tool_start();
}

/* Of its line: nothing behind the number of probes. */
static void require_no_word(const char *line)
{
	const char *end = strstr(line, " probes");

	require(end);
	require(!strcmp(end, " probes\n"));
}

/* Threads that come later as well. */
static void ptrace_is_let_go_where_nobody_says(void)
{
	struct tool *tool = start();
	struct subject *hammer = victim_start(HAMMER, "--threads", "4", "--ops", "2000", NULL);
	struct state *before = state_take(hammer->pid);
	json_t *status, *answer;

	require_no_word(tool_out(tool, "attach", pid_text(hammer->pid), NULL));
	require_equal(status_number(hammer->pid, "TracerPid", 10), 0);
	require(state_is_traced(&hammer->pid));
	status = tool_status(tool, hammer->pid);
	require(json_is_true(json_object_get(status, "released")));
	require(json_is_null(json_object_get(status, "hold_reason")));
	require_text(tool_out(tool, "status", pid_text(hammer->pid), NULL), "let go");
	subject_command(hammer, 'g');
	require_tally(tool, hammer, 0);
	tool_detach(tool, hammer->pid);
	answer = tool_json(tool, "attach", pid_text(hammer->pid), NULL);
	require(json_is_null(json_object_get(answer, "hold_reason")));
	tool_end(tool, hammer, before);
}

/* option, value: NULL, or of attach; text[]: of the reason. */
static void require_held(struct subject *victim, const char *option, const char *value, const char *text)
{
	struct tool *tool = tool_start_named(live_text("tool%d", victim->pid));
	struct state *before = state_take(victim->pid);
	const char *line = tool_out(tool, "attach", pid_text(victim->pid), option, value, NULL);
	json_t *status = tool_status(tool, victim->pid);

	live_note("%.*s", (int)strcspn(line, "\n"), line);
	require_text(line, " probes, held by ptrace: ");
	require_text(line, text);
	require(!json_is_true(json_object_get(status, "released")));
	require_text(json_text(status, "hold_reason"), text);
	require_at_least(status_number(living_thread(victim->pid), "TracerPid", 10), 1);
	tool_detach(tool, victim->pid);
	require_unharmed(victim->pid, before);
	subject_quit(victim);
}

static struct subject *start_with_jemalloc(void)
{
	struct subject *hammer;

	if (access(JEMALLOC, R_OK))
		live_fail("%s is not installed; contrib/install-deps --test installs it", JEMALLOC);
	setenv("LD_PRELOAD", JEMALLOC, 1);
	hammer = victim_start(HAMMER, "--threads", "2", "--ops", "500", NULL);
	unsetenv("LD_PRELOAD");
	return hammer;
}

static void attach_says_why_ptrace_is_held(void)
{
	struct subject *sharer;

	start();
	require_held(victim_start(HAMMER, NULL), "--follow-forks", NULL, "forks are followed");
	require_held(victim_start(HAMMER, NULL), "--domains", "malloc,mmap", "mmap and its like are watched");
	require_held(victim_start(HAMMER, NULL), "--domains", "malloc,new", "what new has made is told apart");
	require_held(start_with_jemalloc(), NULL, NULL, "functions of an allocator have no room for a jump");
	require_held(victim_start(FILTERED, "--main", NULL), NULL, NULL, "a system call filter");
	sharer = victim_start(SHARER, NULL);
	subject_command(sharer, 'g');
	require_held(sharer, NULL, NULL, "another process has the same memory");
}

/* Status says it all the same. */
static void what_was_asked_for_is_no_news(void)
{
	static const struct {
		const char *option, *value, *reason;
	} asked[] = { { "--hold", NULL, "it was asked for" }, { "--engine", "int3", "int3 was asked for" } };
	struct tool *tool = start();

	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		struct subject *hammer = victim_start(HAMMER, NULL);
		struct state *before = state_take(hammer->pid);

		require_no_word(tool_out(tool, "attach", pid_text(hammer->pid), asked[i].option, asked[i].value, NULL));
		require_text(json_text(tool_status(tool, hammer->pid), "hold_reason"), asked[i].reason);
		require_at_least(status_number(living_thread(hammer->pid), "TracerPid", 10), 1);
		tool_end(tool, hammer, before);
	}
}

/* Also where the warning is about another thing. */
static void who_is_attached_to_again_hears_why_it_is_held(void)
{
	struct tool *tool = start();
	struct subject *hammer = victim_start(HAMMER, NULL);
	struct state *before = state_take(hammer->pid);
	const char *pid = pid_text(hammer->pid);
	struct tool_run run = tool_try(tool, "attach", "--allocator", FOURTH, pid, NULL);

	require_equal(run.status, 0);
	require_text(run.err, "by int3, not by the ring engine: a described allocator");
	require_no_word(run.out);
	tool_out(tool, "detach", "--keep", pid, NULL);
	run = tool_try(tool, "attach", pid, NULL);
	require_equal(run.status, 0);
	require_text(run.err, "traced before");
	require_text(run.out, " probes, held by ptrace: a described allocator is asked for its fourth argument");
	tool_end(tool, hammer, before);
}

static bool is_ready(void *context)
{
	return __atomic_load_n(&((struct tallies *)context)->pid, __ATOMIC_SEQ_CST) != 0;
}

static bool is_released(void *context)
{
	const struct traced *traced = context;

	return json_is_true(json_object_get(tool_status(traced->tool, traced->pid), "released")) &&
	       state_has_no_tracer(&(pid_t){ traced->pid });
}

/* When its libraries are there. */
static void a_command_that_is_run_is_let_go(void)
{
	const char *path = live_text("%s/tallies", live_folder());
	struct tool *tool = start();
	struct tallies *seen = subject_tallies(path);
	struct traced traced = { tool, 0 };
	pid_t client;
	int status;

	seen->pid = 0;
	client = tool_begin(tool, "run", "--", live_text("%s/tests/victims/tallies", live_build()), path, NULL);
	require(live_wait(is_ready, seen, WAIT_MS));
	traced.pid = seen->pid;
	require(live_wait(is_released, &traced, WAIT_MS));
	require_equal(json_number(tool_status(tool, traced.pid), "unknown.before_attach_frees"), 0);
	require_equal(kill(traced.pid, SIGKILL), 0);
	require_equal(waitpid(client, &status, 0), client);
}

static const struct live_case cases[] = {
	LIVE_CASE(ptrace_is_let_go_where_nobody_says),
	LIVE_CASE(attach_says_why_ptrace_is_held),
	LIVE_CASE(what_was_asked_for_is_no_news),
	LIVE_CASE(who_is_attached_to_again_hears_why_it_is_held),
	LIVE_CASE(a_command_that_is_run_is_let_go),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
