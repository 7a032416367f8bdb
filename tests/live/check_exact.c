/* Exact to the block: the hammer's own tally against the heap that was built from outside. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <stdlib.h>

#define HAMMER "tests/victims/hammer"

/* What `stats` sums up is what `status` counts. */
static void require_exact_snapshot(struct tool *tool, const struct subject *hammer)
{
	json_t *stats = tool_stats(tool, pid_text(hammer->pid)), *row;
	long long size = 0, count = 0;
	size_t i;

	require_equal(json_number(stats, "total.size"), subject_tally(hammer, "bytes"));
	require_equal(json_number(stats, "total.count"), subject_tally(hammer, "blocks"));
	json_array_foreach(json_object_get(stats, "statistics"), i, row) {
		size += json_number(row, "size");
		count += json_number(row, "count");
	}
	require_equal(size, subject_tally(hammer, "bytes"));
	require_equal(count, subject_tally(hammer, "blocks"));
	require_at_least((long long)i, 10);
}

static void hammer_with(const char *threads, const char *ops, const char *before, unsigned int rounds,
			const char *more)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", threads, "--ops", ops, "--before", before,
					      more, NULL);
	struct state *state = state_take(hammer->pid);

	tool_attach(tool, hammer->pid);
	for (unsigned int i = 0; i < rounds; i++) {
		subject_command(hammer, 'g');
		require_tally(tool, hammer, atol(before));
	}
	require_exact_snapshot(tool, hammer);
	require_at_least(subject_tally(hammer, "allocations"), 1000);
	live_note("%s threads: %ld allocations, %ld frees, none missed", threads,
		  subject_tally(hammer, "allocations"), subject_tally(hammer, "frees"));
	tool_end(tool, hammer, state);
}

static void one_thread_is_counted_exactly(void)
{
	hammer_with("1", "10000", "0", live_rounds(2, 4), NULL);
}

static void four_threads_are_counted_exactly(void)
{
	hammer_with("4", "4000", "0", live_rounds(2, 4), NULL);
}

static void sixteen_threads_are_counted_exactly(void)
{
	hammer_with("16", "1500", "0", live_rounds(2, 4), NULL);
}

static void sixty_four_threads_are_counted_exactly(void)
{
	hammer_with("64", "500", "0", live_rounds(2, 4), NULL);
}

static void a_thousand_threads_are_counted_exactly(void)
{
	hammer_with("1000", "10", "0", 2, NULL);
}

static void blocks_from_before_the_attach_are_told_apart(void)
{
	hammer_with("4", "1000", "5000", 3, NULL);
	hammer_with("16", "100", "777", 2, NULL);
}

static void threads_that_block_every_signal_are_counted_exactly(void)
{
	hammer_with("4", "2000", "0", 2, "--block-signals");
}

/* No round ends between attach and the first look: only totals of later rounds are exact then, but
 * nothing may be lost either. */
static void a_busy_process_is_counted_exactly_from_the_attach_on(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", "4", "--ops", "200", NULL);
	struct state *state = state_take(hammer->pid);
	json_t *status;
	long long frees_from_before;

	subject_send(hammer, 'r');
	tool_attach(tool, hammer->pid);
	subject_command(hammer, 's');
	status = tool_status(tool, hammer->pid);
	frees_from_before = json_number(status, "unknown.before_attach_frees");
	require_nothing_unknown(status, frees_from_before);
	require_at_least(json_number(status, "allocations"), 1);
	live_note("%lld blocks from before the attach were freed", frees_from_before);
	tool_end(tool, hammer, state);
}

/* Whatever a status looks at in the process, it takes no event from it. */
static void nothing_is_missed_while_status_is_asked_for(void)
{
	struct tool *tool = tool_start();
	struct subject *hammer = victim_start(HAMMER, "--threads", "64", "--ops", "500", NULL);
	struct state *state = state_take(hammer->pid);
	int rounds = live_rounds(400, 4000);

	/* So many threads leave the tracer little where there is little, and each waits the longer for its turn. */
	tool_out(tool, "attach", "--ring-wait", "60s", pid_text(hammer->pid), NULL);
	subject_send(hammer, 'r');
	for (int i = 0; i < rounds; i++)
		tool_status(tool, hammer->pid);
	subject_command(hammer, 's');
	require_tally(tool, hammer, 0);
	live_note("%d answers, %ld allocations, none missed", rounds, subject_tally(hammer, "allocations"));
	tool_end(tool, hammer, state);
}

static const struct live_case cases[] = {
	LIVE_CASE(one_thread_is_counted_exactly),
	LIVE_CASE(four_threads_are_counted_exactly),
	LIVE_CASE(sixteen_threads_are_counted_exactly),
	LIVE_CASE(sixty_four_threads_are_counted_exactly),
	LIVE_CASE(a_thousand_threads_are_counted_exactly),
	LIVE_CASE(blocks_from_before_the_attach_are_told_apart),
	LIVE_CASE(threads_that_block_every_signal_are_counted_exactly),
	LIVE_CASE(a_busy_process_is_counted_exactly_from_the_attach_on),
	LIVE_CASE(nothing_is_missed_while_status_is_asked_for),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
