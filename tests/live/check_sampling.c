/* Samples in place of all that is allocated: there are as many as chance would give, the estimates and their errors follow from them,
 * what is freed leaves nothing, and where samples cannot be had that is said.
 *
 * A run of the program asks some 50 times whether there are too few or too many samples, each with a chance of less than 10^-8 that
 * luck alone makes it fail (estimates.h). */
#include "estimates.h"
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <stdlib.h>
#include <string.h>

#define VICTIM "tests/victims/sampled"
#define SOURCE "tests/victims/sampled.c"
#define WAIT_MS 15000
#define SAMPLE_BYTES 4096
#define SAMPLE_TEXT "4K"

/* option: one more, or NULL. */
static void attach_sampling(struct tool *tool, pid_t pid, const char *bytes, const char *option)
{
	/* On a machine that is so busy that the tracer gets no processor for long. */
	tool_out(tool, "attach", pid_text(pid), "--sample-bytes", bytes, "--ring-wait", "30s", option, NULL);
	require_text(json_text(tool_status(tool, pid), "engine"), "ring");
}

static json_t *row_of(json_t *document, const char *text)
{
	json_t *row = row_at(document, SOURCE, line_of(SOURCE, text));

	if (!row)
		live_fail("there is no row for %s", text);
	return row;
}

static void require_estimate(json_t *document, const char *text, long size, long count)
{
	estimates_add(row_of(document, text), text, SAMPLE_BYTES, (uint64_t)size, (uint64_t)count);
}

static void require_gone(json_t *document, const char *text)
{
	json_t *row = row_at(document, SOURCE, line_of(SOURCE, text));

	require(!row || (json_number(row, "size") == 0 && json_number(row, "count") == 0));
}

/* But for what the C library keeps of threads that have ended. */
static void require_nothing_lives(struct tool *tool, pid_t pid)
{
	static const char *const sites[] = { "/* even */", "/* odd */", "/* chain */", "/* aligned */", "/* zeroed */" };
	json_t *status = tool_status(tool, pid), *stats = tool_stats(tool, pid_text(pid));

	for (unsigned i = 0; i < sizeof(sites) / sizeof(sites[0]); i++)
		require_gone(stats, sites[i]);
	require_equal(json_number(status, "pending_calls"), 0);
	require_equal(json_number(status, "unknown.lost_events"), 0);
	require_equal(json_number(status, "unknown.unknown_frees"), 0);
}

static void require_estimates(struct tool *tool, struct subject *victim, pid_t pid)
{
	json_t *stats = tool_stats(tool, pid_text(pid));
	long turns = subject_tally(victim, "turns"), chains = subject_tally(victim, "chains");
	long aligned = subject_tally(victim, "aligned");

	require_equal(json_number(stats, "sample_bytes"), SAMPLE_BYTES);
	require_estimate(stats, "/* even */", 100, turns);
	require_estimate(stats, "/* odd */", 100, turns);
	require_estimate(stats, "/* chain */", 700, chains);
	require_estimate(stats, "/* aligned */", 400, aligned);
	require_gone(stats, "/* zeroed */");
}

static void require_estimates_in_rounds(struct tool *tool, struct subject *victim, pid_t pid)
{
	for (unsigned i = 0; i < live_rounds(3, 30); i++) {
		subject_command(victim, 'g');
		require_estimates(tool, victim, pid);
		subject_command(victim, 'f');
		require_nothing_lives(tool, pid);
	}
}

/* option: of attach, or NULL. */
static void estimates_hold(const char *threads, const char *option)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(VICTIM, "--threads", threads, NULL);
	struct state *before = state_take(victim->pid);

	attach_sampling(tool, victim->pid, SAMPLE_TEXT, option);
	require_estimates_in_rounds(tool, victim, victim->pid);
	estimates_require_unbiased();
	tool_end(tool, victim, before);
}

static void sites_that_take_turns_come_out_equal(void)
{
	estimates_hold("1", NULL);
}

static void many_threads_are_estimated_as_one_is(void)
{
	estimates_hold("12", NULL);
}

