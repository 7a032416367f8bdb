/* attach --release: a process that is traced by the ring alone, without ptrace, so that others can use that. */
#include "handlers.h"
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "arch/ring_code.h"

#include "base/clock.h"
#include "base/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define HAMMER "tests/victims/hammer"
#define EXECER_C "tests/victims/execer.c"
#define FORKER_C "tests/victims/forker.c"
#define JEMALLOC "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
#define WAIT_MS 15000

struct traced {
	struct tool *tool;
	pid_t pid;
};

static bool is_traced_by_another(void *context)
{
	return !state_has_no_tracer(context);
}

/* One of its lines has this text. */
static void require_says(struct subject *subject, const char *text)
{
	while (!strstr(subject_line(subject), text))
		;
}

static bool is_inexact(void *context)
{
	const struct traced *traced = context;

	return !json_is_true(json_object_get(tool_status(traced->tool, traced->pid), "exact"));
}

/* Who heals is there as long as the text is not. */
static bool is_clean(void *context)
{
	const struct subject *subject = context;
	pid_t pid = subject->pid;

	return state_text_is_intact(&pid) && state_has_no_tracer(&pid);
}

static void release_with(struct tool *tool, pid_t pid, const char *ring_wait)
{
	json_t *status;

	tool_out(tool, "attach", "--release", "--ring-wait", ring_wait, pid_text(pid), NULL);
	/* A debugger may come at once. */
	require_equal(status_number(pid, "TracerPid", 10), 0);
	status = tool_status(tool, pid);
	require(json_is_true(json_object_get(status, "released")));
	require_text(json_text(status, "engine"), "ring");
	require_at_least(json_number(status, "longest_stop_us"), 1);
	/* None of the victims has a handler for it. */
	require_equal(status_number(pid, "SigCgt", 16) & 1 << (SIGTRAP - 1), 0);
}

static void release(struct tool *tool, pid_t pid)
{
	release_with(tool, pid, "30s");
}

/* Its allocations until then, those under the debugger, and those after it. */
static void a_debugger_can_be_used_on_a_process_that_ptrace_has_let_go(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", "4", "--ops", "2000", NULL), *gdb;
	const char *const argv[] = { "/usr/bin/gdb", "-q", "-nx", "-batch", "-ex", "thread apply all bt", "-p", pid_text(hammer->pid),
				     NULL };
	struct state *before = state_take(hammer->pid);
	int status;

	require(access(argv[0], X_OK) == 0);
	release(tool, hammer->pid);
	subject_command(hammer, 'g');
	require_tally(tool, hammer, 0);
	gdb = subject_start(geteuid(), argv);
	require_says(gdb, "next_command");
	status = subject_wait(gdb);
	require(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	subject_command(hammer, 'g');
	require_tally(tool, hammer, 0);
	tool_end(tool, hammer, before);
}

/* Longer than a record may stay unfinished, by threads that are held in the midst of them. */
static void a_debugger_may_hold_threads_in_the_midst_of_allocations(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", "4", NULL);
	const char *const argv[] = { "/usr/bin/gdb", "-q", "-nx", "-batch", "-ex", "shell sleep 1.3", "-p", pid_text(hammer->pid),
				     NULL };
	struct state *before = state_take(hammer->pid);

	require(access(argv[0], X_OK) == 0);
	release(tool, hammer->pid);
	subject_send(hammer, 'r');
	for (unsigned i = 0; i < live_rounds(3, 30); i++)
		subject_wait(subject_start(geteuid(), argv));
	subject_command(hammer, 's');
	require_tally(tool, hammer, 0);
	tool_end(tool, hammer, before);
}

/* All threads of it, on one processor, where they go on when nobody else wants it. */
static void give_rests_of_a_processor(pid_t pid, bool rests)
{
	const struct sched_param param = { 0 };
	DIR *dir = opendir(live_text("/proc/%d/task", pid));
	struct dirent *entry;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	for (int i = 0; i < (rests ? 1 : CPU_SETSIZE); i++)
		CPU_SET(i, &cpus);
	require(dir != NULL);
	while ((entry = readdir(dir))) {
		pid_t tid = atoi(entry->d_name);

		if (tid == 0)
			continue;
		require(sched_setaffinity(tid, sizeof(cpus), &cpus) == 0);
		require(sched_setscheduler(tid, rests ? SCHED_IDLE : SCHED_OTHER, &param) == 0);
	}
	closedir(dir);
}

static pid_t begin_to_use_up_processor(void)
{
	pid_t pid = fork();
	cpu_set_t cpus;

	if (pid != 0)
		return pid;
	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) < 0)
		_exit(1);
	for (;;)
		;
}

/* Which maps and unmaps nothing once it has worked for a while: else the kernel's lock of its memory might be held by one of its threads
 * without a processor, and the tracer would wait for that one. */
static struct subject *start_hammer_that_maps_nothing(void)
{
	struct subject *hammer;

	setenv("MALLOC_MMAP_THRESHOLD_", "33554432", 1);
	setenv("MALLOC_TRIM_THRESHOLD_", "1073741824", 1);
	hammer = victim_start(HAMMER, "--threads", "4", "--ops", "20000", NULL);
	unsetenv("MALLOC_MMAP_THRESHOLD_");
	unsetenv("MALLOC_TRIM_THRESHOLD_");
	subject_command(hammer, 'g');
	return hammer;
}

/* For a second and more, as a debugger may hold them. */
static void threads_may_wait_for_a_processor_in_the_midst_of_allocations(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = start_hammer_that_maps_nothing();
	struct state *before = state_take(hammer->pid);
	long blocks = subject_tally(hammer, "blocks"), allocations = subject_tally(hammer, "allocations"), freed;
	json_t *status;
	pid_t user;

	release(tool, hammer->pid);
	subject_send(hammer, 'r');
	give_rests_of_a_processor(hammer->pid, true);
	user = begin_to_use_up_processor();
	live_let_pass(live_rounds(4, 60) * NSEC_PER_SEC);
	kill(user, SIGKILL);
	require_equal(waitpid(user, NULL, 0), user);
	give_rests_of_a_processor(hammer->pid, false);
	subject_command(hammer, 's');
	status = tool_status(tool, hammer->pid);
	freed = json_number(status, "unknown.before_attach_frees");
	require_equal(json_number(status, "allocations"), subject_tally(hammer, "allocations") - allocations);
	require_equal(json_number(status, "blocks"), subject_tally(hammer, "blocks") - blocks + freed);
	require_nothing_unknown(status, freed);
	tool_end(tool, hammer, before);
}

