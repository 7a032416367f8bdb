/* The ring engine: it serves where it is asked for, and says why where it cannot; what it brings into a process leaves again, also
 * when its tracer died, and the process runs on meanwhile.  All other live tests run with it, too, and with int3 as LIVE_ENGINE=int3. */
#include "cgroup.h"
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "faults.h"
#include "../victims/tallies.h"

#include "base/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define HAMMER "tests/victims/hammer"
#define HAMMER_ALONE "tests/victims/hammer_alone"
#define FORKER_C "tests/victims/forker.c"
#define HEAL_MS 15000

static bool maps_say(pid_t pid, const char *text)
{
	FILE *maps = fopen(live_text("/proc/%d/maps", pid), "r");
	char line[512];
	bool found = false;

	while (maps && !found && fgets(line, sizeof(line), maps))
		found = strstr(line, text);
	if (maps)
		fclose(maps);
	return found;
}

static void require_ring(struct tool *tool, pid_t pid)
{
	if (strcmp(json_text(tool_status(tool, pid), "engine"), "ring"))
		live_fail("it is traced by %s: %s", json_text(tool_status(tool, pid), "engine"),
			  json_text(tool_status(tool, pid), "engine_reason"));
}

static void attach_by_ring(struct tool *tool, pid_t pid)
{
	tool_out(tool, "attach", "--engine", "ring", pid_text(pid), NULL);
	require_ring(tool, pid);
}

static void auto_is_the_ring_where_it_can_serve(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", "1", "--ops", "2000", NULL);

	tool_out(tool, "attach", "--engine", "auto", pid_text(hammer->pid), NULL);
	require_ring(tool, hammer->pid);
	tool_detach(tool, hammer->pid);
	require_unharmed(hammer->pid, NULL);
	subject_quit(hammer);
}

static void a_ring_serves_and_is_gone_after_the_detach(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", "4", "--ops", "2000", NULL);
	struct state *before = state_take(hammer->pid);

	for (unsigned i = 0; i < 2; i++) {
		attach_by_ring(tool, hammer->pid);
		require(maps_say(hammer->pid, "/memfd:allocwatch-ring"));
		tool_detach(tool, hammer->pid);
		require(!maps_say(hammer->pid, "/memfd:allocwatch-ring"));
		require_unharmed(hammer->pid, before);
	}
	attach_by_ring(tool, hammer->pid);
	subject_command(hammer, 'g');
	require_tally(tool, hammer, 0);
	tool_end(tool, hammer, before);
}

static void status_says_which_places_int3_serves_beside_the_ring(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", "1", "--ops", "100", NULL);
	struct state *before = state_take(hammer->pid);
	const char *reason;

	/* Without ptrace there are none. */
	tool_out(tool, "attach", "--engine", "ring", "--hold", pid_text(hammer->pid), NULL);
	require_ring(tool, hammer->pid);
	reason = json_text(tool_status(tool, hammer->pid), "engine_reason");
	if (!strstr(reason, "places have int3s, such as "))
		live_fail("it says: %s", reason);
	require(strstr(tool_out(tool, "status", pid_text(hammer->pid), NULL), "places have int3s"));
	tool_end(tool, hammer, before);
}

/* "N of M places have int3s, such as ...": of a process that the ring serves. */
static void count_places(json_t *status, long *ret_int3, long *ret_all)
{
	const char *text = json_text(status, "engine_reason");

	require_text(json_text(status, "engine"), "ring");
	if (sscanf(text, "%ld of %ld places have int3s", ret_int3, ret_all) != 2)
		live_fail("it says: %s", text);
}

