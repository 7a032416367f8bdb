/* The ring engine in PID namespaces, as each container has one: there a thread calls itself by another number than that by which
 * its tracer knows it, and the first process's is 1. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNSHARE "/usr/bin/unshare"
#define FORKER_C "tests/victims/forker.c"
#define BIRTHS_C "tests/victims/births.c"
#define WAIT_MS 15000
#define WORDS_MAX 24

/* So that what follows is the first process of a PID namespace, which is within so many less one. */
static size_t put_namespaces(const char **argv, uid_t uid, unsigned depth)
{
	size_t count = 0;

	for (unsigned i = 0; i < depth; i++) {
		argv[count++] = UNSHARE;
		if (uid != 0 && i == 0) {
			argv[count++] = "--user";
			argv[count++] = "--map-root-user";
		}
		argv[count++] = "--pid";
		argv[count++] = "--fork";
		argv[count++] = "--mount-proc";
	}
	return count;
}

static void require_namespaces(uid_t uid)
{
	const char *argv[] = { UNSHARE, "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "/bin/true", NULL };

	if (subject_wait(subject_start(uid, argv)) != 0)
		live_skip("user and PID namespaces are not permitted here");
}

/* program: a path that this user can execute, and one argument more and its value, or NULL. */
static struct subject *contain(uid_t uid, unsigned depth, const char *program, const char *option, const char *value)
{
	const char *argv[WORDS_MAX] = { NULL };
	size_t count = put_namespaces(argv, uid, depth);
	struct subject *subject;

	require_namespaces(uid);
	argv[count++] = program;
	argv[count++] = option;
	argv[count++] = option ? value : NULL;
	subject = subject_start(uid, argv);
	require_text(subject_line(subject), "R");
	subject_enter(subject);
	return subject;
}

static struct subject *contain_victim(const char *path, const char *option, const char *value)
{
	return contain(geteuid(), 1, live_text("%s/%s", live_build(), path), option, value);
}

static void require_ring(struct tool *tool, pid_t pid)
{
	json_t *status = tool_status(tool, pid);

	if (strcmp(json_text(status, "engine"), "ring"))
		live_fail("engine %s: %s", json_text(status, "engine"), json_text(status, "engine_reason"));
}

static void attach_by_ring(struct tool *tool, pid_t pid)
{
	tool_out(tool, "attach", "--engine", "ring", "--ring-wait", "30s", pid_text(pid), NULL);
	require_ring(tool, pid);
}

static void count_by_ring(struct tool *tool, struct subject *hammer)
{
	struct state *before = state_take(hammer->pid);

	attach_by_ring(tool, hammer->pid);
	for (unsigned i = 0; i < 3; i++) {
		subject_command(hammer, 'g');
		require_tally(tool, hammer, 0);
	}
	tool_end(tool, hammer, before);
}

static void the_ring_counts_in_a_pid_namespace(void)
{
	struct tool *tool = tool_start();

	count_by_ring(tool, contain_victim("tests/victims/hammer", "--threads", "4"));
}

static void and_in_one_of_an_ordinary_user(void)
{
	struct tool *tool = tool_start_ordinary();

	count_by_ring(tool, contain(ORDINARY_UID, 1, public_copy("tests/victims/hammer"), "--threads", "4"));
}

static void and_in_one_within_another(void)
{
	struct tool *tool = tool_start();

	count_by_ring(tool, contain(geteuid(), 2, live_text("%s/tests/victims/hammer", live_build()), "--threads", "4"));
}

/* Blocks of 40 bytes, one for each thread that it has borne in rounds since the attach. */
static void require_births(struct tool *tool, struct subject *births, long rounds)
{
	json_t *stats = tool_stats(tool, pid_text(births->pid));
	long threads = 200 * rounds;

	require_row(stats, BIRTHS_C, "/* kept in a round */", 40 * threads, threads);
	require_nothing_unknown(tool_status(tool, births->pid),
				json_number(tool_status(tool, births->pid), "unknown.before_attach_frees"));
}

/* In its namespace the next thread has the number behind this one; counted on there from the first one on. */
static void set_last_number(pid_t pid, int number)
{
	const char *const argv[] = { "/usr/bin/nsenter", "--pid", "--target", pid_text(pid), "/bin/sh", "-c",
				     live_text("echo %d >/proc/sys/kernel/ns_last_pid", number), NULL };

	if (subject_wait(subject_start(geteuid(), argv)) != 0)
		live_skip("numbers cannot be chosen here (CONFIG_CHECKPOINT_RESTORE)");
}

static struct subject *contain_births(void)
{
	struct subject *births = contain_victim("tests/victims/births", NULL, NULL);

	/* With the first thread come handlers of the C library's. */
	subject_command(births, 'g');
	return births;
}

static void numbers_are_used_again(void)
{
	struct tool *tool = tool_start();
	struct subject *births = contain_births();
	struct state *before = state_take(births->pid);

	attach_by_ring(tool, births->pid);
	for (long i = 1; i <= 4; i++) {
		set_last_number(births->pid, 10);
		subject_command(births, 'g');
		require_births(tool, births, i);
	}
	tool_end(tool, births, before);
}

static void release(struct tool *tool, pid_t pid)
{
	tool_out(tool, "attach", "--release", "--ring-wait", "30s", pid_text(pid), NULL);
	require_ring(tool, pid);
	require_equal(status_number(pid, "TracerPid", 10), 0);
}

/* Those that it has at the attach have never been heard of, when they record something. */
static void threads_are_known_without_ptrace(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = contain_victim("tests/victims/hammer", "--threads", "4");
	struct state *before = state_take(hammer->pid);

	release(tool, hammer->pid);
	for (unsigned i = 0; i < 3; i++) {
		subject_command(hammer, 'g');
		require_tally(tool, hammer, 0);
	}
	tool_end(tool, hammer, before);
}

/* They have ended before anybody could ask who they were. */
static void threads_that_live_shortly_are_counted_without_ptrace(void)
{
	struct tool *tool = tool_start();
	struct subject *births = contain_births();
	struct state *before = state_take(births->pid);

	release(tool, births->pid);
	for (long i = 1; i <= 4; i++) {
		set_last_number(births->pid, 10);
		subject_command(births, 'g');
		require_births(tool, births, i);
	}
	tool_end(tool, births, before);
}

/* The forker forks one child that makes three blocks of its own and ends; it has `kept` blocks of its parent's. */
static void follow_one(struct tool *tool, struct subject *forker, int kept)
{
	const char *at_exit;
	pid_t child;

	subject_command(forker, 'g');
	child = subject_child_of(forker->pid);
	require(child > 0);
	tool_wait_until_traced(tool, child, WAIT_MS);
	require_ring(tool, child);
	subject_command(forker, 'g');
	require_equal(subject_tally(forker, "status"), 7);
	tool_wait_until_gone(tool, child, WAIT_MS);
	at_exit = live_text("%d:exit", child);
	require_row(tool_stats(tool, at_exit), FORKER_C, "/* kept */", 104LL * kept, kept);
	require_row(tool_stats(tool, at_exit), FORKER_C, "/* the child's own */", 312, 3);
	require(json_is_true(json_object_get(tool_stats(tool, at_exit), "exact")));
	require_row(tool_stats(tool, pid_text(forker->pid)), FORKER_C, "/* kept */", 104LL * kept, kept);
}

static void attach_and_follow(struct tool *tool, pid_t pid)
{
	tool_out(tool, "attach", "--engine", "ring", "--ring-wait", "30s", "--follow-forks", pid_text(pid), NULL);
	require_ring(tool, pid);
}

static void children_in_a_namespace_are_followed(void)
{
	struct tool *tool = tool_start();
	struct subject *forker = contain_victim("tests/victims/forker", NULL, NULL);
	struct state *before = state_take(forker->pid);

	attach_and_follow(tool, forker->pid);
	for (int i = 1; i <= 3; i++)
		follow_one(tool, forker, i);
	tool_end(tool, forker, before);
}

/* The parent is here, and makes the first process of a namespace. */
static void a_child_that_begins_a_namespace_is_followed(void)
{
	const char *argv[] = { UNSHARE, "--pid", live_text("%s/tests/victims/forker", live_build()), NULL };
	struct tool *tool = tool_start();
	struct subject *forker;
	struct state *before;

	require_namespaces(geteuid());
	forker = subject_start(geteuid(), argv);
	require_text(subject_line(forker), "R");
	before = state_take(forker->pid);
	attach_and_follow(tool, forker->pid);
	follow_one(tool, forker, 1);
	tool_end(tool, forker, before);
}

static bool is_clean(void *context)
{
	pid_t *pid = context;

	return state_is_untraced(pid) && state_text_is_intact(pid);
}

static void a_dead_tracers_traces_in_a_namespace_are_healed(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = contain_victim("tests/victims/hammer", "--threads", "4");
	struct state *before = state_take(hammer->pid);

	tool_keep_healers_out();
	attach_by_ring(tool, hammer->pid);
	subject_send(hammer, 'g');
	kill(tool_tracer(hammer->pid), SIGKILL);
	subject_line(hammer);
	require(live_wait(is_clean, &hammer->pid, WAIT_MS));
	require_unharmed(hammer->pid, before);
	subject_command(hammer, 'g');
	subject_quit(hammer);
}

/* What the header says of its tracer is a number from outside, where that is dead or another one's in here. */
static void a_healer_in_the_namespace_leaves_a_traced_process_alone(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = contain_victim("tests/victims/hammer", "--threads", "4");
	struct state *before = state_take(hammer->pid);
	const char *const argv[] = { "/usr/bin/nsenter", "--pid", "--mount", "--target", pid_text(hammer->pid),
				     live_text("%s/src/allocwatchd", live_build()), "--heal", NULL };

	release(tool, hammer->pid);
	require_equal(subject_wait(subject_start(geteuid(), argv)), 0);
	subject_command(hammer, 'g');
	require_tally(tool, hammer, 0);
	tool_end(tool, hammer, before);
}

/* A sample that int3 draws and one that the code in the process draws are one thread's. */
static void samples_are_drawn_in_a_namespace(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = contain_victim("tests/victims/hammer", "--threads", "4");
	struct state *before = state_take(hammer->pid);

	tool_out(tool, "attach", "--sample-bytes", "64", "--ring-wait", "30s", pid_text(hammer->pid), NULL);
	require_ring(tool, hammer->pid);
	for (unsigned i = 0; i < 3; i++)
		subject_command(hammer, 'g');
	require_equal(json_number(tool_status(tool, hammer->pid), "unknown.lost_events"), 0);
	require_at_least(json_number(tool_stats(tool, pid_text(hammer->pid)), "total.size"), 1);
	tool_end(tool, hammer, before);
}

static const struct live_case cases[] = {
	LIVE_CASE(the_ring_counts_in_a_pid_namespace),
	LIVE_CASE(and_in_one_of_an_ordinary_user),
	LIVE_CASE(and_in_one_within_another),
	LIVE_CASE(numbers_are_used_again),
	LIVE_CASE(threads_are_known_without_ptrace),
	LIVE_CASE(threads_that_live_shortly_are_counted_without_ptrace),
	LIVE_CASE(children_in_a_namespace_are_followed),
	LIVE_CASE(a_child_that_begins_a_namespace_is_followed),
	LIVE_CASE(a_dead_tracers_traces_in_a_namespace_are_healed),
	LIVE_CASE(a_healer_in_the_namespace_leaves_a_traced_process_alone),
	LIVE_CASE(samples_are_drawn_in_a_namespace),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
