/* What a dead tracer has left in a process is taken out: by the daemon at once, by the next one of the system, by hand,
 * by the next attach; and from copies that fork has made of it. */
#include "live.h"
#include "programs.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "target/park.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HAMMER "tests/victims/hammer"
#define LEAKY "contrib/sample/leaky"
#define FORKTREE "tests/victims/forktree"
#define JEMALLOC "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
#define HEAL_MS 5000
#define HEALERS 8
#define REUSE_TRIES 500
#define ROUNDS 5
#define HELD_MS 300
#define WAITS_MS 200
#define ROUNDS_LONG 200
#define BESIDE 4
#define TIMED_ROUNDS 10
#define HEALED_AT_ONCE_US 1000000
#define LOOK_EVERY_NS (NSEC_PER_MSEC / 10)

static void kill_tracer(pid_t pid)
{
	kill(tool_tracer(pid), SIGKILL);
	require(live_wait(state_has_no_tracer, &pid, HEAL_MS));
}

/* Untraced, or for a moment in the hands of who heals it. */
static void require_healed(struct subject *subject, const struct state *before)
{
	require(live_wait(state_text_is_intact, &subject->pid, HEAL_MS));
	require(live_wait(state_is_untraced, &subject->pid, HEAL_MS));
	require_unharmed(subject->pid, before);
}

/* It runs as if nothing had been. */
static void require_at_work(struct subject *hammer)
{
	subject_send(hammer, 'r');
	subject_command(hammer, 's');
	require_at_least(subject_tally(hammer, "allocations"), 1);
}

/* What is left there is the case's own to take out. */
static void kill_both(struct tool *tool, struct subject *subject)
{
	int status;

	tool_keep_healers_out();
	kill(tool_daemon(tool), SIGSTOP);       /* so that it heals nothing */
	kill_tracer(subject->pid);
	kill(tool_daemon(tool), SIGKILL);
	waitpid(tool_daemon(tool), &status, 0);
}

static void the_daemon_heals_when_a_tracer_dies(void)
{
	struct tool *tool = tool_start();
	unsigned rounds = live_rounds(ROUNDS, ROUNDS_LONG);

	for (unsigned i = 0; i < rounds; i++) {
		struct subject *hammer = victim_start(HAMMER, "--threads", i % 2 ? "16" : "1", "--ops", "100", NULL);
		struct state *before = state_take(hammer->pid);

		tool_attach(tool, hammer->pid);
		kill_tracer(hammer->pid);
		require_healed(hammer, before);
		require_at_work(hammer);
		subject_quit(hammer);
	}
	live_survey("healed by the daemon", rounds, rounds, rounds, rounds);
}

static void a_busy_process_is_healed(void)
{
	struct tool *tool = tool_start();
	unsigned rounds = live_rounds(ROUNDS, ROUNDS_LONG);

	for (unsigned i = 0; i < rounds; i++) {
		struct subject *hammer = victim_start(HAMMER, "--threads", "16", "--ops", "100", NULL);

		subject_send(hammer, 'r');
		tool_attach(tool, hammer->pid);
		kill_tracer(hammer->pid);
		require_healed(hammer, NULL);
		subject_command(hammer, 's');
		require_at_least(subject_tally(hammer, "allocations"), 1);
		subject_quit(hammer);
	}
	live_survey("healed while busy", rounds, rounds, rounds, rounds);
}

