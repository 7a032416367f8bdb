/* A day of use in twenty minutes (make load; a few seconds of it in the suite): eight targets at work, real programs among
 * them, are attached to and let go, while snapshots are taken and clients come and go, at random and all at once.  Neither
 * daemon, symbolizer and tracers nor the targets hold more at the end than they did when a tenth of the time was over.
 *
 * LOAD_SECONDS: how long.  LIVE_SEED: which of its deeds each hand does at which step; when, is a matter of the machine. */
#include "footprint.h"
#include "live.h"
#include "load.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "base/clock.h"
#include "base/proc.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECONDS 1
#define MANY_SECONDS 300       /* then each common deed must have come, on each target that it can come to */
#define KEPT "100"             /* --max-snapshots: reached early, so that what comes later changes nothing */
#define SETTLE_MS 20000
#define PROCESSES (2 * LOAD_TARGETS)   /* a hand and one who keeps it at work, for each */

/* Of what allocators keep of what was given back to them (more than one arena, and holes between what is still in use), the
 * amount does not depend on how long it goes on: measured are 4 MiB in the daemon between a tenth and the end of ten minutes,
 * nine tenths of it in the first half.  What is lost for good grows with the deeds: ten thousand of them, in ten minutes, would
 * show from 600 bytes each on. */
#define PLAY_KB 6144
/* An arena of a thread, or a block of 128 KiB and more, is a mapping or two. */
#define PLAY_MAPPINGS 8
/* A tracer that is as young as those before it may have an image, a file of maps or a dead child in its hands just then. */
#define PLAY_DESCRIPTORS 2

enum mark { WARM, HALF, END, MARKS };

static const double marks[MARKS] = { 0.1, 0.5, 1.0 };

/* --- the targets --- */

static void set_some_keys(struct load_target *redis, uint64_t random)
{
	for (unsigned i = 0; i < 20; i++, random = random * 6364136223846793005ULL + 1)
		program_set_key(&redis->program, (int)((random >> 40) % 300), (int)((random >> 20) % 1000) + 1);
}

static void get_pages(struct load_target *nginx, uint64_t random)
{
	for (uint64_t i = 0; i <= random % 5; i++)
		program_get_page(nginx->program.connection);
}

static void round_of(struct load_target *victim, uint64_t random)
{
	(void)random;
	subject_command(victim->program.subject, 'g');
}

/* On 4096 call paths; in the end all blocks are given back. */
static void grow_and_shrink(struct load_target *grower, uint64_t random)
{
	subject_command(grower->program.subject, 'g');
	subject_command(grower->program.subject, random % 2 ? 'f' : 'r');
	subject_command(grower->program.subject, '0');
}

static const char python_script[] =
	"import sys, threading\n"
	"kept = []\n"
	"def load():\n"
	"    kept.append([bytearray(2000) for _ in range(100)])\n"
	"    del kept[:-5]\n"
	"print('R', flush=True)\n"
	"while True:\n"
	"    c = sys.stdin.buffer.raw.read(1)\n"
	"    if not c or c == b'q': break\n"
	"    threads = [threading.Thread(target=load) for _ in range(3)]\n"
	"    for t in threads: t.start()\n"
	"    for t in threads: t.join()\n"
	"    print('kept=%d' % len(kept), flush=True)\n";

static void start_targets(struct load_target *targets)
{
	const struct load_target all[LOAD_TARGETS] = {
		{ .name = "redis-server", .work = set_some_keys, .pause_ms = 20, .stays = true },
		{ .name = "nginx", .work = get_pages, .pause_ms = 20 },
		{ .name = "python3", .work = round_of, .pause_ms = 50, .blocks = true },
		{ .name = "4 threads", .work = round_of, .pause_ms = 50, .stays = true },
		{ .name = "4096 call paths", .work = grow_and_shrink, .pause_ms = 50 },
		{ .name = "registers", .work = round_of, .pause_ms = 50 },
		{ .name = "forks", .work = round_of, .pause_ms = 200 },
		{ .name = "vfork, posix_spawn", .work = round_of, .pause_ms = 100, .busy = true, .blocks = true },
	};

	memcpy(targets, all, sizeof(all));
	targets[0].program.socket = live_text("%s/redis", live_folder());
	program_start_redis(&targets[0].program, geteuid());
	targets[1].program.socket = live_text("%s/nginx", live_folder());
	program_start_nginx(&targets[1].program);
	program_start_python(&targets[2].program, python_script);
	targets[3].program.subject = victim_start("tests/victims/hammer", "--threads", "4", "--ops", "100", NULL);
	targets[4].program.subject = victim_start("tests/victims/grower", NULL);
	targets[5].program.subject = victim_start("tests/victims/registers", live_text("%s/tests/victims", live_build()), NULL);
	targets[6].program.subject = victim_start("tests/victims/forktree", NULL);
	targets[7].program.subject = victim_start("tests/victims/spawner", "--round", "1", NULL);
	/* what they load and make at their first work is there to stay */
	for (unsigned t = 0; t < LOAD_TARGETS; t++) {
		for (unsigned i = 0; i < 3; i++)
			targets[t].work(&targets[t], i);
	}
}

