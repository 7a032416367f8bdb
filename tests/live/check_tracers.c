/* Other tools at the same process: one that wants in for a while (detach --keep), and uprobes at our breakpoints, in
 * every order of coming and going. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "base/clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TURNOVER "tests/victims/turnover"
#define TURNOVER_SOURCE "tests/victims/turnover.c"
#define GAP_MS 10000

/* --- for a while --- */

static void keep_blocks(struct subject *subject, char command, unsigned count)
{
	while (count-- > 0)
		subject_command(subject, command);
}

static void detach_for_a_while(struct tool *tool, pid_t pid)
{
	uint64_t started_ns = clock_monotonic_ns(), took_ms;

	tool_out(tool, "detach", pid_text(pid), "--keep", NULL);
	took_ms = (clock_monotonic_ns() - started_ns) / NSEC_PER_MSEC;
	live_note("let go in %llu ms\n", (unsigned long long)took_ms);
	require(took_ms < 1000);
	require_equal(status_number(pid, "TracerPid", 10), 0);
}

/* Really attached, and it makes a call in the process. */
static void let_gdb_in(pid_t pid)
{
	const char *out = live_text("%s/gdb", live_folder());
	char text[8192];
	FILE *file;

	require_equal(system(live_text("gdb -q -nx -batch -p %d -ex 'print (int)getpid()' -ex detach >%s 2>&1 </dev/null", pid,
				       out)), 0);
	file = fopen(out, "r");
	require(file != NULL);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	require_text(text, live_text("$1 = %d", pid));
}

static void require_inexact(struct tool *tool, pid_t pid)
{
	json_t *status = tool_status(tool, pid);

	require_equal(json_is_true(json_object_get(status, "exact")), 0);
	require_at_least(json_number(status, "unknown.probe_gaps"), 1);
}

static void a_debugger_gets_in_and_tracing_goes_on(void)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(TURNOVER, NULL);
	struct state *before = state_take(victim->pid);
	const char *pid = pid_text(victim->pid);
	struct tool_run run;

	tool_attach(tool, victim->pid);
	keep_blocks(victim, 'g', 5);
	detach_for_a_while(tool, victim->pid);
	require_unharmed(victim->pid, before);
	require_text(json_text(tool_status(tool, victim->pid), "state"), "kept");
	/* What it knows can be asked for all the while. */
	require_row(tool_stats(tool, pid), TURNOVER_SOURCE, "/* kept block */", 5 * 72, 5);
	let_gdb_in(victim->pid);
	keep_blocks(victim, 'g', 2);             /* unseen */
	keep_blocks(victim, 'f', 1);             /* of a block that is known */
	run = tool_try(tool, "attach", pid, NULL);
	require_equal(run.status, 0);
	require_text(run.err, "traced before");
	require_equal(status_number(victim->pid, "TracerPid", 10), tool_tracer(victim->pid));
	keep_blocks(victim, 'g', 3);
	/* 5 and 3; of those, the one that was freed unseen stands there until its address is used again, which
	 * is counted. */
	require_row(tool_stats(tool, pid), TURNOVER_SOURCE, "/* kept block */",
		    72 * (8 - json_number(tool_status(tool, victim->pid), "unknown.lost_events")),
		    8 - json_number(tool_status(tool, victim->pid), "unknown.lost_events"));
	require_inexact(tool, victim->pid);
	keep_blocks(victim, 'f', 9);             /* two of them were born unseen */
	require_equal(subject_tally(victim, "kept"), 0);
	require_equal(json_number(tool_status(tool, victim->pid), "unknown.before_attach_frees") +
		      json_number(tool_status(tool, victim->pid), "unknown.unknown_frees"), 2);
	tool_end(tool, victim, before);
}

static void a_busy_process_is_let_go_and_taken_again(void)
{
	struct tool *tool = tool_start();
	unsigned rounds = live_rounds(10, 500);
	struct subject *victim = victim_start(TURNOVER, NULL);
	long turns = 0;

	subject_command(victim, 'w');
	for (unsigned i = 0; i < rounds; i++) {
		tool_attach(tool, victim->pid);
		subject_command(victim, 'g');
		require_at_least(subject_tally(victim, "turns"), turns);
		turns = subject_tally(victim, "turns");
		detach_for_a_while(tool, victim->pid);
		text_require_intact(victim->pid);
	}
	require_row(tool_stats(tool, pid_text(victim->pid)), TURNOVER_SOURCE, "/* kept block */", 72LL * rounds, rounds);
	subject_command(victim, 'i');
	tool_detach(tool, victim->pid);
	require(!tool_lists(tool, victim->pid));
	live_survey("let go and taken again", rounds, 0, 1, 1);
	require_unharmed(victim->pid, NULL);
	subject_quit(victim);
}

