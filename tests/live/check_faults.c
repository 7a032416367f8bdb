/* The tracer's own faults: each call that it makes on a target, or for it, fails in one round, by each of its errors, once or
 * from then on, or the tracer crashes there; and the target says itself, afterwards, whether anything went wrong.
 *
 * A step is first made without a fault, which counts its calls: these are its points.  The suite takes a spread of them,
 * `make faults` each.  LIVE_FAULT='STEP:CALL:NUMBER:ERROR:KIND', as it is printed, plays one again. */
#include "live.h"
#include "rounds.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "faults.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRACER "tests/faults/tracer"
#define POINTS 48
#define FREE_MS 15000          /* a tracer that does nothing more is found so after some seconds */
#define HOPELESS_MS 1000       /* all tries of the daemon to heal come to nothing meanwhile */
#define EACH_MOST 400          /* of one call in one step, in the long form */
#define LISTED_LAST 40         /* so many names of the last lists that are read */
#define LISTED_LEAST 10        /* of the targets that are to live on */
#define COUNT_ROUNDS 5         /* of each step before it is played, in the long form */
#define OTHER_WAYS_MOST 12     /* of one call in one step, by each further way to fail */

enum outcome { LIVED, MISSED, TOLD_NONSENSE, NOT_EXACT, LEFTOVERS, CORRUPT, DEAD, OUTCOMES };

static const char *const outcome_names[OUTCOMES] = { "lived", "missed", "told nonsense", "said to be exact, and was not", "leftovers",
						     "corrupt", "dead or stuck" };

struct call {
	const char *name;
	int errors[FAULTS_ERRORS];
};

#define FAULT_ROW(name, text, a, b, c) { text, { a, b, c } },
static const struct call calls[FAULT_CALL_COUNT] = { FAULT_CALLS(FAULT_ROW) };

/* --- steps --- */

struct step {
	const char *name;
	const char *argv[6];
	const char *begin;             /* sent before it is attached to, not answered */
	const char *client[3];         /* the step is this command, PID behind the first word */
	const char *work;              /* or these of the target's own, each answered */
	bool heals;                    /* or the healing after its tracer's death */
	bool orphans;                  /* or the daemon's death: the tracer keeps what it knows in a file, and leaves */
	bool follows;
	const char *end;               /* the last of these is answered */
	const char *zero[2];           /* what must be 0 in that answer */
	bool counts;                   /* blocks and bytes of the answer are all that there are, when the work was all */
	bool executes;                 /* it is not the program that it was */
};

#define HAMMER { "tests/victims/hammer", "--threads", "3", "--ops", "60" }

static const struct step steps[] = {
	{ .name = "attach", .argv = HAMMER, .begin = "r", .client = { "attach" }, .end = "s" },
	{ .name = "attach, registers", .argv = { "tests/victims/registers", "tests/victims" }, .begin = "r",
	  .client = { "attach" }, .end = "g", .zero = { "wrong" } },
	{ .name = "attach, without ptrace", .argv = HAMMER, .begin = "r", .client = { "attach", "--release" }, .end = "s" },
	{ .name = "calls", .argv = HAMMER, .work = "ggg", .end = "g", .counts = true },
	{ .name = "registers", .argv = { "tests/victims/registers", "tests/victims" }, .work = "g", .end = "g",
	  .zero = { "wrong" } },
	{ .name = "dlopen", .argv = { "tests/victims/plugins", "tests/victims" }, .work = "ogcOGF", .end = "G" },
	{ .name = "fork", .argv = { "tests/victims/forktree" }, .work = "g", .end = "g", .zero = { "bad" } },
	{ .name = "fork, followed", .argv = { "tests/victims/forktree" }, .work = "g", .follows = true, .end = "g",
	  .zero = { "bad" } },
	{ .name = "exec", .argv = { "tests/victims/execer" }, .work = "ga", .end = "a", .executes = true },
	{ .name = "births of threads", .argv = { "tests/victims/births" }, .work = "g", .end = "g" },
	{ .name = "vfork, posix_spawn", .argv = { "tests/victims/spawner" }, .work = "g", .end = "g", .zero = { "bad" },
	  .executes = true },
	{ .name = "snapshot", .argv = HAMMER, .begin = "r", .client = { "snapshot", "--blocks" }, .end = "s" },
	{ .name = "status", .argv = HAMMER, .begin = "r", .client = { "status" }, .end = "s" },
	{ .name = "detach", .argv = HAMMER, .begin = "r", .client = { "detach" }, .end = "s" },
	{ .name = "the daemon's death", .argv = HAMMER, .begin = "r", .orphans = true, .end = "s" },
	{ .name = "healing", .argv = HAMMER, .begin = "r", .heals = true, .end = "s" },
	{ .name = "attach, masks", .argv = { "tests/victims/masks" }, .begin = "r", .client = { "attach" }, .end = "s" },
	{ .name = "detach, masks", .argv = { "tests/victims/masks" }, .begin = "r", .client = { "detach" }, .end = "s" },
};

