/* Attach is tried first and explained afterwards: each reason for a refusal has a message and a remedy of its
 * own, the real reason comes first, and nothing that was refused is changed.
 *
 * Yama is absent from many kernels: its modes are tested by tests/yama. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEAKY "contrib/sample/leaky"
#define ROUND_BYTES 100000
#define ROUND_BLOCKS 100
#define ANOTHER_UID 61235
#define TIMEOUT_MS 60000

static void require_root(void)
{
	if (geteuid())
		live_skip("needs root, to be others");
}

/* One line on stderr with the reason and the remedy, status 1, and the victim as it was. */
static void require_refusal(struct tool_run run, struct subject *victim, const char *reason, const char *remedy,
			    const struct state *before)
{
	size_t len = strlen(run.err);
	const char *semicolon = strstr(run.err, "; ");

	if (run.status != 1 || *run.out || len < 2 || strchr(run.err, '\n') != run.err + len - 1)
		live_fail("status %d, not one line on stderr: %s%s", run.status, run.out, run.err);
	live_note("%.*s", (int)len - 1, run.err);
	require_text(run.err, pid_text(victim->pid));
	require_text(run.err, reason);
	require(semicolon != NULL);
	require_text(semicolon, remedy);
	require_unharmed(victim->pid, before);
}

static struct tool_run attach(struct tool *tool, const struct subject *victim)
{
	return tool_try(tool, "attach", pid_text(victim->pid), NULL);
}

/* Attached, a round counted to the byte, detached, unharmed. */
static void require_traced(struct tool *tool, struct subject *leaky, const struct state *before)
{
	tool_attach(tool, leaky->pid);
	subject_command(leaky, 'g');
	require_row(tool_stats(tool, pid_text(leaky->pid)), "contrib/sample/leaky.c", "/* leak */", ROUND_BYTES,
		    ROUND_BLOCKS);
	tool_end(tool, leaky, before);
}

/* A victim that a wrapper starts: setpriv, unshare. */
static struct subject *wrapped(uid_t uid, const char *const *wrapper, const char *program)
{
	const char *argv[24];
	struct subject *subject;
	size_t n = 0;

	for (; wrapper[n]; n++)
		argv[n] = wrapper[n];
	argv[n++] = public_copy(program);
	argv[n++] = "--commands";
	argv[n] = NULL;
	subject = subject_start(uid, argv);
	require_text(subject_line(subject), "R");
	return subject;
}

static void another_users_process_is_that_users(void)
{
	struct tool *tool;
	struct subject *leaky;
	struct state *before;

	require_root();
	tool = tool_start_ordinary();
	leaky = victim_start(LEAKY, "--commands", NULL);
	before = state_take(leaky->pid);
	require_refusal(attach(tool, leaky), leaky, "runs as uid 0 and you are uid", "as that user or as root", before);
	subject_quit(leaky);
}

/* The user could do nothing about the other tracer: the uid is the reason, also when somebody traces it. */
static void another_users_process_under_a_tracer_is_that_users(void)
{
	struct tool *owner, *tool;
	struct subject *leaky;
	struct tool_run run;

	require_root();
	owner = tool_start();
	tool = tool_start_ordinary();
	leaky = victim_start(LEAKY, "--commands", NULL);
	tool_attach(owner, leaky->pid);
	run = attach(tool, leaky);
	require_equal(run.status, 1);
	require_text(run.err, "runs as uid 0 and you are uid");
	if (strstr(run.err, "traces it already"))
		live_fail("the other tracer is not the reason: %s", run.err);
	subject_command(leaky, 'g');
	require_row(tool_stats(owner, pid_text(leaky->pid)), "contrib/sample/leaky.c", "/* leak */", ROUND_BYTES,
		    ROUND_BLOCKS);
	tool_end(owner, leaky, NULL);
}

static void ones_own_process_under_a_tracer_names_the_tracer(void)
{
	struct tool *first, *second;
	struct subject *leaky;
	struct tool_run run;

	require_root();
	first = tool_start_ordinary();
	second = tool_start();
	leaky = victim_start_ordinary(LEAKY, "--commands", NULL);
	tool_attach_held(first, leaky->pid);
	run = attach(second, leaky);
	require_equal(run.status, 1);
	require_text(run.err, live_text("process %d (allocwatch-tracer) traces it already", tool_tracer(leaky->pid)));
	run = attach(first, leaky);
	require_text(run.err, "traced by this daemon already");
	tool_end(first, leaky, NULL);
}

static void a_process_with_a_set_uid_past(void)
{
	static const char *const wrapper[] = { "setpriv", "--ruid", "65532", "--clear-groups", NULL };
	struct tool *tool;
	struct subject *leaky;

	require_root();
	tool = tool_start_ordinary();
	leaky = wrapped(0, wrapper, LEAKY);
	require_refusal(attach(tool, leaky), leaky, "runs as uid", "as that user or as root", NULL);
	subject_quit(leaky);
}