static void a_healed_process_is_traced_again(void)
{
	struct tool *tool = tool_start();
	struct subject *tree = victim_start(FORKTREE, NULL);
	struct state *before = state_take(tree->pid);

	tool_attach(tool, tree->pid);
	kill_tracer(tree->pid);
	require_healed(tree, before);
	tool_attach(tool, tree->pid);
	subject_command(tree, 'g');
	require_equal(subject_tally(tree, "bad"), 0);
	require_row(tool_stats(tool, pid_text(tree->pid)), "tests/victims/forktree.c", "/* root block */", 72, 1);
	tool_end(tool, tree, before);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* From the death on, by the clock of somebody who looks often, and leaves a processor to the healer; the handler goes after the int3s and the masks. */
static uint64_t healed_after_us(pid_t pid, long long caught)
{
	uint64_t began_ns = clock_monotonic_ns(), now_ns = began_ns;
	pid_t tracer = tool_tracer(pid);

	kill(tracer, SIGKILL);
	while (status_number(pid, "SigCgt", 16) != caught || status_number(pid, "TracerPid", 10) != 0) {
		live_let_pass(LOOK_EVERY_NS);
		now_ns = clock_monotonic_ns();
		require_at_least(HEAL_MS * NSEC_PER_MSEC, (long long)(now_ns - began_ns));
	}
	return (now_ns - began_ns) / 1000;
}

/* How long it takes is told.  Judged is that nobody waits for a look at some later time: on a busy machine each of the
 * healer's steps waits for a processor, and so does each thread that it stops. */
static void heal_at_once(struct tool *tool, const char *name, pid_t pid)
{
	unsigned rounds = live_rounds(TIMED_ROUNDS, ROUNDS_LONG);
	long long caught = status_number(pid, "SigCgt", 16);
	struct state *before = state_take(pid);
	uint64_t us[ROUNDS_LONG] = { 0 };

	for (unsigned i = 0; i < rounds; i++) {
		tool_attach_held(tool, pid);
		require(status_number(pid, "SigCgt", 16) != caught);
		us[i] = healed_after_us(pid, caught);
		require(live_wait(state_text_is_intact, &pid, HEAL_MS));
		require(live_wait(state_is_untraced, &pid, HEAL_MS));
		require_unharmed(pid, before);
	}
	qsort(us, rounds, sizeof(us[0]), by_size);
	live_note("%s: healed after %llu us at least, %llu us in the median, %llu us at most, of %u", name,
		  (unsigned long long)us[0], (unsigned long long)us[rounds / 2], (unsigned long long)us[rounds - 1], rounds);
	require_at_least(HEALED_AT_ONCE_US, (long long)us[rounds / 2]);
}

static void heal_hammer_at_once(struct tool *tool, const char *threads)
{
	struct subject *hammer = victim_start(HAMMER, "--threads", threads, "--ops", "100", NULL);

	heal_at_once(tool, live_text("threads: %s", threads), hammer->pid);
	subject_quit(hammer);
}

static void the_daemon_heals_at_once(void)
{
	struct tool *tool = tool_start();

	heal_hammer_at_once(tool, "1");
	heal_hammer_at_once(tool, "16");
}

static void the_daemon_heals_redis_at_once(void)
{
	struct program redis = { .socket = live_text("%s/redis", live_folder()) };

	program_start_redis(&redis, geteuid());
	heal_at_once(tool_start(), "redis", redis.subject->pid);
	program_set_key(&redis, 1, 100);
}

/* --- who stands by --- */

static bool stands_by(pid_t pid)
{
	FILE *cmdline = fopen(live_text("/proc/%d/cmdline", pid), "r");
	char text[256] = "";
	size_t n = cmdline ? fread(text, 1, sizeof(text) - 1, cmdline) : 0;

	if (cmdline)
		fclose(cmdline);
	return n > 0 && strcmp(text + strlen(text) + 1, "--stand-by") == 0;
}

/* 0: nobody. */
static pid_t who_stands_by(struct tool *tool)
{
	FILE *children = fopen(live_text("/proc/%d/task/%d/children", tool_daemon(tool), tool_daemon(tool)), "r");
	pid_t found = 0;
	int child;

	require(children);
	while (!found && fscanf(children, "%d", &child) == 1)
		found = stands_by(child) ? child : 0;
	fclose(children);
	return found;
}

static bool somebody_stands_by(void *tool)
{
	return who_stands_by(tool) != 0;
}

static bool has_ended(void *pid)
{
	return kill(*(pid_t *)pid, 0) < 0;
}

/* It waits for that already when the tracer dies; 0: nothing happens to it. */
static void heal_with_accident(int accident)
{
	struct tool *tool = tool_start_named(live_text("accident%d", accident));
	struct subject *hammer = victim_start(HAMMER, "--threads", "4", "--ops", "100", NULL);
	struct state *before = state_take(hammer->pid);
	pid_t healer;

	tool_attach(tool, hammer->pid);
	require(live_wait(somebody_stands_by, tool, HEAL_MS));
	healer = who_stands_by(tool);
	kill(healer, accident);
	kill_tracer(hammer->pid);
	require_healed(hammer, before);
	require(live_wait(has_ended, &healer, HEAL_MS));
	require_at_work(hammer);
	subject_quit(hammer);
}

static void who_stands_by_heals(void)
{
	heal_with_accident(0);
}

static void without_who_stood_by_another_one_heals(void)
{
	heal_with_accident(SIGKILL);
	heal_with_accident(SIGSTOP);
}

/* Nobody healed it in between: whoever attaches does. */
static void an_attach_heals_first(void)
{
	struct tool *dead = tool_start_named("dead"), *tool = tool_start();
	struct subject *tree = victim_start(FORKTREE, NULL);
	struct state *before = state_take(tree->pid);

	tool_attach(dead, tree->pid);
	kill_both(dead, tree);
	require(!state_text_is_intact(&tree->pid));
	tool_attach(tool, tree->pid);
	subject_command(tree, 'g');
	require_row(tool_stats(tool, pid_text(tree->pid)), "tests/victims/forktree.c", "/* root block */", 72, 1);
	require_nothing_unknown(tool_status(tool, tree->pid), 0);
	tool_end(tool, tree, before);
}

static void healing_by_hand_takes_all_out(void)
{
	struct tool *tool = tool_start();
	struct subject *tree = victim_start(FORKTREE, NULL);
	struct state *before = state_take(tree->pid);

	tool_attach(tool, tree->pid);
	kill_both(tool, tree);
	require(!state_text_is_intact(&tree->pid));
	subject_command(tree, 'g');
	require_equal(subject_tally(tree, "bad"), 0);
	require_equal(tool_heal(pid_text(tree->pid)), 0);
	require_unharmed(tree->pid, before);
	subject_quit(tree);
}

/* As when somebody calls one while the daemon's own is at it: who comes too late finds nothing, and that is no failure. */
static void healers_at_the_same_time_do_not_fail(void)
{
	unsigned rounds = live_rounds(10, ROUNDS_LONG);

	for (unsigned i = 0; i < rounds; i++) {
		struct tool *tool = tool_start_named(live_text("healers%u", i));
		struct subject *hammer = victim_start(HAMMER, "--threads", "4", "--ops", "100", NULL);
		struct state *before = state_take(hammer->pid);
		struct subject *healers[HEALERS];

		tool_attach(tool, hammer->pid);
		kill_both(tool, hammer);
		for (unsigned j = 0; j < HEALERS; j++)
			healers[j] = tool_heal_begin(pid_text(hammer->pid));
		for (unsigned j = 0; j < HEALERS; j++)
			require_equal(subject_wait(healers[j]), 0);
		require_healed(hammer, before);
		require_at_work(hammer);
		subject_quit(hammer);
	}
	live_survey("healed by many at once", rounds, rounds, rounds, rounds);
}

/* Another one held the process, and was killed before it was done. */
static void a_healer_waits_for_what_becomes_of_another_one(void)
{
	struct tool *tool = tool_start();
	struct subject *tree = victim_start(FORKTREE, NULL), *healer;
	struct state *before = state_take(tree->pid);

	tool_attach(tool, tree->pid);
	kill_both(tool, tree);
	require_equal(ptrace(PTRACE_SEIZE, tree->pid, NULL, 0), 0);
	healer = tool_heal_begin(pid_text(tree->pid));
	require(!live_wait(has_ended, &healer->pid, HELD_MS));
	require_equal(ptrace(PTRACE_INTERRUPT, tree->pid, NULL, 0), 0);
	require_equal(waitpid(tree->pid, NULL, __WALL), tree->pid);
	require_equal(ptrace(PTRACE_DETACH, tree->pid, NULL, 0), 0);
	require_equal(subject_wait(healer), 0);
	require_unharmed(tree->pid, before);
	subject_quit(tree);
}

/* Made by fork after the death, so nobody could clean it. */
static void a_copy_is_healed_with_its_original(void)
{
	struct tool *tool = tool_start();
	struct subject *forker = victim_start("tests/victims/forker", NULL);
	struct state *before = state_take(forker->pid);
	pid_t child;

	tool_attach(tool, forker->pid);
	kill_both(tool, forker);
	subject_command(forker, 'g');
	child = (pid_t)subject_tally(forker, "child");
	/* Whoever heals another copy of this program meanwhile heals this one, too. */
	require_equal(tool_heal(pid_text(forker->pid)), 0);
	require_unharmed(child, NULL);
	subject_command(forker, 'g');
	require_equal(subject_tally(forker, "status"), 7);
	require_unharmed(forker->pid, before);
	subject_quit(forker);
}

/* As systemd would, but on a socket of its own.  It heals all processes there are. */
static pid_t start_systems_daemon(void)
{
	const char *socket = live_text("%s/system", live_folder());
	char path[512];
	pid_t daemon;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	snprintf(path, sizeof(path), "%s/src/allocwatchd", live_build());
	daemon = fork();
	if (daemon == 0) {
		execl(path, path, "--socket", socket, "--no-state", (char *)NULL);
		_exit(127);
	}
	return daemon;
}

static void end_systems_daemon(pid_t daemon)
{
	int status;

	kill(daemon, SIGTERM);
	require(waitpid(daemon, &status, 0) == daemon);
	require_equal(status, 0);
}

static void the_next_daemon_heals(void)
{
	struct tool *tool = tool_start();
	struct subject *tree = victim_start(FORKTREE, NULL);
	struct state *before = state_take(tree->pid);
	pid_t daemon;

	tool_attach(tool, tree->pid);
	kill_both(tool, tree);
	require(!state_text_is_intact(&tree->pid));
	daemon = start_systems_daemon();
	require_healed(tree, before);
	end_systems_daemon(daemon);
	subject_command(tree, 'g');
	require_equal(subject_tally(tree, "bad"), 0);
	subject_quit(tree);
	live_end_children();    /* who heals for it goes on when it has ended, and would heal what other cases need as it is */
}

/* Each of these may have lost its tracer, too, as far as can be seen at once. */
static void the_next_daemon_heals_beside_what_others_trace(void)
{
	struct tool *others = tool_start_named("others"), *tool = tool_start();
	struct subject *beside[BESIDE], *tree;
	pid_t daemon;

	for (unsigned i = 0; i < BESIDE; i++) {
		beside[i] = victim_start(FORKTREE, NULL);
		tool_attach(others, beside[i]->pid);
	}
	tree = victim_start(FORKTREE, NULL);
	tool_attach(tool, tree->pid);
	kill_both(tool, tree);
	daemon = start_systems_daemon();
	require_healed(tree, NULL);
	end_systems_daemon(daemon);
	subject_quit(tree);
	for (unsigned i = 0; i < BESIDE; i++) {
		subject_command(beside[i], 'g');
		require_nothing_unknown(tool_status(others, beside[i]->pid), 0);
		tool_end(others, beside[i], NULL);
	}
	live_end_children();
}

static void what_another_one_traces_is_left_alone(void)
{
	struct tool *tool = tool_start();
	struct subject *tree = victim_start(FORKTREE, NULL);
	struct state *before = state_take(tree->pid);

	tool_attach(tool, tree->pid);
	require_equal(tool_heal(pid_text(tree->pid)), 0);
	tool_keep_healers_out();
	require_equal(tool_heal(NULL), 0);
	subject_command(tree, 'g');
	require_row(tool_stats(tool, pid_text(tree->pid)), "tests/victims/forktree.c", "/* root block */", 72, 1);
	require_nothing_unknown(tool_status(tool, tree->pid), 0);
	tool_end(tool, tree, before);
}

static pid_t only_child(pid_t pid)
{
	FILE *children = fopen(live_text("/proc/%d/task/%d/children", pid, pid), "r");
	int child = 0;

	require(children && fscanf(children, "%d", &child) == 1);
	fclose(children);
	return child;
}

/* While a process waits in vfork its tracer cannot let it go; the child with the same memory is let go already. */
static void a_process_that_its_tracer_cannot_let_go_yet_is_left_alone(void)
{
	struct tool *tool = tool_start();
	struct subject *vforker = victim_start("tests/victims/vforker", NULL);
	struct state *before = state_take(vforker->pid);
	pid_t child, client;

	tool_attach(tool, vforker->pid);
	require_text(subject_command(vforker, 'v'), "in vfork");
	child = only_child(vforker->pid);
	client = tool_begin(tool, "detach", pid_text(vforker->pid), NULL);
	require(live_wait(state_has_no_tracer, &child, HEAL_MS));
	require_equal(tool_heal(pid_text(child)), 0);
	tool_keep_healers_out();
	require_equal(tool_heal(NULL), 0);
	subject_command(vforker, '.');             /* the child's end */
	require(waitpid(client, NULL, 0) == client);
	require_healed(vforker, before);
	subject_quit(vforker);
}

/* --- a process number that is used again --- */

static void set_next_pid(pid_t pid)
{
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || dprintf(fd, "%d", (int)pid - 1) < 0)
		live_skip("the next process number cannot be chosen here: %s", strerror(errno));
	close(fd);
}