#define STEPS (sizeof(steps) / sizeof(steps[0]))

struct point {
	unsigned step, call, at;
	int error;
	enum fault_kind kind;
};

static const char *const kind_names[] = { "none", "once", "from then on", "SIGSEGV", "SIGABRT" };

static struct faults *faults;
static struct tool *tool;

static const struct outcomes outcomes = { outcome_names, OUTCOMES };

#define end_round(outcome, ...) (faults->armed = 0, round_end(&outcomes, outcome, __VA_ARGS__))

static struct subject *start_target(const struct step *step)
{
	const char *second = step->argv[1] && step->argv[1][0] == 't' ? live_text("%s/%s", live_build(), step->argv[1]) :
			     step->argv[1];

	return victim_start(step->argv[0], second, step->argv[2], step->argv[3], step->argv[4], step->argv[5], NULL);
}

/* What it was told must make sense to a person. */
static void require_sense(const struct tool_run *run)
{
	static const char *const nonsense[] = { "Success", "(null)", "Unknown error", "rror 0" };

	if (run->status == 0)
		return;
	if (run->err[0] == '\0')
		end_round(TOLD_NONSENSE, "it failed with status %d and said nothing", run->status);
	for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
		if (strstr(run->err, nonsense[i]))
			end_round(TOLD_NONSENSE, "%s", run->err);
	}
	printf("# %s", run->err);
}

static void require_alive(pid_t pid, const char *when)
{
	int status;

	if (waitpid(pid, &status, WNOHANG) == pid)
		end_round(DEAD, "%s: wait status 0x%x", when, (unsigned)status);
}

/* What is said to be exact is compared with the target's own count. */
static void require_exactness(const struct step *step, struct subject *target)
{
	struct tool_run run;
	json_t *status;

	if (!step->counts)
		return;
	run = tool_try(tool, "status", pid_text(target->pid), "--json", NULL);
	require_sense(&run);
	status = run.status == 0 ? json_loads(run.out, 0, NULL) : NULL;
	if (!status || !json_is_true(json_object_get(status, "exact")))
		return;
	if (json_number(status, "blocks") != subject_tally(target, "blocks") ||
	    json_number(status, "traced_current") != subject_tally(target, "bytes"))
		end_round(NOT_EXACT, "%lld blocks, %lld bytes; it says %s", json_number(status, "blocks"),
			  json_number(status, "traced_current"), target->line);
}

static void make_step(const struct step *step, struct subject *target, int heal_ms)
{
	const char *pid = pid_text(target->pid);
	struct tool_run run;

	if (step->client[0]) {
		run = tool_try(tool, step->client[0], pid, step->client[1], NULL);
		require_sense(&run);
	}
	if (step->heals) {
		kill(tool_tracer(target->pid), SIGKILL);
		live_wait(state_text_is_intact, &target->pid, heal_ms);
	}
	if (step->orphans) {
		kill(tool_daemon(tool), SIGKILL);
		waitpid(tool_daemon(tool), NULL, 0);
		if (!live_wait(state_has_no_tracer, &target->pid, FREE_MS))
			end_round(LEFTOVERS, "its tracer does not leave without a daemon");
	}
	for (const char *c = step->work; c && *c; c++)
		subject_command(target, *c);
}

