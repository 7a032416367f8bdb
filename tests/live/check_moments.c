/* Attach and detach at any moment of a process's life: threads being born, job control, its sudden end,
 * a wait that nothing interrupts, very many threads. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
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
		tool_attach_held(tool, births->pid);
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
		live_let_pass(wait_ns);
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
				live_let_pass(live_random(6 * NSEC_PER_MSEC));
				kill(hammer->pid, SIGSTOP);
				live_let_pass(live_random(3 * NSEC_PER_MSEC));
				kill(hammer->pid, SIGCONT);
			}
			if (stops)
				kill(hammer->pid, SIGSTOP);
			reap_client(client);
			if (leaving)
				continue;
			require_at_least(tool_tracer(hammer->pid), 1);
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

struct report {
	pid_t pid;
	int code;
};

static bool is_reported(void *context)
{
	const struct report *report = context;
	siginfo_t info = { .si_pid = 0 };

	require(waitid(P_PID, (id_t)report->pid, &info, WSTOPPED | WCONTINUED | WNOHANG) == 0);
	if (info.si_pid == 0)
		return false;
	require_equal(info.si_code, report->code);
	return true;
}

static void require_one_report(pid_t pid, int sig, int code)
{
	struct report report = { .pid = pid, .code = code };

	kill(pid, sig);
	if (!live_wait(is_reported, &report, 10000))
		live_fail("the parent is not told of signal %d", sig);
	require(!is_reported(&report));
}

/* What a shell goes by: each stop and each continuation is told to the parent, once, also in the middle of attach and
 * detach. */
static void the_parent_hears_of_each_stop_and_continuation_once(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", "4", "--ops", "100", NULL);
	unsigned rounds = live_rounds(8, 200), pairs = 0;

	subject_send(hammer, 'r');
	for (unsigned i = 0; i < 2 * rounds; i++) {
		pid_t client = tool_begin(tool, i % 2 ? "detach" : "attach", pid_text(hammer->pid), NULL);
		int status;

		for (pid_t ended = 0; ended == 0; pairs++) {
			live_let_pass(live_random(3 * NSEC_PER_MSEC));
			require_one_report(hammer->pid, SIGSTOP, CLD_STOPPED);
			require_one_report(hammer->pid, SIGCONT, CLD_CONTINUED);
			ended = waitpid(client, &status, WNOHANG);
		}
		require_equal(status, 0);
	}
	live_note("%u stops and continuations", pairs);
	require_unharmed(hammer->pid, NULL);
	subject_command(hammer, 's');
	subject_quit(hammer);
	live_survey("parent told of stops in attach and detach", 2 * rounds, 2 * pairs, 1, 1);
}

/* What a command does with a process in vfork, started before and ended after the vfork is told to end. */
struct in_vfork {
	struct tool *tool;
	struct subject *vforker;
	unsigned rounds;                /* of vfork, so far */
};

static void enter_vfork(struct in_vfork *in)
{
	require(!strcmp(subject_command(in->vforker, 'v'), "in vfork"));
	in->rounds++;
}

static void end_vfork(struct in_vfork *in)
{
	subject_command(in->vforker, 'x');
	require_equal(subject_tally(in->vforker, "rounds"), in->rounds);
	require_equal(subject_tally(in->vforker, "status"), 7);
}

static struct tool_run timed(struct tool *tool, const char *command, pid_t pid, unsigned within_s)
{
	uint64_t started_ns = clock_monotonic_ns();
	struct tool_run run = tool_try(tool, command, pid_text(pid), NULL);

	require(clock_monotonic_ns() - started_ns < within_s * NSEC_PER_SEC);
	return run;
}

/* It waits in the kernel and cannot be held; both commands say so in bounded time, and neither parent nor child
 * notices.  What the detach leaves in it does no harm, and the next attach takes it out. */