static bool is_unlisted(void *context)
{
	struct tool **tool = context;

	return json_array_size(json_object_get(tool_json(*tool, "list", NULL), "targets")) == 0;
}

/* It leaves its last snapshot, and a new process of the same program is a new one. */
static void a_kept_process_that_ends_leaves_its_snapshot(void)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(TURNOVER, NULL);
	pid_t pid = victim->pid;

	tool_attach(tool, pid);
	keep_blocks(victim, 'g', 4);
	detach_for_a_while(tool, pid);
	subject_quit(victim);
	require(live_wait(is_unlisted, &tool, GAP_MS));
	require_row(tool_stats(tool, live_text("%d:detach", pid)), TURNOVER_SOURCE, "/* kept block */", 4 * 72, 4);
}

/* --- uprobes: what perf and bpftrace set, without either --- */

struct place {
	char path[512];
	uint64_t offset;
};

/* libc's own, whatever this program may call instead (a sanitizer's), or the loader's. */
static const void *address_of(const char *function)
{
	const void *address = dlsym(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD), function);

	return address ? address : dlsym(RTLD_DEFAULT, function);
}

/* Where a function of libc lies in its file. */
static struct place place_of(const char *function)
{
	unsigned long long at = (unsigned long long)(uintptr_t)address_of(function), start, end, offset;
	FILE *maps = fopen("/proc/self/maps", "r");
	struct place place = { "", 0 };
	char line[1024];

	require(at != 0 && maps);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%llx-%llx %*s %llx %*s %*s %511s", &start, &end, &offset, place.path) == 4 &&
		    at >= start && at < end) {
			place.offset = at - start + offset;
			break;
		}
	}
	fclose(maps);
	require(place.offset != 0);
	return place;
}

/* The next instruction's place, of the few that functions begin with. */
static struct place next_place(struct place place, const char *function)
{
	const uint8_t *text = address_of(function);

	if (memcmp(text, "\xf3\x0f\x1e\xfa", 4) == 0)
		place.offset += 4;
	else if (text[0] == 0x41 && (text[1] & 0xf8) == 0x50)
		place.offset += 2;
	else if ((text[0] & 0xf8) == 0x50)
		place.offset += 1;
	else if (text[0] == 0x48 && text[1] == 0x83 && text[2] == 0xec)
		place.offset += 4;
	else if (text[0] == 0x48 && text[1] == 0x85)
		place.offset += 3;
	else
		live_fail("%s begins with %02x %02x %02x", function, text[0], text[1], text[2]);
	return place;
}

static int uprobe_set(pid_t pid, struct place place)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .config1 = (uintptr_t)place.path, .config2 = place.offset };
	FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
	int fd;

	if (!file)
		live_skip("this kernel has no uprobes");
	require(fscanf(file, "%u", &attr.type) == 1);
	fclose(file);
	fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0 && (errno == EPERM || errno == EACCES))
		live_skip("uprobes are not permitted here");
	require(fd >= 0);
	return fd;
}

enum moment { BEFORE, DURING, AFTER };       /* the tracing */

static const struct order {
	const char *name;
	enum moment comes, goes;
	const char *function;
	bool beside;                          /* at the next instruction */
} orders[] = {
	{ "on malloc, before us, gone before us", BEFORE, DURING, "malloc", false },
	{ "on malloc, before us, gone after us", BEFORE, AFTER, "malloc", false },
	{ "on malloc, after us, gone before us", DURING, DURING, "malloc", false },
	{ "on malloc, after us, gone after us", DURING, AFTER, "malloc", false },
	{ "on free, before us, gone before us", BEFORE, DURING, "free", false },
	{ "on free, before us, gone after us", BEFORE, AFTER, "free", false },
	{ "on free, after us, gone before us", DURING, DURING, "free", false },
	{ "on free, after us, gone after us", DURING, AFTER, "free", false },
	{ "beside malloc, before us, gone before us", BEFORE, DURING, "malloc", true },
	{ "beside malloc, before us, gone after us", BEFORE, AFTER, "malloc", true },
	{ "beside malloc, after us, gone before us", DURING, DURING, "malloc", true },
	{ "beside malloc, after us, gone after us", DURING, AFTER, "malloc", true },
	{ "beside free, before us, gone after us", BEFORE, AFTER, "free", true },
	{ "beside free, after us, gone before us", DURING, DURING, "free", true },
};
#define ORDERS (sizeof(orders) / sizeof(orders[0]))

