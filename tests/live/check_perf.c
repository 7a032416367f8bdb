/* perf and bpftrace, which have uprobes where we have our int3s, in every order of coming and going: they count the calls
 * that the victim makes, and so do we.  They probe every process that uses a file: the victim has a libc of its own. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define TURNOVER "tests/victims/turnover"
#define TURNOVER_SOURCE "tests/victims/turnover.c"

#define UPROBE_EVENTS "/sys/kernel/tracing/uprobe_events"

#define BPFTRACE_ANSWER_MS 5000
#define BPFTRACE_TOLD_MAX 12

enum moment { BEFORE, DURING, AFTER };       /* the tracing */

static void keep_blocks(struct subject *subject, char command, unsigned count)
{
	while (count-- > 0)
		subject_command(subject, command);
}

static const char *own_libc(void)
{
	static const char *libc;
	Dl_info info;

	if (!libc) {
		libc = live_text("%s/libc.so.6", live_folder());
		require(dladdr(dlsym(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD), "malloc"), &info) != 0);
		require_equal(system(live_text("cp %s %s", info.dli_fname, libc)), 0);
	}
	return libc;
}

static struct subject *start_with_own_libc(void)
{
	struct subject *victim;

	own_libc();
	setenv("LD_LIBRARY_PATH", live_folder(), 1);
	victim = victim_start(TURNOVER, NULL);
	unsetenv("LD_LIBRARY_PATH");
	return victim;
}

/* Both count the same calls of the victim, whoever came first and whoever goes first. */
struct counting {
	struct subject *victim, *other;
	const char *output;
	long long expected;                  /* calls of malloc while the other one was there */
};

static void call(struct counting *counting, unsigned rounds)
{
	keep_blocks(counting->victim, 'g', rounds);
	if (counting->other)
		counting->expected += 2 * rounds;
}

struct counter_tool {
	void (*start)(struct counting *counting);
	long long (*stop)(struct counting *counting);        /* what it has counted */
};

static void count_with(const struct counter_tool *other, enum moment comes, enum moment goes)
{
	struct tool *tool = tool_start();
	struct counting counting = { 0 };
	long long counted = -1;

	counting.victim = start_with_own_libc();
	if (comes == BEFORE)
		other->start(&counting);
	call(&counting, 3);
	tool_attach(tool, counting.victim->pid);
	call(&counting, 4);
	if (comes == DURING)
		other->start(&counting);
	call(&counting, 5);
	if (goes == DURING)
		counted = other->stop(&counting);
	call(&counting, 6);
	require_nothing_unknown(tool_status(tool, counting.victim->pid), 0);
	require_row(tool_stats(tool, pid_text(counting.victim->pid)), TURNOVER_SOURCE, "/* kept block */", 15 * 72, 15);
	tool_detach(tool, counting.victim->pid);
	call(&counting, 7);
	if (goes == AFTER)
		counted = other->stop(&counting);
	call(&counting, 8);
	live_note("%lld calls, %lld counted by the other one", counting.expected, counted);
	require_equal(counted, counting.expected);
	require_unharmed(counting.victim->pid, NULL);
	subject_quit(counting.victim);
}

/* All of them, or in the suite two, in which it comes and goes both ways: such a tool takes a second to start. */
static void count_in_every_order(const struct counter_tool *other)
{
	unsigned tried = 0;

	/* The victims have a libc of their own, but the system's loader. */
	tool_keep_uprobes_out();
	for (enum moment comes = BEFORE; comes <= DURING; comes++) {
		for (enum moment goes = DURING; goes <= AFTER; goes++) {
			if (live_rounds(0, 1) == 0 && (comes == BEFORE) != (goes == AFTER))
				continue;
			count_with(other, comes, goes);
			tried++;
		}
	}
	require_at_least(tried, 2);
}

static long long number_in(const char *command)
{
	FILE *pipe = popen(command, "r");
	long long number = -1;

	require(pipe != NULL);
	if (fscanf(pipe, "%lld", &number) != 1)
		number = -1;
	require_equal(pclose(pipe), 0);
	return number;
}

/* perf: a uprobe event of the whole system, recorded in one process. */

static const char *perf_event(void)
{
	return live_text("allocwatch_test_%d:malloc", getpid());
}

static void shell(const char *command)
{
	int status = system(command);

	if (status != 0)
		live_fail("wait status 0x%x: %s", (unsigned)status, command);
}