/* Where it is to be seized first, that may fail, and it is traced on: it says to try again.  Nothing fails any more by then. */
static void let_go(struct subject *target)
{
	struct tool_run run = tool_try(tool, "detach", pid_text(target->pid), NULL);

	require_sense(&run);
	if (run.status == 0 || !strstr(run.err, "try again afterwards"))
		return;
	faults->armed = 0;
	run = tool_try(tool, "detach", pid_text(target->pid), NULL);
	if (run.status != 0)
		end_round(LEFTOVERS, "it cannot be let go again: %s", run.err);
}

/* What a person does: nothing where there is no need; and where no daemon was left to do it, or its healers failed, by
 * hand. */
static void put_in_order(const struct step *step, struct subject *target, bool by_hand)
{
	struct tool_run run;

	if (step->orphans) {
		tool_heal(pid_text(target->pid));
		return;
	}
	require_exactness(step, target);
	run = tool_try(tool, "list", NULL);
	if (run.status != 0)
		end_round(TOLD_NONSENSE, "the daemon does not answer: %s", run.err);
	if (tool_lists(tool, target->pid))
		let_go(target);
	if (by_hand) {
		faults->armed = 0;
		tool_heal(pid_text(target->pid));
	}
}

static void judge(const struct step *step, struct subject *target)
{
	int status;

	for (const char *c = step->end; *c; c++)
		subject_send(target, *c);
	subject_line(target);
	for (size_t i = 0; i < 2 && step->zero[i]; i++) {
		if (subject_tally(target, step->zero[i]) != 0)
			end_round(CORRUPT, "it says: %s", target->line);
	}
	subject_send(target, 'q');
	status = subject_wait(target);
	if (status != 0)
		end_round(DEAD, "at its end: wait status 0x%x", (unsigned)status);
}

/* Mappings like those that are made in a target for what has no room elsewhere. */
static unsigned our_mappings(pid_t pid)
{
	FILE *maps = fopen(live_text("/proc/%d/maps", pid), "r");
	char line[4352], permissions[8];
	unsigned count = 0;
	int inode, end;

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%*s %7s %*s %*s %d%n", permissions, &inode, &end) == 2 && inode == 0 &&
		    permissions[1] == '-' && permissions[0] == 'r' && !strchr(line + end, '['))
			count++;
	}
	if (maps)
		fclose(maps);
	return count;
}

static void require_clean(const struct step *step, pid_t pid, const struct outline *before)
{
	const char *difference;
	size_t bytes;

	require_alive(pid, "when it was looked at");
	if (!live_wait(state_is_untraced, &pid, FREE_MS))
		end_round(LEFTOVERS, "it is still traced");
	if (!live_wait(state_text_is_intact, &pid, FREE_MS))
		end_round(LEFTOVERS, "text: %s", text_difference(pid, &bytes));
	difference = step->executes ? NULL : outline_wait(pid, before, false, FREE_MS);
	if (difference)
		end_round(LEFTOVERS, "%s", difference);
	if (our_mappings(pid) > 0)
		end_round(LEFTOVERS, "%u mappings", our_mappings(pid));
}

static void arm(const struct point *point, bool in_healers)
{
	memset(faults->counts, 0, sizeof(faults->counts));
	faults->hit = 0;
	faults->kind = point->kind;
	faults->call = point->call;
	faults->at = point->at;
	faults->error = point->error;
	faults->in_healers = in_healers;
	__atomic_store_n(&faults->armed, 1, __ATOMIC_RELEASE);
}