struct watched {
	struct tool *tool;
	pid_t pid;
};

static bool is_noticed(void *context)
{
	const struct watched *watched = context;

	return !json_is_true(json_object_get(tool_status(watched->tool, watched->pid), "exact"));
}

static long long hits_of(int uprobe)
{
	uint64_t hits;

	require(read(uprobe, &hits, sizeof(hits)) == sizeof(hits));
	return (long long)hits;
}

static void try_order(struct tool *tool, const struct order *order)
{
	struct subject *victim = victim_start(TURNOVER, NULL);
	struct place place = place_of(order->function);
	struct watched watched = { tool, victim->pid };
	struct tool_run run;
	int uprobe = -1;
	long long hits;

	if (order->beside)
		place = next_place(place, order->function);
	if (order->comes == BEFORE)
		uprobe = uprobe_set(victim->pid, place);
	subject_command(victim, 'g');
	run = tool_try(tool, "attach", pid_text(victim->pid), NULL);
	live_note("%s: %s", order->name, *run.err ? run.err : "attached\n");
	require_equal(run.status, 0);
	if (order->comes == BEFORE && !order->beside)
		require_text(run.err, live_text("%s in ", order->function));
	keep_blocks(victim, 'g', 2);
	if (order->comes == DURING)
		uprobe = uprobe_set(victim->pid, place);
	subject_command(victim, 'w');
	keep_blocks(victim, 'g', 3);
	subject_command(victim, 'f');
	subject_command(victim, 'i');
	hits = hits_of(uprobe);
	if (order->goes == DURING)
		close(uprobe);
	keep_blocks(victim, 'g', 3);
	if (order->beside) {
		/* Each has its hits, and nothing is missing; the block from before the attach was the one freed. */
		require_at_least(hits, 3);
		require_nothing_unknown(tool_status(tool, victim->pid), 1);
		require_row(tool_stats(tool, pid_text(victim->pid)), TURNOVER_SOURCE, "/* kept block */", 8 * 72, 8);
	} else {
		require(live_wait(is_noticed, &watched, GAP_MS));
	}
	tool_detach(tool, victim->pid);
	if (order->goes == AFTER) {
		/* It works on as if we had never been there: two calls of each function in a round. */
		hits = hits_of(uprobe);
		keep_blocks(victim, 'g', 3);
		require_equal(hits_of(uprobe) - hits, strcmp(order->function, "malloc") == 0 ? 6 : 3);
		close(uprobe);
	}
	keep_blocks(victim, 'g', 3);
	subject_command(victim, 'f');
	require_equal(subject_tally(victim, "freed"), 2);
	require_unharmed(victim->pid, NULL);
	subject_quit(victim);
}

static void uprobes_come_and_go_in_every_order(void)
{
	struct tool *tool = tool_start();
	unsigned rounds = live_rounds(1, 50);

	for (unsigned round = 0; round < rounds; round++) {
		for (size_t i = 0; i < ORDERS; i++)
			try_order(tool, &orders[i]);
	}
	live_survey("uprobes at our breakpoints", rounds * ORDERS, 0, rounds * ORDERS, rounds * ORDERS);
}

/* What is there is traced all the same. */
static void a_uprobe_at_the_loaders_hook_is_lived_with(void)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(TURNOVER, NULL);
	int uprobe = uprobe_set(victim->pid, place_of("_dl_debug_state"));

	tool_attach(tool, victim->pid);
	keep_blocks(victim, 'g', 3);
	require_row(tool_stats(tool, pid_text(victim->pid)), TURNOVER_SOURCE, "/* kept block */", 3 * 72, 3);
	require_equal(json_is_true(json_object_get(tool_status(tool, victim->pid), "exact")), 0);
	tool_detach(tool, victim->pid);
	close(uprobe);
	require_unharmed(victim->pid, NULL);
	subject_quit(victim);
}