/* While other threads allocate, which are held for a moment. */
static void an_allocator_that_is_loaded_later_has_jumps_too(void)
{
	struct tool *tool = tool_start();
	struct subject *plugins = victim_start("tests/victims/plugins", live_text("%s/tests/victims", live_build()), "--threads",
					       "2", NULL);
	long int3_before, int3, before, all;
	json_t *status;

	/* On a busy machine the tracer gets no processor for longer than threads wait.  Without ptrace there are no int3s. */
	tool_out(tool, "attach", "--engine", "ring", "--hold", "--ring-wait", "30s", pid_text(plugins->pid), NULL);
	count_places(tool_status(tool, plugins->pid), &int3_before, &before);
	subject_command(plugins, 'O');
	for (unsigned i = 0; i < 9; i++)
		subject_command(plugins, 'G');
	subject_command(plugins, 'F');
	status = tool_status(tool, plugins->pid);
	require_row(tool_stats(tool, pid_text(plugins->pid)), "tests/victims/plugins.c", "/* own block */", 8 * 444, 8);
	require_nothing_unknown(status, json_number(status, "unknown.before_attach_frees"));
	count_places(status, &int3, &all);
	live_note("places with int3s: %ld of %ld, then %ld of %ld", int3_before, before, int3, all);
	require_at_least(all - int3, before - int3_before + 4);
	tool_detach(tool, plugins->pid);
	require_unharmed(plugins->pid, NULL);
	require(!maps_say(plugins->pid, "/memfd:allocwatch-ring"));
	subject_command(plugins, 'F');
	subject_quit(plugins);
}

/* Its jumps are gone with it; another object may have its place. */
static void the_place_of_an_allocator_that_has_gone_is_left_alone(void)
{
	struct tool *tool = tool_start();
	struct subject *plugins = victim_start("tests/victims/plugins", live_text("%s/tests/victims", live_build()), NULL);

	tool_out(tool, "attach", "--engine", "ring", "--ring-wait", "30s", pid_text(plugins->pid), NULL);
	subject_command(plugins, 'O');
	subject_command(plugins, 'C');
	subject_command(plugins, 'I');
	require_equal(subject_tally(plugins, "same_place"), 1);
	subject_command(plugins, 'O');
	for (unsigned i = 0; i < 3; i++)
		subject_command(plugins, 'G');
	require_row(tool_stats(tool, pid_text(plugins->pid)), "tests/victims/plugins.c", "/* own block */", 3 * 444, 3);
	require_nothing_unknown(tool_status(tool, plugins->pid), 0);
	tool_detach(tool, plugins->pid);
	require_unharmed(plugins->pid, NULL);
	subject_quit(plugins);
}

static bool is_ready(void *context)
{
	return __atomic_load_n(&((struct tallies *)context)->pid, __ATOMIC_SEQ_CST) != 0;
}

/* Its C library is loaded under our eyes, and its threads could not be told apart before. */
static void a_command_that_is_run_has_a_ring(void)
{
	const char *path = live_text("%s/tallies", live_folder());
	struct tool *tool = tool_start();
	struct tallies *seen = subject_tallies(path);
	struct subject client = { .pid = 0 };
	json_t *status;

	seen->pid = 0;
	client.pid = tool_begin(tool, "run", "--engine", "ring", "--", live_text("%s/tests/victims/tallies", live_build()), path, NULL);
	if (!live_wait(is_ready, seen, 60000))
		live_fail("the command does not start");
	status = tool_status(tool, seen->pid);
	require_text(json_text(status, "engine"), "ring");
	require_nothing_unknown(status, 0);
	kill(seen->pid, SIGKILL);
	subject_wait(&client);
}

static void snapshots_and_their_difference_are_of_the_moment_they_are_asked_for(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", "4", "--ops", "500", NULL);
	struct state *before = state_take(hammer->pid);

	attach_by_ring(tool, hammer->pid);
	for (unsigned i = 0; i < 10; i++) {
		json_t *stats;

		subject_command(hammer, 'g');
		stats = tool_stats(tool, pid_text(hammer->pid));
		require_equal(json_number(stats, "total.size"), subject_tally(hammer, "bytes"));
		require_equal(json_number(stats, "total.count"), subject_tally(hammer, "blocks"));
	}
	tool_end(tool, hammer, before);
}

