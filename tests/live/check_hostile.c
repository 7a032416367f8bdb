/* Targets that mean harm, or have met some: what they cost tracer, daemon and symbolizer is bounded and told, nobody else
 * notices, and they themselves go on as they would untraced. */
#include "file_server.h"
#include "forged.h"
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* For 1,024 threads' calls, and what the ring's stacks took. */
#define UNLISTED_MOST_KB 24576

/* What tools may take that have to wait for a file system in vain, on a busy machine, too. */
#define MUTE_MOST_MS 15000

static long long since_ms(uint64_t began_ns)
{
	return (long long)((clock_monotonic_ns() - began_ns) / NSEC_PER_MSEC);
}

/* The state of the first thread, 'S' or 'D' and the like. */
static void require_not_stuck(pid_t pid)
{
	if (thread_state(pid, pid) == 'D')
		live_fail("process %d waits in the kernel for what does not come", pid);
}

/* --- file systems that do not answer --- */

struct mute {
	struct file_server *server;
	struct tool *tool;
	struct subject *subject, *other;
	struct state *before, *other_before;
};

/* A program with a plugin from a file system that goes on, and another program.  Root opens what is mapped, others go by
 * its path. */
static struct mute start_mute(bool ordinary)
{
	const char *folder = live_text("%s/served", live_folder());
	struct mute mute = { .server = file_server_start("plugin.so", live_text("%s/tests/victims/plugin.so", live_build())) };

	if (ordinary) {
		mute.tool = tool_start_ordinary();
		mute.subject = victim_start_ordinary("tests/victims/plugins", folder, NULL);
		mute.other = victim_start_ordinary("tests/victims/turnover", NULL);
	} else {
		mute.tool = tool_start();
		mute.subject = victim_start("tests/victims/plugins", folder, NULL);
		mute.other = victim_start("tests/victims/turnover", NULL);
	}
	subject_command(mute.subject, 'o');
	mute.before = state_take(mute.subject->pid);
	mute.other_before = state_take(mute.other->pid);
	return mute;
}

/* Another process is served as ever: no process that serves all waits. */
static void require_others_served(struct mute *mute)
{
	uint64_t began_ns = clock_monotonic_ns();

	tool_attach(mute->tool, mute->other->pid);
	subject_command(mute->other, 'g');
	require_row(tool_stats(mute->tool, pid_text(mute->other->pid)), "tests/victims/turnover.c", "kept block", 72, 1);
	tool_end(mute->tool, mute->other, mute->other_before);
	require_not_stuck(tool_daemon(mute->tool));
	require_at_least(MUTE_MOST_MS, since_ms(began_ns));
}

/* What is compared at the end has to be read. */
static void end_mute(struct mute *mute)
{
	file_server_speak(mute->server);
	tool_end(mute->tool, mute->subject, mute->before);
	file_server_end(mute->server);
}

static void an_object_on_a_mute_file_system_holds_nobody(void)
{
	struct mute mute = start_mute(geteuid() == 0);
	struct tool_run run;
	uint64_t began_ns;
	json_t *status;

	file_server_go_mute(mute.server);
	began_ns = clock_monotonic_ns();
	run = tool_try(mute.tool, "attach", pid_text(mute.subject->pid), NULL);
	live_note("attached in %lld ms; %u requests without an answer", since_ms(began_ns),
		  file_server_unanswered(mute.server));
	require_equal(run.status, 0);
	require_text(run.err, "its file system does not answer in time");
	require_at_least(MUTE_MOST_MS, since_ms(began_ns));
	require_at_least(file_server_unanswered(mute.server), 1);
	require_not_stuck(tool_tracer(mute.subject->pid));
	subject_command(mute.subject, 'g');
	status = tool_status(mute.tool, mute.subject->pid);
	require_equal(json_number(status, "blocks"), 1);
	require_equal(json_number(status, "traced_current"), subject_tally(mute.subject, "plugin_bytes"));
	require(!json_is_true(json_object_get(status, "exact")));
	require_others_served(&mute);
	end_mute(&mute);
}

