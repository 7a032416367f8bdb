/* Allocators that a user describes: each in a domain of its own, above or beside malloc. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOURCE "tests/victims/pools.c"
#define POOL "pool pool_get(-, size) pool_put(-, old)"
#define BOX "box box_new(count, size) box_resize(old, size) box_free(old)"
#define FORWARD "forward forward_get(size) forward_put(old)"

static struct subject *start_built(const char *source, const char *options)
{
	const char *program = live_text("%s/program", live_folder()), *argv[] = { program, NULL };
	struct subject *subject;

	unlink(program);
	require_equal(system(live_text("gcc -O2 -g -fno-builtin %s -o %s $(realpath %s/%s)", options, program, live_source(),
				       source)), 0);
	subject = subject_start(geteuid(), argv);
	require_text(subject_line(subject), "R");
	return subject;
}

static struct subject *start_pools(void)
{
	return start_built(SOURCE, "");
}

/* size and count of the row for the line, in this domain alone. */
static void require_in(struct tool *tool, const char *who, const char *domain, const char *line, long long size, long long count)
{
	json_t *stats = tool_json(tool, "stats", who, "--filter", live_text("@domain=%s", domain), NULL);

	require_row(stats, SOURCE, line, size, count);
	require_equal(json_number(stats, "total.size"), size);
}

static long long blocks_of(json_t *status, const char *domain)
{
	return json_number(status, live_text("domains.%s.blocks", domain));
}

static void each_has_a_domain_of_its_own(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = start_pools();
	struct state *before = state_take(subject->pid);
	const char *who = pid_text(subject->pid);
	json_t *status;

	tool_out(tool, "attach", who, "--allocator", POOL, "--allocator", BOX, "--allocator",
		 "cells cell_make(result, size)", "--allocator", "slab program:slab_get(-)=64", NULL);
	subject_command(subject, 'g');
	require_row(tool_json(tool, "stats", who, "--hide", "cell_make", "--hide", "slab_get", NULL), SOURCE, "/* pool */", 100, 1);
	status = tool_status(tool, subject->pid);
	require_nothing_unknown(status, 0);
	require_equal(json_number(status, "pending_calls"), 0);
	/* Those that cell_make and slab_get have taken are the pool's as well. */
	require_equal(blocks_of(status, "pool"), 3);
	require_equal(blocks_of(status, "cells"), 1);
	require_equal(blocks_of(status, "slab"), 1);
	require_equal(blocks_of(status, "box"), 1);
	/* The box's and the forwarded. */
	require_equal(blocks_of(status, "malloc"), 2);
	require_equal(json_number(status, "domains.cells.live_bytes"), 300);
	require_equal(json_number(status, "domains.slab.live_bytes"), 64);
	require_equal(json_number(status, "domains.box.live_bytes"), 1000);
	require_text(tool_out(tool, "stats", who, "--by", "domain", NULL), "box: size=1000 B, count=1");
	require_in(tool, who, "cells", "/* cell */", 300, 1);
	require_in(tool, who, "slab", "/* slab */", 64, 1);
	require_in(tool, who, "box", "/* resized */", 1000, 1);
	tool_end(tool, subject, before);
}

/* Also for who has never heard of it, and after the daemon's end. */
static void a_file_knows_the_names_of_its_domains(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = start_pools();
	struct state *before = state_take(subject->pid);
	const char *who = pid_text(subject->pid), *saved = live_text("%s/saved", live_folder());

	tool_out(tool, "attach", who, "--allocator", "first forward_get(size)", "--allocator", BOX, NULL);
	subject_command(subject, 'g');
	tool_out(tool, "snapshot", who, "--name", "kept", NULL);
	tool_out(tool, "dump", who, saved, NULL);
	tool_end(tool, subject, before);
	require_text(tool_out(tool, "stats", saved, "--by", "domain", NULL), "box: size=1000 B, count=1");
	require_in(tool, saved, "box", "/* resized */", 1000, 1);
	tool_end_daemon(tool, SIGTERM);
	tool_start_again(tool);
	require_text(tool_out(tool, "stats", live_text("%s:kept", who), "--by", "domain", NULL), "box: size=1000 B, count=1");
}

static void a_block_lists_all_its_holders_the_innermost_first(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = start_pools();
	struct state *before = state_take(subject->pid);
	const char *who = pid_text(subject->pid);
	json_t *blocks;

	tool_out(tool, "attach", who, "--allocator", BOX, NULL);
	subject_command(subject, 'g');
	blocks = json_object_get(tool_json(tool, "block", who, live_text("0x%lx", (unsigned long)subject_tally(subject, "box") + 5),
					   NULL), "blocks");
	require_equal((long long)json_array_size(blocks), 2);
	require_text(json_text(json_array_get(blocks, 0), "domain"), "box");
	require_equal(json_number(json_array_get(blocks, 0), "size"), 1000);
	require_text(json_text(json_array_get(blocks, 1), "domain"), "malloc");
	require_equal(json_number(json_array_get(blocks, 1), "size"), 1016);
	tool_end(tool, subject, before);
}

