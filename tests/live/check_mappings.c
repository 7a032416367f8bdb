/* The domain mmap: what it has is what the kernel says that the process has got. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SOURCE "tests/victims/mappings.c"
#define PAGE 4096LL

/* Bytes of all mappings but the first stack, which grows by itself. */
static long long mapped_bytes(pid_t pid)
{
	FILE *file = fopen(live_text("/proc/%d/smaps", pid), "r");
	char line[512];
	long long kib, sum = 0;
	bool is_stack = false;

	require(file != NULL);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Size: %lld kB", &kib) == 1)
			sum += is_stack ? 0 : kib * 1024;
		else if (strchr(line, '-') && strchr(line, ':'))
			is_stack = strstr(line, "[stack]") != NULL;
	}
	fclose(file);
	return sum;
}

/* A domain of which nothing lives is not there. */
static long long domain_bytes(struct tool *tool, pid_t pid)
{
	json_t *status = tool_status(tool, pid);

	return json_object_get(json_object_get(status, "domains"), "mmap") ? json_number(status, "domains.mmap.live_bytes") : 0;
}

static void attach(struct tool *tool, pid_t pid, const char *engine)
{
	tool_out(tool, "attach", pid_text(pid), "--domains", "mmap", "--engine", engine, NULL);
}

static void require_in(struct tool *tool, pid_t pid, const char *line, long long pages, long long count)
{
	require_row(tool_json(tool, "stats", pid_text(pid), "--filter", "@domain=mmap", NULL), SOURCE, line, pages * PAGE,
		    count);
}

static void require_rows(struct tool *tool, pid_t pid)
{
	require_in(tool, pid, "/* hole */", 7, 2);
	require_in(tool, pid, "/* moved */", 300, 1);
	require_in(tool, pid, "/* under */", 2, 1);
	require_in(tool, pid, "/* over */", 2, 1);
	require_in(tool, pid, "/* failing */", 2, 1);
	require_in(tool, pid, "/* file */", 3, 1);
}

static void require_sums(const char *victim, const char *engine)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start(victim, NULL);
	long long mapped, tally;

	subject_command(subject, 'g');
	tally = subject_tally(subject, "bytes");
	attach(tool, subject->pid, engine);
	require_text(json_text(tool_status(tool, subject->pid), "engine"), engine);
	mapped = mapped_bytes(subject->pid);
	subject_command(subject, 'g');
	require_equal(domain_bytes(tool, subject->pid), subject_tally(subject, "bytes") - tally);
	require_equal(domain_bytes(tool, subject->pid), mapped_bytes(subject->pid) - mapped);
	require_rows(tool, subject->pid);
	for (int i = 0; i < 10; i++)
		subject_command(subject, 'g');
	require_equal(domain_bytes(tool, subject->pid), subject_tally(subject, "bytes") - tally);
	require_equal(domain_bytes(tool, subject->pid), mapped_bytes(subject->pid) - mapped);
	require_nothing_unknown(tool_status(tool, subject->pid), 0);
	require_equal(json_number(tool_status(tool, subject->pid), "pending_calls"), 0);
	tool_detach(tool, subject->pid);
	text_require_intact(subject->pid);
	subject_quit(subject);
}

static void what_is_mapped_is_what_smaps_says(void)
{
	require_sums("tests/victims/mappings", "int3");
}

static void so_it_is_beside_the_ring(void)
{
	require_sums("tests/victims/mappings", "ring");
}

static void so_it_is_in_a_static_program(void)
{
	require_sums("tests/victims/mappings_static", "int3");
}

static void threads_that_map_at_once_are_told_in_order(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start("tests/victims/mappings", NULL);
	long long mapped;

	attach(tool, subject->pid, "int3");
	mapped = mapped_bytes(subject->pid);
	for (int i = 0; i < 3; i++) {
		subject_command(subject, 'x');
		require_equal(domain_bytes(tool, subject->pid), subject_tally(subject, "bytes"));
		require_equal(domain_bytes(tool, subject->pid), mapped_bytes(subject->pid) - mapped);
	}
	require_nothing_unknown(tool_status(tool, subject->pid), 0);
	tool_detach(tool, subject->pid);
	text_require_intact(subject->pid);
	subject_quit(subject);
}