#define STOPS 12
#define ANSWER_MOST_MS 3500            /* less than is waited for who may go on */

static bool is_stopped(void *context)
{
	pid_t pid = *(pid_t *)context;

	return thread_state(pid, pid) == 'T';
}

/* Who is in the midst of a record then does not go on by himself: nothing is gained by waiting for him. */
static void who_asks_for_a_stopped_process_is_answered_soon(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = start_hammer_that_maps_nothing();
	struct state *before = state_take(hammer->pid);
	unsigned inexact = 0;

	release(tool, hammer->pid);
	subject_send(hammer, 'r');
	for (unsigned i = 0; i < STOPS; i++) {
		uint64_t asked_ns;

		live_let_pass(live_random(20 * NSEC_PER_MSEC));
		kill(hammer->pid, SIGSTOP);
		require(live_wait(is_stopped, &hammer->pid, WAIT_MS));
		asked_ns = clock_monotonic_ns();
		inexact += !json_is_true(json_object_get(tool_status(tool, hammer->pid), "exact"));
		require(clock_monotonic_ns() - asked_ns < ANSWER_MOST_MS * NSEC_PER_MSEC);
		kill(hammer->pid, SIGCONT);
		tool_out(tool, "clear", pid_text(hammer->pid), NULL);
	}
	live_note("in the midst of a record at %u of %u stops", inexact, STOPS);
	subject_command(hammer, 's');
	tool_end(tool, hammer, before);
}

static bool kernel_is_since(int version, int patch)
{
	struct utsname name;
	int a = 0, b = 0;

	return uname(&name) == 0 && sscanf(name.release, "%d.%d", &a, &b) == 2 && (a > version || (a == version && b >= patch));
}

static struct subject *begin_strace(pid_t pid)
{
	const char *const argv[] = { "/usr/bin/strace", "-f", "-o", "/dev/null", "-p", pid_text(pid), NULL };
	struct subject *strace;

	require(access(argv[0], X_OK) == 0);
	strace = subject_start(geteuid(), argv);
	require(live_wait(is_traced_by_another, &pid, WAIT_MS));
	return strace;
}

static void end_strace(struct subject *strace)
{
	kill(strace->pid, SIGINT);
	subject_wait(strace);
}

/* What cannot be taken out while a debugger has it is taken out afterwards. */
static void a_daemon_that_ends_under_a_debugger_leaves_what_heals(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", "2", "--ops", "500", NULL), *strace;
	struct state *before = state_take(hammer->pid);

	release(tool, hammer->pid);
	strace = begin_strace(hammer->pid);
	subject_command(hammer, 'g');
	tool_end_daemon(tool, SIGTERM);
	subject_command(hammer, 'g');
	end_strace(strace);
	require_equal(tool_heal(pid_text(hammer->pid)), 0);
	require_unharmed(hammer->pid, before);
	subject_command(hammer, 'g');
	subject_quit(hammer);
}

/* Which it would be in a moment if its tracer were dead. */
static void another_daemon_leaves_it_alone(void)
{
	struct tool *tool = tool_start(), *other = tool_start_named("other");
	struct subject *hammer = victim_start(HAMMER, "--threads", "2", "--ops", "500", NULL);
	struct state *before = state_take(hammer->pid);

	release(tool, hammer->pid);
	require_text(tool_try(other, "attach", pid_text(hammer->pid), NULL).err, "traced by another daemon");
	require_equal(tool_heal(pid_text(hammer->pid)), 0);
	subject_command(hammer, 'g');
	require_tally(tool, hammer, 0);
	tool_end(tool, hammer, before);
}

/* As on a machine that lets it wait for a processor longer than what it has noted in the process holds. */
static void a_tracer_that_is_late_is_not_taken_for_dead(void)
{
	struct tool *tool = tool_start(), *other = tool_start_named("other");
	struct subject *hammer = victim_start(HAMMER, "--threads", "2", "--ops", "500", NULL);
	struct state *before = state_take(hammer->pid);
	pid_t tracer;

	tool_keep_healers_out();
	release(tool, hammer->pid);
	tracer = tool_tracer(hammer->pid);
	kill(tool_daemon(tool), SIGSTOP);       /* else it kills a tracer that is stopped for a second */
	kill(tracer, SIGSTOP);
	/* Which waits until that time has passed. */
	require_equal(tool_heal(pid_text(hammer->pid)), 0);
	require_text(tool_try(other, "attach", pid_text(hammer->pid), NULL).err, "traced by another daemon");
	kill(tracer, SIGCONT);
	kill(tool_daemon(tool), SIGCONT);
	subject_command(hammer, 'g');
	require_tally(tool, hammer, 0);
	tool_end(tool, hammer, before);
}

static void put_byte(pid_t pid, unsigned long at, char byte)
{
	int memory = open(live_text("/proc/%d/mem", pid), O_RDWR | O_CLOEXEC);

	require(memory >= 0 && pwrite(memory, &byte, 1, (off_t)at) == 1);
	close(memory);
}

/* Where the version stands in that of the areas with code which is found first. */
static unsigned long version_of_code(pid_t pid)
{
	FILE *maps = fopen(live_text("/proc/%d/maps", pid), "r");
	int memory = open(live_text("/proc/%d/mem", pid), O_RDONLY | O_CLOEXEC);
	unsigned long start, found = 0;
	char line[4096];

	require(maps && memory >= 0);
	while (found == 0 && fgets(line, sizeof(line), maps)) {
		char magic[RING_CODE_MAGIC_SIZE];

		if (sscanf(line, "%lx-", &start) == 1 && strstr(line, "r-xp") &&
		    pread(memory, magic, sizeof(magic), (off_t)start) == sizeof(magic) &&
		    !memcmp(magic, RING_CODE_MAGIC, sizeof(magic)))
			found = start + sizeof(magic) - 1;
	}
	fclose(maps);
	close(memory);
	require(found);
	return found;
}