static void play(const void *context)
{
	const struct point *point = context;
	const struct step *step = &steps[point->step];
	struct subject *target = start_target(step);
	bool attaches = step->client[0] && strcmp(step->client[0], "attach") == 0;
	struct tool_run run;
	struct outline before = outline_take(target->pid);

	if (step->orphans)
		tool = tool_start_with_tracer(TRACER);
	for (const char *c = step->begin; c && *c; c++)
		subject_send(target, *c);
	if (!attaches) {
		run = tool_try(tool, "attach", pid_text(target->pid), step->follows ? "--follow-forks" : NULL, NULL);
		if (run.status != 0)
			end_round(DEAD, "without a fault it could not be attached to: %s", run.err);
	}
	arm(point, step->heals);
	make_step(step, target, point->kind == FAULT_FROM_THEN ? HOPELESS_MS : FREE_MS);
	require_alive(target->pid, "in the step");
	/* A tracer that cannot do its work any more is not made well before it is to let go. */
	if (point->kind != FAULT_FROM_THEN)
		faults->armed = 0;
	put_in_order(step, target, point->kind == FAULT_FROM_THEN && step->heals);
	require_clean(step, target->pid, &before);
	faults->armed = 0;
	judge(step, target);
	round_end(&outcomes, point->kind == FAULT_NONE || faults->hit > 0 ? LIVED : MISSED, NULL);
}

/* --- rounds --- */

static enum outcome play_round(const struct point *point, uint64_t *ret_ns)
{
	uint64_t started = clock_monotonic_ns();
	enum outcome outcome = (enum outcome)round_play(&outcomes, play, point);

	faults->armed = 0;
	*ret_ns = clock_monotonic_ns() - started;
	return outcome;
}

static const char *error_name(int error)
{
	return error == FAULT_SHORT ? "a half" : error == 0 ? "-" : strerrorname_np(error);
}

struct table {
	unsigned points[STEPS], played[STEPS], outcomes[STEPS][OUTCOMES], harmed, slow;
	uint32_t counts[STEPS][FAULT_CALL_COUNT];
};

static struct table table;

static void play_point(const struct point *point)
{
	uint64_t ns;
	enum outcome outcome = play_round(point, &ns);

	table.played[point->step]++;
	table.outcomes[point->step][outcome]++;
	table.harmed += outcome > MISSED;
	table.slow += ns > 3 * NSEC_PER_SEC;
	if (outcome <= MISSED && ns <= 3 * NSEC_PER_SEC)
		return;
	live_note("%s after %llu ms: %s: %s no. %u, %s, %s; LIVE_FAULT=%u:%u:%u:%d:%u plays it again", outcome_names[outcome],
		  (unsigned long long)(ns / NSEC_PER_MSEC), steps[point->step].name, calls[point->call].name, point->at,
		  error_name(point->error), kind_names[point->kind], point->step, point->call, point->at, point->error,
		  point->kind);
}

/* The step's calls, by playing it without a fault: the fewest of so many rounds, since a target that works on has more of them
 * when the round takes longer, which the next one does not come to. */
static void count_points(unsigned step, unsigned rounds)
{
	struct point none = { .step = step };
	uint32_t *counts = table.counts[step];

	for (unsigned round = 0; round < rounds; round++) {
		uint64_t ns;
		enum outcome outcome = play_round(&none, &ns);

		if (outcome != LIVED)
			live_fail("%s: %s without any fault", steps[step].name, outcome_names[outcome]);
		for (unsigned call = 0; call < FAULT_CALL_COUNT; call++) {
			if (round == 0 || faults->counts[call] < counts[call])
				counts[call] = faults->counts[call];
		}
	}
	for (unsigned call = 0; call < FAULT_CALL_COUNT; call++)
		table.points[step] += counts[call];
	require_at_least(table.points[step], 10);
}

/* `most` of the calls of one name, evenly, the first and the last among them. */
static void play_spread(unsigned step, unsigned call, int error, enum fault_kind kind, unsigned most)
{
	unsigned count = table.counts[step][call], n = count < most ? count : most;

	for (unsigned i = 0; i < n; i++) {
		struct point point = { step, call, n > 1 ? 1 + i * (count - 1) / (n - 1) : 1, error, kind };

		play_point(&point);
	}
}