/* The kernel kills for memory: so a ring takes at most half of what is left, and there is none where that is not enough. */
static void a_process_near_its_limit_of_memory_has_a_small_ring_or_none(void)
{
	static const struct {
		long left;
		const char *engine;
	} cases[] = { { 3 << 20, "int3" }, { 12 << 20, "ring" } };
	struct tool *tool = tool_start();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *box = cgroup_make_memory((2 << 20) + cases[i].left, true);
		struct subject *hammer = victim_start(HAMMER, "--threads", "4", "--ops", "20000", NULL);
		struct state *before;

		cgroup_move(box, hammer->pid);
		subject_command(hammer, 'g');
		before = state_take(hammer->pid);
		tool_out(tool, "attach", "--engine", "auto", pid_text(hammer->pid), NULL);
		live_note("%ld MiB left: %s", cases[i].left >> 20, json_text(tool_status(tool, hammer->pid), "engine"));
		require(!strcmp(json_text(tool_status(tool, hammer->pid), "engine"), cases[i].engine));
		subject_command(hammer, 'g');
		tool_detach(tool, hammer->pid);
		require_unharmed(hammer->pid, before);
		subject_quit(hammer);
		cgroup_remove(box);
	}
}

/* Its tracer dies, and the daemon cannot heal it. */
static void lose_tracer(struct tool *tool, pid_t pid)
{
	int status;

	tool_keep_healers_out();
	kill(tool_daemon(tool), SIGSTOP);
	kill(tool_tracer(pid), SIGKILL);
	require(live_wait(state_has_no_tracer, &pid, 5000));
	kill(tool_daemon(tool), SIGKILL);
	waitpid(tool_daemon(tool), &status, 0);
}

static void heal(struct subject *hammer, struct state *before)
{
	require(maps_say(hammer->pid, "/memfd:allocwatch-ring"));
	require_equal(tool_heal(pid_text(hammer->pid)), 0);
	require(!maps_say(hammer->pid, "/memfd:allocwatch-ring"));
	require_unharmed(hammer->pid, before);
	subject_command(hammer, 'g');
	subject_quit(hammer);
}

/* Nobody reads the ring any more: the program waits for room once, and never again. */
static void a_program_whose_tracer_is_dead_runs_on_and_is_healed(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER_ALONE, "--threads", "4", "--ops", "20000", NULL);
	struct state *before = state_take(hammer->pid);

	attach_by_ring(tool, hammer->pid);
	lose_tracer(tool, hammer->pid);
	for (unsigned i = 0; i < 3; i++)
		subject_command(hammer, 'g');
	heal(hammer, before);
}

static void a_thread_waits_for_room_as_long_as_is_asked_for(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER_ALONE, "--threads", "4", "--ops", "20000", NULL);
	struct state *before = state_take(hammer->pid);
	uint64_t began_ns;

	tool_out(tool, "attach", "--engine", "ring", "--ring-wait", "3s", pid_text(hammer->pid), NULL);
	lose_tracer(tool, hammer->pid);
	began_ns = clock_monotonic_ns();
	subject_command(hammer, 'g');
	require_at_least((long)((clock_monotonic_ns() - began_ns) / NSEC_PER_MSEC), 2900);
	heal(hammer, before);
}

struct traced {
	struct tool *tool;
	pid_t pid;
};

static bool has_lost(void *context)
{
	const struct traced *traced = context;

	return json_number(tool_status(traced->tool, traced->pid), "unknown.lost_events") > 0;
}

