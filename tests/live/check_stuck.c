/* A tracer that is stopped or hangs is killed, and what it has left in the target is taken out; a daemon that is
 * stopped or hangs is left, and finds the target's last snapshot when it goes on. */
#include "cgroup.h"
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "base/clock.h"
#include "tracer/wire.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define HAMMER "tests/victims/hammer"
#define FORKTREE "tests/victims/forktree"
#define STUCK_MS 14000         /* five seconds without ptrace, and what a busy machine adds */
#define SILENT_MS 40000        /* the tracer waits for ten seconds */
#define ROUNDS 3
#define ROUNDS_LONG 60
#define MOMENT_MS 20
#define HOGS 8
#define HOGS_MS 2500

/* What it has open changes while it runs. */
static void require_free_again(struct subject *subject, int timeout_ms)
{
	if (!live_wait(state_is_untraced, &subject->pid, timeout_ms) ||
	    !live_wait(state_text_is_intact, &subject->pid, timeout_ms) ||
	    !live_wait(state_is_untraced, &subject->pid, timeout_ms))
		live_fail("process %d is not let go", subject->pid);
	require_unharmed(subject->pid, NULL);
	subject_command(subject, 's');
	require_at_least(subject_tally(subject, "allocations"), 1);
	subject_quit(subject);
}

#define BEATS 6
#define BEAT_STOP_MS 600               /* longer than from one heartbeat to the next */
#define BEAT_LATE_MS 250               /* less than four ticks */

/* A tracer that traces nothing, whose daemon this is; the daemon's end of the socket. */
static pid_t lone_tracer(int *ret_sock)
{
	int socks[2];
	pid_t pid;

	require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks) == 0);
	pid = fork();
	require(pid >= 0);
	if (pid == 0) {
		dup2(socks[1], 3);
		execl(live_text("%s/src/allocwatch-tracer", live_build()), "allocwatch-tracer", (char *)NULL);
		_exit(127);
	}
	close(socks[1]);
	*ret_sock = socks[0];
	return pid;
}

/* Up to the next heartbeat, which is answered. */
static void wait_for_beat(int sock)
{
	struct wire_head beat, alive = { WIRE_ALIVE, 0, 0, sizeof(alive) };
	struct pollfd word = { sock, POLLIN, 0 };

	do {
		require(poll(&word, 1, STUCK_MS) == 1);
		require(recv(sock, &beat, sizeof(beat), 0) == (ssize_t)sizeof(beat));
	} while (beat.type != WIRE_HEARTBEAT);
	require(send(sock, &alive, sizeof(alive), MSG_NOSIGNAL) == (ssize_t)sizeof(alive));
}

/* As on a machine where others have the processors: it says so with its first tick, and not when it has had as many as it has ticks
 * between two heartbeats, for which it would be taken for one that hangs. */
static void a_tracer_that_seldom_runs_is_heard_as_soon_as_it_does(void)
{
	uint64_t least_ms = UINT64_MAX;
	int sock;
	pid_t pid = lone_tracer(&sock);

	for (unsigned i = 0; i < BEATS; i++) {
		uint64_t went_on_ns, ms;

		wait_for_beat(sock);
		kill(pid, SIGSTOP);
		live_let_pass(BEAT_STOP_MS * NSEC_PER_MSEC);
		kill(pid, SIGCONT);
		went_on_ns = clock_monotonic_ns();
		wait_for_beat(sock);
		ms = (clock_monotonic_ns() - went_on_ns) / NSEC_PER_MSEC;
		least_ms = ms < least_ms ? ms : least_ms;
	}
	live_note("at best %llu ms behind its going on", (unsigned long long)least_ms);
	require_at_least(BEAT_LATE_MS, (long long)least_ms);
	close(sock);
	require(waitpid(pid, NULL, 0) == pid);
}

struct search {
	struct tool *tool;
	const char *name;
};

static bool is_lost(void *context)
{
	const struct search *search = context;

	return strstr(tool_try(search->tool, "status", search->name, NULL).out, " lost\n");
}

