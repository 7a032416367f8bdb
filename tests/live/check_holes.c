/* Coroutines on a part of their thread's own stack, below a page that cannot be read: the code in the process copies stacks, and must
 * never come to that page. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "ring/layout.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HOLES "tests/victims/holes"
#define WAIT_MS 10000
#define GUARD_INSTALL 102              /* MADV_GUARD_INSTALL, since Linux 6.13 */

/* The victim's ways to make a page unreadable. */
enum { BY_MPROTECT, BY_MUNMAP, BY_MMAP, BY_MADVISE, WAYS };

static const char *const way_names[WAYS] = { "mprotect", "munmap", "mmap", "madvise" };

static void require_counts(struct tool *tool, const struct subject *victim)
{
	json_t *status = tool_status(tool, victim->pid);

	live_note("%s", victim->line);
	require_equal(json_number(status, "blocks"), subject_tally(victim, "blocks"));
	require_equal(json_number(status, "traced_current"), subject_tally(victim, "bytes"));
	require_equal(subject_tally(victim, "acts"), 1);
	require_nothing_unknown(status, 0);
}

static struct subject *start(int way, const char *option)
{
	return victim_start(HOLES, "--way", live_text("%d", way), option, NULL);
}

static bool acts_as_set(void *victim)
{
	subject_command(victim, 'g');
	return subject_tally(victim, "acts") == 1;
}

/* The kernel takes both away at a fault of a thread that blocks or ignores the signal. */
static void keep_action_and_mask(struct tool *tool, const char *action, const char *block)
{
	struct subject *victim = victim_start(HOLES, "--raw", action, block, NULL);
	struct state *before = state_take(victim->pid);

	live_note("%s %s", action, block ? block : "");
	tool_attach_held(tool, victim->pid);
	subject_command(victim, 'm');
	require(live_wait(acts_as_set, victim, WAIT_MS));
	require_counts(tool, victim);
	tool_end(tool, victim, before);
}

static void what_the_program_does_at_a_fault_stays(void)
{
	struct tool *tool = tool_start();

	keep_action_and_mask(tool, "--handler", "--block");
	keep_action_and_mask(tool, "--ignore", NULL);
	keep_action_and_mask(tool, "--ignore", "--block");
	keep_action_and_mask(tool, "--block", NULL);
}

/* By the C library's function. */
static void a_handler_that_was_set_since_the_attach_stays(void)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(HOLES, "--raw", "--handler", "--block", NULL);

	tool_attach_held(tool, victim->pid);
	subject_command(victim, 'h');
	subject_command(victim, 'm');
	require(live_wait(acts_as_set, victim, WAIT_MS));
	require_counts(tool, victim);
	tool_end(tool, victim, NULL);
}

static void attach(struct tool *tool, const struct subject *victim, bool released)
{
	json_t *status;

	if (!released) {
		tool_attach_held(tool, victim->pid);
		return;
	}
	tool_out(tool, "attach", "--release", pid_text(victim->pid), NULL);
	status = tool_status(tool, victim->pid);
	require(json_is_true(json_object_get(status, "released")));
}

/* commands: of the victim's, each several times. */
static void go(struct tool *tool, int way, const char *option, bool released, const char *commands)
{
	struct subject *victim = start(way, option);
	struct state *before = state_take(victim->pid);

	live_note("%s %s%s", way_names[way], option ? option : "", released ? " released" : "");
	attach(tool, victim, released);
	subject_command(victim, 'g');
	for (const char *command = commands; *command; command++) {
		for (unsigned i = 0; i < live_rounds(2, 20); i++) {
			live_note("%c", *command);
			subject_command(victim, *command);
			require_counts(tool, victim);
		}
	}
	tool_end(tool, victim, before);
}

static void a_page_that_is_there_at_the_attach_is_not_read(void)
{
	struct tool *tool = tool_start();

	for (int way = 0; way < BY_MADVISE; way++) {
		go(tool, way, "--before", false, "pg");
		go(tool, way, "--before", true, "pg");
	}
}

/* Each thread alone, so that no other one has told of holes. */
static void make_after_the_attach(const char *option, bool released)
{
	struct tool *tool = tool_start();

	for (int way = 0; way < BY_MADVISE; way++) {
		go(tool, way, option, released, "m");
		go(tool, way, option, released, "t");
		go(tool, way, option, released, "n");
	}
}

static void a_page_that_is_made_later_is_not_read(void)
{
	make_after_the_attach(NULL, false);
}

/* Where nobody is there who could mend a fault. */
static void a_page_that_is_made_later_is_not_read_without_ptrace(void)
{
	make_after_the_attach(NULL, true);
}

static bool has_guards(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return page != MAP_FAILED && madvise(page, 4096, GUARD_INSTALL) == 0;
}