/* The tracer is held while the ring is filled. */
static void a_clear_ends_what_a_loss_has_begun(void)
{
	struct tool *tool = tool_start();
	struct subject *pairs = victim_start("tests/bench/pairs", "--threads", "4", "--pairs", "20000", NULL);
	struct traced traced = { tool, pairs->pid };
	pid_t tracer;
	json_t *stats;

	tool_out(tool, "attach", "--engine", "ring", "--ring-wait", "1ms", pid_text(pairs->pid), NULL);
	tracer = tool_tracer(pairs->pid);
	require(kill(tracer, SIGSTOP) == 0);
	subject_send(pairs, 'g');
	/* For a second it would be taken for stuck. */
	live_let_pass(300 * NSEC_PER_MSEC);
	require(kill(tracer, SIGCONT) == 0);
	subject_line(pairs);
	require(live_wait(has_lost, &traced, HEAL_MS));
	require_equal(json_number(tool_status(tool, pairs->pid), "ring_wait_ms"), 1);
	require_at_least(json_number(tool_status(tool, pairs->pid), "ring_waits"), 1);
	stats = tool_stats(tool, pid_text(pairs->pid));
	require_equal(json_is_true(json_object_get(stats, "exact")), 0);
	require_at_least(json_number(stats, "unknown.lost_events"), 1);
	tool_out(tool, "clear", pid_text(pairs->pid), NULL);
	require_nothing_unknown(tool_status(tool, pairs->pid), 0);
	stats = tool_stats(tool, pid_text(pairs->pid));
	require_equal(json_is_true(json_object_get(stats, "exact")), 1);
	require_equal(json_number(stats, "unknown.lost_events"), 0);
	tool_detach(tool, pairs->pid);
	require_unharmed(pairs->pid, NULL);
	subject_quit(pairs);
}

#define STALLED_PAIRS 20000

static bool all_are_told(void *context)
{
	const struct traced *traced = context;
	json_t *status = tool_status(traced->tool, traced->pid);

	return json_number(status, "allocations") + json_number(status, "frees") + json_number(status, "unknown.lost_events") >=
	       2 * STALLED_PAIRS;
}

static bool is_stopped(void *context)
{
	pid_t tracer = *(pid_t *)context;

	return thread_state(tracer, tracer) == 'T';
}

static bool holds_a_thread(pid_t pid)
{
	DIR *threads = opendir(live_text("/proc/%d/task", pid));
	struct dirent *entry;
	bool held = false;

	while (threads && (entry = readdir(threads)))
		held |= atoi(entry->d_name) > 0 && thread_state(pid, atoi(entry->d_name)) == 't';
	if (threads)
		closedir(threads);
	return held;
}

/* But not while it looks at a thread of the process, which would stand still as long. */
static void stop_tracer(pid_t tracer, pid_t pid)
{
	for (;;) {
		require(kill(tracer, SIGSTOP) == 0 && live_wait(is_stopped, &tracer, HEAL_MS));
		if (!holds_a_thread(pid))
			return;
		kill(tracer, SIGCONT);
		live_let_pass(NSEC_PER_MSEC);
	}
}

/* While the tracer is held, and the daemon, which would take it for stuck. */
static void make_pairs_unread(struct tool *tool, struct subject *pairs)
{
	pid_t tracer = tool_tracer(pairs->pid), daemon = tool_daemon(tool);

	require(kill(daemon, SIGSTOP) == 0);
	stop_tracer(tracer, pairs->pid);
	subject_command(pairs, 'g');
	require(kill(tracer, SIGCONT) == 0 && kill(daemon, SIGCONT) == 0);
}

/* Each call is recorded or counted. */
static void calls_that_a_stalled_ring_did_not_record_are_lost_events(void)
{
	struct tool *tool = tool_start();
	struct subject *pairs = victim_start("tests/bench/pairs", "--threads", "1", "--pairs", "20000", NULL);
	struct traced traced = { tool, pairs->pid };
	json_t *status;

	tool_out(tool, "attach", "--engine", "ring", "--ring-wait", "1ms", pid_text(pairs->pid), NULL);
	make_pairs_unread(tool, pairs);
	require(live_wait(all_are_told, &traced, HEAL_MS));
	status = tool_status(tool, pairs->pid);
	live_note("%lld allocations, %lld frees, %lld lost", json_number(status, "allocations"), json_number(status, "frees"),
		  json_number(status, "unknown.lost_events"));
	require_at_least(json_number(status, "unknown.lost_events"), STALLED_PAIRS);
	require_equal(json_number(status, "allocations") + json_number(status, "frees") +
		      json_number(status, "unknown.lost_events"), 2 * STALLED_PAIRS);
	tool_detach(tool, pairs->pid);
	require_unharmed(pairs->pid, NULL);
	subject_quit(pairs);
}

