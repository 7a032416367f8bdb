/* Uprobes at the functions that we watch, in every order of coming and going: both sides count what they count alone, or
 * it is said what was missed.  With perf and bpftrace themselves: check_perf.c. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TURNOVER "tests/victims/turnover"
#define TURNOVER_SOURCE "tests/victims/turnover.c"
#define HAMMER "tests/victims/hammer"
#define GAP_MS 10000
#define ENTRY_BYTES 48                       /* our int3 is within the first ones of a function */

/* --- where they stand --- */

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

/* What a process has there. */
static void read_entry(pid_t pid, struct place place, uint8_t ret[ENTRY_BYTES])
{
	unsigned long long start, end, offset, at = 0;
	FILE *maps = fopen(live_text("/proc/%d/maps", pid), "r");
	char line[1024], path[512];
	int mem = open(live_text("/proc/%d/mem", pid), O_RDONLY | O_CLOEXEC);

	require(maps && mem >= 0);
	while (at == 0 && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%llx-%llx %*s %llx %*s %*s %511s", &start, &end, &offset, path) == 4 &&
		    strcmp(path, place.path) == 0 && place.offset >= offset && place.offset - offset < end - start)
			at = start + place.offset - offset;
	}
	fclose(maps);
	require(at != 0 && pread(mem, ret, ENTRY_BYTES, (off_t)at) == ENTRY_BYTES);
	close(mem);
}

/* The ring engine, which auto means, has jumps where the other has int3s. */
static bool uses_ring(void)
{
	const char *engine = getenv("LIVE_ENGINE");

	return !engine || strcmp(engine, "int3") != 0;
}

/* How far behind a function's start our int3 or jump stands, as a process has it that is traced. */
static unsigned our_distance(pid_t pid, const char *function)
{
	const uint8_t *text = address_of(function);
	uint8_t traced[ENTRY_BYTES];
	unsigned distance = 0;

	read_entry(pid, place_of(function), traced);
	while (distance < ENTRY_BYTES && traced[distance] == text[distance])
		distance++;
	require(distance < ENTRY_BYTES);
	require(traced[distance] == 0xcc || (uses_ring() && traced[distance] == 0xe9));
	return distance;
}

/* The length of an instruction, of the few that functions begin with. */
static unsigned length_of(const uint8_t *text)
{
	if (memcmp(text, "\xf3\x0f\x1e\xfa", 4) == 0)                /* endbr64 */
		return 4;
	if (text[0] == 0x41 && (text[1] & 0xf8) == 0x50)             /* push %r8 to %r15 */
		return 2;
	if ((text[0] & 0xf8) == 0x50)                                /* push */
		return 1;
	if (text[0] == 0x48 && text[1] == 0x83 && text[2] == 0xec)   /* sub $8, %rsp */
		return 4;
	if ((text[0] & 0xf8) == 0x48 && (text[1] == 0x85 || text[1] == 0x89) && text[2] >= 0xc0)
		return 3;                                            /* test and mov of registers */
	if (text[0] == 0x0f && (text[1] & 0xf0) == 0x80)             /* a far conditional jump */
		return 6;
	if ((text[0] & 0xf0) == 0x70)                                /* a near one */
		return 2;
	live_fail("an instruction that this test does not know: %02x %02x %02x", text[0], text[1], text[2]);
}

enum spot { FIRST, OURS, BEHIND };           /* the first instruction, ours, the one behind ours */

static struct place spot_of(const char *function, enum spot spot, unsigned ours)
{
	const uint8_t *text = address_of(function);
	struct place place = place_of(function);

	if (spot != FIRST)
		place.offset += ours;
	if (spot == BEHIND)
		place.offset += length_of(text + ours);
	return place;
}

/* --- uprobes: what perf and bpftrace set, without either --- */

static int uprobe_set(pid_t pid, struct place place, bool at_return)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .config1 = (uintptr_t)place.path, .config2 = place.offset,
					.config = at_return };
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

static long long hits_of(int uprobe)
{
	uint64_t hits;

	require(read(uprobe, &hits, sizeof(hits)) == sizeof(hits));
	return (long long)hits;
}

static void keep_blocks(struct subject *subject, char command, unsigned count)
{
	while (count-- > 0)
		subject_command(subject, command);
}

struct watched {
	struct tool *tool;
	pid_t pid;
};

static bool is_noticed(void *context)
{
	const struct watched *watched = context;

	return !json_is_true(json_object_get(tool_status(watched->tool, watched->pid), "exact"));
}