static void play_all(unsigned step)
{
	const char *scale = getenv("LIVE_FAULTS_MOST");
	unsigned each = scale ? (unsigned)atoi(scale) : EACH_MOST;
	unsigned other = each < OTHER_WAYS_MOST ? each : OTHER_WAYS_MOST;

	for (unsigned call = 0; call < FAULT_CALL_COUNT; call++) {
		for (unsigned way = 0; way < FAULTS_ERRORS && calls[call].errors[way] != 0; way++) {
			play_spread(step, call, calls[call].errors[way], FAULT_ONCE, way == 0 ? each : other);
			/* A call that is interrupted each time is none that anybody has seen. */
			if (calls[call].errors[way] != EINTR)
				play_spread(step, call, calls[call].errors[way], FAULT_FROM_THEN, way == 0 ? other : 1);
		}
		play_spread(step, call, 0, FAULT_SEGV, other / 2 + 1);
		play_spread(step, call, 0, FAULT_ABORT, 1);
	}
}

/* So many, as different as can be, the same each time. */
static void play_some(unsigned points)
{
	unsigned pairs = 0, index = 0;

	for (unsigned step = 0; step < STEPS; step++) {
		for (unsigned call = 0; call < FAULT_CALL_COUNT; call++)
			pairs += table.counts[step][call] > 0;
	}
	require_at_least(pairs, points);
	for (unsigned step = 0; step < STEPS; step++) {
		for (unsigned call = 0; call < FAULT_CALL_COUNT; call++) {
			unsigned count = table.counts[step][call], turn = index * points / pairs;
			struct point point = { step, call, count ? 1 + turn * 7 % count : 0, calls[call].errors[0], FAULT_ONCE };

			if (count == 0 || (index++ * points / pairs == turn && index * points / pairs == turn))
				continue;
			if (turn % 4 == 3 && point.error != EINTR)
				point.kind = turn % 8 == 3 ? FAULT_SEGV : FAULT_FROM_THEN;
			play_point(&point);
		}
	}
}

static void tell_table(void)
{
	unsigned played = 0, hit = 0;

	printf("# %-20s %8s %8s %8s %8s %8s %8s %8s %8s\n", "step", "points", "played", "hit", "nonsense", "inexact", "left",
	       "corrupt", "dead");
	for (unsigned step = 0; step < STEPS; step++) {
		const unsigned *o = table.outcomes[step];

		if (table.played[step] == 0)
			continue;
		printf("# %-20s %8u %8u %8u %8u %8u %8u %8u %8u\n", steps[step].name, table.points[step], table.played[step],
		       table.played[step] - o[MISSED], o[TOLD_NONSENSE], o[NOT_EXACT], o[LEFTOVERS], o[CORRUPT], o[DEAD]);
		played += table.played[step];
		hit += table.played[step] - o[MISSED];
		live_survey(live_text("faults: %s", steps[step].name), table.played[step], table.played[step] - o[MISSED],
			    table.played[step], table.played[step] - o[LEFTOVERS] - o[CORRUPT] - o[DEAD]);
	}
	printf("# %u points were hit\n", hit);
	fflush(stdout);
	/* A few are not come to: how often a thread is looked at is a matter of time. */
	require_at_least(hit, played * 3 / 4);
}

static void begin(void)
{
	const char *path = live_text("%s/faults", live_folder());
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, sizeof(*faults)) < 0)
		live_fail("%s: %s", path, strerror(errno));
	faults = mmap(NULL, sizeof(*faults), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (faults == MAP_FAILED)
		live_fail("%s: %s", path, strerror(errno));
	close(fd);
	setenv(FAULTS_VARIABLE, path, 1);
	tool = tool_start_with_tracer(TRACER);
}

static void replay(const char *text)
{
	struct point point;
	unsigned kind;

	if (sscanf(text, "%u:%u:%u:%d:%u", &point.step, &point.call, &point.at, &point.error, &kind) != 5 ||
	    point.step >= STEPS || point.call >= FAULT_CALL_COUNT || kind > FAULT_ABORT)
		live_fail("LIVE_FAULT: '%s' names no point", text);
	point.kind = (enum fault_kind)kind;
	play_point(&point);
	require_equal(table.harmed, 0);
}

