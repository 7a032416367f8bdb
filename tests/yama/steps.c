#include "steps.h"

#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCOPE "/proc/sys/kernel/yama/ptrace_scope"
#define WATCHED_C "tests/victims/watched.c"
#define SIGTRAP_BIT (1LL << (SIGTRAP - 1))

const char *const reasons[] = { NULL, "ptrace_scope is 1, which lets a process be traced only by what started it",
				       "ptrace_scope is 2, which lets only processes with CAP_SYS_PTRACE trace",
				       "ptrace_scope is 3, which forbids all tracing, to root too" };
const char *const remedies[] = { NULL, "start the program with 'allocwatch run'", "run allocwatch as root",
					"kernel.yama.ptrace_scope to 2 or less" };

void set_scope(int scope)
{
	char digit = (char)('0' + scope), now = '?';
	int fd = open(SCOPE, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		live_fail("%s: %s: not the machine of tests/yama/vm", SCOPE, strerror(errno));
	if (pread(fd, &now, 1, 0) != 1 || (now != digit && pwrite(fd, &digit, 1, 0) != 1) ||
	    pread(fd, &now, 1, 0) != 1 || now != digit)
		live_fail("%s is %c and cannot be %d: %s", SCOPE, now, scope, strerror(errno));
	close(fd);
}

/* --- what is done and asked for in each --- */

void require_refusal(struct tool_run run, const char *reason, const char *remedy)
{
	const char *semicolon = strstr(run.err, "; ");
	size_t len = strlen(run.err);

	if (run.status != 1 || *run.out || len < 2 || strchr(run.err, '\n') != run.err + len - 1 || !semicolon)
		live_fail("status %d, not one line with a remedy on stderr: %s%s", run.status, run.out, run.err);
	live_note("%.*s", (int)len - 1, run.err);
	require_text(run.err, reason);
	require_text(semicolon, remedy);
}

static void require_own_text(struct subject *victim)
{
	subject_command(victim, 't');
	require_at_least(subject_tally(victim, "compared"), 1000000);
	require_equal(subject_tally(victim, "different"), 0);
	require_equal(subject_tally(victim, "action"), 0);
}

void require_same_process(struct subject *victim, pid_t pid)
{
	require_own_text(victim);
	require_equal(status_number(pid, "TracerPid", 10), 0);
	subject_command(victim, 'g');
	require_equal(subject_tally(victim, "pid"), pid);
}

void require_refused(struct tool *tool, struct subject *victim, int scope)
{
	require_refusal(tool_try(tool, "attach", pid_text(victim->pid), NULL), reasons[scope], remedies[scope]);
	require_same_process(victim, victim->pid);
	subject_quit(victim);
}

static void require_blocks(struct tool *tool, pid_t pid, long blocks)
{
	json_t *stats = tool_stats(tool, pid_text(pid));

	require_row(stats, WATCHED_C, "/* kept */", 120 * blocks, blocks);
	require(json_is_true(json_object_get(stats, "exact")));
	require_equal(json_number(stats, "unknown.lost_events"), 0);
}

/* Blocks beside those that are there, a child, another program, blocks and a child again. */
void work(struct tool *tool, struct subject *victim, pid_t pid, long blocks)
{
	subject_command(victim, 'g');
	subject_command(victim, 'g');
	subject_command(victim, 'f');
	require_equal(subject_tally(victim, "status"), CHILD_GOOD);
	require_blocks(tool, pid, blocks + 2);
	require_text(subject_command(victim, 'e'), "R");
	for (int i = 0; i < 3; i++)
		subject_command(victim, 'g');
	subject_command(victim, 'f');
	require_equal(subject_tally(victim, "status"), CHILD_GOOD);
	require_blocks(tool, pid, 3);
}

bool is_healed(void *context)
{
	pid_t pid = *(pid_t *)context;
	size_t bytes;

	return status_number(pid, "TracerPid", 10) == 0 && !(status_number(pid, "SigCgt", 16) & SIGTRAP_BIT) &&
	       text_difference(pid, &bytes) == NULL;
}

void require_healed_when_its_tracer_dies(pid_t pid)
{
	kill(tool_tracer(pid), SIGKILL);
	if (!live_wait(is_healed, &pid, WAIT_MS))
		live_fail("process %d is not healed: SigCgt %llx", pid, status_number(pid, "SigCgt", 16));
	require_unharmed(pid, NULL);
}

/* Attached, worked, left, taken up again, left for good. */
void require_all_but_healing(struct tool *tool, struct subject *victim)
{
	pid_t pid = victim->pid;

	tool_attach(tool, pid);
	work(tool, victim, pid, 0);
	tool_out(tool, "detach", "--keep", pid_text(pid), NULL);
	require_unharmed(pid, NULL);
	tool_attach(tool, pid);
	subject_command(victim, 'g');
	require_row(tool_stats(tool, pid_text(pid)), WATCHED_C, "/* kept */", 120 * 4, 4);
	tool_detach(tool, pid);
	require_unharmed(pid, NULL);
	require_same_process(victim, pid);
}

void require_traced(struct tool *tool, struct subject *victim)
{
	pid_t pid = victim->pid;

	require_all_but_healing(tool, victim);
	tool_attach(tool, pid);
	require_healed_when_its_tracer_dies(pid);
	require_same_process(victim, pid);
	subject_quit(victim);
}

struct subject *start_watched(uid_t uid, const char *const *wrapper)
{
	const char *argv[16];
	struct subject *victim;
	size_t n = 0;

	for (; wrapper && wrapper[n]; n++)
		argv[n] = wrapper[n];
	argv[n++] = public_copy(WATCHED);
	argv[n] = NULL;
	victim = subject_start(uid, argv);
	require_text(subject_line(victim), "R");
	return victim;
}

void name_tracer(struct subject *victim, long pid)
{
	const char *number = live_text("n%ld.", pid);

	for (; *number; number++)
		subject_send(victim, *number);
	subject_line(victim);
}

/* The client with a command of the user's; the command obeys through it. */
struct subject *start_by_run(struct tool *tool, const char *option, const char *program)
{
	const char *argv[] = { public_copy("src/allocwatch"), "run", "--socket", tool_socket(tool), "--frames", "30", "--",
			       public_copy(program), NULL, NULL };
	struct subject *client;

	if (option) {
		argv[6] = option;
		argv[7] = "--";
		argv[8] = public_copy(program);
	}
	client = subject_start(ORDINARY_UID, argv);
	require_text(subject_line(client), "R");
	return client;
}

struct followed {
	struct tool *tool;
	pid_t pid;
};

static bool is_followed(void *context)
{
	const struct followed *followed = context;

	return tool_lists(followed->tool, followed->pid) &&
	       !strcmp(json_text(tool_status(followed->tool, followed->pid), "state"), "tracing");
}

void require_followed(struct tool *tool, struct subject *forker)
{
	struct followed followed = { .tool = tool };

	subject_command(forker, 'g');
	followed.pid = (pid_t)subject_tally(forker, "child");
	if (!live_wait(is_followed, &followed, WAIT_MS))
		live_fail("child %d is not followed", followed.pid);
	require_row(tool_stats(tool, pid_text(followed.pid)), "tests/victims/forker.c", "/* kept */",
		    104 * subject_tally(forker, "blocks"), subject_tally(forker, "blocks"));
	require_healed_when_its_tracer_dies(followed.pid);
	subject_command(forker, 'g');
	require_equal(subject_tally(forker, "status"), CHILD_GOOD);
}