struct left {
	pid_t pid;
	const struct state *before;
	const char *difference;
};

/* A handler that runs, a thread that was joined and is about to leave: a moment's. */
static bool is_as_before(void *context)
{
	struct left *left = context;

	left->difference = state_difference(left->before, state_take(left->pid), false);
	return left->difference == NULL;
}

static void require_as_before(const struct load_target *target, const struct state *before)
{
	struct left left = { .pid = target->program.subject->pid, .before = before };

	/* Let go while it waited in vfork its handler is left, as the daemon says. */
	if (target->busy && !is_as_before(&left))
		tool_heal(pid_text(left.pid));
	if (!live_wait(is_as_before, &left, SETTLE_MS))
		live_fail("%s is not as it was: %s", target->name, left.difference);
	require_unharmed(left.pid, NULL);
}

/* Each works on, and judges itself. */
static void require_right_results(struct load_target *targets)
{
	static const char *const zero[LOAD_TARGETS] = { [5] = "wrong", [6] = "bad", [7] = "bad" };

	for (unsigned t = 0; t < LOAD_TARGETS; t++) {
		struct subject *subject = targets[t].program.subject;

		targets[t].work(&targets[t], t);
		if (zero[t] && subject_tally(subject, zero[t]) != 0)
			live_fail("%s says: %s", targets[t].name, subject->line);
		if (t < 2)
			subject_kill(subject);
		else
			subject_quit(subject);
	}
}

/* --- what everybody holds --- */

/* The daemon, the symbolizer, the targets, their tracers. */
#define DAEMON 0
#define SYMBOLIZER 1
#define ROWS (2 + 2 * LOAD_TARGETS)

struct row {
	const char *name;
	bool same;                     /* one process all the time; else each is as young as the others were */
	pid_t pid[MARKS];              /* 0: there was none */
	struct footprint held[MARKS];
};

struct held {
	struct row rows[ROWS];
	long files[MARKS];             /* in the state folder */
	unsigned deeds[MARKS];
};

struct children {
	pid_t daemon, symbolizer;
	unsigned tracers, standing_by;
};

static void look_at_child(struct children *children, pid_t pid)
{
	char command[256] = "";
	size_t length;
	FILE *f;

	if (proc_parent(pid) != children->daemon || !(f = fopen(live_text("/proc/%d/cmdline", pid), "r")))
		return;
	length = fread(command, 1, sizeof(command) - 1, f);
	fclose(f);
	for (size_t i = 0; i < length; i++)
		command[i] = command[i] ? command[i] : ' ';
	if (strstr(command, "symbolizer"))
		children->symbolizer = pid;
	else if (strstr(command, "--stand-by"))
		children->standing_by++;
	else
		children->tracers++;
}

static struct children children_of(pid_t daemon)
{
	struct children children = { .daemon = daemon };
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	while (proc && (entry = readdir(proc))) {
		pid_t pid = (pid_t)atoi(entry->d_name);

		if (pid > 0)
			look_at_child(&children, pid);
	}
	if (proc)
		closedir(proc);
	return children;
}

/* It ends when nobody has asked it for a while: the daemon has a socket and a pidfd for it. */
#define SYMBOLIZER_DESCRIPTORS 2

static struct footprint footprint_of_daemon(pid_t daemon)
{
	struct footprint held = footprint_of(daemon);

	if (children_of(daemon).symbolizer > 0)
		held.descriptors -= SYMBOLIZER_DESCRIPTORS;
	return held;
}

static void remove_all_snapshots(struct tool *tool)
{
	json_t *list = json_object_get(tool_json(tool, "snapshots", NULL), "snapshots"), *info;
	size_t i;

	json_array_foreach(list, i, info) {
		tool_try(tool, "rm", json_text(info, "id"), NULL);
	}
}

