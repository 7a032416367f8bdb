/* The kernel's OOM killer ends the tracer, or the daemon, in a cgroup of its own: the process that is traced goes on. */
#include "cgroup.h"
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "base/fd.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BOX_BYTES (1L << 20)           /* what it takes from then on counts, not what it has */
#define HEAL_MS 10000
#define ROUNDS 5
#define ROUNDS_LONG 50
#define STEPS_MAX 500                  /* of 2000 blocks each, or of a snapshot each */

/* As the kernel counts them for a cgroup of either version. */
static long oom_kills(const char *box)
{
	const char *const files[] = { "memory.oom_control", "memory.events" };
	long kills = 0;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char *text, *at;

		if (file_read_text(live_text("%s/%s", box, files[i]), 4096, &text, NULL) < 0)
			continue;
		at = strstr(text, "oom_kill ");
		kills += at ? strtol(at + strlen("oom_kill "), NULL, 10) : 0;
		free(text);
	}
	return kills;
}

static bool is_gone(void *pid)
{
	return kill(*(pid_t *)pid, 0) < 0 && errno == ESRCH;
}

/* Who is killed is there until it is waited for; and a tracer that is not waited for may have something to read yet. */
static void require_killed(const char *box, pid_t pid)
{
	require(live_wait(is_gone, &pid, HEAL_MS));
	require_equal(oom_kills(box), 1);
}

static void require_lives_on(struct subject *grower, long long caught)
{
	long blocks = subject_tally(grower, "blocks");

	require(live_wait(state_text_is_intact, &grower->pid, HEAL_MS));
	require(live_wait(state_is_untraced, &grower->pid, HEAL_MS));
	require_unharmed(grower->pid, NULL);
	require_equal(status_number(grower->pid, "SigCgt", 16), caught);
	subject_command(grower, 'g');
	require_equal(subject_tally(grower, "blocks"), blocks + 2000);
	subject_quit(grower);
}

/* The more blocks its process has, the more memory it needs. */
static void a_tracer_that_the_oom_killer_ends_does_no_harm(void)
{
	unsigned rounds = live_rounds(ROUNDS, ROUNDS_LONG);
	struct tool *tool = tool_start();

	for (unsigned i = 0; i < rounds; i++) {
		const char *box = cgroup_make_memory(BOX_BYTES, true);
		struct subject *grower = victim_start("tests/victims/grower", NULL);
		long long caught = status_number(grower->pid, "SigCgt", 16);
		unsigned steps = 0;
		pid_t tracer;

		tool_attach(tool, grower->pid);
		tracer = tool_tracer(grower->pid);
		cgroup_move(box, tracer);
		while (kill(tracer, 0) == 0 && steps++ < STEPS_MAX)
			subject_command(grower, 'g');
		require_killed(box, tracer);
		require_lives_on(grower, caught);
		cgroup_remove(box);
	}
	live_survey("tracer ended by the OOM killer", rounds, rounds, rounds, rounds);
}

static bool has_ended(pid_t child)
{
	siginfo_t info = { .si_pid = 0 };

	return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}

/* The more snapshots it keeps, the more memory it needs.  Its tracers are elsewhere, and let go what they trace. */
static void a_daemon_that_the_oom_killer_ends_does_no_harm(void)
{
	unsigned rounds = live_rounds(ROUNDS, ROUNDS_LONG);
	struct tool *tool = tool_start();

	for (unsigned i = 0; i < rounds; i++) {
		const char *box = cgroup_make_memory(BOX_BYTES, true);
		struct subject *grower = victim_start("tests/victims/grower", NULL);
		long long caught = status_number(grower->pid, "SigCgt", 16);
		unsigned steps = 0;

		tool_attach(tool, grower->pid);
		for (int j = 0; j < 10; j++)
			subject_command(grower, 'g');
		cgroup_move(box, tool_daemon(tool));
		while (!has_ended(tool_daemon(tool)) && steps++ < STEPS_MAX)
			tool_try(tool, "snapshot", pid_text(grower->pid), NULL);
		require_at_least(oom_kills(box), 1);
		require(has_ended(tool_daemon(tool)));
		require_lives_on(grower, caught);
		tool_kill_daemon(tool);
		cgroup_remove(box);
		tool_start_again(tool);
	}
	live_survey("daemon ended by the OOM killer", rounds, rounds, rounds, rounds);
}

static const struct live_case cases[] = {
	LIVE_CASE(a_tracer_that_the_oom_killer_ends_does_no_harm),
	LIVE_CASE(a_daemon_that_the_oom_killer_ends_does_no_harm),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