static void require_same(json_t *document, json_t *other, const char *text)
{
	static const char *const figures[] = { "size", "count", "size_error", "samples" };

	for (unsigned i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		require_equal(json_number(row_of(document, text), figures[i]), json_number(row_of(other, text), figures[i]));
}

/* What was sampled of its parent is its own as well, and is freed there. */
static void a_followed_child_is_sampled_and_has_its_parents_samples(void)
{
	static const char *const sites[] = { "/* even */", "/* odd */", "/* chain */", "/* aligned */" };
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(VICTIM, "--threads", "4", NULL);
	struct state *before = state_take(victim->pid);
	json_t *stats;
	pid_t child;

	attach_sampling(tool, victim->pid, SAMPLE_TEXT, "--follow-forks");
	subject_command(victim, 'g');
	subject_command(victim, 'c');
	child = (pid_t)subject_tally(victim, "pid");
	require(child != victim->pid);
	tool_wait_until_traced(tool, child, WAIT_MS);
	stats = tool_stats(tool, pid_text(victim->pid));
	for (unsigned i = 0; i < sizeof(sites) / sizeof(sites[0]); i++)
		require_same(tool_stats(tool, pid_text(child)), stats, sites[i]);
	subject_command(victim, 'f');
	require_nothing_lives(tool, child);
	require_estimates_in_rounds(tool, victim, child);
	estimates_require_unbiased();
	/* Nothing of that was its parent's. */
	for (unsigned i = 0; i < sizeof(sites) / sizeof(sites[0]); i++)
		require_same(tool_stats(tool, pid_text(victim->pid)), stats, sites[i]);
	subject_command(victim, 'e');
	tool_wait_until_gone(tool, child, WAIT_MS);
	subject_command(victim, 'f');
	require_nothing_lives(tool, victim->pid);
	tool_end(tool, victim, before);
}

static void without_ptrace_estimates_hold_too(void)
{
	estimates_hold("4", "--release");
}

#define BOX "box box_new(count, size) box_resize(size, old) box_free(-, old)"
#define FORWARD "forward forward_get(size) forward_put(old)"
#define CELL "cell cell_make(result, size) cell_end(old)"
#define SLAB "slab slab_get(-)=64 slab_put(old)"

static const struct {
	const char *domain, *text;
	uint64_t size;
} own_sites[] = {
	{ "box", "/* box */", 100 }, { "box", "/* grown */", 100 }, { "forward", "/* forward */", 100 },
	{ "cell", "/* cell */", 100 }, { "slab", "/* slab */", 64 },
	{ "malloc", "/* in a box */", 116 }, { "malloc", "/* in a grown box */", 116 }, { "malloc", "/* forward */", 100 },
};

static json_t *stats_of(struct tool *tool, pid_t pid, const char *domain)
{
	return tool_json(tool, "stats", pid_text(pid), "--filter", live_text("@domain=%s", domain), NULL);
}

/* Also of what one asks another for: each is drawn by itself, and a block of both has two samples, one, or none. */
static void require_own_allocators_estimates(const char *option)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(VICTIM, NULL);
	struct state *before = state_take(victim->pid);
	pid_t pid = victim->pid;

	tool_out(tool, "attach", pid_text(pid), "--sample-bytes", SAMPLE_TEXT, "--ring-wait", "30s", "--allocator", BOX, "--allocator",
		 FORWARD, "--allocator", CELL, "--allocator", SLAB, option, NULL);
	for (unsigned i = 0; i < live_rounds(3, 30); i++) {
		subject_command(victim, 'p');
		require_equal(subject_tally(victim, "pooled"), 10000);
		for (unsigned k = 0; k < sizeof(own_sites) / sizeof(own_sites[0]); k++)
			estimates_add(row_of(stats_of(tool, pid, own_sites[k].domain), own_sites[k].text),
				      live_text("%s by %s", own_sites[k].text, own_sites[k].domain), SAMPLE_BYTES,
				      own_sites[k].size, 10000);
		subject_command(victim, 'u');
		for (unsigned k = 0; k < sizeof(own_sites) / sizeof(own_sites[0]); k++)
			require_gone(stats_of(tool, pid, own_sites[k].domain), own_sites[k].text);
		subject_command(victim, 'g');
		require_estimates(tool, victim, pid);
		subject_command(victim, 'f');
		require_nothing_lives(tool, pid);
	}
	estimates_require_unbiased();
	tool_end(tool, victim, before);
}

static void described_allocators_are_sampled_beside_malloc(void)
{
	require_own_allocators_estimates(NULL);
}

static void described_allocators_are_sampled_without_ptrace(void)
{
	require_own_allocators_estimates("--release");
}