static void a_process_of_another_group(void)
{
	const char *user = live_text("%d", ORDINARY_UID);
	const char *const wrapper[] = { "setpriv", "--reuid", user, "--regid", "4242", "--clear-groups", NULL };
	struct tool *tool;
	struct subject *leaky;

	require_root();
	tool = tool_start_ordinary();
	leaky = wrapped(0, wrapper, LEAKY);
	require_refusal(attach(tool, leaky), leaky, "runs with gid 4242 and you with gid", "newgrp", NULL);
	subject_quit(leaky);
}

static void an_undumpable_process(void)
{
	struct tool *tool, *root;
	struct subject *hammer;

	require_root();
	tool = tool_start_ordinary();
	root = tool_start();
	hammer = victim_start_ordinary("tests/victims/hammer", "--undumpable", NULL);
	require_refusal(attach(tool, hammer), hammer, "yours but not dumpable", "as root", NULL);
	/* and the remedy works */
	tool_attach(root, hammer->pid);
	subject_command(hammer, 'g');
	require_nothing_unknown(tool_status(root, hammer->pid), 0);
	tool_end(root, hammer, NULL);
}

static bool is_traced_by_strace(void *context)
{
	return !state_has_no_tracer(context);
}

/* How often the process itself asks the kernel for memory in a round, as it does for stacks that are not known to be mapped. */
static long asks_in_a_round(struct subject *victim)
{
	const char *log = live_text("%s/asks", live_folder());
	const char *const argv[] = { "/usr/bin/strace", "-f", "-qq", "-e", "trace=process_vm_readv", "-o", log, "-p",
				     pid_text(victim->pid), NULL };
	struct subject *strace = subject_start(geteuid(), argv);
	char line[512];
	long asks = 0;
	FILE *file;

	require(live_wait(is_traced_by_strace, &victim->pid, TIMEOUT_MS));
	subject_command(victim, 'g');
	kill(strace->pid, SIGINT);
	subject_wait(strace);
	file = fopen(log, "re");
	require(file != NULL);
	while (fgets(line, sizeof(line), file))
		asks += strstr(line, "process_vm_readv(") != NULL;
	fclose(file);
	return asks;
}

/* The tracer has its user's rights by then, who may not look at the mappings. */
static void the_first_stack_of_an_undumpable_process_may_grow(void)
{
	struct tool *tool;
	struct subject *recursion;

	require_root();
	tool = tool_start();
	recursion = victim_start_ordinary("tests/victims/recursion", "--undumpable", "--first", "20000", NULL);
	tool_out(tool, "attach", "--release", pid_text(recursion->pid), NULL);
	require_at_least(asks_in_a_round(recursion), 1);
	require_equal(json_number(tool_status(tool, recursion->pid), "unknown.lost_events"), 0);
	require_equal(asks_in_a_round(recursion), 0);
	tool_end(tool, recursion, NULL);
}

static void a_process_with_more_capabilities(void)
{
	const char *user = live_text("%d", ORDINARY_UID);
	const char *const wrapper[] = { "setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--inh-caps",
					"+net_bind_service", "--ambient-caps", "+net_bind_service", NULL };
	struct tool *tool, *root;
	struct subject *leaky;

	require_root();
	tool = tool_start_ordinary();
	root = tool_start();
	leaky = wrapped(0, wrapper, LEAKY);
	require_at_least(status_number(leaky->pid, "CapPrm", 16), 1);
	require_refusal(attach(tool, leaky), leaky, "has capabilities that you have not", "as root", NULL);
	require_traced(root, leaky, NULL);
}

/* What was started by a root without CAP_SYS_PTRACE, as in a container. */
static void root_without_the_capability(void)
{
	static const char *const lacking[] = { "setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-all", NULL };
	struct tool *tool;
	struct subject *other, *own;

	require_root();
	tool = tool_start_wrapped(lacking);
	other = victim_start_ordinary(LEAKY, "--commands", NULL);
	require_refusal(attach(tool, other), other, "root has no CAP_SYS_PTRACE here", "as that user", NULL);
	subject_quit(other);
	own = victim_start(LEAKY, "--commands", NULL);
	require_refusal(attach(tool, own), own, "has capabilities that you have not", "all capabilities", NULL);
	subject_quit(own);
	own = wrapped(0, lacking, LEAKY);
	require_traced(tool, own, NULL);
}

static void from_within_a_user_namespace(void)
{
	static const char *const inside[] = { "unshare", "--user", "--map-root-user", NULL };
	struct tool *tool;
	struct subject *outside;

	require_root();
	tool = tool_start_wrapped(inside);
	outside = victim_start(LEAKY, "--commands", NULL);
	require_refusal(attach(tool, outside), outside, "not in the user namespace of allocwatch", "outside", NULL);
	subject_quit(outside);
}

static void into_a_user_namespace(void)
{
	static const char *const inside[] = { "unshare", "--user", "--map-root-user", NULL };
	struct tool *tool, *ordinary;
	struct subject *leaky;

	require_root();
	/* One's own namespace, and root's view of anybody's. */
	ordinary = tool_start_ordinary();
	leaky = wrapped(ORDINARY_UID, inside, LEAKY);
	require_traced(ordinary, leaky, NULL);
	tool = tool_start();
	leaky = wrapped(ORDINARY_UID, inside, LEAKY);
	require_traced(tool, leaky, NULL);
	leaky = wrapped(0, inside, LEAKY);
	require_refusal(attach(ordinary, leaky), leaky, "runs as uid 0", "as root", NULL);
	subject_quit(leaky);
}