/* Others start processes, too. */
static struct subject *victim_with_number(pid_t pid)
{
	for (int i = 0; i < REUSE_TRIES; i++) {
		struct subject *subject;

		set_next_pid(pid);
		subject = victim_start(FORKTREE, NULL);
		if (subject->pid == pid)
			return subject;
		subject_kill(subject);
	}
	live_fail("number %d was not had again", pid);
}

static const char *healers_log(void)
{
	return live_text("%s/strace", live_folder());
}

/* Under strace; pid NULL: of all processes. */
static struct subject *begin_logged_healer(const char *pid)
{
	const char *const argv[] = { "strace", "-f", "-qq", "-e", "trace=ptrace", "-o", healers_log(),
				     live_text("%s/src/allocwatchd", live_build()), "--heal", pid, NULL };

	return subject_start(geteuid(), argv);
}

/* What it has asked of ptrace. */
static const char *ptrace_calls_of(struct subject *healer)
{
	int status = subject_wait(healer);
	char *calls;

	require(WIFEXITED(status));
	require_equal(WEXITSTATUS(status), 0);
	require(file_read_text(healers_log(), 1 << 24, &calls, NULL) == 0);
	return calls;
}

static const char *ptrace_calls_of_healer(const char *pid)
{
	return ptrace_calls_of(begin_logged_healer(pid));
}