static void a_process_that_stays_in_vfork_is_left_in_peace(void)
{
	struct in_vfork in = { tool_start(), victim_start(VFORKER, NULL), 0 };
	pid_t pid = in.vforker->pid;
	struct state *before = state_take(pid);
	unsigned rounds = live_rounds(1, 3);

	for (unsigned i = 0; i < rounds; i++) {
		struct tool_run run;

		enter_vfork(&in);
		run = timed(in.tool, "attach", pid, 8);
		require_equal(run.status, 1);
		require_text(run.err, "in waits that nothing breaks off");
		/* The tracer's own end lets go of a thread that cannot be stopped. */
		if (!live_wait(state_has_no_tracer, &pid, 10000))
			live_fail("process %d is not let go", pid);
		end_vfork(&in);
		require_unharmed(pid, before);
		tool_attach(in.tool, pid);
		enter_vfork(&in);
		tool_out(in.tool, "snapshot", pid_text(pid), NULL);
		run = timed(in.tool, "detach", pid, 16);
		require_equal(run.status, 1);
		require_text(run.err, "in waits that nothing breaks off");
		require_text(run.err, "'allocwatchd --heal' takes it out");
		end_vfork(&in);
		require(live_wait(state_has_no_tracer, &pid, 10000));
		tool_attach(in.tool, pid);
		tool_detach(in.tool, pid);
		require_unharmed(pid, before);
	}
	subject_command(in.vforker, 'g');
	subject_quit(in.vforker);
	live_survey("attach and detach in a vfork that lasts", 2 * rounds, 0, 1, 1);
}

/* Both wait for the end of the vfork, which nobody else is held up by. */
static void a_vfork_that_ends_is_waited_for(void)
{
	struct in_vfork in = { tool_start(), victim_start(VFORKER, NULL), 0 };
	pid_t pid = in.vforker->pid;
	struct state *before = state_take(pid);
	unsigned rounds = live_rounds(6, 100);

	for (unsigned i = 0; i < rounds; i++) {
		pid_t client;
		int status;

		enter_vfork(&in);
		client = tool_begin(in.tool, "attach", pid_text(pid), NULL);
		require(live_wait(state_is_traced, &pid, 10000));
		live_let_pass(live_random(300 * NSEC_PER_MSEC));
		end_vfork(&in);
		require(waitpid(client, &status, 0) == client);
		require_equal(status, 0);
		subject_command(in.vforker, 'g');
		require_equal(json_number(tool_status(in.tool, pid), "blocks"), 1);
		enter_vfork(&in);
		client = tool_begin(in.tool, "detach", pid_text(pid), NULL);
		live_let_pass(live_random(300 * NSEC_PER_MSEC));
		end_vfork(&in);
		require(waitpid(client, &status, 0) == client);
		require_equal(status, 0);
		require_unharmed(pid, before);
	}
	subject_quit(in.vforker);
	live_survey("attach and detach in a vfork that ends", 2 * rounds, 0, 1, 1);
}

static void a_process_killed_in_vfork_is_told_as_killed(void)
{
	struct tool *tool = tool_start();
	unsigned rounds = live_rounds(4, 60);

	for (unsigned i = 0; i < rounds; i++) {
		struct in_vfork in = { tool, victim_start(VFORKER, NULL), 0 };
		struct tool_run run;
		pid_t killer;

		if (i % 2)
			tool_attach(tool, in.vforker->pid);
		enter_vfork(&in);
		killer = kill_soon(in.vforker->pid, 300);
		run = timed(tool, i % 2 ? "detach" : "attach", in.vforker->pid, 8);
		tells_of_the_kill(&run, i % 2 ? "detach" : "attach", i % 2);
		require(waitpid(killer, NULL, 0) == killer);
		subject_send(in.vforker, 'x');          /* its child lives */
		subject_wait(in.vforker);
	}
	require_daemon_works(tool);
	live_survey("killed in vfork, in attach and detach", rounds, rounds, 1, 1);
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
		tool_attach_held(tool, hammer->pid);
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
	LIVE_CASE(the_parent_hears_of_each_stop_and_continuation_once),
	LIVE_CASE(a_process_that_stays_in_vfork_is_left_in_peace),
	LIVE_CASE(a_vfork_that_ends_is_waited_for),
	LIVE_CASE(a_process_killed_in_vfork_is_told_as_killed),
	LIVE_CASE(a_thousand_threads_are_traced_and_let_go),
	LIVE_CASE(the_shells_job_control_stays_intact),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