/* The int3 that it took along when it went is set anew, and what was missed is said. */
static void a_gap_is_closed_and_counted(void)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(TURNOVER, NULL);
	int uprobe;

	tool_attach(tool, victim->pid);
	keep_blocks(victim, 'g', 2);
	uprobe = uprobe_set(victim->pid, place_of("malloc"));
	keep_blocks(victim, 'g', 4);             /* it has these */
	close(uprobe);
	require_inexact(tool, victim->pid);      /* looks, and sets it */
	keep_blocks(victim, 'g', 5);
	require_row(tool_stats(tool, pid_text(victim->pid)), TURNOVER_SOURCE, "/* kept block */", 7 * 72, 7);
	tool_detach(tool, victim->pid);
	require_unharmed(victim->pid, NULL);
	subject_quit(victim);
}

/* It stays: the byte is an int3 as before, and yet no call stops there. */
static void a_gap_is_counted_while_it_lasts(void)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(TURNOVER, NULL);
	int uprobe;

	tool_attach(tool, victim->pid);
	keep_blocks(victim, 'g', 2);
	require_nothing_unknown(tool_status(tool, victim->pid), 0);
	uprobe = uprobe_set(victim->pid, place_of("malloc"));
	keep_blocks(victim, 'g', 10);
	require_inexact(tool, victim->pid);
	close(uprobe);
	tool_detach(tool, victim->pid);
	require_unharmed(victim->pid, NULL);
	subject_quit(victim);
}

/* --- the real one --- */

/* bpftrace probes every process that uses a file: the victim has a libc of its own. */
static struct subject *start_with_own_libc(const char **ret_libc)
{
	struct place place = place_of("malloc");
	struct subject *victim;

	*ret_libc = live_text("%s/libc.so.6", live_folder());
	require_equal(system(live_text("cp %s %s", place.path, *ret_libc)), 0);
	setenv("LD_LIBRARY_PATH", live_folder(), 1);
	victim = victim_start(TURNOVER, NULL);
	unsetenv("LD_LIBRARY_PATH");
	return victim;
}

static struct subject *start_bpftrace(const char *libc)
{
	const char *script = live_text("uprobe:%s:malloc { @calls = count(); }", libc);
	const char *argv[] = { "/usr/bin/bpftrace", "-e", script, NULL };
	struct subject *bpftrace;

	if (system("bpftrace -e 'BEGIN { exit(); }' >/dev/null 2>&1") != 0)
		live_skip("bpftrace is not permitted here");
	bpftrace = subject_start(getuid(), argv);
	require_text(subject_line(bpftrace), "Attaching 1 probe");
	return bpftrace;
}

struct fed {
	struct watched watched;
	struct subject *victim;
};

static bool notices_what_is_taken(void *context)
{
	struct fed *fed = context;

	keep_blocks(fed->victim, 'g', 2);
	return is_noticed(&fed->watched);
}

static long long kept_rows(struct tool *tool, struct subject *victim)
{
	json_t *row = row_at(tool_stats(tool, pid_text(victim->pid)), TURNOVER_SOURCE,
			     line_of(TURNOVER_SOURCE, "/* kept block */"));

	require(row != NULL);
	return json_number(row, "count");
}

static void bpftrace_comes_over_us_and_goes(void)
{
	struct tool *tool = tool_start();
	const char *libc;
	struct subject *victim = start_with_own_libc(&libc), *bpftrace;
	struct fed fed = { { tool, victim->pid }, victim };
	long long rows;

	tool_attach(tool, victim->pid);
	keep_blocks(victim, 'g', 3);
	require_nothing_unknown(tool_status(tool, victim->pid), 0);
	bpftrace = start_bpftrace(libc);
	require(live_wait(notices_what_is_taken, &fed, GAP_MS));
	kill(bpftrace->pid, SIGINT);
	subject_wait(bpftrace);
	require_inexact(tool, victim->pid);      /* looks, and sets ours again */
	rows = kept_rows(tool, victim);
	keep_blocks(victim, 'g', 5);
	require_equal(kept_rows(tool, victim), rows + 5);
	tool_detach(tool, victim->pid);
	require_unharmed(victim->pid, NULL);
	subject_quit(victim);
}

static const struct live_case cases[] = {
	LIVE_CASE(a_debugger_gets_in_and_tracing_goes_on),
	LIVE_CASE(a_busy_process_is_let_go_and_taken_again),
	LIVE_CASE(a_kept_process_that_ends_leaves_its_snapshot),
	LIVE_CASE(uprobes_come_and_go_in_every_order),
	LIVE_CASE(a_uprobe_at_the_loaders_hook_is_lived_with),
	LIVE_CASE(a_gap_is_closed_and_counted),
	LIVE_CASE(a_gap_is_counted_while_it_lasts),
	LIVE_CASE(bpftrace_comes_over_us_and_goes),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