static const char *state_folder(const struct tool *tool)
{
	const char *socket = tool_socket(tool);

	return live_text("%.*s/state", (int)(strrchr(socket, '/') - socket), socket);
}

/* But for the names that debug information gave: one file with a limit of its own, written anew every five minutes, see
 * daemon/names_keep.c. */
static long state_files(const struct tool *tool)
{
	static const char *const names[] = { "names", "names.new" };
	const char *folder = state_folder(tool);
	long count = folder_entries(folder, NULL);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		count -= access(live_text("%s/%s", folder, names[i]), F_OK) == 0;
	return count;
}

/* The lock, and of each process that is traced what its tracer would store, see daemon/lost_files.h. */
#define STATE_FILES (1 + LOAD_TARGETS)

struct settling {
	const struct load *load;
	struct tool *tool;
	long descriptors;              /* of the daemon, when it was warm, and fewer are some that are still to come; 0: not yet */
};

/* A tracer that is taken for stuck while no hand is at work is missed by none: another one takes its place. */
static void attach_again(const struct load *load)
{
	for (unsigned t = 0; t < LOAD_TARGETS; t++) {
		struct tool_run run = tool_try(load->tool, "attach", pid_text(load->targets[t].program.subject->pid), NULL);

		if (run.status == 0)
			atomic_fetch_add(&load->board->lost, 1);
	}
}

/* Nobody traces children any more, connections are closed, what dies is dead, and another one stands by for a healer that was needed; a
 * snapshot that was asked for by who left is kept a moment later. */
static bool is_settled(void *context)
{
	struct settling *settling = context;
	pid_t daemon = tool_daemon(settling->tool);

	if (children_of(daemon).tracers < LOAD_TARGETS)
		attach_again(settling->load);
	if (state_files(settling->tool) != STATE_FILES)
		remove_all_snapshots(settling->tool);
	return children_of(daemon).tracers == LOAD_TARGETS && children_of(daemon).standing_by > 0 &&
	       state_files(settling->tool) == STATE_FILES &&
	       (settling->descriptors == 0 || footprint_of_daemon(daemon).descriptors == settling->descriptors);
}

static void look_at(struct row *row, enum mark mark, pid_t pid)
{
	row->pid[mark] = pid;
	if (pid > 0)
		row->held[mark] = footprint_of(pid);
}

static void measure(const struct load *load, struct held *held, enum mark mark)
{
	struct settling settling = { .load = load, .tool = load->tool,
				     .descriptors = mark == WARM ? 0 : held->rows[DAEMON].held[WARM].descriptors };

	if (!live_wait(is_settled, &settling, SETTLE_MS))
		live_note("not settled: %u tracers, %ld descriptors of the daemon; %s",
			  children_of(tool_daemon(load->tool)).tracers, footprint_of_daemon(tool_daemon(load->tool)).descriptors,
			  json_dumps(tool_json(load->tool, "list", NULL), 0));
	held->rows[DAEMON].pid[mark] = tool_daemon(load->tool);
	held->rows[DAEMON].held[mark] = footprint_of_daemon(tool_daemon(load->tool));
	look_at(&held->rows[SYMBOLIZER], mark, children_of(tool_daemon(load->tool)).symbolizer);
	for (unsigned t = 0; t < LOAD_TARGETS; t++) {
		pid_t pid = load->targets[t].program.subject->pid;

		look_at(&held->rows[2 + 2 * t], mark, pid);
		look_at(&held->rows[3 + 2 * t], mark, tool_tracer(pid));
	}
	held->files[mark] = state_files(load->tool);
}

static void name_rows(const struct load *load, struct held *held)
{
	held->rows[DAEMON] = (struct row){ .name = "daemon", .same = true };
	held->rows[SYMBOLIZER] = (struct row){ .name = "symbolizer" };
	for (unsigned t = 0; t < LOAD_TARGETS; t++) {
		const struct load_target *target = &load->targets[t];

		held->rows[2 + 2 * t] = (struct row){ .name = target->name, .same = true };
		held->rows[3 + 2 * t] = (struct row){ .name = target->stays ? "  its tracer all the time" : "  its tracer",
						      .same = target->stays };
	}
}

/* --- the tables --- */

