/* Signals to `allocwatch run`: the command gets each exactly once, whoever sends it and to whom. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "../victims/tallies.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TALLIES "tests/victims/tallies"
#define ROUNDS 8
#define ROUNDS_LONG 500
#define WAIT_MS 20000
/* Sent to the client alone, and taken last of all that is pending: when it has come, all has. */
#define BARRIER (SIGRTMAX - 1)

static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGTSTP, SIGCONT,
			       SIGWINCH, SIGIO, SIGABRT };
#define SIGNALS (sizeof(signals) / sizeof(signals[0]))

struct job {
	struct tool *tool;
	pid_t client;                   /* and leader of a process group of its own, as a shell has it */
	struct tallies *seen;
	int sent[TALLIES_SIGNALS];
};

static bool is_ready(void *context)
{
	return __atomic_load_n(&((struct tallies *)context)->pid, __ATOMIC_SEQ_CST) != 0;
}

static struct job *start_job(const char *option)
{
	struct job *job = calloc(1, sizeof(*job));
	const char *path = live_text("%s/tallies", live_folder());

	require(job != NULL);
	job->tool = tool_start();
	job->seen = subject_tallies(path);
	job->seen->pid = 0;
	job->client = tool_begin_job(job->tool, "run", "--", live_text("%s/" TALLIES, live_build()), path, option, NULL);
	if (!live_wait(is_ready, job->seen, 60000))
		live_fail("the command does not start");
	return job;
}

struct awaited {
	struct tallies *seen;
	int sig, count;
};

static bool has_come(void *context)
{
	struct awaited *awaited = context;

	return __atomic_load_n(&awaited->seen->count[awaited->sig], __ATOMIC_SEQ_CST) >= awaited->count;
}

static void require_come(struct job *job, int sig)
{
	struct awaited awaited = { job->seen, sig, job->sent[sig] };

	if (!live_wait(has_come, &awaited, WAIT_MS))
		live_fail("signal %d came %d times of %d", sig, job->seen->count[sig], job->sent[sig]);
}

static void send(struct job *job, pid_t to, int sig)
{
	job->sent[sig]++;
	if (kill(to, sig))
		live_fail("kill %d, %d: %s", to, sig, strerror(errno));
	require_come(job, sig);
}

/* All that is on its way has come, and each signal as often as it was sent. */
static void require_exact(struct job *job)
{
	send(job, job->client, BARRIER);
	for (int sig = 1; sig < TALLIES_SIGNALS; sig++) {
		if (job->seen->count[sig] != job->sent[sig])
			live_fail("signal %d (%s) was sent %d times and came %d times", sig, strsignal(sig),
				  job->sent[sig], job->seen->count[sig]);
	}
}

static void end_job(struct job *job)
{
	struct subject client = { .pid = job->client };
	int status;

	kill(job->seen->pid, SIGKILL);
	status = subject_wait(&client);
	require(WIFEXITED(status));
	require_equal(WEXITSTATUS(status), 128 + SIGKILL);
}

enum way { TO_GROUP, TO_CLIENT, IN_TURNS };

static void every_signal_comes_once(const char *option, enum way way, const char *kind)
{
	struct job *job = start_job(option);
	unsigned rounds = live_rounds(ROUNDS, ROUNDS_LONG), sent = 0;

	for (unsigned i = 0; i < rounds; i++) {
		for (size_t s = 0; s < SIGNALS; s++, sent++) {
			bool group = way == TO_GROUP || (way == IN_TURNS && (i + s) % 2);

			send(job, group ? -job->client : job->client, signals[s]);
		}
		require_exact(job);
	}
	live_note("%u signals, each once", sent);
	end_job(job);
	live_survey(kind, sent, 0, 1, 1);
}

static void a_signal_to_the_group_comes_once(void)
{
	every_signal_comes_once("--all", TO_GROUP, "run: signals to the group");
}

static void a_signal_to_the_client_comes_once(void)
{
	every_signal_comes_once("--all", TO_CLIENT, "run: signals to the client");
}

static void signals_to_group_and_client_in_turns_come_once(void)
{
	every_signal_comes_once("--all", IN_TURNS, "run: signals to both in turns");
}

/* It was the group of the job that the shell knows, and would have been the command's. */
static void a_command_with_a_group_of_its_own_gets_each_once(void)
{
	every_signal_comes_once("--own-group", IN_TURNS, "run: signals, command in its own group");
}