static void what_is_sampled_is_not_exact_and_says_so(void)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(VICTIM, NULL);
	struct state *before = state_take(victim->pid);
	json_t *status;

	attach_sampling(tool, victim->pid, "64K", NULL);
	status = tool_status(tool, victim->pid);
	require_equal(json_number(status, "sample_bytes"), 65536);
	require(json_is_false(json_object_get(status, "exact")));
	subject_command(victim, 'g');
	require_text(tool_out(tool, "stats", pid_text(victim->pid), NULL), " +- ");
	tool_end(tool, victim, before);
}

/* Blocks that were sampled before the while without a tracer are known after it. */
static void after_a_while_aside_frees_are_seen(void)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(VICTIM, NULL);
	struct state *before = state_take(victim->pid);

	attach_sampling(tool, victim->pid, SAMPLE_TEXT, NULL);
	subject_command(victim, 'g');
	tool_out(tool, "detach", "--keep", pid_text(victim->pid), NULL);
	attach_sampling(tool, victim->pid, SAMPLE_TEXT, NULL);
	subject_command(victim, 'f');
	require_equal(json_number(tool_status(tool, victim->pid), "blocks"), 0);
	tool_end(tool, victim, before);
}

/* Its ring comes when its C library is loaded. */
static void a_command_that_is_run_is_sampled(void)
{
	struct tool *tool = tool_start();
	json_t *stats;

	tool_out(tool, "run", "--sample-bytes", SAMPLE_TEXT, "--", live_text("%s/" VICTIM, live_build()), "--once", NULL);
	stats = tool_stats(tool, "s1");
	require_equal(json_number(stats, "sample_bytes"), SAMPLE_BYTES);
	require_estimate(stats, "/* even */", 100, 20000);
	require_estimate(stats, "/* chain */", 700, 2000);
	estimates_require_unbiased();
}

static void a_file_keeps_the_rate(void)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(VICTIM, NULL);
	struct state *before = state_take(victim->pid);
	const char *file = live_text("%s/samples", live_folder());
	json_t *diff;

	attach_sampling(tool, victim->pid, SAMPLE_TEXT, NULL);
	tool_out(tool, "dump", pid_text(victim->pid), file, NULL);
	subject_command(victim, 'g');
	tool_out(tool, "dump", pid_text(victim->pid), live_text("%s.2", file), NULL);
	diff = tool_diff(tool, file, live_text("%s.2", file));
	require_equal(json_number(diff, "sample_bytes"), SAMPLE_BYTES);
	require_estimate(diff, "/* even */", 100, subject_tally(victim, "turns"));
	estimates_require_unbiased();
	require_equal(json_number(row_of(diff, "/* even */"), "size_diff"), json_number(row_of(diff, "/* even */"), "size"));
	tool_end(tool, victim, before);
}

static void what_samples_cannot_go_with_is_refused(void)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(VICTIM, NULL);
	struct state *before = state_take(victim->pid);
	struct tool_run run = tool_try(tool, "attach", "--sample-bytes", SAMPLE_TEXT, "--engine", "int3", pid_text(victim->pid), NULL);

	require_equal(run.status, 1);
	require_text(run.err, "samples cannot be had");
	run = tool_try(tool, "attach", "--sample-bytes", SAMPLE_TEXT, "--domains", "malloc,mmap", pid_text(victim->pid), NULL);
	require_equal(run.status, 1);
	require_text(run.err, "samples cannot be had");
	tool_attach(tool, victim->pid);
	tool_end(tool, victim, before);
}

int main(int argc, char **argv)
{
	static const struct live_case cases[] = {
		LIVE_CASE(sites_that_take_turns_come_out_equal),
		LIVE_CASE(many_threads_are_estimated_as_one_is),
		LIVE_CASE(a_followed_child_is_sampled_and_has_its_parents_samples),
		LIVE_CASE(without_ptrace_estimates_hold_too),
		LIVE_CASE(described_allocators_are_sampled_beside_malloc),
		LIVE_CASE(described_allocators_are_sampled_without_ptrace),
		LIVE_CASE(what_is_sampled_is_not_exact_and_says_so),
		LIVE_CASE(after_a_while_aside_frees_are_seen),
		LIVE_CASE(a_command_that_is_run_is_sampled),
		LIVE_CASE(a_file_keeps_the_rate),
		LIVE_CASE(what_samples_cannot_go_with_is_refused),
	};

	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