/* Not by halves: its code would write to a ring that is not there any more. */
static void what_another_version_has_left_is_not_taken_out(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", "2", "--ops", "500", NULL);
	struct state *before = state_take(hammer->pid);
	unsigned long version;
	pid_t tracer;

	tool_keep_healers_out();
	release_with(tool, hammer->pid, "20ms");
	version = version_of_code(hammer->pid);
	tracer = tool_daemons_child(tool, false);
	kill(tool_daemon(tool), SIGSTOP);       /* so that it heals nothing */
	put_byte(hammer->pid, version, '!');
	kill(tracer, SIGKILL);
	require_equal(tool_heal(pid_text(hammer->pid)), 1);
	subject_command(hammer, 'g');
	put_byte(hammer->pid, version, RING_CODE_MAGIC[RING_CODE_MAGIC_SIZE - 1]);
	require_equal(tool_heal(pid_text(hammer->pid)), 0);
	require_unharmed(hammer->pid, before);
	subject_command(hammer, 'g');
	subject_quit(hammer);
	kill(tool_daemon(tool), SIGCONT);
}

static void strace_can_be_used_while_it_allocates(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", "4", "--ops", "20000", NULL), *strace;
	struct state *before = state_take(hammer->pid);

	release(tool, hammer->pid);
	strace = begin_strace(hammer->pid);
	subject_command(hammer, 'g');
	/* It has it: nothing can be taken out now, and that is said. */
	require_text(tool_try(tool, "detach", pid_text(hammer->pid), NULL).err, "another tracer has it");
	end_strace(strace);
	require(live_wait(state_has_no_tracer, &hammer->pid, WAIT_MS));
	require_tally(tool, hammer, 0);
	subject_command(hammer, 'g');
	require_tally(tool, hammer, 0);
	tool_end(tool, hammer, before);
}

static bool exit_is_kept(void *context)
{
	const struct traced *gone = context;

	return tool_try(gone->tool, "stats", live_text("%d:exit", gone->pid), NULL).status == 0;
}

/* Its memory goes a little before it does: that is no program that it executes. */
static void the_end_of_a_process_without_ptrace_is_seen(void)
{
	struct tool *tool = tool_start();

	for (unsigned i = 0; i < live_rounds(5, 200); i++) {
		struct subject *hammer = victim_start(HAMMER, "--threads", "2", "--ops", "500", NULL);
		struct traced gone = { tool, hammer->pid };
		long blocks;

		release(tool, hammer->pid);
		subject_command(hammer, 'g');
		blocks = subject_tally(hammer, "blocks");
		subject_quit(hammer);
		tool_wait_until_gone(tool, hammer->pid, WAIT_MS);
		require(live_wait(exit_is_kept, &gone, WAIT_MS));
		require_equal(json_number(tool_stats(tool, live_text("%d:exit", gone.pid)), "total.count"), blocks);
	}
}

/* Waited for at once, or not before that is asked. */
static void how_a_process_without_ptrace_ended_is_told(void)
{
	struct tool *tool = tool_start();

	for (unsigned i = 0; i < 2; i++) {
		struct subject *hammer = victim_start(HAMMER, "--threads", "2", NULL);
		struct tool_run run;

		release(tool, hammer->pid);
		kill(hammer->pid, SIGKILL);
		if (i == 0)
			subject_wait(hammer);
		tool_wait_until_gone(tool, hammer->pid, WAIT_MS);
		run = tool_try(tool, "status", pid_text(hammer->pid), NULL);
		if (i == 0 && strstr(run.err, "has ended;") && !kernel_is_since(6, 15))
			live_note("this kernel does not tell how a process ended that its parent has waited for");
		else
			require_text(run.err, "was killed by signal 9");
		if (i > 0)
			subject_wait(hammer);
	}
}

/* Those have int3s otherwise. */
static void places_without_room_for_a_jump_are_told_at_the_attach(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer;
	struct tool_run run;
	json_t *status;

	if (access(JEMALLOC, R_OK))
		live_fail("%s is not installed; contrib/install-deps --test installs it", JEMALLOC);
	setenv("LD_PRELOAD", JEMALLOC, 1);
	hammer = victim_start(HAMMER, "--threads", "2", "--ops", "500", NULL);
	unsetenv("LD_PRELOAD");
	run = tool_try(tool, "attach", "--release", pid_text(hammer->pid), NULL);
	require_equal(run.status, 0);
	require_text(run.err, "answers are not exact: without ptrace ");
	require_text(run.err, "places are not watched, such as ");
	status = tool_status(tool, hammer->pid);
	require(!json_is_true(json_object_get(status, "exact")));
	require_text(json_text(status, "engine_reason"), "places are not watched, such as ");
	tool_end(tool, hammer, NULL);
}

static void who_cannot_be_without_ptrace_is_refused_and_untouched(void)
{
	struct tool *tool = tool_start();
	struct subject *plugins = victim_start("tests/victims/newonly", NULL);
	struct state *before = state_take(plugins->pid);
	struct tool_run run = tool_try(tool, "attach", "--release", "--domains", "malloc,new", pid_text(plugins->pid), NULL);

	require_equal(run.status, 1);
	require_text(run.err, "cannot be traced without ptrace");
	require_text(run.err, "without --release");
	require_unharmed(plugins->pid, before);
	subject_quit(plugins);
}

/* What is kept goes on with ptrace, or is ended, as the user is told; nothing is lost by asking. */
static void what_was_kept_of_one_that_was_held_is_not_let_go(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start("tests/victims/hammer", "--threads", "2", "--ops", "500", NULL);
	struct state *before = state_take(hammer->pid);
	struct tool_run run;

	tool_attach_held(tool, hammer->pid);
	tool_out(tool, "detach", "--keep", pid_text(hammer->pid), NULL);
	run = tool_try(tool, "attach", "--release", pid_text(hammer->pid), NULL);
	require_equal(run.status, 1);
	require_text(run.err, "cannot be traced without ptrace");
	require_text(run.err, "without --keep");
	require(state_is_untraced(&hammer->pid));
	require_unharmed(hammer->pid, before);
	tool_out(tool, "attach", pid_text(hammer->pid), NULL);
	subject_command(hammer, 'g');
	require_equal(json_number(tool_status(tool, hammer->pid), "unknown.probe_gaps"), 1);
	require_equal(json_number(tool_status(tool, hammer->pid), "blocks"), subject_tally(hammer, "blocks"));
	tool_end(tool, hammer, before);
}

