/* Attach and detach at any moment of a process's life: threads being born, job control, its sudden end,
 * a wait that nothing interrupts, very many threads. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BIRTHS "tests/victims/births"
#define HAMMER "tests/victims/hammer"
#define VFORKER "tests/victims/vforker"
#define BIRTH_ATTACHES 20
#define BIRTH_ATTACHES_LONG 200
#define KILLS 30
#define KILLS_LONG 300
#define STOPS 15
#define STOPS_LONG 300
#define THREADS "1000"

static void let_some_time_pass(unsigned up_to_ms)
{
	uint64_t until = clock_monotonic_ns() + live_random(up_to_ms * NSEC_PER_MSEC);

	while (!clock_passed(until))
		poll(NULL, 0, 1);
}

static bool is_traced_or_gone(void *context)
{
	return status_number(*(pid_t *)context, "TracerPid", 10) != 0;
}

/* How many threads are traced.  One that is not traced and still there at a second look escaped; one that
 * is being born is traced from its first moment. */
static long require_all_traced(pid_t pid)
{
	DIR *dir = opendir(live_text("/proc/%d/task", pid));
	struct dirent *entry;
	long traced = 0;

	if (!dir)
		live_fail("the threads of %d: %s", pid, strerror(errno));
	while ((entry = readdir(dir))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		long long tracer;

		if (tid <= 0)
			continue;
		tracer = status_number(tid, "TracerPid", 10);
		/* One that has just ended has no tracer any more and is still listed for a moment. */
		if (tracer == 0 && !live_wait(is_traced_or_gone, &tid, 2000))
			live_fail("thread %d of process %d is not traced", tid, pid);
		traced += tracer > 0;
	}
	closedir(dir);
	return traced;
}

static void no_thread_that_is_born_in_the_attach_escapes(void)
{
	struct tool *tool = tool_start();
	struct subject *births = victim_start(BIRTHS, NULL);
	unsigned attaches = live_rounds(BIRTH_ATTACHES, BIRTH_ATTACHES_LONG);
	long seen = 0;

	for (unsigned i = 0; i < attaches; i++) {
		subject_send(births, 'r');
		tool_attach(tool, births->pid);
		for (int look = 0; look < 5; look++)
			seen += require_all_traced(births->pid);
		tool_detach(tool, births->pid);
		/* its threads hold still to be looked at */
		subject_command(births, 's');
		require_unharmed(births->pid, NULL);
	}
	require_at_least(subject_tally(births, "births"), attaches);
	require_at_least(seen, attaches * 5);
	live_note("%u attaches, %ld births, %ld threads seen traced", attaches, subject_tally(births, "births"), seen);
	subject_quit(births);
	live_survey("attach while threads are born", attaches, 0, 1, 1);
}

static void reap_client(pid_t client)
{
	int status;

	require(waitpid(client, &status, 0) == client);
	/* It may have come too late; it may not have died of it. */
	require(WIFEXITED(status));
}

static void require_daemon_works(struct tool *tool)
{
	struct subject *other = victim_start(VFORKER, NULL);
	struct state *before = state_take(other->pid);

	tool_attach(tool, other->pid);
	subject_command(other, 'g');
	require_equal(json_number(tool_status(tool, other->pid), "blocks"), 1);
	tool_end(tool, other, before);
}

/* Kills it at some moment from now on; the killer's pid. */
static pid_t kill_soon(pid_t pid, unsigned within_ms)
{
	uint64_t wait_ns = live_random(within_ms * NSEC_PER_MSEC);
	pid_t killer = fork();

	require(killer >= 0);
	if (killer == 0) {
		const struct timespec wait = { 0, (long)wait_ns };

		nanosleep(&wait, NULL);
		kill(pid, SIGKILL);
		_exit(0);
	}
	return killer;
}

/* The command may have been faster; else it says what became of its process, and blames nobody else. */
static bool tells_of_the_kill(const struct tool_run *run, const char *command, bool traced)
{
	if (run->status == 0)
		return false;
	require_equal(run->status, 1);
	if (strstr(run->err, "was killed by signal 9 (Killed)"))
		return true;
	/* Before anybody looked at it. */
	if (!traced && (strstr(run->err, "ended and only waits for its parent") || strstr(run->err, "has ended already")))
		return false;
	live_fail("%s: %s", command, run->err);
}