static void an_object_whose_file_system_falls_silent_holds_nobody(void)
{
	struct mute mute = start_mute(false);

	tool_attach(mute.tool, mute.subject->pid);
	file_server_go_mute(mute.server);
	subject_command(mute.subject, 'g');
	/* It has its names from the copy. */
	require_row(tool_stats(mute.tool, pid_text(mute.subject->pid)), "tests/victims/plugin.c", "plugin block", 333, 1);
	require_nothing_unknown(tool_status(mute.tool, mute.subject->pid), 0);
	require_others_served(&mute);
	require_equal(file_server_unanswered(mute.server), 0);
	end_mute(&mute);
}

static void a_program_on_a_mute_file_system_holds_nobody(void)
{
	struct file_server *server = file_server_start("turnover", live_text("%s/tests/victims/turnover", live_build()));
	struct tool *tool = tool_start();
	struct subject *subject = victim_start_as(geteuid(), file_server_path(server), NULL);
	struct state *before = state_take(subject->pid);
	struct tool_run run;

	subject_command(subject, 'g');
	file_server_go_mute(server);
	run = tool_try(tool, "attach", pid_text(subject->pid), NULL);
	require_equal(run.status, 0);
	require_text(run.err, "its file system does not answer in time");
	subject_command(subject, 'g');
	require_equal(json_number(tool_status(tool, subject->pid), "blocks"), 1);
	require_not_stuck(tool_daemon(tool));
	file_server_speak(server);
	tool_end(tool, subject, before);
	file_server_end(server);
}

/* --- what is mapped --- */

/* Of the tracer, in KiB, and of time, on a busy machine, too. */
#define MANY_MOST_KB (64 << 10)
#define FORGED_MOST_KB (160 << 10)
#define FULL_MOST_KB (512 << 10)
#define ATTACH_MOST_MS 15000
#define CUT_MOMENTS 10000

struct hostile {
	struct tool *tool;
	struct subject *subject;
	struct state *before;
	long long blocks;
};

static struct hostile start_hostile(struct subject *subject)
{
	return (struct hostile){ .tool = tool_start(), .subject = subject, .before = state_take(subject->pid) };
}

/* What it does is seen. */
static void require_at_work(struct hostile *h)
{
	long long before = json_number(tool_status(h->tool, h->subject->pid), "allocations");

	subject_command(h->subject, 'g');
	h->blocks++;
	require_equal(json_number(tool_status(h->tool, h->subject->pid), "allocations"), before + 1);
}

static void require_named(struct hostile *h)
{
	require_row(tool_stats(h->tool, pid_text(h->subject->pid)), "tests/victims/hostile.c", "kept block", 48 * h->blocks,
		    h->blocks);
}

static void attach_in_time(struct hostile *h, long long most_kb, const char *warning)
{
	uint64_t began_ns = clock_monotonic_ns();
	struct tool_run run = tool_try(h->tool, "attach", pid_text(h->subject->pid), NULL);
	long long took_ms = since_ms(began_ns), peak_kb;

	if (run.status)
		live_fail("%s", run.err);
	if (warning)
		require_text(run.err, warning);
	peak_kb = status_number(tool_tracer(h->subject->pid), "VmHWM", 10);
	live_note("attached in %lld ms; the tracer has had %lld kB, the daemon %lld", took_ms, peak_kb,
		  status_number(tool_daemon(h->tool), "VmHWM", 10));
	require_at_least(ATTACH_MOST_MS, took_ms);
	require_at_least(most_kb, peak_kb);
	require_at_work(h);
}

static void unmap_and_end(struct hostile *h)
{
	subject_command(h->subject, 'u');
	subject_command(h->subject, 'o');
	require_at_work(h);
	require_named(h);
	tool_end(h->tool, h->subject, h->before);
}

static const char *most_mappings(void)
{
	return live_rounds(1, 0) ? "10000" : "0";
}

static void as_many_mappings_as_there_may_be_hold_nobody(void)
{
	struct hostile h = start_hostile(victim_start("tests/victims/hostile", most_mappings(), forged_file(FORGED_PLAIN), NULL));

	subject_command(h.subject, 'M');
	live_note("%ld mappings", subject_tally(h.subject, "maps"));
	require_at_least(subject_tally(h.subject, "maps"), 10000);
	attach_in_time(&h, MANY_MOST_KB, "it is mapped too often");
	require(!json_is_true(json_object_get(tool_status(h.tool, h.subject->pid), "exact")));
	unmap_and_end(&h);
}