/* Nobody puts a thread out of a record that a signal comes into: it is finished when the handler has ended. */
static void a_handler_at_1_khz_allocates(void)
{
	require_handlers_blocks(release, "--no-altstack");
}

static void a_handler_on_a_sigaltstack_allocates(void)
{
	require_handlers_blocks(release, NULL);
}

/* The process is seized for the moment, and they have nothing of ours. */
static void run_children_of(struct tool *tool, struct subject *forker, struct state *before)
{
	for (int i = 1; i <= 3; i++) {
		pid_t child;

		subject_command(forker, 'g');
		child = (pid_t)subject_tally(forker, "child");
		require(state_has_no_tracer(&child));
		require(state_text_is_intact(&child));
		subject_command(forker, 'g');
		require_equal(subject_tally(forker, "status"), 7);
		require_row(tool_stats(tool, pid_text(forker->pid)), FORKER_C, "/* kept */", 104LL * i, i);
		require(row_at(tool_stats(tool, pid_text(forker->pid)), FORKER_C, line_of(FORKER_C, "/* the child's own */")) ==
			NULL);
	}
	require_nothing_unknown(tool_status(tool, forker->pid), 0);
	tool_end(tool, forker, before);
}

static void children_of_a_process_without_ptrace_run_as_ever(void)
{
	struct tool *tool = tool_start();
	struct subject *forker = victim_start("tests/victims/forker", NULL);
	struct state *before = state_take(forker->pid);

	release(tool, forker->pid);
	run_children_of(tool, forker, before);
}

/* Whose functions no other object could bind to.  One of the two has room for what keeps it safe. */
static void children_of_a_static_program_without_ptrace_run_as_ever(void)
{
	static const char *const programs[] = { "tests/victims/forker_static", "tests/victims/forker_padded" };
	unsigned traced = 0;

	for (unsigned i = 0; i < 2; i++) {
		struct tool *tool = tool_start();
		struct subject *forker = victim_start(programs[i], NULL);
		struct state *before = state_take(forker->pid);
		struct tool_run run = tool_try(tool, "attach", "--release", "--ring-wait", "30s", pid_text(forker->pid), NULL);

		if (run.status != 0) {
			require_text(run.err, "no room beside its code");
			subject_quit(forker);
			continue;
		}
		require(json_is_true(json_object_get(tool_status(tool, forker->pid), "released")));
		require_equal(status_number(forker->pid, "TracerPid", 10), 0);
		run_children_of(tool, forker, before);
		traced++;
	}
	require_at_least(traced, 1);
}

static bool is_released(void *context)
{
	const struct traced *traced = context;

	return json_is_true(json_object_get(tool_status(traced->tool, traced->pid), "released"));
}

static bool exec_is_kept(void *context)
{
	const struct traced *traced = context;

	return tool_try(traced->tool, "stats", live_text("%d:exec", traced->pid), NULL).status == 0;
}

/* Of each program all is seen, and each is let go again. */
static void execute_in_rounds(char how)
{
	struct tool *tool = tool_start();
	struct subject *execer = victim_start("tests/victims/execer", "--threads", "2", NULL);
	struct traced traced = { tool, execer->pid };
	const char *pid = pid_text(execer->pid);
	unsigned rounds = live_rounds(4, 100);

	release(tool, execer->pid);
	for (unsigned i = 0; i < rounds; i++) {
		json_t *status;

		subject_command(execer, 'a');
		subject_command(execer, 'a');
		require_equal(subject_tally(execer, "execs"), i);
		require_row(tool_stats(tool, pid), EXECER_C, "/* kept */", 416, 2);
		status = tool_status(tool, execer->pid);
		require_nothing_unknown(status, i ? 0 : json_number(status, "unknown.before_attach_frees"));
		require(live_wait(is_released, &traced, WAIT_MS));
		require_equal(status_number(execer->pid, "TracerPid", 10), 0);
		require_text(subject_command(execer, how), "R");
		require(live_wait(exec_is_kept, &traced, WAIT_MS));
		require_row(tool_stats(tool, live_text("%s:exec", pid)), EXECER_C, "/* kept */", 416, 2);
	}
	require(live_wait(is_released, &traced, WAIT_MS));
	tool_end(tool, execer, NULL);
}

static void a_program_that_it_executes_is_traced_from_its_first_call(void)
{
	execute_in_rounds('g');
}

static void a_program_that_another_thread_executes_is_traced_from_its_first_call(void)
{
	execute_in_rounds('t');
}

/* Nobody is stopped by that system call: what it executes is attached to when the old memory is found gone. */
static void a_program_that_is_executed_without_libc_is_attached_to(void)
{
	struct tool *tool = tool_start();
	struct subject *execer = victim_start("tests/victims/execer", "--to", live_text("%s/tests/victims/hammer", live_build()), "--raw", NULL);
	struct traced traced = { tool, execer->pid };
	long long count, gaps;

	release(tool, execer->pid);
	subject_command(execer, 'a');
	require_text(subject_command(execer, 'g'), "R");
	require(live_wait(exec_is_kept, &traced, WAIT_MS));
	require_row(tool_stats(tool, live_text("%d:exec", execer->pid)), EXECER_C, "/* kept */", 208, 1);
	require(live_wait(is_released, &traced, WAIT_MS));
	subject_command(execer, 'g');
	/* It may have been seen while it was beginning. */
	count = json_number(tool_stats(tool, pid_text(execer->pid)), "total.count");
	require_at_least(count, subject_tally(execer, "blocks"));
	require(count < subject_tally(execer, "blocks") + 16);
	/* Whose old memory was gone before its exec was over is seized in the midst of that, and then nothing was missed. */
	gaps = json_number(tool_status(tool, execer->pid), "unknown.probe_gaps");
	require_at_least(1, gaps);
	if (gaps == 0) {
		live_note("its exec was seen");
		require_nothing_unknown(tool_status(tool, execer->pid), 0);
	}
	tool_end(tool, execer, NULL);
}