static void require_inexact(struct tool *tool, pid_t pid)
{
	json_t *status = tool_status(tool, pid);

	require_equal(json_is_true(json_object_get(status, "exact")), 0);
	require_at_least(json_number(status, "unknown.probe_gaps"), 1);
}

enum moment { BEFORE, DURING, AFTER };       /* the tracing */

struct order {
	const char *function;
	enum spot spot;
	bool at_return;
	enum moment comes, goes;
};

static const char *order_text(const struct order *order)
{
	static const char *const spots[] = { "first instruction", "instruction that we chose", "one behind ours" };

	return live_text("%s's %s%s, %s us, gone %s us", order->function, spots[order->spot],
			 order->at_return ? " and its returns" : "", order->comes == BEFORE ? "before" : "after",
			 order->goes == AFTER ? "after" : "before");
}

/* Two calls of malloc in a round of the victim, one of free. */
static void require_hits(const struct order *order, int uprobe, long long hits_before, long long rounds,
			 long long more_frees)
{
	bool of_malloc = strcmp(order->function, "malloc") == 0;

	require_equal(hits_of(uprobe) - hits_before, of_malloc ? 2 * rounds : rounds + more_frees);
}

static void try_order(struct tool *tool, const struct order *order, unsigned ours)
{
	struct subject *victim = victim_start(TURNOVER, NULL);
	struct place place = spot_of(order->function, order->spot, ours);
	/* Where it comes to our very byte it has the stops, and nothing shows us that. */
	bool takes_stops = order->spot == OURS && order->comes == DURING;
	struct state *before;
	int uprobe = -1;

	live_note("%s", order_text(order));
	if (order->comes == BEFORE)
		uprobe = uprobe_set(victim->pid, place, order->at_return);
	subject_command(victim, 'g');
	before = state_take(victim->pid);
	tool_attach(tool, victim->pid);
	keep_blocks(victim, 'g', 2);
	if (order->comes == DURING)
		uprobe = uprobe_set(victim->pid, place, order->at_return);
	subject_command(victim, 'w');
	keep_blocks(victim, 'g', 3);
	subject_command(victim, 'f');
	subject_command(victim, 'i');
	require_hits(order, uprobe, 0, order->comes == BEFORE ? 6 : 3, 1);
	if (takes_stops) {
		struct watched watched = { tool, victim->pid };

		require(live_wait(is_noticed, &watched, GAP_MS));
	}
	if (order->goes == DURING)
		close(uprobe);
	if (takes_stops && order->goes == DURING)
		require_inexact(tool, victim->pid);     /* looks, and sets ours again */
	keep_blocks(victim, 'g', 3);
	if (!takes_stops) {
		/* Nothing is missing; the block from before the attach was the one freed. */
		require_nothing_unknown(tool_status(tool, victim->pid), 1);
		/* The kernel takes the return's address away and hands it to nobody: who called malloc then is not known,
		 * and that is counted. */
		if (order->at_return)
			require_at_least(json_number(tool_status(tool, victim->pid), "unknown.truncated_stacks"), 1);
		else
			require_row(tool_stats(tool, pid_text(victim->pid)), TURNOVER_SOURCE, "/* kept block */", 8 * 72, 8);
	}
	tool_detach(tool, victim->pid);
	if (order->goes == AFTER) {
		/* It works on as if we had never been there. */
		long long hits = hits_of(uprobe);

		keep_blocks(victim, 'g', 3);
		require_hits(order, uprobe, hits, 3, 0);
		close(uprobe);
	}
	keep_blocks(victim, 'g', 3);
	subject_command(victim, 'f');
	require_equal(subject_tally(victim, "freed"), 2);
	/* The kernel's page for uprobes stays, once it is there. */
	require_unharmed(victim->pid, order->comes == BEFORE ? before : NULL);
	subject_quit(victim);
}

static unsigned ours_in(struct tool *tool, const char *function)
{
	struct subject *victim = victim_start(TURNOVER, NULL);
	unsigned distance;

	tool_attach(tool, victim->pid);
	distance = our_distance(victim->pid, function);
	tool_detach(tool, victim->pid);
	subject_quit(victim);
	live_note("our %s in %s is at +%u", uses_ring() ? "jump" : "int3", function, distance);
	return distance;
}

/* One that comes into the midst of a jump would have the kernel go on there: SAFETY says that it must not. */
static bool is_deadly(const struct order *order)
{
	return uses_ring() && order->comes == DURING && order->spot != FIRST;
}