/* By the program itself, which writes its libc's text anew; without ptrace they are looked at all the same. */
static void require_overwriting_told(const char *option)
{
	struct tool *tool = tool_start();
	struct subject *hostile = victim_start("tests/victims/hostile", "0", NULL);
	long long gaps;

	tool_out(tool, "attach", "--engine", "ring", pid_text(hostile->pid), option, NULL);
	require_nothing_unknown(tool_status(tool, hostile->pid), 0);
	subject_command(hostile, 'r');
	gaps = json_number(tool_status(tool, hostile->pid), "unknown.probe_gaps");
	require_at_least(gaps, 1);
	/* Once each. */
	require_equal(json_number(tool_status(tool, hostile->pid), "unknown.probe_gaps"), gaps);
	tool_detach(tool, hostile->pid);
	require_unharmed(hostile->pid, NULL);
	subject_quit(hostile);
}

static void jumps_that_are_overwritten_are_told_once(void)
{
	require_overwriting_told(NULL);
	require_overwriting_told("--release");
}

/* --- a tracer that dies in the attach --- */

static struct faults *map_faults(void)
{
	const char *path = live_text("%s/faults", live_folder());
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct faults *faults = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, sizeof(*faults)) == 0)
		faults = mmap(NULL, sizeof(*faults), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	require(faults != MAP_FAILED);
	close(fd);
	setenv(FAULTS_VARIABLE, path, 1);
	return faults;
}

/* At the step with this number (0: at none) of those in which a thread makes calls for us.  How many there were. */
static unsigned attach_with_fault(struct tool *tool, struct faults *faults, pid_t pid, enum fault_kind kind, unsigned at)
{
	memset(faults, 0, sizeof(*faults));
	faults->kind = at ? kind : FAULT_NONE;
	faults->call = FAULT_PTRACE_SYSCALL;
	faults->at = at;
	__atomic_store_n(&faults->armed, 1, __ATOMIC_RELEASE);
	tool_try(tool, "attach", "--engine", "ring", pid_text(pid), NULL);
	faults->armed = 0;
	return faults->counts[FAULT_PTRACE_SYSCALL];
}

static bool is_free(void *context)
{
	return state_text_is_intact(context) && state_is_untraced(context);
}

#define STEPS_LEAST 15

/* The ring's descriptor among them, which the process has for a moment. */
static void nothing_is_left_whenever_the_tracer_dies_in_the_attach(void)
{
	struct faults *faults = map_faults();
	struct tool *tool = tool_start_with_tracer("tests/faults/tracer");
	struct subject *hammer = victim_start(HAMMER, "--threads", "2", "--ops", "100", NULL);
	unsigned points = attach_with_fault(tool, faults, hammer->pid, FAULT_SEGV, 0), hit = 0, tried = 0;
	struct state *before;

	tool_keep_healers_out();
	tool_detach(tool, hammer->pid);
	subject_command(hammer, 'g');
	before = state_take(hammer->pid);
	for (unsigned at = 1; at <= points; at++) {
		/* How many there are depends on what its threads are stopped in. */
		tried += attach_with_fault(tool, faults, hammer->pid, FAULT_SEGV, at) >= at;
		hit += faults->hit;
		if (tool_lists(tool, hammer->pid))
			tool_detach(tool, hammer->pid);
		require(live_wait(is_free, &hammer->pid, HEAL_MS));
		require_equal(tool_heal(pid_text(hammer->pid)), 0);
		require(!maps_say(hammer->pid, "/memfd:allocwatch-ring"));
		state_require_same(hammer->pid, before, true);
	}
	live_note("killed at %u of %u steps", hit, points);
	require_at_least(tried, STEPS_LEAST);
	require_equal(hit, tried);
	require_unharmed(hammer->pid, before);
	subject_command(hammer, 'g');
	subject_quit(hammer);
}