static void mappings_that_come_while_it_is_traced_hold_nobody(void)
{
	struct hostile h = start_hostile(victim_start("tests/victims/hostile", most_mappings(), forged_file(FORGED_PLAIN), NULL));

	attach_in_time(&h, MANY_MOST_KB, NULL);
	subject_command(h.subject, 'M');
	subject_command(h.subject, 'o');
	require_at_work(&h);
	require_at_least(MANY_MOST_KB, status_number(tool_tracer(h.subject->pid), "VmHWM", 10));
	unmap_and_end(&h);
}

static void forged_objects_hold_nobody(void)
{
	const char *files[FORGED_COUNT] = { NULL };
	struct hostile h;

	for (enum forged kind = 0; kind < FORGED_COUNT; kind++)
		files[kind] = forged_file(kind == FORGED_FULL_TABLE && live_rounds(1, 0) ? FORGED_PLAIN : kind);
	h = start_hostile(victim_start("tests/victims/hostile", "0", files[0], files[1], files[2], files[3], files[4], files[5],
				       files[6], files[7], files[8], files[9], NULL));
	subject_command(h.subject, 'm');
	require_equal(subject_tally(h.subject, "maps"), FORGED_COUNT);
	attach_in_time(&h, live_rounds(0, 1) ? FULL_MOST_KB : FORGED_MOST_KB, NULL);
	unmap_and_end(&h);
}

static void let_moments_pass(unsigned turn)
{
	for (unsigned i = 0; i < turn * 7919 % CUT_MOMENTS; i++)
		__asm__ volatile("pause");
}

/* Until it is killed. */
static pid_t begin_to_cut(const char *path)
{
	pid_t pid = fork();
	struct stat st;
	char *bytes;
	int fd;

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !(bytes = malloc((size_t)st.st_size)) || pread(fd, bytes, (size_t)st.st_size, 0) != st.st_size)
		_exit(1);
	for (unsigned turn = 0;; turn++) {
		if (ftruncate(fd, 0) < 0)
			_exit(1);
		let_moments_pass(turn);
		if (pwrite(fd, bytes, (size_t)st.st_size, 0) != st.st_size)
			_exit(1);
		let_moments_pass(turn / 3);
	}
}

/* Between its being opened and its being looked through. */
static void an_object_that_is_cut_short_during_the_attach_ends_nobody(void)
{
	const char *object = forged_file(FORGED_PLAIN);
	struct hostile h = start_hostile(victim_start("tests/victims/hostile", "0", object, NULL));
	pid_t cutter;

	subject_command(h.subject, 'm');
	cutter = begin_to_cut(object);
	require(cutter > 0);
	for (unsigned i = 0; i < live_rounds(40, 500); i++) {
		tool_attach(h.tool, h.subject->pid);
		require_at_work(&h);
		tool_out(h.tool, "detach", pid_text(h.subject->pid), NULL);
	}
	require_equal(waitpid(cutter, NULL, WNOHANG), 0);
	kill(cutter, SIGKILL);
	require_equal(waitpid(cutter, NULL, 0), cutter);
	subject_command(h.subject, 'u');
	require_unharmed(h.subject->pid, h.before);
	tool_attach(h.tool, h.subject->pid);
	h.blocks = 0;
	require_at_work(&h);
	tool_end(h.tool, h.subject, h.before);
}

/* --- what it says and does --- */

static uint8_t byte_at(pid_t pid, uint64_t at)
{
	int mem = open(live_text("/proc/%d/mem", pid), O_RDONLY | O_CLOEXEC);
	uint8_t byte;

	if (mem < 0 || pread(mem, &byte, 1, (off_t)at) != 1)
		live_fail("the memory of process %d cannot be read", pid);
	close(mem);
	return byte;
}