static unsigned times(const struct load *load, unsigned deed)
{
	unsigned sum = 0;

	for (unsigned t = 0; t < LOAD_TARGETS; t++)
		sum += load->board->done[deed][t];
	return sum;
}

static unsigned all_deeds(const struct load *load)
{
	unsigned sum = 0;

	for (unsigned deed = 0; load_deed_name(deed); deed++)
		sum += times(load, deed);
	return sum;
}

static void tell_deeds(const struct load *load)
{
	printf("# %-36s %8s  on each target\n", "deed", "times");
	for (unsigned deed = 0; load_deed_name(deed); deed++) {
		printf("# %-36s %8u ", load_deed_name(deed), times(load, deed));
		for (unsigned t = 0; t < LOAD_TARGETS; t++)
			printf(" %5u", load->board->done[deed][t]);
		putchar('\n');
	}
	printf("# %-36s %8u\n# %-36s %8u\n# %-36s %8u\n", "refused, and asked for again", load->board->refused,
	       "tracers that were taken for stuck", load->board->lost, "portions of work of the targets",
	       load->board->portions);
}

#define TELL(row, field) \
	printf(" %7ld %6ld %6ld", (row)->held[WARM].field, (row)->held[HALF].field, (row)->held[END].field)

static void tell_held(const struct held *held)
{
	printf("# %-28s %21s %21s %21s %21s %21s\n", "", "descriptors", "RSS, kB", "of it no file's, kB", "mappings",
	       "threads");
	printf("# %-28s", "at a part of the time of");
	for (unsigned i = 0; i < 5; i++)
		printf("  %5.0f%% %5.0f%% %5.0f%%", 100 * marks[WARM], 100 * marks[HALF], 100 * marks[END]);
	putchar('\n');
	for (unsigned i = 0; i < ROWS; i++) {
		const struct row *row = &held->rows[i];

		printf("# %-28s", row->name);
		TELL(row, descriptors);
		TELL(row, rss);
		TELL(row, anonymous);
		TELL(row, mappings);
		TELL(row, threads);
		putchar('\n');
	}
	printf("# %-28s %7ld %6ld %6ld\n", "files of state", held->files[WARM], held->files[HALF], held->files[END]);
	printf("# %-28s %7u %6u %6u\n", "deeds", held->deeds[WARM], held->deeds[HALF], held->deeds[END]);
}

/* --- the judgement --- */

static unsigned grown;

static void require_no_more(const char *whose, const char *what, long warm, long end, long play)
{
	if (end <= warm + play)
		return;
	live_note("%s: %ld %s at the end, %ld when it was warm; %ld more are allowed", whose, end, what, warm, play);
	grown++;
}

/* A tracer that was taken for stuck has another in its place, which is as young as those of the others. */
static void judge(const struct row *row, enum mark from, bool lost)
{
	const struct footprint *warm = &row->held[from], *end = &row->held[END];

	if (row->pid[from] == 0 || row->pid[END] == 0)
		return;
	if (row->same && !lost)
		require_equal(row->pid[END], row->pid[from]);
	require_no_more(row->name, "descriptors", warm->descriptors, end->descriptors, row->same ? 0 : PLAY_DESCRIPTORS);
	require_no_more(row->name, "threads", warm->threads, end->threads, 0);
	require_no_more(row->name, "mappings", warm->mappings, end->mappings, PLAY_MAPPINGS);
	require_no_more(row->name, "kB that are no file's", warm->anonymous, end->anonymous, PLAY_KB);
}

/* In a few seconds caches are still being filled at a tenth of the time, and the symbolizer's until all objects were asked
 * for. */
static void judge_all(const struct held *held, unsigned seconds, bool lost)
{
	enum mark from = seconds < MANY_SECONDS ? HALF : WARM;
	unsigned compared = 0;

	for (unsigned i = 0; i < ROWS; i++) {
		if (i == SYMBOLIZER && seconds < MANY_SECONDS)
			continue;
		judge(&held->rows[i], from, lost);
		compared++;
	}
	require_no_more("the state folder", "files", held->files[from], held->files[END], 0);
	live_note("%u processes compared with what they held at %.0f%% of %u s", compared, 100 * marks[from], seconds);
}

static void require_deeds(const struct load *load, unsigned seconds)
{
	require_at_least(all_deeds(load), (long long)seconds);
	for (unsigned deed = 0; seconds >= MANY_SECONDS && load_deed_name(deed); deed++) {
		if (load_deed_is_common(deed))
			require_at_least(times(load, deed), LOAD_TARGETS);
	}
}