/* ring: the option that asks for it; NULL: whichever engine the run has. */
static void require_both_domains(const char *ring)
{
	struct tool *tool = tool_start();
	struct subject *subject = start_pools();
	struct state *before = state_take(subject->pid);
	const char *who = pid_text(subject->pid);
	json_t *status;

	tool_out(tool, "attach", who, "--allocator", FORWARD, ring, NULL);
	for (unsigned i = 0; i < 10; i++)
		subject_command(subject, 'g');
	status = tool_status(tool, subject->pid);
	require_nothing_unknown(status, 0);
	if (ring)
		require_text(json_text(status, "engine"), "ring");
	require_equal(blocks_of(status, "forward"), 10);
	require_equal(json_number(status, "domains.forward.live_bytes"), 7000);
	require_equal(blocks_of(status, "malloc"), 20);
	require_in(tool, who, "forward", "/* forwarded */", 7000, 10);
	tool_end(tool, subject, before);
}

static void one_that_jumps_to_malloc_is_seen_in_both_domains(void)
{
	require_both_domains(NULL);
}

/* Where a record at the place of a pending call has no stack. */
static void so_it_is_with_the_ring_engine(void)
{
	require_both_domains("--engine=ring");
}

static struct tool *start_configured(const char *text)
{
	const char *folder = live_text("%s/allocwatch", live_folder());
	const char *const wrapper[] = { "env", live_text("XDG_CONFIG_HOME=%s", live_folder()), NULL };
	FILE *file;

	require_equal(mkdir(folder, 0700), 0);
	file = fopen(live_text("%s/allocwatchd.conf", folder), "w");
	require(file && fputs(text, file) >= 0 && fclose(file) == 0);
	return tool_start_wrapped(wrapper);
}

static void those_of_the_configuration_are_hidden_frames(void)
{
	struct tool *tool = start_configured("[Allocators]\nAllocator=" POOL "\nAllocator=" BOX "\n");
	struct subject *subject = start_pools();
	struct state *before = state_take(subject->pid);
	const char *who = pid_text(subject->pid);

	tool_attach(tool, subject->pid);
	subject_command(subject, 'g');
	require_equal(blocks_of(tool_status(tool, subject->pid), "box"), 1);
	/* What malloc has given to the box is the user's line's, too. */
	require_in(tool, who, "box", "/* resized */", 1000, 1);
	require_row(tool_json(tool, "stats", who, "--filter", "@domain=malloc", NULL), SOURCE, "/* resized */", 1016, 1);
	tool_end(tool, subject, before);
}

static void a_function_that_cannot_be_watched_says_why(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = start_pools();
	struct state *before = state_take(subject->pid);
	const char *who = pid_text(subject->pid);
	struct tool_run run = tool_try(tool, "attach", who, "--allocator", "odd odd_get(size)", NULL);

	require_equal(run.status, 0);
	require_text(run.err, "odd_get in ");
	require_text(run.err, "cannot be probed: ");
	tool_detach(tool, subject->pid);
	run = tool_try(tool, "attach", who, "--allocator", "none nowhere_get(size)", NULL);
	require_equal(run.status, 0);
	require_text(run.err, "no object so far has the function nowhere_get");
	tool_end(tool, subject, before);
}

/* Its records have three arguments. */
static void the_ring_engine_leaves_later_arguments_to_int3(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = start_pools();
	struct state *before = state_take(subject->pid);
	const char *who = pid_text(subject->pid);

	tool_out(tool, "attach", who, "--engine", "ring", "--allocator", "four slab_get(-, -, -, size)", NULL);
	require_text(json_text(tool_status(tool, subject->pid), "engine"), "int3");
	tool_end(tool, subject, before);
}

static void a_bad_description_is_refused(void)
{
	struct tool *tool = tool_start();
	struct tool_run run = tool_try(tool, "attach", "1", "--allocator", "pool pool_get(-, sise)", NULL);

	require_equal(run.status, 2);
	require_text(run.err, "calls an argument of pool_get 'sise'");
}

static void allocators_with_a_prefix_are_found(void)
{
	static const char *const options[] = { "-DPREFIX=je_", "-DPREFIX=_rjem_", "-DPREFIX=mi_", "-DPREFIX=tc_ -DWITHOUT_STRANGERS" };
	struct tool *tool = tool_start();

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		struct subject *subject = start_built("tests/victims/prefixed.c", options[i]);
		struct state *before = state_take(subject->pid);
		json_t *status, *stats;

		tool_attach(tool, subject->pid);
		subject_command(subject, 'g');
		status = tool_status(tool, subject->pid);
		require_nothing_unknown(status, 0);
		require_equal(json_number(status, "blocks"), 2);
		stats = tool_stats(tool, pid_text(subject->pid));
		require_row(stats, "tests/victims/prefixed.c", "/* kept */", 100, 1);
		require_row(stats, "tests/victims/prefixed.c", "/* resized */", 80, 1);
		tool_end(tool, subject, before);
	}
}

static const struct live_case cases[] = {
	LIVE_CASE(allocators_with_a_prefix_are_found),
	LIVE_CASE(each_has_a_domain_of_its_own),
	LIVE_CASE(a_file_knows_the_names_of_its_domains),
	LIVE_CASE(a_block_lists_all_its_holders_the_innermost_first),
	LIVE_CASE(one_that_jumps_to_malloc_is_seen_in_both_domains),
	LIVE_CASE(so_it_is_with_the_ring_engine),
	LIVE_CASE(those_of_the_configuration_are_hidden_frames),
	LIVE_CASE(a_function_that_cannot_be_watched_says_why),
	LIVE_CASE(the_ring_engine_leaves_later_arguments_to_int3),
	LIVE_CASE(a_bad_description_is_refused),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