static void a_forged_list_of_objects_is_not_believed(void)
{
	struct hostile h = start_hostile(victim_start("tests/victims/hostile", "0", NULL));
	uint64_t hook;
	uint8_t byte;

	subject_command(h.subject, 'd');
	hook = (uint64_t)subject_tally(h.subject, "hook");
	byte = byte_at(h.subject->pid, hook);
	attach_in_time(&h, MANY_MOST_KB, NULL);
	require_equal(byte_at(h.subject->pid, hook), byte);
	subject_command(h.subject, 'o');
	require_at_work(&h);
	tool_end(h.tool, h.subject, h.before);
}

/* A jump is more than a byte: only while all threads are held could it be set again. */
static bool sets_again(json_t *status)
{
	return !strcmp(json_text(status, "engine"), "int3");
}

static void traps_that_are_overwritten_are_told_and_set_again(void)
{
	struct hostile h = start_hostile(victim_start("tests/victims/hostile", "0", NULL));
	json_t *status;

	attach_in_time(&h, MANY_MOST_KB, NULL);
	require_nothing_unknown(tool_status(h.tool, h.subject->pid), 0);
	subject_command(h.subject, 'r');
	status = tool_status(h.tool, h.subject->pid);
	require_at_least(json_number(status, "unknown.probe_gaps"), 1);
	require(!json_is_true(json_object_get(status, "exact")));
	if (sets_again(status))
		require_at_work(&h);
	else
		subject_command(h.subject, 'g');
	require(!json_is_true(json_object_get(tool_status(h.tool, h.subject->pid), "exact")));
	tool_end(h.tool, h.subject, h.before);
}

static void a_stack_that_ends_in_nothing_is_told(void)
{
	struct hostile h = start_hostile(victim_start("tests/victims/hostile", "0", NULL));
	json_t *status;

	attach_in_time(&h, MANY_MOST_KB, NULL);
	subject_command(h.subject, 's');
	status = tool_status(h.tool, h.subject->pid);
	require_equal(json_number(status, "blocks"), h.blocks + 1);
	require_at_least(json_number(status, "unknown.truncated_stacks"), 1);
	require(json_is_true(json_object_get(status, "exact")));
	/* its stack stays mapped */
	tool_detach(h.tool, h.subject->pid);
	text_require_intact(h.subject->pid);
	subject_quit(h.subject);
}

/* An int3 that is met then has no handler: that is said where there is one. */
static void let_go_of_one_without_libc(void (*attach)(struct tool *, pid_t))
{
	struct hostile h = start_hostile(victim_start("tests/victims/hostile", "0", NULL));
	long long caught = status_number(h.subject->pid, "SigCgt", 16);
	json_t *status;
	bool held;

	attach(h.tool, h.subject->pid);
	require_at_work(&h);
	require_text(subject_command(h.subject, 'l'), "L");
	status = tool_status(h.tool, h.subject->pid);
	held = !json_is_true(json_object_get(status, "released"));
	require(held || attach == tool_attach);
	require_equal(json_is_true(json_object_get(status, "crash_safe")), !held);
	if (held)
		require_text(json_text(status, "crash_safe_reason"), "has unmapped");
	tool_detach(h.tool, h.subject->pid);
	require_equal(status_number(h.subject->pid, "TracerPid", 10), 0);
	require_equal(status_number(h.subject->pid, "SigCgt", 16), caught);
	text_require_intact(h.subject->pid);
	require_text(subject_command(h.subject, 'g'), "L");
	subject_quit(h.subject);
}

static void a_process_that_unmaps_its_libc_is_let_go(void)
{
	let_go_of_one_without_libc(tool_attach_held);
}

static void a_process_that_unmaps_its_libc_without_ptrace_is_let_go(void)
{
	let_go_of_one_without_libc(tool_attach);
}