static void a_target_killed_in_the_middle_is_told_as_killed(void)
{
	static const struct {
		const char *name;
		bool traced;
		unsigned within_ms;
	} commands[] = { { "attach", false, 40 }, { "detach", true, 10 }, { "snapshot", true, 6 } };
	struct tool *tool = tool_start();
	unsigned kills = live_rounds(KILLS, KILLS_LONG), told[3] = { 0 };

	for (unsigned i = 0; i < kills; i++) {
		struct subject *hammer = victim_start(HAMMER, "--threads", i % 4 ? "16" : "1", "--ops", "100", NULL);
		unsigned c = i % 3;
		struct tool_run run;
		pid_t killer;

		subject_send(hammer, 'r');
		if (commands[c].traced)
			tool_attach(tool, hammer->pid);
		killer = kill_soon(hammer->pid, commands[c].within_ms);
		run = tool_try(tool, commands[c].name, pid_text(hammer->pid), NULL);
		told[c] += tells_of_the_kill(&run, commands[c].name, commands[c].traced);
		require(waitpid(killer, NULL, 0) == killer);
		/* Its end is not held up by anybody: this waits for it. */
		subject_wait(hammer);
	}
	live_note("told as killed: %u of attaches, %u of detaches, %u of snapshots", told[0], told[1], told[2]);
	require_at_least(told[0] + told[1] + told[2], 1);
	require_daemon_works(tool);
	live_survey("target killed in attach, detach and snapshot", kills, kills, 1, 1);
}

static bool is_untraced(void *context)
{
	return status_number(*(pid_t *)context, "TracerPid", 10) == 0;
}

static bool is_stopped(void *context)
{
	pid_t pid = *(pid_t *)context;

	return thread_state(pid, pid) == 'T';
}

static bool is_asleep(void *context)
{
	pid_t pid = *(pid_t *)context;

	return thread_state(pid, pid) == 'S';
}

static bool is_sound(void *context)
{
	pid_t pid = *(pid_t *)context;
	char state = thread_state(pid, pid);

	return state == 'R' || state == 'S' || state == 'D';
}

/* The last one of STOP and CONT from outside, in the middle of the attach or the detach, is what counts. */
static void the_last_of_stop_and_cont_wins(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", "4", "--ops", "100", NULL);
	unsigned rounds = live_rounds(STOPS, STOPS_LONG);

	subject_send(hammer, 'r');
	for (unsigned i = 0; i < rounds; i++) {
		bool stops = i % 2;

		for (int leaving = 0; leaving < 2; leaving++) {
			pid_t client = tool_begin(tool, leaving ? "detach" : "attach", pid_text(hammer->pid), NULL);

			for (unsigned pair = 0; pair < 4; pair++) {
				let_some_time_pass(6);
				kill(hammer->pid, SIGSTOP);
				let_some_time_pass(3);
				kill(hammer->pid, SIGCONT);
			}
			if (stops)
				kill(hammer->pid, SIGSTOP);
			reap_client(client);
			if (leaving)
				continue;
			require_at_least(status_number(hammer->pid, "TracerPid", 10), 1);
		}
		require_equal(status_number(hammer->pid, "TracerPid", 10), 0);
		if (thread_state(hammer->pid, hammer->pid) == 'Z')
			live_fail("process %d ended with wait status 0x%x", hammer->pid, subject_wait(hammer));
		if (!live_wait(stops ? is_stopped : is_sound, &hammer->pid, 10000))
			live_fail("after %s, process %d is in state %c", stops ? "SIGSTOP" : "SIGCONT", hammer->pid,
				  thread_state(hammer->pid, hammer->pid));
		if (stops)
			kill(hammer->pid, SIGCONT);
		require(live_wait(is_sound, &hammer->pid, 10000));
	}
	require_unharmed(hammer->pid, NULL);
	subject_command(hammer, 's');
	subject_quit(hammer);
	live_survey("STOP and CONT in attach and detach", 2 * rounds, 8 * rounds, 1, 1);
}

static void require_vfork_ends(struct subject *vforker, unsigned rounds)
{
	subject_command(vforker, 'x');
	require_equal(subject_tally(vforker, "rounds"), rounds);
	require_equal(subject_tally(vforker, "status"), 7);
}

/* It waits in the kernel and cannot be held; the attach says so in bounded time, has changed nothing, and
 * neither parent nor child notices. */
static void a_process_in_vfork_is_left_in_peace(void)
{
	struct tool *tool = tool_start();
	struct subject *vforker = victim_start(VFORKER, NULL);
	struct state *before = state_take(vforker->pid);
	unsigned rounds = live_rounds(1, 10);

	for (unsigned i = 1; i <= rounds; i++) {
		uint64_t started_ns = clock_monotonic_ns();
		struct tool_run run;

		require(!strcmp(subject_command(vforker, 'v'), "in vfork"));
		run = tool_try(tool, "attach", pid_text(vforker->pid), NULL);
		require_equal(run.status, 1);
		require_text(run.err, "in waits that nothing breaks off");
		require(clock_monotonic_ns() - started_ns < 10 * NSEC_PER_SEC);
		/* The tracer's own end lets go of a thread that cannot be stopped. */
		if (!live_wait(is_untraced, &vforker->pid, 10000))
			live_fail("process %d is not let go", vforker->pid);
		require_vfork_ends(vforker, i);
	}
	require_unharmed(vforker->pid, before);
	subject_quit(vforker);
	live_survey("attach in vfork", rounds, 0, 1, 1);
}

/* Traced before its vfork, it is held up by none of the commands, and let go in the middle of it.  It can make no
 * system call for us then, so the detach says that the handler stays; the next attach takes it out. */