/* It was seized for it, and goes on as before. */
static void an_exec_that_fails_changes_nothing(void)
{
	struct tool *tool = tool_start();
	struct subject *execer = victim_start("tests/victims/execer", "--stay", "--to", "/etc/passwd", NULL);
	struct traced traced = { tool, execer->pid };

	release(tool, execer->pid);
	subject_command(execer, 'a');
	require_text(subject_command(execer, 'g'), "failed");
	subject_command(execer, 'a');
	require_row(tool_stats(tool, pid_text(execer->pid)), EXECER_C, "/* kept */", 416, 2);
	require(live_wait(is_released, &traced, WAIT_MS));
	require_nothing_unknown(tool_status(tool, execer->pid), 0);
	tool_end(tool, execer, NULL);
}

/* Not on the stack that comes with its record. */
static void a_result_that_is_stored_on_the_heap_is_known(void)
{
	struct tool *tool = tool_start();
	struct subject *execer = victim_start("tests/victims/execer", NULL);

	release(tool, execer->pid);
	for (unsigned i = 1; i <= 5; i++) {
		subject_command(execer, 'm');
		require_row(tool_stats(tool, pid_text(execer->pid)), EXECER_C, "/* aligned */", 208 * i, i);
	}
	require_nothing_unknown(tool_status(tool, execer->pid), 0);
	tool_end(tool, execer, NULL);
}

/* And is overwritten before anybody else could look: the code in the process has it, also of samples. */
static void a_result_that_is_overwritten_at_once_is_known(void)
{
	static const char *const samples[] = { NULL, "1" };

	for (unsigned i = 0; i < 2; i++) {
		struct tool *tool = tool_start();
		struct subject *execer = victim_start("tests/victims/execer", NULL);
		struct state *before = state_take(execer->pid);

		tool_out(tool, "attach", "--release", "--ring-wait", "30s", pid_text(execer->pid), samples[i] ? "--sample-bytes" : NULL,
			 samples[i], NULL);
		subject_command(execer, 'o');
		require_row(tool_stats(tool, pid_text(execer->pid)), EXECER_C, "/* overwritten */", 20800, 100);
		require_equal(json_number(tool_status(tool, execer->pid), "unknown.lost_events"), 0);
		tool_end(tool, execer, before);
	}
}

/* Who has only the memory of who says so: it waits for nobody, though nobody serves it. */
static void a_child_of_vfork_does_not_wait_to_execute(void)
{
	struct tool *tool = tool_start();
	struct subject *spawner = victim_start("tests/victims/spawner", "--no-fork", NULL);
	uint64_t began_ns;
	pid_t tracer;

	release(tool, spawner->pid);
	tracer = tool_daemons_child(tool, false);
	kill(tool_daemon(tool), SIGSTOP);       /* else it kills a tracer that is stopped for a second */
	kill(tracer, SIGSTOP);
	began_ns = clock_monotonic_ns();
	subject_command(spawner, 'g');
	require(clock_monotonic_ns() - began_ns < WAIT_MS * NSEC_PER_MSEC);
	require_equal(subject_tally(spawner, "bad"), 0);
	kill(tracer, SIGCONT);
	kill(tool_daemon(tool), SIGCONT);
	require_nothing_unknown(tool_status(tool, spawner->pid), 0);
	require(json_is_true(json_object_get(tool_status(tool, spawner->pid), "released")));
	tool_end(tool, spawner, NULL);
}

static struct subject *start_plugins(const char *option, const char *value)
{
	return victim_start("tests/victims/plugins", live_text("%s/tests/victims", live_build()), option, value, NULL);
}

static void require_own_blocks(struct tool *tool, pid_t pid, long long count)
{
	require_row(tool_stats(tool, pid_text(pid)), "tests/victims/plugins.c", "/* own block */", count * 444, count);
}

static void allocate_from_own(struct subject *plugins, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		subject_command(plugins, 'G');
}

/* Watched before its first call, though nobody is stopped by anything: the loader's hook waits. */
static void end_with_nothing_unknown(struct tool *tool, struct subject *subject)
{
	json_t *status = tool_status(tool, subject->pid);

	require_nothing_unknown(status, json_number(status, "unknown.before_attach_frees"));
	tool_end(tool, subject, NULL);
}

static void is_served_from_its_first_call(char how, const char *threads)
{
	struct tool *tool = tool_start();
	struct subject *plugins = start_plugins(threads ? "--threads" : NULL, threads);

	release(tool, plugins->pid);
	subject_command(plugins, how);
	require_equal(status_number(plugins->pid, "TracerPid", 10), 0);
	allocate_from_own(plugins, 9);
	subject_command(plugins, 'F');
	require_own_blocks(tool, plugins->pid, 8);
	require(json_is_true(json_object_get(tool_status(tool, plugins->pid), "released")));
	end_with_nothing_unknown(tool, plugins);
}

static void an_allocator_that_it_loads_is_served_from_its_first_call(void)
{
	is_served_from_its_first_call('O', NULL);
}

/* For the fork it was seized, and is so still. */
static void an_allocator_that_comes_right_after_a_fork_is_served_from_its_first_call(void)
{
	struct tool *tool = tool_start();
	struct subject *plugins = start_plugins("--threads", "2");
	struct traced traced = { tool, plugins->pid };

	release(tool, plugins->pid);
	subject_command(plugins, 'f');
	subject_command(plugins, 'O');
	allocate_from_own(plugins, 5);
	require_own_blocks(tool, plugins->pid, 5);
	require(live_wait(is_released, &traced, WAIT_MS));
	allocate_from_own(plugins, 3);
	require_own_blocks(tool, plugins->pid, 8);
	end_with_nothing_unknown(tool, plugins);
}

static void an_allocator_is_loaded_while_other_threads_allocate(void)
{
	is_served_from_its_first_call('O', "2");
}

static void an_allocator_is_loaded_into_a_namespace_of_its_own(void)
{
	is_served_from_its_first_call('M', NULL);
}

static void an_allocator_is_loaded_in_a_signals_handler(void)
{
	is_served_from_its_first_call('H', NULL);
}

/* The loader's lock is held by whoever waits. */
static void objects_come_and_go_in_8_threads_at_once(void)
{
	struct tool *tool = tool_start();
	struct subject *plugins = start_plugins(NULL, NULL);

	release(tool, plugins->pid);
	subject_command(plugins, 'S');
	subject_command(plugins, 'O');
	allocate_from_own(plugins, 3);
	require_row(tool_stats(tool, pid_text(plugins->pid)), "tests/victims/plugin.c", "/* plugin block */", 200 * 333, 200);
	require_own_blocks(tool, plugins->pid, 3);
	end_with_nothing_unknown(tool, plugins);
}