static void births_of_threads_without_an_end_take_no_memory(void)
{
	struct hostile h = start_hostile(victim_start("tests/victims/hostile", "0", NULL));
	unsigned thousands = live_rounds(1, 1000);
	long long warm_kb;

	attach_in_time(&h, MANY_MOST_KB, NULL);
	subject_command(h.subject, 't');
	warm_kb = status_number(tool_tracer(h.subject->pid), "VmRSS", 10);
	for (unsigned i = 0; i < thousands; i++)
		subject_command(h.subject, 't');
	live_note("%ld births; tracer RSS %lld kB after the first thousand, %lld kB at the end",
		  subject_tally(h.subject, "births"), warm_kb, status_number(tool_tracer(h.subject->pid), "VmRSS", 10));
	require_equal(subject_tally(h.subject, "births"), 1000LL * (thousands + 1));
	require_at_least(warm_kb + 1024, status_number(tool_tracer(h.subject->pid), "VmRSS", 10));
	require_at_work(&h);
	require_nothing_unknown(tool_status(h.tool, h.subject->pid), 0);
	tool_end(h.tool, h.subject, h.before);
}

/* Without ptrace there is nothing but the records to tell of threads. */
static void threads_that_there_are_none_of_take_no_memory(void)
{
	struct hostile h = start_hostile(victim_start("tests/victims/hostile", "0", NULL));
	long long before_kb;
	pid_t tracer;
	json_t *status;

	tool_out(h.tool, "attach", "--release", "--ring-wait", "30s", "--allocator", "forged forged_get(size)",
		 pid_text(h.subject->pid), NULL);
	subject_command(h.subject, 'g');
	tracer = tool_daemons_child(h.tool, false);
	before_kb = status_number(tracer, "VmHWM", 10);
	subject_command(h.subject, 'f');
	status = tool_status(h.tool, h.subject->pid);
	live_note("tracer's most RSS %lld kB before, %lld kB at the end; %lld events lost", before_kb,
		  status_number(tracer, "VmHWM", 10), json_number(status, "unknown.lost_events"));
	require_at_least(before_kb + UNLISTED_MOST_KB, status_number(tracer, "VmHWM", 10));
	require_at_least(json_number(status, "unknown.lost_events"), 1);
	require(!json_is_true(json_object_get(status, "exact")));
	subject_command(h.subject, 'g');
	tool_end(h.tool, h.subject, h.before);
}

/* --- debug information that names what nobody may read --- */

#define SECRET "root:an-allocwatch-secret:19000:0:99999:7:::"

/* Ours, for this process and those that it starts: nobody else opens that.  A watch on it. */
static int watch_own_shadow(void)
{
	const char *path = live_text("%s/shadow", live_folder());
	int fd, watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	if (geteuid())
		live_skip("needs root, to have an /etc/shadow of its own");
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0640);
	require(fd >= 0 && dprintf(fd, "%s\n", SECRET) > 0 && close(fd) == 0);
	require(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	require(mount(path, "/etc/shadow", NULL, MS_BIND, NULL) == 0);
	require(watch >= 0 && inotify_add_watch(watch, "/etc/shadow", IN_OPEN) >= 0);
	return watch;
}

static bool was_opened(int watch)
{
	char events[4096];

	return read(watch, events, sizeof(events)) > 0;
}

/* All that shows lines of sources, or names. */
static const char *show_all(struct tool *tool, pid_t pid)
{
	const char *folder = live_text("%s/dumps", live_folder()), *file = live_text("%s/%d.aw", folder, pid);
	const char *snap = pid_text(pid), *shown;

	/* For whichever user. */
	require((mkdir(folder, 0700) == 0 || errno == EEXIST) && chmod(folder, 0777) == 0);
	shown = live_text("%s%s%s%s%s", tool_out(tool, "stats", snap, NULL),
			  tool_out(tool, "stats", snap, "--by", "traceback", NULL),
			  tool_out(tool, "stats", snap, "--pretty", NULL),
			  tool_out(tool, "stats", snap, "--by", "traceback", "--functions", "--json", NULL),
			  tool_out(tool, "dump", snap, file, NULL));
	shown = live_text("%s%s", shown, tool_out(tool, "stats", file, "--by", "traceback", NULL));
	require_text(shown, "/etc/shadow");
	return shown;
}

static void show_shadowed(struct tool *tool, struct subject *shadowed, int watch)
{
	struct state *before = state_take(shadowed->pid);

	tool_attach(tool, shadowed->pid);
	subject_command(shadowed, 'g');
	if (strstr(show_all(tool, shadowed->pid), SECRET))
		live_fail("a line of /etc/shadow is shown");
	require(!was_opened(watch));
	tool_end(tool, shadowed, before);
}