static void a_stopped_tracer_is_killed_and_its_target_healed(void)
{
	struct tool *tool = tool_start();
	unsigned rounds = live_rounds(ROUNDS, ROUNDS_LONG);

	for (unsigned i = 0; i < rounds; i++) {
		struct subject *hammer = victim_start(HAMMER, "--threads", i % 2 ? "16" : "1", "--ops", "100", NULL);

		tool_attach(tool, hammer->pid);
		subject_send(hammer, 'r');
		live_let_pass(live_random(MOMENT_MS * NSEC_PER_MSEC));
		kill(tool_tracer(hammer->pid), SIGSTOP);
		require(live_wait(state_is_untraced, &hammer->pid, STUCK_MS));
		require(live_wait(is_lost, &(struct search){ tool, pid_text(hammer->pid) }, STUCK_MS));
		require(!strstr(tool_out(tool, "status", pid_text(hammer->pid), NULL), "Ptrace"));
		require_free_again(hammer, STUCK_MS);
	}
	live_survey("tracer stopped while it traces", rounds, rounds, rounds, rounds);
}

static void stop_during(struct tool *tool, struct subject *hammer, const char *command)
{
	pid_t client = tool_begin(tool, command, pid_text(hammer->pid), NULL), tracer;
	int status;

	if (!strcmp(command, "attach"))
		live_wait(state_is_traced, &hammer->pid, 5000);
	live_let_pass(live_random(4 * NSEC_PER_MSEC));
	tracer = tool_find_tracer(hammer->pid);
	if (tracer > 0)
		kill(tracer, SIGSTOP);
	require(waitpid(client, &status, 0) == client);
}

static void a_tracer_that_is_stopped_in_the_attach_does_no_harm(void)
{
	struct tool *tool = tool_start();
	unsigned rounds = live_rounds(ROUNDS, ROUNDS_LONG);

	for (unsigned i = 0; i < rounds; i++) {
		struct subject *hammer = victim_start(HAMMER, "--threads", "16", "--ops", "100", NULL);

		subject_send(hammer, 'r');
		stop_during(tool, hammer, "attach");
		require_free_again(hammer, STUCK_MS);
	}
	live_survey("tracer stopped in the attach", rounds, rounds, rounds, rounds);
}

static void a_tracer_that_is_stopped_in_the_detach_does_no_harm(void)
{
	struct tool *tool = tool_start();
	unsigned rounds = live_rounds(ROUNDS, ROUNDS_LONG);

	for (unsigned i = 0; i < rounds; i++) {
		struct subject *hammer = victim_start(HAMMER, "--threads", "16", "--ops", "100", NULL);

		tool_attach(tool, hammer->pid);
		subject_send(hammer, 'r');
		stop_during(tool, hammer, "detach");
		require_free_again(hammer, STUCK_MS);
	}
	live_survey("tracer stopped in the detach", rounds, rounds, rounds, rounds);
}

/* --- by a cgroup's freezer --- */

static void put_into(const char *box, pid_t pid, const char *file, const char *text)
{
	cgroup_move(box, pid);
	if (!cgroup_write(live_text("%s/%s", box, file), text))
		live_fail("%s/%s: %s", box, file, strerror(errno));
}

/* Of version 2: it cannot run, but be killed. */
static void a_frozen_tracer_is_killed_and_its_target_healed(void)
{
	const char *parent = cgroup_own("/sys/fs/cgroup", "0::"), *box;
	struct tool *tool = tool_start();
	unsigned rounds = live_rounds(ROUNDS, ROUNDS_LONG);

	if (!parent || access(live_text("%s/cgroup.controllers", parent), F_OK) != 0)
		parent = cgroup_own("/sys/fs/cgroup/unified", "0::");
	if (!parent || access(live_text("%s/cgroup.procs", parent), F_OK) != 0)
		live_skip("cgroups of version 2 are not mounted here");
	box = cgroup_make(parent);
	for (unsigned i = 0; i < rounds; i++) {
		struct subject *hammer = victim_start(HAMMER, "--threads", i % 2 ? "16" : "1", "--ops", "100", NULL);

		tool_attach(tool, hammer->pid);
		subject_send(hammer, 'r');
		put_into(box, tool_tracer(hammer->pid), "cgroup.freeze", "1");
		require_free_again(hammer, STUCK_MS);
		require(cgroup_write(live_text("%s/cgroup.freeze", box), "0"));
	}
	cgroup_remove(box);
	live_survey("tracer frozen", rounds, rounds, rounds, rounds);
}