static void a_traced_process_in_vfork_is_let_go(void)
{
	struct tool *tool = tool_start();
	struct subject *vforker = victim_start(VFORKER, NULL);
	struct state *before = state_take(vforker->pid);
	unsigned rounds = live_rounds(2, 30);

	for (unsigned i = 1; i <= rounds; i++) {
		uint64_t started_ns;
		struct tool_run run;

		tool_attach(tool, vforker->pid);
		require(!strcmp(subject_command(vforker, 'v'), "in vfork"));
		tool_out(tool, "snapshot", pid_text(vforker->pid), NULL);
		started_ns = clock_monotonic_ns();
		run = tool_try(tool, "detach", pid_text(vforker->pid), NULL);
		require(clock_monotonic_ns() - started_ns < 10 * NSEC_PER_SEC);
		require_equal(run.status, 1);
		require_text(run.err, "the SIGTRAP handler could not be taken out");
		require_vfork_ends(vforker, i);
		if (!live_wait(is_untraced, &vforker->pid, 10000))
			live_fail("process %d is not let go", vforker->pid);
		tool_attach(tool, vforker->pid);
		tool_detach(tool, vforker->pid);
		require_unharmed(vforker->pid, before);
	}
	subject_command(vforker, 'g');
	subject_quit(vforker);
	live_survey("detach in vfork", rounds, 0, 1, 1);
}

static void a_thousand_threads_are_traced_and_let_go(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", THREADS, "--ops", "10", NULL);
	struct state *before = state_take(hammer->pid);
	unsigned rounds = live_rounds(2, 20);

	for (unsigned i = 0; i < rounds; i++) {
		uint64_t started_ns = clock_monotonic_ns();

		if (i % 2)
			subject_send(hammer, 'r');
		tool_attach(tool, hammer->pid);
		require_at_least(require_all_traced(hammer->pid), 1000);
		tool_detach(tool, hammer->pid);
		live_note("attach and detach took %.1f s",
			  (double)(clock_monotonic_ns() - started_ns) / (double)NSEC_PER_SEC);
		require_unharmed(hammer->pid, NULL);
		if (i % 2)
			subject_command(hammer, 's');
	}
	state_require_same(hammer->pid, before, false);
	subject_quit(hammer);
	live_survey("a thousand threads", rounds, 0, 1, 1);
}

/* A job that is stopped when it is attached to, and let go, stays a stopped job for its shell, which
 * brings it on by "fg"; one that the shell's user stops while it is traced is seen by the shell. */
static void the_shells_job_control_stays_intact(void)
{
	static const char *const shell[] = { "/bin/bash", "--norc", "-s", NULL };
	struct tool *tool = tool_start();
	struct subject *bash = subject_start(geteuid(), shell);
	unsigned rounds = live_rounds(3, 30);

	for (unsigned i = 0; i < rounds; i++) {
		char script[] = "set -m\nsleep 1000 & echo $!\n";
		pid_t job;

		require(write(bash->to, script, strlen(script)) == (ssize_t)strlen(script));
		job = (pid_t)strtol(subject_line(bash), NULL, 10);
		require(job > 0);
		/* it has its libraries when it sleeps */
		require(live_wait(is_asleep, &job, 10000));
		if (i % 2 == 0) {
			kill(job, SIGTSTP);
			require(live_wait(is_stopped, &job, 10000));
		}
		tool_attach(tool, job);
		if (i % 2)
			kill(job, SIGTSTP);
		tool_detach(tool, job);
		if (!live_wait(is_stopped, &job, 10000))
			live_fail("the job is in state %c", thread_state(job, job));
		require(dprintf(bash->to, "jobs; echo .\n") > 0);
		require_text(subject_line(bash), "Stopped");
		require(!strcmp(subject_line(bash), "."));
		require(dprintf(bash->to, "bg >/dev/null; jobs; echo .\n") > 0);
		require_text(subject_line(bash), "Running");
		require(!strcmp(subject_line(bash), "."));
		require(live_wait(is_sound, &job, 10000));
		require(dprintf(bash->to, "kill -TERM %%%%; wait %d; echo status=$?\n", job) > 0);
		subject_line(bash);
		require_equal(subject_tally(bash, "status"), 128 + SIGTERM);
	}
	close(bash->to);
	require_equal(subject_wait(bash), 0);
	live_survey("stopped jobs of a shell", rounds, rounds, rounds, rounds);
}

static const struct live_case cases[] = {
	LIVE_CASE(no_thread_that_is_born_in_the_attach_escapes),
	LIVE_CASE(a_target_killed_in_the_middle_is_told_as_killed),
	LIVE_CASE(the_last_of_stop_and_cont_wins),
	LIVE_CASE(a_process_in_vfork_is_left_in_peace),
	LIVE_CASE(a_traced_process_in_vfork_is_let_go),
	LIVE_CASE(a_thousand_threads_are_traced_and_let_go),
	LIVE_CASE(the_shells_job_control_stays_intact),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