/* No mapping tells of such a page. */
static void a_page_that_is_made_a_guard_is_not_read(void)
{
	struct tool *tool;

	if (!has_guards()) {
		live_note("the kernel has no MADV_GUARD_INSTALL, as before Linux 6.13");
		return;
	}
	tool = tool_start();
	go(tool, BY_MADVISE, "--raw", false, "m");
	go(tool, BY_MADVISE, "--raw", false, "t");
	go(tool, BY_MADVISE, NULL, true, "m");
	go(tool, BY_MADVISE, NULL, true, "t");
}

static void a_page_that_is_made_by_a_system_call_is_not_read(void)
{
	make_after_the_attach("--raw", false);
}

/* Nobody could mend the fault: only a look at the mappings tells of it, before each answer and once a second. */
static void make_and_look(struct tool *tool, struct subject *victim)
{
	struct state *before = state_take(victim->pid);

	attach(tool, victim, true);
	subject_command(victim, 'b');
	tool_status(tool, victim->pid);
	subject_command(victim, 'e');
	require_counts(tool, victim);
	tool_end(tool, victim, before);
}

static void a_page_that_is_made_by_a_system_call_is_seen_without_ptrace(void)
{
	struct tool *tool = tool_start();

	for (int way = 0; way < BY_MADVISE; way++) {
		live_note("%s", way_names[way]);
		make_and_look(tool, start(way, "--raw"));
	}
}

/* The tracer of root's daemon is its user by then, who may not open its mappings. */
static void so_it_is_in_an_undumpable_process(void)
{
	struct tool *tool;

	if (geteuid() != 0)
		live_skip("needs root, to be another user");
	tool = tool_start();
	for (int way = 0; way < BY_MADVISE; way++) {
		live_note("%s", way_names[way]);
		make_and_look(tool, victim_start_ordinary(HOLES, "--way", live_text("%d", way), "--raw", "--undumpable", NULL));
	}
}

static void a_page_of_a_stack_that_a_new_thread_gets_is_not_read(void)
{
	struct tool *tool = tool_start();

	for (int way = 0; way < BY_MADVISE; way++)
		go(tool, way, NULL, false, "N");
}

/* --- when that is looked at --- */

static unsigned long ring_of(pid_t pid)
{
	unsigned long at = 0;
	char line[512];
	FILE *maps = fopen(live_text("/proc/%d/maps", pid), "re");

	require(maps);
	while (fgets(line, sizeof(line), maps) && !strstr(line, "/memfd:allocwatch-ring"))
		;
	require(strstr(line, "/memfd:allocwatch-ring") && sscanf(line, "%lx", &at) == 1);
	fclose(maps);
	return at;
}

static uint32_t known_of_holes(pid_t pid)
{
	int fd = open(live_text("/proc/%d/mem", pid), O_RDONLY | O_CLOEXEC);
	uint32_t word;

	require(fd >= 0 && pread(fd, &word, sizeof(word), (off_t)(ring_of(pid) + offsetof(struct ring_control, has_holes))) ==
			   sizeof(word));
	close(fd);
	return word;
}

static bool is_looked_at(void *victim)
{
	return known_of_holes(((struct subject *)victim)->pid) != RING_HOLES_UNKNOWN;
}

static void require_looked_at(struct tool *tool, const char *option, bool released, uint32_t holes)
{
	struct subject *victim = start(BY_MPROTECT, option);
	struct state *before = state_take(victim->pid);

	live_note("%s%s", option ? option : "", released ? " released" : "");
	/* Who is told of an attach without ptrace is told when that is done, and has not asked for more. */
	if (released)
		tool_out(tool, "attach", "--release", pid_text(victim->pid), NULL);
	else
		attach(tool, victim, false);
	require(released ? is_looked_at(victim) : live_wait(is_looked_at, victim, WAIT_MS));
	require_equal(known_of_holes(victim->pid), holes);
	tool_end(tool, victim, before);
}

static void stacks_are_looked_at_when_their_threads_go_on(void)
{
	struct tool *tool = tool_start();

	for (unsigned released = 0; released < 2; released++) {
		require_looked_at(tool, NULL, released, 0);
		require_looked_at(tool, "--before", released, 1);
	}
}

static const struct live_case cases[] = {
	LIVE_CASE(a_page_that_is_there_at_the_attach_is_not_read),
	LIVE_CASE(a_page_that_is_made_later_is_not_read),
	LIVE_CASE(a_page_that_is_made_later_is_not_read_without_ptrace),
	LIVE_CASE(a_page_that_is_made_by_a_system_call_is_not_read),
	LIVE_CASE(a_page_that_is_made_by_a_system_call_is_seen_without_ptrace),
	LIVE_CASE(so_it_is_in_an_undumpable_process),
	LIVE_CASE(a_page_that_is_made_a_guard_is_not_read),
	LIVE_CASE(a_page_of_a_stack_that_a_new_thread_gets_is_not_read),
	LIVE_CASE(stacks_are_looked_at_when_their_threads_go_on),
	LIVE_CASE(what_the_program_does_at_a_fault_stays),
	LIVE_CASE(a_handler_that_was_set_since_the_attach_stays),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