static bool seizes(const char *calls, pid_t pid)
{
	return strstr(calls, live_text("PTRACE_SEIZE, %d,", pid)) != NULL;
}

/* It runs the same program as the one that had it before, and as one that has to be healed. */
static void a_process_number_that_is_used_again_is_not_touched(void)
{
	struct tool *tool = tool_start();
	struct subject *left = victim_start(FORKTREE, NULL), *ended = victim_start(FORKTREE, NULL), *again;
	pid_t pid = ended->pid;
	struct state *before;
	const char *calls;

	tool_attach(tool, left->pid);
	tool_attach(tool, pid);
	kill(tool_daemon(tool), SIGSTOP);
	kill_tracer(left->pid);
	kill_both(tool, ended);
	require(!state_text_is_intact(&pid) && !state_text_is_intact(&left->pid));
	subject_kill(ended);
	again = victim_with_number(pid);
	before = state_take(pid);
	calls = ptrace_calls_of_healer(pid_text(pid));
	require(!seizes(calls, pid) && seizes(calls, left->pid));
	calls = ptrace_calls_of_healer(NULL);
	require(!seizes(calls, pid));
	require_unharmed(pid, before);
	require_unharmed(left->pid, NULL);
	subject_command(again, 'g');
	require_equal(subject_tally(again, "bad"), 0);
	subject_quit(again);
	subject_quit(left);
}