static void nothing_opens_a_secret_file_that_debug_information_names(void)
{
	int watch = watch_own_shadow();
	struct tool *tool = tool_start(), *system = tool_start_system(NULL, NULL);
	struct subject *shadowed;

	show_shadowed(tool, victim_start("tests/victims/shadowed", NULL), watch);
	show_shadowed(tool_start_ordinary(), victim_start_ordinary("tests/victims/shadowed", NULL), watch);
	show_shadowed(tool_of_user(system, ORDINARY_UID), victim_start_ordinary("tests/victims/shadowed", NULL), watch);
	show_shadowed(system, victim_start_ordinary("tests/victims/shadowed", NULL), watch);
	/* It would have been seen: everybody may read it now. */
	require(chmod("/etc/shadow", 0644) == 0);
	shadowed = victim_start("tests/victims/shadowed", NULL);
	tool_attach(tool, shadowed->pid);
	subject_command(shadowed, 'g');
	require_text(show_all(tool, shadowed->pid), SECRET);
	require(was_opened(watch));
	tool_detach(tool, shadowed->pid);
	subject_quit(shadowed);
}

/* Nothing in it steers a terminal, though no terminal asks. */
static void require_harmless(const struct tool_run *run)
{
	const char *texts[] = { run->out, run->err };

	require_equal(run->status, 0);
	for (size_t i = 0; i < 2; i++) {
		for (const char *p = texts[i]; *p; p++) {
			if ((unsigned char)*p < 0x20 && *p != '\n' && *p != '\t')
				live_fail("byte 0x%02x is printed: %s", *p, texts[i]);
		}
	}
}

static void a_name_that_steers_a_terminal_is_made_harmless(void)
{
	static const char *const commands[] = { "attach", "status", "snapshot", "stats", "detach" };
	const char *path = live_text("%s/\033[31mred\r\nx", live_folder());
	struct tool *tool = tool_start();
	struct subject *subject;
	struct tool_run run;
	struct state *before;

	require(symlink(live_text("%s/tests/victims/turnover", live_build()), path) == 0);
	subject = victim_start_as(geteuid(), path, NULL);
	before = state_take(subject->pid);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		run = tool_try(tool, commands[i], pid_text(subject->pid), NULL);
		require_harmless(&run);
		if (i == 0)
			require_text(run.out, "(\\x1b[31mred\\x0d\\x0ax)");
	}
	run = tool_try(tool, "list", NULL);
	require_harmless(&run);
	run = tool_try(tool, "snapshots", NULL);
	require_harmless(&run);
	tool_attach(tool, subject->pid);
	tool_end(tool, subject, before);
}

static const struct live_case cases[] = {
	LIVE_CASE(as_many_mappings_as_there_may_be_hold_nobody),
	LIVE_CASE(mappings_that_come_while_it_is_traced_hold_nobody),
	LIVE_CASE(forged_objects_hold_nobody),
	LIVE_CASE(an_object_that_is_cut_short_during_the_attach_ends_nobody),
	LIVE_CASE(a_forged_list_of_objects_is_not_believed),
	LIVE_CASE(traps_that_are_overwritten_are_told_and_set_again),
	LIVE_CASE(a_stack_that_ends_in_nothing_is_told),
	LIVE_CASE(a_process_that_unmaps_its_libc_is_let_go),
	LIVE_CASE(a_process_that_unmaps_its_libc_without_ptrace_is_let_go),
	LIVE_CASE(threads_that_there_are_none_of_take_no_memory),
	LIVE_CASE(births_of_threads_without_an_end_take_no_memory),
	LIVE_CASE(nothing_opens_a_secret_file_that_debug_information_names),
	LIVE_CASE(a_name_that_steers_a_terminal_is_made_harmless),
	LIVE_CASE(an_object_on_a_mute_file_system_holds_nobody),
	LIVE_CASE(an_object_whose_file_system_falls_silent_holds_nobody),
	LIVE_CASE(a_program_on_a_mute_file_system_holds_nobody),
};

/* The last one waits twice for what does not come: in the long form, or when it is asked for. */
int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]) - (argc == 1 ? live_rounds(1, 0) : 0));
}