/* Each time it is another one, and is seized for. */
static void an_allocator_comes_and_goes(void)
{
	struct tool *tool = tool_start();
	struct subject *plugins = start_plugins("--threads", "2");

	release(tool, plugins->pid);
	subject_command(plugins, 'A');
	subject_command(plugins, 'O');
	allocate_from_own(plugins, 3);
	require_own_blocks(tool, plugins->pid, 3);
	end_with_nothing_unknown(tool, plugins);
}

/* Each record is served while the object is there that it comes from. */
static void objects_in_turn_at_one_address_are_told_apart(void)
{
	struct tool *tool = tool_start();
	struct subject *plugins = start_plugins(NULL, NULL);
	json_t *stats;

	release(tool, plugins->pid);
	subject_command(plugins, 't');
	require_at_least(subject_tally(plugins, "same_place"), 30);
	stats = tool_json(tool, "stats", pid_text(plugins->pid), "--by", "object", NULL);
	require_equal(json_count_of(stats, "/plugin.so"), 20);
	require_equal(json_count_of(stats, "/otherplugin.so"), 20);
	require_nothing_unknown(tool_status(tool, plugins->pid), 0);
	tool_end(tool, plugins, NULL);
}

static bool own_blocks_are_seen(void *context)
{
	const struct traced *traced = context;
	json_t *row = row_at(tool_stats(traced->tool, pid_text(traced->pid)), "tests/victims/plugins.c",
			     line_of("tests/victims/plugins.c", "/* own block */"));

	return row != NULL;
}

/* It cannot be seized then, which is said; and afterwards it is. */
static void an_allocator_that_is_loaded_under_a_debugger_is_a_gap(void)
{
	struct tool *tool = tool_start();
	struct subject *plugins = start_plugins(NULL, NULL), *strace;
	struct traced traced = { tool, plugins->pid };

	release(tool, plugins->pid);
	strace = begin_strace(plugins->pid);
	subject_command(plugins, 'O');
	subject_command(plugins, 'G');
	require(live_wait(is_inexact, &traced, WAIT_MS));
	require(!own_blocks_are_seen(&traced));
	end_strace(strace);
	for (unsigned i = 0; !own_blocks_are_seen(&traced) && i < 200; i++)
		subject_command(plugins, 'G');
	require(own_blocks_are_seen(&traced));
	require_equal(json_number(tool_status(tool, plugins->pid), "unknown.probe_gaps"), 1);
	tool_end(tool, plugins, NULL);
}