/* Without ptrace it looks as one whose tracer is dead, but for a time that is renewed: a healer waits for that to be over, or for its
 * tracer to take it out. */
static void a_process_that_is_let_go_while_a_healer_waits_is_not_touched(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, NULL);
	struct state *before = state_take(hammer->pid);

	for (unsigned i = 0; i < live_rounds(10, ROUNDS_LONG); i++) {
		struct subject *healer;

		tool_out(tool, "attach", "--release", pid_text(hammer->pid), NULL);
		healer = begin_logged_healer(pid_text(hammer->pid));
		live_let_pass(live_random(WAITS_MS * NSEC_PER_MSEC));
		tool_detach(tool, hammer->pid);
		require_unharmed(hammer->pid, before);
		require(!seizes(ptrace_calls_of(healer), hammer->pid));
	}
	subject_quit(hammer);
}

static bool is_clean(void *pid)
{
	return state_is_untraced(pid) && state_text_is_intact(pid);
}

/* The header names its tracer, which is dead: nobody waits for the time that stands there to be over, which is two seconds from the attach on at
 * the least.  On a busy machine all that may take longer than this, but not each time. */
static void a_process_without_ptrace_is_healed_at_once(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", "4", NULL);
	struct state *before = state_take(hammer->pid);
	unsigned rounds = live_rounds(TIMED_ROUNDS, ROUNDS_LONG), at_once = 0;

	for (unsigned i = 0; i < rounds; i++) {
		uint64_t deadline_ns = clock_monotonic_ns() + PARK_SECONDS * NSEC_PER_SEC;

		tool_out(tool, "attach", "--release", pid_text(hammer->pid), NULL);
		kill(tool_tracer(hammer->pid), SIGKILL);
		require(live_wait(is_clean, &hammer->pid, HEAL_MS));
		at_once += !clock_passed(deadline_ns);
		require_unharmed(hammer->pid, before);
	}
	live_note("%u of %u were healed before the time was over that their tracers had noted", at_once, rounds);
	require_at_least(at_once, 1);
	require_at_work(hammer);
	subject_quit(hammer);
}

