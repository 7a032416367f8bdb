/* Refusals that a person can act on: what failed, on what, why, what to do; and nothing was changed. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEAKY "contrib/sample/leaky"

/* Exit status 1, nothing on stdout, one line on stderr that holds both parts. */
static void require_refusal(struct tool_run run, const char *part, const char *other_part)
{
	size_t len = strlen(run.err);

	if (run.status != 1)
		live_fail("the exit status is %d, not 1: %s%s", run.status, run.out, run.err);
	if (*run.out)
		live_fail("a refusal belongs on stderr, not on stdout: %s", run.out);
	if (len < 2 || strchr(run.err, '\n') != run.err + len - 1)
		live_fail("not one line: %s", run.err);
	require_text(run.err, part);
	require_text(run.err, other_part);
	live_note("%.*s", (int)len - 1, run.err);
}

static struct tool_run attach(struct tool *tool, pid_t pid)
{
	return tool_try(tool, "attach", pid_text(pid), NULL);
}

static pid_t unused_pid(void)
{
	pid_t pid = fork();
	struct subject gone = { .pid = pid };

	if (pid == 0)
		_exit(0);
	subject_wait(&gone);
	return pid;
}

static void no_such_process(void)
{
	struct tool *tool = tool_start();
	pid_t pid = unused_pid();

	require_refusal(attach(tool, pid), pid_text(pid), "there is no process");
	require_refusal(tool_try(tool, "status", pid_text(pid), NULL), pid_text(pid), "traced");
	require_refusal(tool_try(tool, "detach", pid_text(pid), NULL), pid_text(pid), "traced");
}

static void anothers_process(void)
{
	struct tool *tool;
	struct subject *leaky;
	struct state *before;

	if (geteuid())
		live_skip("needs root, to be another user");
	tool = tool_start_ordinary();
	leaky = victim_start(LEAKY, "--commands", NULL);
	before = state_take(leaky->pid);
	require_refusal(attach(tool, leaky->pid), pid_text(leaky->pid), "runs as uid 0");
	require_unharmed(leaky->pid, before);
	subject_quit(leaky);
}

static void an_undumpable_process(void)
{
	struct tool *tool;
	struct subject *hammer;

	if (geteuid())
		live_skip("needs root, to be another user");
	tool = tool_start_ordinary();
	hammer = victim_start_ordinary("tests/victims/hammer", "--undumpable", NULL);
	require_refusal(attach(tool, hammer->pid), pid_text(hammer->pid), "not dumpable");
	require_unharmed(hammer->pid, NULL);
	subject_command(hammer, 'g');
	subject_quit(hammer);
}

/* The other tracer is named by its PID and by its name, and goes on as if nothing had been. */
static void refused_beside(const char *name, const char *const *argv, struct subject *leaky)
{
	struct tool *tool = tool_start();
	struct subject *other = subject_start(geteuid(), argv);
	pid_t tracer;

	if (!live_wait(state_is_traced, &leaky->pid, 60000))
		live_fail("%s does not attach", name);
	tracer = (pid_t)status_number(leaky->pid, "TracerPid", 10);
	require_refusal(attach(tool, leaky->pid), pid_text(tracer), name);
	require_equal(status_number(leaky->pid, "TracerPid", 10), tracer);
	kill(other->pid, SIGKILL);
	subject_wait(other);
}

static void a_process_under_strace(void)
{
	struct subject *leaky = victim_start(LEAKY, "--commands", NULL);
	const char *output = live_text("%s/strace", live_folder());
	const char *const argv[] = { "strace", "-o", output, "-p", pid_text(leaky->pid), NULL };

	refused_beside("strace", argv, leaky);
	subject_command(leaky, 'g');
	text_require_intact(leaky->pid);
	subject_quit(leaky);
}

static void a_process_under_gdb(void)
{
	struct subject *leaky = victim_start(LEAKY, "--commands", NULL);
	const char *const argv[] = { "gdb", "-nx", "-q", "-p", pid_text(leaky->pid), NULL };

	refused_beside("gdb", argv, leaky);
	subject_kill(leaky);
}

static void a_process_that_is_traced_already(void)
{
	struct tool *tool = tool_start(), *other;
	struct subject *leaky = victim_start(LEAKY, "--commands", NULL);
	struct state *before = state_take(leaky->pid);

	tool_attach_held(tool, leaky->pid);
	require_refusal(attach(tool, leaky->pid), pid_text(leaky->pid), "traced");
	if (geteuid() == 0) {
		other = tool_start_named("other");
		require_refusal(attach(other, leaky->pid), pid_text(tool_tracer(leaky->pid)),
				"(allocwatch-tracer) traces it already");
	}
	subject_command(leaky, 'g');
	require_row(tool_stats(tool, pid_text(leaky->pid)), "contrib/sample/leaky.c", "/* leak */", 100000, 100);
	tool_end(tool, leaky, before);
}

static void a_32_bit_process(void)
{
	struct tool *tool = tool_start();
	struct subject *tiny = victim_start("tests/victims/tiny32", NULL);
	struct state *before = state_take(tiny->pid);

	require_refusal(attach(tool, tiny->pid), pid_text(tiny->pid), "32-bit");
	require_unharmed(tiny->pid, before);
	subject_quit(tiny);
}

static void a_process_without_an_allocator(void)
{
	struct tool *tool = tool_start();
	struct subject *v = victim_start("tests/victims/nomalloc", NULL);
	struct state *before = state_take(v->pid);

	require_refusal(attach(tool, v->pid), pid_text(v->pid), "allocator");
	require_unharmed(v->pid, before);
	subject_quit(v);
}

static void a_kernel_thread(void)
{
	struct tool *tool = tool_start();

	if (geteuid() || status_number(2, "PPid", 10) != 0 || status_number(2, "VmSize", 10) != 0)
		live_skip("no kernel thread can be seen here: a PID namespace, or not root");
	require_refusal(attach(tool, 2), "2", "kernel thread");
}

static void a_snapshot_that_does_not_exist(void)
{
	struct tool *tool = tool_start();

	require_refusal(tool_try(tool, "stats", "s4711", NULL), "s4711", "snapshot");
	require_refusal(tool_try(tool, "diff", "s4711", "s4712", NULL), "s471", "snapshot");
}

static void wrong_usage_is_told_apart_from_failure(void)
{
	struct tool *tool = tool_start();

	require_equal(tool_try(tool, "attach", NULL).status, 2);
	require_equal(tool_try(tool, "attach", "one", NULL).status, 2);
	require_equal(tool_try(tool, "no-such-command", NULL).status, 2);
	require_equal(tool_try(tool, "stats", "1", "--by", "nonsense", NULL).status, 2);
}

static const struct live_case cases[] = {
	LIVE_CASE(no_such_process),
	LIVE_CASE(anothers_process),
	LIVE_CASE(an_undumpable_process),
	LIVE_CASE(a_process_under_strace),
	LIVE_CASE(a_process_under_gdb),
	LIVE_CASE(a_process_that_is_traced_already),
	LIVE_CASE(a_32_bit_process),
	LIVE_CASE(a_process_without_an_allocator),
	LIVE_CASE(a_kernel_thread),
	LIVE_CASE(a_snapshot_that_does_not_exist),
	LIVE_CASE(wrong_usage_is_told_apart_from_failure),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