/* As on a machine where the thread that makes a call for us gets no processor: it makes it all the same, when it is no longer waited
 * for, and who cannot say what came of it takes that out at the end. */
static void nothing_is_left_of_a_call_that_came_too_late(void)
{
	struct faults *faults = map_faults();
	struct tool *tool = tool_start_with_tracer("tests/faults/tracer");
	struct subject *hammer = victim_start(HAMMER, "--threads", "2", "--ops", "100", NULL);
	unsigned points = attach_with_fault(tool, faults, hammer->pid, FAULT_LATE, 0), hit = 0, tried = 0;
	unsigned step = live_rounds(points / 4 + 1, 1);
	struct state *before;

	tool_detach(tool, hammer->pid);
	subject_command(hammer, 'g');
	before = state_take(hammer->pid);
	for (unsigned at = 1 + (unsigned)live_random(step); at <= points; at += step) {
		/* How many there are depends on what its threads are stopped in. */
		tried += attach_with_fault(tool, faults, hammer->pid, FAULT_LATE, at) >= at;
		hit += faults->hit;
		if (tool_lists(tool, hammer->pid))
			tool_detach(tool, hammer->pid);
		require(live_wait(is_free, &hammer->pid, HEAL_MS));
		require(!maps_say(hammer->pid, "/memfd:allocwatch-ring"));
		state_require_same(hammer->pid, before, true);
	}
	live_note("late at %u of %u steps", hit, points);
	require_at_least(tried, 2);
	require_equal(hit, tried);
	require_unharmed(hammer->pid, before);
	subject_quit(hammer);
}

/* --- signals --- */

/* As soon as the process has the ring's memory, and before it has the jumps. */
static pid_t begin_to_signal(pid_t pid)
{
	pid_t sender = fork();

	if (sender != 0)
		return sender;
	while (!maps_say(pid, "/memfd:allocwatch-ring"))
		;
	kill(pid, SIGPROF);
	_exit(0);
}

/* A thread that is found between the instructions which a jump is put over, and makes our calls for that: where it is to go on stands on
 * its stack only since a signal came in the midst of these. */
static void a_signal_in_the_attach_leads_nobody_into_a_jump(void)
{
	struct tool *tool = tool_start();
	struct subject *stormed = victim_start("tests/victims/stormed_dawdling", "--alone", "--usec", "0", NULL);
	struct state *before = state_take(stormed->pid);
	unsigned rounds = live_rounds(30, 1000);

	for (unsigned i = 0; i < rounds; i++) {
		pid_t sender;
		int status;

		subject_command(stormed, 's');
		sender = begin_to_signal(stormed->pid);
		attach_by_ring(tool, stormed->pid);
		subject_command(stormed, 't');
		require_equal(waitpid(sender, &status, 0), sender);
		require_nothing_unknown(tool_status(tool, stormed->pid),
					json_number(tool_status(tool, stormed->pid), "unknown.before_attach_frees"));
		tool_detach(tool, stormed->pid);
	}
	subject_command(stormed, 't');
	require_equal(subject_tally(stormed, "signals"), rounds);
	require_unharmed(stormed->pid, before);
	subject_quit(stormed);
}

/* --- children that are followed --- */