/* Its first calls take a third of a second each; strace delays them. */
static struct subject *begin_slow_healer(const char *pid)
{
	const char *const argv[] = { "strace", "-f", "-qq", "-e", "trace=ptrace", "-e", "inject=ptrace:delay_exit=300000:when=1..3",
				     "-o", healers_log(), live_text("%s/src/allocwatchd", live_build()), "--heal", pid, NULL };

	return subject_start(geteuid(), argv);
}

/* Of another daemon's, or called by hand: it has the process in its hands for a moment. */
static void an_attach_waits_for_a_healer(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, NULL), *healer;
	struct state *before = state_take(hammer->pid);

	tool_attach(tool, hammer->pid);
	kill_both(tool, hammer);
	tool_start_again(tool);
	healer = begin_slow_healer(pid_text(hammer->pid));
	require(live_wait(state_is_traced, &hammer->pid, HEAL_MS));
	tool_attach(tool, hammer->pid);
	require_equal(subject_wait(healer), 0);
	tool_detach(tool, hammer->pid);
	require_unharmed(hammer->pid, before);
	subject_quit(hammer);
}

/* Its first seizing begins so much later. */
static struct subject *begin_late_healer(const char *pid)
{
	const char *const argv[] = { "strace", "-f", "-qq", "-e", "trace=ptrace", "-e", "inject=ptrace:delay_enter=3000000:when=1",
				     "-o", healers_log(), live_text("%s/src/allocwatchd", live_build()), "--heal", pid, NULL };

	return subject_start(geteuid(), argv);
}

static bool is_in_ptrace(pid_t pid)
{
	FILE *f = pid > 0 ? fopen(live_text("/proc/%d/syscall", pid), "r") : NULL;
	long number = -1;

	if (!f)
		return false;
	if (fscanf(f, "%ld", &number) != 1)
		number = -1;
	fclose(f);
	return number == SYS_ptrace;
}