/* malloc's own count as what malloc has given, and not once more. */
static void require_mallocs_own(const char *engine)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start("tests/victims/mappings", NULL);
	struct state *before = state_take(subject->pid);
	long long mapped;
	json_t *status;

	attach(tool, subject->pid, engine);
	mapped = mapped_bytes(subject->pid);
	subject_command(subject, 'm');
	require_at_least(mapped_bytes(subject->pid) - mapped, 8 << 20);
	status = tool_status(tool, subject->pid);
	require_equal(domain_bytes(tool, subject->pid), 0);
	require_equal(json_number(status, "domains.malloc.live_bytes"), 8 * (1 << 20) + 2000 * 1000);
	subject_command(subject, 'f');
	status = tool_status(tool, subject->pid);
	require_equal(json_number(status, "blocks"), 0);
	require_nothing_unknown(status, 0);
	tool_end(tool, subject, before);
}

static void what_malloc_maps_for_itself_is_no_mapping(void)
{
	require_mallocs_own("int3");
	require_mallocs_own("ring");
}

static void what_is_older_than_the_attach_is_no_loss(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start("tests/victims/mappings", NULL);

	subject_command(subject, 'm');
	attach(tool, subject->pid, "int3");
	subject_command(subject, 'f');
	/* The frees alone, and not what they unmap. */
	require_nothing_unknown(tool_status(tool, subject->pid), 8 + 2000);
	require_equal(domain_bytes(tool, subject->pid), 0);
	tool_detach(tool, subject->pid);
	text_require_intact(subject->pid);
	subject_quit(subject);
}

static void a_threads_stack_is_the_line_that_made_the_thread(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start("tests/victims/mappings", NULL);
	json_t *row;

	attach(tool, subject->pid, "int3");
	subject_command(subject, 't');
	row = row_at(tool_json(tool, "stats", pid_text(subject->pid), "--filter", "@domain=mmap", NULL), SOURCE,
		     line_of(SOURCE, "/* thread */"));
	require(row != NULL);
	require_at_least(json_number(row, "size"), 256 << 10);
	tool_detach(tool, subject->pid);
	text_require_intact(subject->pid);
	subject_quit(subject);
}

static void a_pool_lies_in_its_mapping(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start("tests/victims/mappings", NULL);
	const char *who = pid_text(subject->pid);
	json_t *blocks;

	tool_out(tool, "attach", who, "--domains", "malloc,mmap", "--allocator", "pool pool_get(size)", NULL);
	subject_command(subject, 'p');
	blocks = json_object_get(tool_json(tool, "block", who, live_text("0x%lx", (unsigned long)subject_tally(subject, "address") + 5),
					   NULL), "blocks");
	require_equal((long long)json_array_size(blocks), 2);
	require_text(json_text(json_array_get(blocks, 0), "domain"), "pool");
	require_equal(json_number(json_array_get(blocks, 0), "size"), 100);
	require_text(json_text(json_array_get(blocks, 1), "domain"), "mmap");
	require_equal(json_number(json_array_get(blocks, 1), "size"), 16 * PAGE);
	tool_detach(tool, subject->pid);
	text_require_intact(subject->pid);
	subject_quit(subject);
}

static void without_the_domain_nothing_is_told_of_mappings(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start("tests/victims/mappings", NULL);

	tool_attach(tool, subject->pid);
	subject_command(subject, 'g');
	require_equal(json_number(tool_status(tool, subject->pid), "blocks"), 0);
	tool_detach(tool, subject->pid);
	subject_quit(subject);
}

static const struct live_case cases[] = {
	LIVE_CASE(what_is_mapped_is_what_smaps_says),
	LIVE_CASE(so_it_is_beside_the_ring),
	LIVE_CASE(so_it_is_in_a_static_program),
	LIVE_CASE(threads_that_map_at_once_are_told_in_order),
	LIVE_CASE(what_malloc_maps_for_itself_is_no_mapping),
	LIVE_CASE(what_is_older_than_the_attach_is_no_loss),
	LIVE_CASE(a_threads_stack_is_the_line_that_made_the_thread),
	LIVE_CASE(a_pool_lies_in_its_mapping),
	LIVE_CASE(without_the_domain_nothing_is_told_of_mappings),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