static void whatever_fails_in_the_tracer_the_target_is_as_before(void)
{
	const char *only = getenv("LIVE_FAULTS_STEP"), *again = getenv("LIVE_FAULT");
	bool all = live_rounds(0, 1) || only;

	begin();
	if (again) {
		replay(again);
		return;
	}
	for (unsigned step = 0; step < STEPS; step++) {
		if (only && strcmp(steps[step].name, only) != 0)
			continue;
		count_points(step, all ? COUNT_ROUNDS : 1);
		if (all)
			play_all(step);
	}
	if (!all)
		play_some(POINTS);
	tell_table();
	require_equal(table.harmed, 0);
}

/* A thread that has just come to an int3 when it is to be let go gets its SIGTRAP first; whether there is one is asked
 * from /proc, and from its queue when there is no descriptor for that. */
static void a_trap_that_is_to_come_is_known_without_proc(void)
{
	struct point point = { .call = FAULT_OPEN, .at = 1, .error = EMFILE, .kind = FAULT_FROM_THEN };
	unsigned rounds = live_rounds(10, 400);

	begin();
	while (strcmp(steps[point.step].name, "detach") != 0)
		point.step++;
	for (unsigned i = 0; i < rounds; i++)
		play_point(&point);
	require_equal(table.harmed, 0);
	require_equal(table.played[point.step], rounds);
}

/* Pads (jumps_pads.c) that cannot be read are kept, with the areas whose notes name them, for a healer to find; and that there is
 * no such process, which its files say, is no reason not to send one. */
static void what_a_detach_cannot_read_is_taken_out_by_a_healer(void)
{
	static const struct point points[] = {
		{ .call = FAULT_PROCESS_VM_READV, .at = 1, .error = FAULT_SHORT, .kind = FAULT_FROM_THEN },
		{ .call = FAULT_READ, .at = 1, .error = ESRCH, .kind = FAULT_FROM_THEN },
	};
	const unsigned count = sizeof(points) / sizeof(points[0]);
	unsigned step = 0;

	begin();
	while (strcmp(steps[step].name, "detach") != 0)
		step++;
	for (unsigned i = 0; i < count; i++) {
		struct point point = points[i];

		point.step = step;
		play_point(&point);
	}
	require_equal(table.harmed, 0);
	require_equal(table.outcomes[step][LIVED], count);
}

/* The list of its threads is the last that is read, in two looks: a part of them would be attached to, and the others come to
 * int3s that nobody answers for.  The masks' threads die of that. */
static void a_list_that_breaks_off_attaches_to_no_part_of_a_process(void)
{
	struct point point = { .call = FAULT_READDIR, .error = EIO, .kind = FAULT_FROM_THEN };
	unsigned last, step = live_rounds(3, 1);

	begin();
	while (strcmp(steps[point.step].name, "attach, masks") != 0)
		point.step++;
	count_points(point.step, COUNT_ROUNDS);
	last = table.counts[point.step][FAULT_READDIR];
	require_at_least(last, LISTED_LAST);
	/* Every so many of them; the others as well where an attach had fewer looks to take than the one that was counted. */
	for (unsigned begin = 0; begin < step && table.outcomes[point.step][LIVED] < LISTED_LEAST; begin++) {
		for (point.at = last - LISTED_LAST + 1 + begin; point.at <= last; point.at += step)
			play_point(&point);
	}
	require_equal(table.harmed, 0);
	require_at_least(table.outcomes[point.step][LIVED], LISTED_LEAST);
}

static const struct live_case cases[] = {
	LIVE_CASE(a_list_that_breaks_off_attaches_to_no_part_of_a_process),
	LIVE_CASE(a_trap_that_is_to_come_is_known_without_proc),
	LIVE_CASE(what_a_detach_cannot_read_is_taken_out_by_a_healer),
	LIVE_CASE(whatever_fails_in_the_tracer_the_target_is_as_before),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