static bool is_about_to_seize(void *strace)
{
	return is_in_ptrace(subject_child_of(((const struct subject *)strace)->pid));
}

static bool attach_is_about_to_seize(void *tool)
{
	return is_in_ptrace(tool_daemons_child(tool, false));
}

/* It has seen that nobody traced it; since then another one has attached, and has let it go of ptrace. */
static void a_late_attach_leaves_the_first_ones_process_alone(void)
{
	const char *const late[] = { "strace", "-D", "-f", "-qq", "-e", "trace=ptrace", "-e", "inject=ptrace:delay_enter=3000000:when=1",
				     "-o", healers_log(), NULL };
	struct tool *first = tool_start(), *other = tool_start_wrapped(late);
	struct subject *hammer = victim_start(HAMMER, NULL);
	struct state *before = state_take(hammer->pid);
	pid_t client = tool_begin(other, "attach", "--engine", "ring", pid_text(hammer->pid), NULL);
	int status;

	require(live_wait(attach_is_about_to_seize, other, HEAL_MS));
	tool_out(first, "attach", "--release", pid_text(hammer->pid), NULL);
	require(waitpid(client, &status, 0) == client && WIFEXITED(status) && WEXITSTATUS(status) == 1);
	subject_command(hammer, 'g');
	require(json_is_true(json_object_get(tool_status(first, hammer->pid), "exact")));
	require(json_is_true(json_object_get(tool_status(first, hammer->pid), "released")));
	tool_detach(first, hammer->pid);
	require_unharmed(hammer->pid, before);
	subject_quit(hammer);
}

/* It has seen that the tracer was dead; since then the process was healed, attached to anew and let go of ptrace. */
static void a_late_healer_leaves_the_next_tracers_process_alone(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, NULL), *healer;
	struct state *before = state_take(hammer->pid);
	pid_t tracer;

	tool_attach(tool, hammer->pid);
	kill_both(tool, hammer);
	healer = begin_late_healer(pid_text(hammer->pid));
	require(live_wait(is_about_to_seize, healer, HEAL_MS));
	tool_start_again(tool);
	tool_out(tool, "attach", "--release", pid_text(hammer->pid), NULL);
	tracer = tool_tracer(hammer->pid);
	require_equal(subject_wait(healer), 0);
	require_equal(tool_tracer(hammer->pid), tracer);
	require(json_is_true(json_object_get(tool_status(tool, hammer->pid), "exact")));
	tool_detach(tool, hammer->pid);
	require_unharmed(hammer->pid, before);
	subject_quit(hammer);
}

/* --- a library that an upgrade replaces while it is mapped --- */

enum upgrade { DELETED, RENAMED_OVER, UPGRADES };

static const char *libc_path(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4352], *path;
	const char *found = NULL;

	require(maps);
	while (!found && fgets(line, sizeof(line), maps)) {
		path = strchr(line, '/');
		if (path && strstr(path, "/libc.so"))
			found = live_text("%.*s", (int)strcspn(path, "\n"), path);
	}
	fclose(maps);
	require(found);
	return found;
}

/* With a libc of its own, in which our code lies, and a malloc of its own beside it. */
static struct subject *leaky_with_own_libraries(uid_t uid, const char **ret_libc, const char **ret_malloc)
{
	const char *libc = public_copy(libc_path()), *own = public_copy(JEMALLOC);
	struct subject *leaky;

	setenv("LD_LIBRARY_PATH", live_folder(), 1);
	setenv("LD_PRELOAD", own, 1);
	leaky = victim_start_as(uid, public_copy(LEAKY), "--commands", NULL);
	unsetenv("LD_LIBRARY_PATH");
	unsetenv("LD_PRELOAD");
	*ret_libc = libc;
	*ret_malloc = own;
	return leaky;
}