static bool waits_in_the_kernel(void *context)
{
	const pid_t *pid = context;

	return thread_state(*pid, *pid) == 'D';
}

/* Of version 1: it waits in the kernel, in state D, and SIGKILL comes to it only when it is thawed, as with one that waits
 * for a file system.  Nothing is judged before, for who fails would leave it there. */
static void a_tracer_that_sigkill_does_not_end_is_given_up(void)
{
	const char *parent = cgroup_own("/sys/fs/cgroup/freezer", ":freezer:"), *box;
	struct subject *hammer, *other;
	struct tool *tool;
	struct tool_run detached, attached;
	uint64_t began_ns;
	bool waited;
	pid_t tracer;

	if (!parent || access(live_text("%s/cgroup.procs", parent), F_OK) != 0)
		live_skip("there is no freezer of cgroups of version 1 here");
	box = cgroup_make(parent);
	tool = tool_start();
	hammer = victim_start(HAMMER, "--threads", "4", "--ops", "100", NULL);
	other = victim_start(FORKTREE, NULL);
	tool_attach(tool, hammer->pid);
	tracer = tool_tracer(hammer->pid);
	cgroup_move(box, tracer);
	began_ns = clock_monotonic_ns();
	cgroup_write(live_text("%s/freezer.state", box), "FROZEN");
	waited = live_wait(waits_in_the_kernel, &tracer, STUCK_MS);
	subject_send(hammer, 'r');
	detached = tool_try(tool, "detach", pid_text(hammer->pid), NULL);
	began_ns = clock_monotonic_ns() - began_ns;
	attached = tool_try(tool, "attach", pid_text(other->pid), NULL);
	cgroup_write(live_text("%s/freezer.state", box), "THAWED");

	require(waited);
	live_note("told after %llu ms: %s", (unsigned long long)(began_ns / NSEC_PER_MSEC), detached.err);
	require(detached.status != 0);
	require_text(detached.err, "has died, or nothing ends it");
	require_at_least(STUCK_MS, (long long)(began_ns / NSEC_PER_MSEC));
	require_equal(attached.status, 0);
	require_free_again(hammer, STUCK_MS);
	cgroup_remove(box);
	tool_end(tool, other, NULL);
}

static bool healer_is_there(void *context)
{
	return tool_daemons_child(context, true) != 0;
}

/* True: it was stopped while it had something to do. */
static bool stop_healer(struct tool *tool, struct subject *hammer)
{
	pid_t healer;

	kill(tool_tracer(hammer->pid), SIGKILL);
	if (!live_wait(healer_is_there, tool, 1000))
		return false;
	live_let_pass(live_random(5 * NSEC_PER_MSEC));
	healer = tool_daemons_child(tool, true);
	return healer != 0 && kill(healer, SIGSTOP) == 0 && !state_text_is_intact(&hammer->pid);
}

/* It may hold all threads of the target. */
static void a_stopped_healer_is_killed_and_another_one_heals(void)
{
	struct tool *tool = tool_start();
	unsigned rounds = live_rounds(ROUNDS, ROUNDS_LONG), stopped = 0;

	for (unsigned i = 0; i < 20 * rounds && stopped < rounds; i++) {
		struct subject *hammer = victim_start(HAMMER, "--threads", "16", "--ops", "100", NULL);

		tool_attach(tool, hammer->pid);
		subject_send(hammer, 'r');
		stopped += stop_healer(tool, hammer);
		require_free_again(hammer, STUCK_MS);
	}
	require_equal(stopped, rounds);
	live_survey("healer stopped", rounds, rounds, rounds, rounds);
}