static void try_orders(const char *function, bool at_return)
{
	struct tool *tool = tool_start();
	unsigned rounds = live_rounds(1, 50), ours = ours_in(tool, function), tried = 0;

	/* The first byte is where others put theirs; a jump may lie within a first instruction that is long enough. */
	require(ours > 0 || uses_ring());
	for (unsigned round = 0; round < rounds; round++) {
		for (enum spot spot = FIRST; spot <= (at_return ? FIRST : BEHIND); spot++) {
			for (enum moment comes = BEFORE; comes <= DURING; comes++) {
				for (enum moment goes = DURING; goes <= AFTER; goes++) {
					struct order order = { function, spot, at_return, comes, goes };

					if (is_deadly(&order))
						continue;
					try_order(tool, &order, ours);
					tried++;
				}
			}
		}
	}
	live_survey(live_text("uprobes in %s", function), tried, 0, tried, tried);
}

static void uprobes_in_malloc_come_and_go_in_every_order(void)
{
	try_orders("malloc", false);
}

static void uprobes_in_free_come_and_go_in_every_order(void)
{
	try_orders("free", false);
}

static void uprobes_at_mallocs_returns_come_and_go_in_every_order(void)
{
	try_orders("malloc", true);
}

static bool answer_is_there(const struct subject *subject)
{
	struct pollfd pollfd = { .fd = subject->from, .events = POLLIN };

	return poll(&pollfd, 1, 0) > 0;
}

/* The kernel writes into the text, and the threads' stops are single steps and emulated pushes as well as ours. */
static void uprobes_that_come_and_go_take_nothing_from_busy_threads(void)
{
	struct tool *tool = tool_start();
	unsigned rounds = live_rounds(2, 50), least = live_rounds(10, 250), comings = 0;
	struct subject *hammer = victim_start(HAMMER, "--threads", "8", "--ops", "2000", "--before", "10", NULL);
	struct place places[] = { place_of("malloc"), place_of("free"), place_of("calloc"), place_of("realloc") };

	tool_attach(tool, hammer->pid);
	for (unsigned round = 0; round < rounds || comings < least; round++) {
		subject_send(hammer, 'g');
		do {
			/* Without the address of a return that the kernel has taken, the ring cannot tell whose a call within
			 * another one is, and says so. */
			int uprobe = uprobe_set(hammer->pid, places[comings % 4], comings % 3 == 0 && !uses_ring());

			close(uprobe_set(hammer->pid, places[(comings + 1) % 4], false));
			close(uprobe);
			comings++;
		} while (!answer_is_there(hammer));
		subject_line(hammer);
		require_tally(tool, hammer, 10);
	}
	live_note("%ld allocations while uprobes came and went %u times", subject_tally(hammer, "allocations"), 2 * comings);
	require_at_least(comings, least);
	tool_detach(tool, hammer->pid);
	require_unharmed(hammer->pid, NULL);
	subject_quit(hammer);
}

/* What is there is traced all the same. */
static void a_uprobe_at_the_loaders_hook_is_lived_with(void)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(TURNOVER, NULL);
	int uprobe;

	tool_keep_uprobes_out();
	uprobe = uprobe_set(victim->pid, place_of("_dl_debug_state"), false);
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

	tool_out(tool, "attach", pid_text(victim->pid), "--engine", "int3", NULL);
	keep_blocks(victim, 'g', 2);
	uprobe = uprobe_set(victim->pid, spot_of("malloc", OURS, our_distance(victim->pid, "malloc")), false);
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

	tool_out(tool, "attach", pid_text(victim->pid), "--engine", "int3", NULL);
	keep_blocks(victim, 'g', 2);
	require_nothing_unknown(tool_status(tool, victim->pid), 0);
	uprobe = uprobe_set(victim->pid, spot_of("malloc", OURS, our_distance(victim->pid, "malloc")), false);
	keep_blocks(victim, 'g', 10);
	require_inexact(tool, victim->pid);
	close(uprobe);
	tool_detach(tool, victim->pid);
	require_unharmed(victim->pid, NULL);
	subject_quit(victim);
}

static const struct live_case cases[] = {
	LIVE_CASE(uprobes_in_malloc_come_and_go_in_every_order),
	LIVE_CASE(uprobes_in_free_come_and_go_in_every_order),
	LIVE_CASE(uprobes_at_mallocs_returns_come_and_go_in_every_order),
	LIVE_CASE(uprobes_that_come_and_go_take_nothing_from_busy_threads),
	LIVE_CASE(a_uprobe_at_the_loaders_hook_is_lived_with),
	LIVE_CASE(a_gap_is_closed_and_counted),
	LIVE_CASE(a_gap_is_counted_while_it_lasts),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
