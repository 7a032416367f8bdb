/* How long threads are held at once: by their own clocks, and what status says of it. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "base/clock.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define HELD_MOST_US 100000
#define SLACK_US 1000          /* what is shorter is no matter of the machine's schedule */
#define ROUNDS 2
#define ROUNDS_JUDGED 15       /* so many, where one was held for too long in one of the first */
#define ROUNDS_LONG 100
#define HEALED_MS 15000

struct sums {
	unsigned rounds, too_long, too_much;    /* of these: in which a thread was held for too long, or we say too much */
	bool says_too_much;            /* in this round */
	long longest;                  /* of all rounds */
};

/* Held for too long in more than one of five, as on a machine that has others to serve first. */
static bool too_many(const struct sums *sums)
{
	return sums->too_long > sums->rounds / 5;
}

/* Of few rounds one that happened to meet such a machine says nothing: then there are more. */
static bool go_on(const struct sums *sums, unsigned rounds)
{
	return sums->rounds < rounds || (sums->rounds < ROUNDS_JUDGED && too_many(sums));
}

static struct subject *start(const char *threads)
{
	struct subject *held;

	setenv("HELD_PLUGIN", live_text("%s/tests/victims/plugin.so", live_build()), 1);
	held = victim_start("tests/victims/held", "--threads", threads, NULL);
	subject_command(held, 'g');
	return held;
}

/* Its own longest, of what came since it was asked last, or of what was before. */
static long ask(struct subject *held, char command, long before)
{
	long longest;

	subject_command(held, command);
	require_at_least(subject_tally(held, "looks"), 1);
	longest = subject_tally(held, "longest_us");
	return longest > before ? longest : before;
}

static long long our_word(struct tool *tool, pid_t pid)
{
	return json_number(tool_status(tool, pid), "longest_stop_us");
}

/* How long the tracer has ever waited for a processor. */
static long long tracer_waited_us(pid_t pid)
{
	FILE *file = fopen(live_text("/proc/%d/schedstat", tool_tracer(pid)), "r");
	unsigned long long waited_ns = 0;

	require(file && fscanf(file, "%*u %llu", &waited_ns) == 1);
	fclose(file);
	return (long long)(waited_ns / NSEC_PER_USEC);
}

/* What we say, with what it was before and after we were asked, which may hold a thread, too.  Never less than it was; more
 * it may be where a thread may have stopped, or not, while the tracer waited for a processor. */
static long compare(struct sums *sums, const char *when, struct tool *tool, struct subject *held, long before)
{
	long long ours = our_word(tool, held->pid);
	long after = ask(held, 'g', before);

	if (3 * (ours + SLACK_US) < 2 * before)
		live_fail("%s: held for %ld us by its own clock, and we say only %lld", when, before, ours);
	if (2 * (ours - SLACK_US - tracer_waited_us(held->pid)) > 3 * after) {
		live_note("%s: held for %ld us by its own clock, and we say %lld; the tracer has waited for %lld", when, after, ours,
			  tracer_waited_us(held->pid));
		sums->says_too_much = true;
	}
	return after;
}

static void end_round(struct sums *sums, long longest)
{
	sums->rounds++;
	sums->too_long += longest > HELD_MOST_US;
	sums->too_much += sums->says_too_much;
	sums->says_too_much = false;
	if (longest > sums->longest)
		sums->longest = longest;
}

static void play(struct tool *tool, const char *threads, struct sums *sums)
{
	struct subject *held = start(threads);
	long longest;

	tool_attach(tool, held->pid);
	longest = compare(sums, "attach", tool, held, ask(held, 'g', 0));
	longest = compare(sums, "dlopen", tool, held, ask(held, 'o', longest));
	tool_out(tool, "snapshot", pid_text(held->pid), "--blocks", NULL);
	longest = compare(sums, "snapshot", tool, held, ask(held, 'g', longest));
	tool_detach(tool, held->pid);
	longest = ask(held, 'g', longest);
	end_round(sums, longest);
	require_unharmed(held->pid, NULL);
	subject_quit(held);
}

/* In one round of ten we may say more. */
static void tell(const struct sums *sums, const char *kind)
{
	live_note("%s: %u rounds, the longest that a thread was held: %ld us", kind, sums->rounds, sums->longest);
	live_survey(live_text("held for 100 ms at most: %s", kind), sums->rounds, 0, sums->rounds, sums->rounds);
	if (too_many(sums))
		live_fail("%s: held for longer than 100 ms in %u of %u rounds", kind, sums->too_long, sums->rounds);
	if (sums->too_much > 1 + sums->rounds / 10)
		live_fail("%s: in %u of %u rounds we say more than 1.5 times what it was", kind, sums->too_much, sums->rounds);
	live_note("%s: in %u of %u rounds we say more than 1.5 times what it was", kind, sums->too_much, sums->rounds);
}

static void no_thread_is_held_for_long_and_we_know_how_long(void)
{
	static const char *const threads[] = { "2", "8", "16" };
	unsigned rounds = live_rounds(ROUNDS, ROUNDS_LONG);
	struct tool *tool = tool_start();

	for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++) {
		struct sums sums = { 0 };

		while (go_on(&sums, rounds))
			play(tool, threads[i], &sums);
		tell(&sums, live_text("%s threads", threads[i]));
	}
}

static void healing_holds_no_thread_for_long(void)
{
	unsigned rounds = live_rounds(ROUNDS, ROUNDS_LONG);
	struct tool *tool = tool_start();
	struct sums sums = { 0 };

	while (go_on(&sums, rounds)) {
		struct subject *held = start("8");

		tool_attach(tool, held->pid);
		ask(held, 'g', 0);
		kill(tool_tracer(held->pid), SIGKILL);
		require(live_wait(state_text_is_intact, &held->pid, HEALED_MS));
		require(live_wait(state_is_untraced, &held->pid, HEALED_MS));
		end_round(&sums, ask(held, 'g', 0));
		subject_quit(held);
	}
	tell(&sums, "healing");
}

static const struct live_case cases[] = {
	LIVE_CASE(no_thread_is_held_for_long_and_we_know_how_long),
	LIVE_CASE(healing_holds_no_thread_for_long),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