/* Without waiting for one before the next is sent: real-time signals do not merge. */
static void a_burst_of_queued_signals_comes_once_each(void)
{
	struct job *job = start_job("--all");
	unsigned rounds = live_rounds(10, 300), sent = 0;

	for (unsigned i = 0; i < rounds; i++) {
		for (unsigned n = 0; n < 40; n++, sent++) {
			bool group = live_random(2);

			job->sent[SIGRTMIN + 3]++;
			require(kill(group ? -job->client : job->client, SIGRTMIN + 3) == 0);
		}
		require_come(job, SIGRTMIN + 3);
		require_exact(job);
	}
	end_job(job);
	live_survey("run: bursts of queued signals", sent, 0, 1, 1);
}

static void a_queued_signal_keeps_its_value(void)
{
	struct job *job = start_job(NULL);

	for (int i = 1; i <= 20; i++) {
		job->sent[SIGRTMIN + 5]++;
		require(sigqueue(job->client, SIGRTMIN + 5, (union sigval){ .sival_int = 1000 + i }) == 0);
		require_come(job, SIGRTMIN + 5);
		require_equal(job->seen->value[SIGRTMIN + 5], 1000 + i);
	}
	require_exact(job);
	end_job(job);
}

static bool is_stopped(void *context)
{
	pid_t pid = *(pid_t *)context;
	char state = thread_state(pid, pid);

	return state == 'T' || state == 't';     /* of a traced one */
}

static bool is_running(void *context)
{
	pid_t pid = *(pid_t *)context;
	char state = thread_state(pid, pid);

	return state == 'R' || state == 'S';
}

/* As a shell does it with %1; the command's own handler of SIGCONT runs once. */
static void a_stopped_job_goes_on_once(void)
{
	struct job *job = start_job(NULL);
	pid_t command = job->seen->pid;
	unsigned rounds = live_rounds(10, 500);

	for (unsigned i = 0; i < rounds; i++) {
		kill(i % 2 ? -job->client : job->client, i % 3 ? SIGTSTP : SIGTTOU);
		if (!live_wait(is_stopped, &job->client, WAIT_MS))
			live_fail("the client is in state %c", thread_state(job->client, job->client));
		if (i % 2 || i % 3)
			require(live_wait(is_stopped, &command, WAIT_MS));
		send(job, i % 4 < 2 ? -job->client : job->client, SIGCONT);
		require(live_wait(is_running, &command, WAIT_MS));
		require_exact(job);
	}
	end_job(job);
	live_survey("run: job stopped and continued", rounds, 0, 1, 1);
}

/* At whatever point of the client's and the command's beginnings it comes. */
static void an_interrupt_at_the_start_ends_it(void)
{
	struct tool *tool = tool_start();
	unsigned rounds = live_rounds(25, 2000), before = 0;

	for (unsigned i = 0; i < rounds; i++) {
		struct subject client = { .pid = tool_begin_job(tool, "run", "--", "sh", "-c", "exec cat /dev/zero >/dev/null",
								NULL) };
		int status;

		live_let_pass(live_random(30 * NSEC_PER_MSEC));
		while (kill(-client.pid, SIGINT) < 0)
			require(errno == ESRCH);         /* it has not made its group yet */
		status = subject_wait(&client);
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT)
			before++;
		else if (!WIFEXITED(status) || WEXITSTATUS(status) != 128 + SIGINT)
			live_fail("the client ended with wait status 0x%x", (unsigned)status);
	}
	live_note("%u of %u before it had its command", before, rounds);
	live_survey("run: interrupted at its start", rounds, rounds, rounds, rounds);
}

static const struct live_case cases[] = {
	LIVE_CASE(a_signal_to_the_group_comes_once),
	LIVE_CASE(a_signal_to_the_client_comes_once),
	LIVE_CASE(signals_to_group_and_client_in_turns_come_once),
	LIVE_CASE(a_command_with_a_group_of_its_own_gets_each_once),
	LIVE_CASE(a_burst_of_queued_signals_comes_once_each),
	LIVE_CASE(a_queued_signal_keeps_its_value),
	LIVE_CASE(a_stopped_job_goes_on_once),
	LIVE_CASE(an_interrupt_at_the_start_ends_it),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