/* A child that has `kept` blocks of its parent's makes three more and ends: all of it recorded in a ring of its own. */
static void follow_one_child(struct tool *tool, struct subject *forker, int kept)
{
	const char *at_exit;
	pid_t child;

	subject_command(forker, 'g');
	child = (pid_t)subject_tally(forker, "child");
	tool_wait_until_traced(tool, child, HEAL_MS);
	require_text(json_text(tool_status(tool, child), "engine"), "ring");
	require_row(tool_stats(tool, pid_text(child)), FORKER_C, "/* kept */", 104LL * kept, kept);
	/* Of the parent's before its attach: the child has them in its counters. */
	require_nothing_unknown(tool_status(tool, child), json_number(tool_status(tool, forker->pid),
								      "unknown.before_attach_frees"));
	subject_command(forker, 'g');
	require_equal(subject_tally(forker, "status"), 7);
	tool_wait_until_gone(tool, child, HEAL_MS);
	at_exit = live_text("%d:exit", child);
	require_row(tool_stats(tool, at_exit), FORKER_C, "/* kept */", 104LL * kept, kept);
	require_row(tool_stats(tool, at_exit), FORKER_C, "/* the child's own */", 312, 3);
	require(json_is_true(json_object_get(tool_stats(tool, at_exit), "exact")));
	require_row(tool_stats(tool, pid_text(forker->pid)), FORKER_C, "/* kept */", 104LL * kept, kept);
	require(row_at(tool_stats(tool, pid_text(forker->pid)), FORKER_C, line_of(FORKER_C, "/* the child's own */")) == NULL);
}

static void follow_children(const char *threads, int rounds)
{
	struct tool *tool = tool_start();
	struct subject *forker = victim_start("tests/victims/forker", "--threads", threads, NULL);
	struct state *before = state_take(forker->pid);

	tool_out(tool, "attach", "--engine", "ring", "--ring-wait", "30s", "--follow-forks", pid_text(forker->pid), NULL);
	require_text(json_text(tool_status(tool, forker->pid), "engine"), "ring");
	for (int i = 1; i <= rounds; i++)
		follow_one_child(tool, forker, i);
	require_nothing_unknown(tool_status(tool, forker->pid),
				json_number(tool_status(tool, forker->pid), "unknown.before_attach_frees"));
	tool_detach(tool, forker->pid);
	require_unharmed(forker->pid, *threads == '0' ? before : NULL);
	subject_quit(forker);
}

static void followed_children_have_rings_of_their_own(void)
{
	follow_children("0", 4);
}

static void so_have_those_of_a_program_whose_threads_allocate(void)
{
	follow_children("2", 6);
}

static const struct live_case cases[] = {
	LIVE_CASE(auto_is_the_ring_where_it_can_serve),
	LIVE_CASE(a_ring_serves_and_is_gone_after_the_detach),
	LIVE_CASE(status_says_which_places_int3_serves_beside_the_ring),
	LIVE_CASE(an_allocator_that_is_loaded_later_has_jumps_too),
	LIVE_CASE(the_place_of_an_allocator_that_has_gone_is_left_alone),
	LIVE_CASE(a_command_that_is_run_has_a_ring),
	LIVE_CASE(snapshots_and_their_difference_are_of_the_moment_they_are_asked_for),
	LIVE_CASE(a_process_near_its_limit_of_memory_has_a_small_ring_or_none),
	LIVE_CASE(a_program_whose_tracer_is_dead_runs_on_and_is_healed),
	LIVE_CASE(a_thread_waits_for_room_as_long_as_is_asked_for),
	LIVE_CASE(calls_that_a_stalled_ring_did_not_record_are_lost_events),
	LIVE_CASE(a_clear_ends_what_a_loss_has_begun),
	LIVE_CASE(jumps_that_are_overwritten_are_told_once),
	LIVE_CASE(nothing_is_left_whenever_the_tracer_dies_in_the_attach),
	LIVE_CASE(nothing_is_left_of_a_call_that_came_too_late),
	LIVE_CASE(a_signal_in_the_attach_leads_nobody_into_a_jump),
	LIVE_CASE(followed_children_have_rings_of_their_own),
	LIVE_CASE(so_have_those_of_a_program_whose_threads_allocate),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