/* Of cases that were killed: perf takes one of them for the event that it is to add. */
static void remove_events_of_dead_ones(void)
{
	FILE *events = fopen(UPROBE_EVENTS, "r");
	char line[4352];
	int pid;

	require(events != NULL);
	while (fgets(line, sizeof(line), events)) {
		if (sscanf(line, "p:allocwatch_test_%d/", &pid) == 1 && kill(pid, 0) < 0 && errno == ESRCH)
			shell(live_text("echo '-:allocwatch_test_%d/malloc' >>" UPROBE_EVENTS, pid));
	}
	fclose(events);
}

static void perf_prepare(void)
{
	if (system("perf --version >/dev/null 2>&1") != 0)
		live_skip("there is no perf for this kernel");
	if (unshare(CLONE_NEWNS) < 0)
		live_skip("a mount of its own for tracefs is not permitted here");
	require_equal(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	/* Busy: it is there. */
	if (mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL) < 0 && errno != EBUSY)
		live_skip("tracefs is not permitted here");
	remove_events_of_dead_ones();
	shell(live_text("perf probe -q -x %s '%s=malloc' >%s/probe.log 2>&1", own_libc(), perf_event(), live_folder()));
}

/* It begins when it is told to, and says that it has. */
static void perf_start(struct counting *counting)
{
	const char *argv[] = { "/bin/sh", "-c", NULL, NULL };
	static unsigned number;

	counting->output = live_text("%s/perf-%u", live_folder(), number++);
	shell(live_text("mkfifo %s.ctl %s.ack", counting->output, counting->output));
	argv[2] = live_text("exec perf record -q -B -N --no-bpf-event -D -1 --control fifo:%s.ctl,%s.ack -e %s -p %d -o %s "
			    ">%s.log 2>&1", counting->output, counting->output, perf_event(), counting->victim->pid,
			    counting->output, counting->output);
	counting->other = subject_start(getuid(), argv);
	shell(live_text("echo enable >%s.ctl; head -n 1 %s.ack | grep -q ack", counting->output, counting->output));
}

static long long perf_stop(struct counting *counting)
{
	kill(counting->other->pid, SIGINT);
	subject_wait(counting->other);
	counting->other = NULL;
	return number_in(live_text("perf script -i %s 2>/dev/null | grep -c %s", counting->output, perf_event()));
}

static const struct counter_tool perf = { perf_start, perf_stop };

static void perf_and_we_count_the_same_in_every_order(void)
{
	perf_prepare();
	count_in_every_order(&perf);
	shell(live_text("perf probe -q -d '%s' >%s/probe.log 2>&1", perf_event(), live_folder()));
}

/* bpftrace: at the entries and at the returns, as the scripts that look for leaks do. */

static void bpftrace_start(struct counting *counting)
{
	/* What BEGIN prints is shown when everything is set. */
	const char *script = live_text("BEGIN { printf(\"R\\n\"); } uprobe:%s:malloc { @in = count(); } "
				       "uprobe:%s:free { @freed = count(); } "
				       "END { print(@in); clear(@in); clear(@freed); }", own_libc(), own_libc());
	const char *argv[] = { "/usr/bin/bpftrace", "-B", "none", "-e", script, NULL };

	if (system("bpftrace -e 'BEGIN { exit(); }' >/dev/null 2>&1") != 0)
		live_skip("bpftrace is not permitted here");
	counting->other = subject_start(getuid(), argv);
	while (strcmp(subject_line(counting->other), "R") != 0)
		;
}

/* A SIGINT that comes while it does not wait for events is forgotten by it: it is told again. */
static void bpftrace_interrupt(struct subject *other)
{
	unsigned told = 0;

	do {
		require(told++ < BPFTRACE_TOLD_MAX);
		kill(other->pid, SIGINT);
	} while (!subject_speaks(other, BPFTRACE_ANSWER_MS));
	if (told > 1)
		live_note("bpftrace was told to end %u times", told);
}

static long long bpftrace_stop(struct counting *counting)
{
	long long counted;

	bpftrace_interrupt(counting->other);
	while (sscanf(subject_line(counting->other), "@in: %lld", &counted) != 1)
		;
	subject_wait(counting->other);
	counting->other = NULL;
	return counted;
}

static const struct counter_tool bpftrace = { bpftrace_start, bpftrace_stop };

static void bpftrace_and_we_count_the_same_in_every_order(void)
{
	count_in_every_order(&bpftrace);
}

static const struct live_case cases[] = {
	LIVE_CASE(perf_and_we_count_the_same_in_every_order),
	LIVE_CASE(bpftrace_and_we_count_the_same_in_every_order),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