static void a_filter_forbids_ptrace_to_us(void)
{
	const char *by_eperm[] = { live_text("%s/tests/victims/confined", live_build()), "ptrace", "1", NULL };
	const char *by_enosys[] = { by_eperm[0], "ptrace", "38", NULL };
	const char *const *const wrappers[] = { by_eperm, by_enosys };
	struct subject *leaky;

	for (size_t i = 0; i < 2; i++) {
		struct tool *tool = tool_start_wrapped(wrappers[i]);

		leaky = victim_start(LEAKY, "--commands", NULL);
		require_refusal(attach(tool, leaky), leaky, "a seccomp filter keeps allocwatch itself from ptrace",
				"allow @debug", NULL);
		subject_quit(leaky);
	}
}

static void a_filter_forbids_process_vm_readv_to_us(void)
{
	const char *by_eperm[] = { live_text("%s/tests/victims/confined", live_build()), "process_vm_readv", "1", NULL };
	const char *by_enosys[] = { by_eperm[0], "process_vm_readv", "38", NULL };
	const char *const *const wrappers[] = { by_eperm, by_enosys };

	for (size_t i = 0; i < 2; i++) {
		struct tool *tool = tool_start_wrapped(wrappers[i]);

		require_traced(tool, victim_start(LEAKY, "--commands", NULL), NULL);
	}
}

static void a_filtered_target(void)
{
	const char *confined[] = { live_text("%s/tests/victims/confined", live_build()), "process_vm_readv", "1", NULL };
	struct tool *ordinary, *root, *held;
	struct subject *filtered;

	require_root();
	ordinary = tool_start_ordinary();
	filtered = victim_start_ordinary("tests/victims/filtered", NULL);
	require_refusal(attach(ordinary, filtered), filtered, "seccomp filter watches its system calls", "as root", NULL);
	subject_quit(filtered);

	/* A filter on the tracer, too: the kernel will not lift the other one. */
	held = tool_start_wrapped(confined);
	filtered = victim_start("tests/victims/filtered", NULL);
	require_refusal(attach(held, filtered), filtered, "no filter on allocwatch itself", "outside", NULL);

	root = tool_start();
	tool_attach(root, filtered->pid);
	subject_command(filtered, 'g');
	require_nothing_unknown(tool_status(root, filtered->pid), 0);
	tool_end(root, filtered, NULL);
}

/* --- one memory of two users --- */

#define OTHERIDS "tests/victims/otherids"

static struct subject *otherids_start(const char *kind)
{
	return victim_start(OTHERIDS, live_text("%d", ORDINARY_UID), live_text("%d", ANOTHER_UID), kind, NULL);
}

/* Who may look at both sees both; the one whose memory it is as well as another's is told. */
static void two_users_of_one_memory(const char *kind)
{
	struct tool *root, *user;
	struct subject *both;
	struct state *before;

	require_root();
	root = tool_start();
	user = tool_start_ordinary();
	both = otherids_start(kind);
	subject_command(both, 'g');
	before = state_take(both->pid);
	require_refusal(attach(user, both), both, live_text("%ld", subject_tally(both, "other")), "as root", before);
	subject_command(both, 'g');
	tool_attach(root, both->pid);
	for (int i = 1; i <= 3; i++) {
		subject_command(both, 'g');
		require_row(tool_stats(root, pid_text(both->pid)), "tests/victims/otherids.c", "/* either's block */",
			    i * 8 * 184, i * 8);
	}
	require_nothing_unknown(tool_status(root, both->pid), 0);
	tool_end(root, both, before);
}

static void a_thread_with_other_ids(void)
{
	two_users_of_one_memory(NULL);
}

static void a_process_with_other_ids_that_shares_the_memory(void)
{
	two_users_of_one_memory("process");
}

static const struct live_case cases[] = {
	LIVE_CASE(another_users_process_is_that_users),
	LIVE_CASE(another_users_process_under_a_tracer_is_that_users),
	LIVE_CASE(ones_own_process_under_a_tracer_names_the_tracer),
	LIVE_CASE(a_process_with_a_set_uid_past),
	LIVE_CASE(a_process_of_another_group),
	LIVE_CASE(an_undumpable_process),
	LIVE_CASE(the_first_stack_of_an_undumpable_process_may_grow),
	LIVE_CASE(a_process_with_more_capabilities),
	LIVE_CASE(root_without_the_capability),
	LIVE_CASE(from_within_a_user_namespace),
	LIVE_CASE(into_a_user_namespace),
	LIVE_CASE(a_filter_forbids_ptrace_to_us),
	LIVE_CASE(a_filter_forbids_process_vm_readv_to_us),
	LIVE_CASE(a_filtered_target),
	LIVE_CASE(a_thread_with_other_ids),
	LIVE_CASE(a_process_with_other_ids_that_shares_the_memory),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