static bool one_waits_in_vfork(void *context)
{
	const struct subject *plugins = context;
	char *text, *cursor;
	bool found = false;
	DIR *dir = opendir(live_text("/proc/%d/task", plugins->pid));
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (file_read_text(live_text("/proc/%d/task/%s/stat", plugins->pid, entry->d_name), 4096, &text, NULL) < 0)
			continue;
		cursor = strrchr(text, ')');
		found |= cursor && strncmp(cursor, ") D", 3) == 0;
		free(text);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* The kernel does not stop it there: nothing is planted until it comes out. */
static void an_allocator_that_is_loaded_while_a_thread_is_in_vfork_is_watched_after_that(void)
{
	struct tool *tool = tool_start();
	struct subject *plugins = start_plugins(NULL, NULL);
	struct traced traced = { tool, plugins->pid };

	release(tool, plugins->pid);
	subject_command(plugins, 'V');
	require(live_wait(one_waits_in_vfork, plugins, WAIT_MS));
	subject_command(plugins, 'O');
	subject_command(plugins, 'G');
	require(live_wait(is_inexact, &traced, WAIT_MS));
	require(!own_blocks_are_seen(&traced));
	subject_command(plugins, 'v');
	for (unsigned i = 0; !own_blocks_are_seen(&traced) && i < 200; i++)
		subject_command(plugins, 'G');
	require(own_blocks_are_seen(&traced));
	require(live_wait(state_has_no_tracer, &plugins->pid, WAIT_MS));
	require_equal(json_number(tool_status(tool, plugins->pid), "unknown.probe_gaps"), 1);
	tool_end(tool, plugins, NULL);
}

/* As long as was asked for, once; and what it has missed is said. */
static void a_tracer_that_stands_still_holds_the_loader_up_for_a_moment(void)
{
	struct tool *tool = tool_start();
	struct subject *plugins = start_plugins(NULL, NULL);
	struct traced traced = { tool, plugins->pid };
	pid_t tracer;

	release_with(tool, plugins->pid, "20ms");
	tracer = tool_daemons_child(tool, false);
	kill(tool_daemon(tool), SIGSTOP);       /* else it kills a tracer that is stopped for a second */
	kill(tracer, SIGSTOP);
	subject_command(plugins, 'O');
	subject_command(plugins, 'G');
	kill(tracer, SIGCONT);
	kill(tool_daemon(tool), SIGCONT);
	require(live_wait(is_inexact, &traced, WAIT_MS));
	allocate_from_own(plugins, 3);
	require(own_blocks_are_seen(&traced));
	require_equal(json_number(tool_status(tool, plugins->pid), "unknown.probe_gaps"), 1);
	tool_end(tool, plugins, NULL);
}

#define ASKED_NS (300 * NSEC_PER_MSEC)          /* for a question to come to the tracer, which may stand for a second */

#define READ_MEANWHILE 800                      /* calls, so that the question comes before the loader's record is read */

/* Behind so many calls that nobody reads, since daemon and tracer, which this is, are stopped. */
static pid_t load_unread(struct tool *tool, struct subject *plugins, const char *wait, unsigned calls)
{
	pid_t tracer;

	release_with(tool, plugins->pid, wait);
	subject_command(plugins, 'o');
	tracer = tool_daemons_child(tool, false);
	kill(tool_daemon(tool), SIGSTOP);
	kill(tracer, SIGSTOP);
	for (unsigned i = 0; i < calls; i++)
		subject_command(plugins, 'g');
	subject_command(plugins, 'O');
	return tracer;
}

/* The tracer has heard of an object when it has read that, and has not looked at it yet. */
static void an_answer_says_that_an_allocator_was_not_watched_in_time(void)
{
	struct tool *tool = tool_start();
	struct subject *plugins = start_plugins(NULL, NULL);
	const char *name = live_text("%d:asked", plugins->pid);
	pid_t tracer, client;
	json_t *stats;
	int status;

	tracer = load_unread(tool, plugins, "20ms", READ_MEANWHILE);
	subject_command(plugins, 'G');
	client = tool_begin(tool, "snapshot", pid_text(plugins->pid), "--name", "asked", NULL);
	kill(tool_daemon(tool), SIGCONT);
	live_let_pass(ASKED_NS);
	kill(tracer, SIGCONT);
	require(waitpid(client, &status, 0) == client && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	stats = tool_stats(tool, name);
	require(!json_is_true(json_object_get(stats, "exact")));
	require_equal(json_number(stats, "unknown.probe_gaps"), 1);
	allocate_from_own(plugins, 3);
	require_equal(json_number(tool_status(tool, plugins->pid), "unknown.probe_gaps"), 1);
	tool_end(tool, plugins, NULL);
}

#define TOO_MANY 20000                          /* calls, for a ring that nobody reads */

/* Who comes to the loader's hook of a ring that is stalled writes no record.  A clear forgets the loss, and not that. */
static void an_allocator_that_came_during_a_stall_is_known_after_a_clear(void)
{
	struct tool *tool = tool_start();
	struct subject *plugins = start_plugins(NULL, NULL);
	pid_t tracer;
	json_t *status;

	tracer = load_unread(tool, plugins, "1ms", TOO_MANY);
	kill(tracer, SIGCONT);
	kill(tool_daemon(tool), SIGCONT);
	tool_out(tool, "clear", pid_text(plugins->pid), NULL);
	status = tool_status(tool, plugins->pid);
	require(!json_is_true(json_object_get(status, "exact")));
	require_equal(json_number(status, "unknown.probe_gaps"), 1);
	tool_end(tool, plugins, NULL);
}

struct waiter {
	pid_t pid;
	bool is_first;                 /* the process's first thread */
};

/* One that takes no lock waits on a futex: in our code. */
static bool waits_for_the_tracer(void *context)
{
	const struct waiter *waiter = context;
	char *text;
	bool found = false;
	DIR *dir = opendir(live_text("/proc/%d/task", waiter->pid));
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (atoi(entry->d_name) == 0 || (atoi(entry->d_name) == waiter->pid) != waiter->is_first ||
		    file_read_text(live_text("/proc/%d/task/%s/syscall", waiter->pid, entry->d_name), 4096, &text, NULL) < 0)
			continue;
		found |= atoi(text) == SYS_futex;
		free(text);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Both wait for the tracer, one to execute a program, one that has loaded an allocator: that one is waited for does not let the other one
 * go unseen. */
static void an_exec_is_seen_beside_an_allocator_that_comes(const char *order)
{
	struct tool *tool = tool_start();
	struct subject *plugins = start_plugins(NULL, NULL);
	struct traced traced = { tool, plugins->pid };
	json_t *status;
	pid_t tracer;

	subject_command(plugins, 'X');
	release(tool, plugins->pid);
	tracer = tool_daemons_child(tool, false);
	kill(tool_daemon(tool), SIGSTOP);       /* else it kills a tracer that is stopped for a second */
	kill(tracer, SIGSTOP);
	for (; *order; order++) {
		struct waiter waiter = { plugins->pid, *order == 'O' };

		if (*order == 'O')
			subject_send(plugins, 'O');
		else
			kill(plugins->pid, SIGUSR1);
		require(live_wait(waits_for_the_tracer, &waiter, WAIT_MS));
	}
	kill(tracer, SIGCONT);
	kill(tool_daemon(tool), SIGCONT);
	require_says(plugins, "R");
	require(live_wait(exec_is_kept, &traced, WAIT_MS));
	require(live_wait(is_released, &traced, WAIT_MS));
	status = tool_status(tool, plugins->pid);
	require_equal(json_number(status, "unknown.probe_gaps"), 0);
	require_nothing_unknown(status, 0);
	subject_command(plugins, 'O');
	subject_command(plugins, 'G');
	require_own_blocks(tool, plugins->pid, 1);
	tool_end(tool, plugins, NULL);
}

static void an_exec_is_seen_before_an_allocator_that_comes(void)
{
	an_exec_is_seen_beside_an_allocator_that_comes("XO");
}

static void an_exec_is_seen_behind_an_allocator_that_comes(void)
{
	an_exec_is_seen_beside_an_allocator_that_comes("OX");
}

/* Its call is known by a record before the loader's, and its return by one behind it; by then nobody has it in a list. */
static void who_has_ended_when_an_allocator_is_served_keeps_its_call(void)
{
	struct tool *tool = tool_start();
	struct subject *plugins;
	pid_t tracer;

	public_copy_as("tests/victims/ownmalloc.so", "ownmalloc.so");
	public_copy_as("tests/victims/ownmalloc.so", "idle.so");       /* an allocator, too */
	plugins = victim_start("tests/victims/plugins", live_folder(), NULL);
	release_with(tool, plugins->pid, "20ms");
	subject_command(plugins, 'O');
	tool_status(tool, plugins->pid);        /* it is watched now */
	tracer = tool_daemons_child(tool, false);
	kill(tool_daemon(tool), SIGSTOP);       /* else it kills a tracer that is stopped for a second */
	kill(tracer, SIGSTOP);
	subject_command(plugins, 'L');
	kill(tracer, SIGCONT);
	kill(tool_daemon(tool), SIGCONT);
	require_own_blocks(tool, plugins->pid, 1);
	tool_end(tool, plugins, NULL);
}

/* Who heals puts it out of its wait. */
static void a_tracer_that_dies_while_the_loader_waits_does_no_harm(void)
{
	struct tool *tool = tool_start();
	unsigned rounds = live_rounds(2, 50);

	tool_keep_healers_out();
	for (unsigned i = 0; i < rounds; i++) {
		struct subject *plugins = start_plugins("--threads", "2");
		pid_t tracer;

		release(tool, plugins->pid);
		tracer = tool_daemons_child(tool, false);
		kill(tracer, SIGSTOP);
		subject_send(plugins, 'O');
		kill(tracer, SIGKILL);
		subject_line(plugins);
		require(live_wait(is_clean, plugins, WAIT_MS));
		require_unharmed(plugins->pid, NULL);
		subject_command(plugins, 'G');
		subject_quit(plugins);
	}
	live_survey("tracer killed while the loader waits", rounds, rounds, rounds, rounds);
}

/* The daemon has it healed, for which it is seized once more. */
static void a_tracer_without_ptrace_that_is_killed_does_no_harm(void)
{
	struct tool *tool = tool_start();
	unsigned rounds = live_rounds(4, 100);

	tool_keep_healers_out();
	for (unsigned i = 0; i < rounds; i++) {
		struct subject *hammer = victim_start(HAMMER, "--threads", "4", "--ops", "2000", NULL);
		struct state *before = state_take(hammer->pid);

		tool_out(tool, "attach", "--release", pid_text(hammer->pid), NULL);
		subject_send(hammer, 'g');
		kill(tool_daemons_child(tool, false), SIGKILL);
		subject_line(hammer);
		require(live_wait(is_clean, hammer, WAIT_MS));
		require_unharmed(hammer->pid, before);
		subject_command(hammer, 'g');
		subject_quit(hammer);
	}
	live_survey("tracer without ptrace killed", rounds, rounds, rounds, rounds);
}

/* Of root's it keeps what takes to seize it once more: not even its user may look at this process. */
static void a_tracer_of_roots_daemon_keeps_one_right(void)
{
	struct tool *tool;
	struct subject *hammer;
	pid_t tracer;

	if (geteuid() != 0)
		live_skip("only root's daemon traces the processes of others");
	tool = tool_start();
	hammer = victim_start_ordinary(HAMMER, "--undumpable", "--threads", "2", NULL);
	release(tool, hammer->pid);
	tracer = tool_daemons_child(tool, false);
	require_equal(status_number(tracer, "Uid", 10), ORDINARY_UID);
	require_equal(status_number(tracer, "CapEff", 16), 0);
	require_equal(status_number(tracer, "CapPrm", 16), 1 << CAP_SYS_PTRACE);
	subject_command(hammer, 'g');
	require_tally(tool, hammer, 0);
	tool_out(tool, "detach", pid_text(hammer->pid), NULL);
	require_equal(status_number(hammer->pid, "TracerPid", 10), 0);
	require(state_text_is_intact(&hammer->pid));
	subject_command(hammer, 'g');
	subject_quit(hammer);
}

static const struct live_case cases[] = {
	LIVE_CASE(a_debugger_can_be_used_on_a_process_that_ptrace_has_let_go),
	LIVE_CASE(a_debugger_may_hold_threads_in_the_midst_of_allocations),
	LIVE_CASE(threads_may_wait_for_a_processor_in_the_midst_of_allocations),
	LIVE_CASE(who_asks_for_a_stopped_process_is_answered_soon),
	LIVE_CASE(a_daemon_that_ends_under_a_debugger_leaves_what_heals),
	LIVE_CASE(another_daemon_leaves_it_alone),
	LIVE_CASE(a_tracer_that_is_late_is_not_taken_for_dead),
	LIVE_CASE(what_another_version_has_left_is_not_taken_out),
	LIVE_CASE(strace_can_be_used_while_it_allocates),
	LIVE_CASE(the_end_of_a_process_without_ptrace_is_seen),
	LIVE_CASE(how_a_process_without_ptrace_ended_is_told),
	LIVE_CASE(a_handler_at_1_khz_allocates),
	LIVE_CASE(a_handler_on_a_sigaltstack_allocates),
	LIVE_CASE(children_of_a_process_without_ptrace_run_as_ever),
	LIVE_CASE(children_of_a_static_program_without_ptrace_run_as_ever),
	LIVE_CASE(a_program_that_it_executes_is_traced_from_its_first_call),
	LIVE_CASE(a_program_that_another_thread_executes_is_traced_from_its_first_call),
	LIVE_CASE(a_program_that_is_executed_without_libc_is_attached_to),
	LIVE_CASE(an_exec_that_fails_changes_nothing),
	LIVE_CASE(a_result_that_is_stored_on_the_heap_is_known),
	LIVE_CASE(a_result_that_is_overwritten_at_once_is_known),
	LIVE_CASE(a_child_of_vfork_does_not_wait_to_execute),
	LIVE_CASE(an_allocator_that_it_loads_is_served_from_its_first_call),
	LIVE_CASE(an_allocator_that_comes_right_after_a_fork_is_served_from_its_first_call),
	LIVE_CASE(an_allocator_is_loaded_while_other_threads_allocate),
	LIVE_CASE(an_allocator_is_loaded_into_a_namespace_of_its_own),
	LIVE_CASE(an_allocator_is_loaded_in_a_signals_handler),
	LIVE_CASE(objects_come_and_go_in_8_threads_at_once),
	LIVE_CASE(an_allocator_comes_and_goes),
	LIVE_CASE(objects_in_turn_at_one_address_are_told_apart),
	LIVE_CASE(an_allocator_that_is_loaded_under_a_debugger_is_a_gap),
	LIVE_CASE(an_allocator_that_is_loaded_while_a_thread_is_in_vfork_is_watched_after_that),
	LIVE_CASE(a_tracer_that_stands_still_holds_the_loader_up_for_a_moment),
	LIVE_CASE(an_answer_says_that_an_allocator_was_not_watched_in_time),
	LIVE_CASE(an_allocator_that_came_during_a_stall_is_known_after_a_clear),
	LIVE_CASE(an_exec_is_seen_before_an_allocator_that_comes),
	LIVE_CASE(an_exec_is_seen_behind_an_allocator_that_comes),
	LIVE_CASE(who_has_ended_when_an_allocator_is_served_keeps_its_call),
	LIVE_CASE(a_tracer_that_dies_while_the_loader_waits_does_no_harm),
	LIVE_CASE(a_tracer_without_ptrace_that_is_killed_does_no_harm),
	LIVE_CASE(a_tracer_of_roots_daemon_keeps_one_right),
	LIVE_CASE(places_without_room_for_a_jump_are_told_at_the_attach),
	LIVE_CASE(who_cannot_be_without_ptrace_is_refused_and_untouched),
	LIVE_CASE(what_was_kept_of_one_that_was_held_is_not_let_go),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