static struct subject *trace_a_tree(struct tool *tool)
{
	struct subject *tree = victim_start(FORKTREE, NULL);

	tool_attach(tool, tree->pid);
	subject_command(tree, 'g');
	tool_status(tool, tree->pid);
	return tree;
}

static void require_last_of(struct tool *tool, struct subject *tree, const char *name)
{
	require_row(tool_stats(tool, live_text("%d:%s", tree->pid, name)), "tests/victims/forktree.c", "/* root block */",
		    72, 1);
	require(!tool_lists(tool, tree->pid));
	subject_quit(tree);
}

static bool is_kept(void *context)
{
	const struct search *search = context;

	return tool_try(search->tool, "stats", search->name, NULL).status == 0;
}

/* Of two, one goes on, and the other one is killed: it has told nobody. */
static void a_daemon_that_does_not_answer_is_left(void)
{
	struct tool *goes_on = tool_start(), *is_killed = tool_start_named("killed");
	struct subject *tree = trace_a_tree(goes_on), *other = trace_a_tree(is_killed);
	struct search search = { is_killed, live_text("%d:lost", other->pid) };
	struct search left = { goes_on, live_text("%d:detach", tree->pid) };

	kill(tool_daemon(goes_on), SIGSTOP);
	kill(tool_daemon(is_killed), SIGSTOP);
	require(live_wait(state_is_untraced, &tree->pid, SILENT_MS));
	require(live_wait(state_is_untraced, &other->pid, SILENT_MS));
	require_unharmed(tree->pid, NULL);
	require_unharmed(other->pid, NULL);
	kill(tool_daemon(goes_on), SIGCONT);
	require(live_wait(is_kept, &left, SILENT_MS));
	require_last_of(goes_on, tree, "detach");
	require(!strstr(tool_out(goes_on, "snapshots", NULL), "lost"));
	tool_kill_daemon(is_killed);
	tool_start_again(is_killed);
	require(live_wait(is_kept, &search, SILENT_MS));
	require_last_of(is_killed, other, "lost");
}

static void hog(void)
{
	uint64_t until = clock_monotonic_ns() + HOGS_MS * NSEC_PER_MSEC;

	while (!clock_passed(until))
		;
	_exit(0);
}

static void a_tracer_on_a_busy_machine_is_not_taken_for_stuck(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", "16", "--ops", "100", NULL);
	struct state *before = state_take(hammer->pid);
	pid_t hogs[HOGS], tracer;

	tool_attach(tool, hammer->pid);
	tracer = tool_tracer(hammer->pid);
	subject_send(hammer, 'r');
	for (unsigned i = 0; i < HOGS; i++) {
		hogs[i] = fork();
		if (hogs[i] == 0)
			hog();
	}
	for (unsigned i = 0; i < HOGS; i++)
		waitpid(hogs[i], NULL, 0);
	require_equal(tool_tracer(hammer->pid), tracer);
	tool_end(tool, hammer, before);
}

static const struct live_case cases[] = {
	LIVE_CASE(a_tracer_that_seldom_runs_is_heard_as_soon_as_it_does),
	LIVE_CASE(a_stopped_tracer_is_killed_and_its_target_healed),
	LIVE_CASE(a_tracer_that_is_stopped_in_the_attach_does_no_harm),
	LIVE_CASE(a_tracer_that_is_stopped_in_the_detach_does_no_harm),
	LIVE_CASE(a_frozen_tracer_is_killed_and_its_target_healed),
	LIVE_CASE(a_tracer_that_sigkill_does_not_end_is_given_up),
	LIVE_CASE(a_stopped_healer_is_killed_and_another_one_heals),
	LIVE_CASE(a_daemon_that_does_not_answer_is_left),
	LIVE_CASE(a_tracer_on_a_busy_machine_is_not_taken_for_stuck),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