static void replace_on_disk(const char *path, enum upgrade how)
{
	const char *new = live_text("%s.new", path);
	FILE *file;

	if (how == DELETED) {
		require(unlink(path) == 0);
		return;
	}
	file = fopen(new, "w");
	require(file && fputs("another version", file) >= 0 && fclose(file) == 0);
	require(rename(new, path) == 0);
}

static void heal_as(uid_t uid, pid_t pid)
{
	const char *const argv[] = { public_copy("src/allocwatchd"), "--heal", pid_text(pid), NULL };
	int status;

	public_copy("src/allocwatch-tracer");
	status = subject_wait(subject_start(uid, argv));
	require(WIFEXITED(status));
	require_equal(WEXITSTATUS(status), 0);
}

static void heal_after_an_upgrade(struct tool *tool, uid_t uid, enum upgrade how)
{
	const char *libc, *own;
	struct subject *leaky = leaky_with_own_libraries(uid, &libc, &own);
	long long caught = status_number(leaky->pid, "SigCgt", 16);

	tool_attach(tool, leaky->pid);
	require(status_number(leaky->pid, "SigCgt", 16) != caught);
	replace_on_disk(libc, how);
	replace_on_disk(own, how);
	kill_both(tool, leaky);
	require(!state_text_is_intact(&leaky->pid));
	subject_command(leaky, 'g');
	heal_as(uid, leaky->pid);
	text_require_intact(leaky->pid);
	require_equal(status_number(leaky->pid, "SigCgt", 16), caught);
	subject_command(leaky, 'g');
	subject_quit(leaky);
	/* The next one copies it anew. */
	if (how == RENAMED_OVER)
		require(unlink(libc) == 0 && unlink(own) == 0);
}

static void a_process_whose_libraries_were_replaced_is_healed(void)
{
	for (enum upgrade how = DELETED; how < UPGRADES; how++)
		heal_after_an_upgrade(tool_start(), geteuid(), how);
}

/* Who may not open what is mapped but by its path. */
static void an_ordinary_users_whose_libraries_were_replaced_is_healed(void)
{
	if (geteuid())
		live_skip("needs root, to be another user");
	for (enum upgrade how = DELETED; how < UPGRADES; how++)
		heal_after_an_upgrade(tool_start_ordinary(), ORDINARY_UID, how);
}

static const struct live_case cases[] = {
	LIVE_CASE(a_process_whose_libraries_were_replaced_is_healed),
	LIVE_CASE(an_ordinary_users_whose_libraries_were_replaced_is_healed),
	LIVE_CASE(the_daemon_heals_when_a_tracer_dies),
	LIVE_CASE(a_busy_process_is_healed),
	LIVE_CASE(the_daemon_heals_at_once),
	LIVE_CASE(the_daemon_heals_redis_at_once),
	LIVE_CASE(who_stands_by_heals),
	LIVE_CASE(without_who_stood_by_another_one_heals),
	LIVE_CASE(a_healed_process_is_traced_again),
	LIVE_CASE(an_attach_heals_first),
	LIVE_CASE(healing_by_hand_takes_all_out),
	LIVE_CASE(healers_at_the_same_time_do_not_fail),
	LIVE_CASE(a_healer_waits_for_what_becomes_of_another_one),
	LIVE_CASE(a_copy_is_healed_with_its_original),
	LIVE_CASE(a_process_number_that_is_used_again_is_not_touched),
	LIVE_CASE(a_process_that_is_let_go_while_a_healer_waits_is_not_touched),
	LIVE_CASE(a_process_without_ptrace_is_healed_at_once),
	LIVE_CASE(an_attach_waits_for_a_healer),
	LIVE_CASE(a_late_healer_leaves_the_next_tracers_process_alone),
	LIVE_CASE(a_late_attach_leaves_the_first_ones_process_alone),
	LIVE_CASE(the_next_daemon_heals),
	LIVE_CASE(the_next_daemon_heals_beside_what_others_trace),
	LIVE_CASE(what_another_one_traces_is_left_alone),
	LIVE_CASE(a_process_that_its_tracer_cannot_let_go_yet_is_left_alone),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