/* --- the run --- */

struct watch {
	struct load *load;
	pid_t processes[PROCESSES];
};

/* One that fails has said why; targets come first, whose ends are why others fail. */
static void require_at_it(const struct watch *watch)
{
	int status;

	for (unsigned t = 0; t < LOAD_TARGETS; t++) {
		if (waitpid(watch->load->targets[t].program.subject->pid, &status, WNOHANG) != 0)
			live_fail("%s has ended with wait status 0x%x", watch->load->targets[t].name, (unsigned)status);
	}
	for (unsigned i = 0; i < PROCESSES; i++) {
		if (waitpid(watch->processes[i], &status, WNOHANG) != 0)
			live_fail("who is busy with %s has failed", watch->load->targets[i / 2].name);
	}
}

static bool are_resting(void *context)
{
	const struct watch *watch = context;

	require_at_it(watch);
	return watch->load->board->resting == PROCESSES;
}

static void start_hands(struct load *load, struct watch *watch)
{
	fflush(stdout);
	for (unsigned i = 0; i < PROCESSES; i++) {
		pid_t pid = fork();

		if (pid < 0)
			live_fail("fork failed");
		if (pid == 0) {
			(i % 2 ? load_work : load_hand)(load, i / 2);
			fflush(stdout);
			_exit(EXIT_SUCCESS);
		}
		watch->processes[i] = pid;
	}
}

static void run_for(const struct watch *watch, double seconds)
{
	uint64_t until_ns = clock_monotonic_ns() + (uint64_t)(seconds * NSEC_PER_SEC);

	while (!clock_passed(until_ns)) {
		require_at_it(watch);
		live_let_pass(50 * NSEC_PER_MSEC);
	}
}

static void rest_and_measure(struct watch *watch, struct held *held, enum mark mark)
{
	struct load_board *board = watch->load->board;

	board->resting = 0;
	atomic_fetch_add(&board->rests, 1);
	if (!live_wait(are_resting, watch, LIVE_DEADLINE_S * 1000))
		live_fail("%u of %u have come to rest", board->resting, PROCESSES);
	held->deeds[mark] = all_deeds(watch->load);
	measure(watch->load, held, mark);
	board->released = board->rests;
}

static void end_hands(const struct watch *watch)
{
	watch->load->board->ended = true;
	for (unsigned i = 0; i < PROCESSES; i++) {
		struct subject hand = { .pid = watch->processes[i] };

		require_equal(subject_wait(&hand), 0);
	}
}

static void run(struct load *load, struct held *held, unsigned seconds)
{
	struct watch watch = { .load = load };
	double done = 0;

	start_hands(load, &watch);
	for (enum mark mark = WARM; mark < MARKS; mark++) {
		run_for(&watch, (marks[mark] - done) * seconds);
		rest_and_measure(&watch, held, mark);
		done = marks[mark];
	}
	end_hands(&watch);
}

static struct load_board *make_board(void)
{
	struct load_board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (board == MAP_FAILED)
		live_fail("out of memory");
	return board;
}

static void a_day_of_use_makes_nothing_grow(void)
{
	const char *given = getenv("LOAD_SECONDS");
	unsigned seconds = given ? (unsigned)atoi(given) : live_rounds(SECONDS, MANY_SECONDS);
	struct load load = { .board = make_board(), .seed = live_random(1ULL << 47) };
	struct state *before[LOAD_TARGETS];
	struct held held = { 0 };

	require_at_least(seconds, 1);
	load.tool = tool_start_system("--max-snapshots", KEPT);
	start_targets(load.targets);
	for (unsigned t = 0; t < LOAD_TARGETS; t++)
		before[t] = state_take(load.targets[t].program.subject->pid);
	name_rows(&load, &held);
	run(&load, &held, seconds);
	for (unsigned t = 0; t < LOAD_TARGETS; t++)
		require_as_before(&load.targets[t], before[t]);
	tell_deeds(&load);
	tell_held(&held);
	require_right_results(load.targets);
	judge_all(&held, seconds, load.board->lost > 0);
	live_survey("load", times(&load, 0), times(&load, 3), LOAD_TARGETS, LOAD_TARGETS);
	require_deeds(&load, seconds);
	require_equal(grown, 0);
}

static const struct live_case cases[] = {
	LIVE_CASE(a_day_of_use_makes_nothing_grow),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
