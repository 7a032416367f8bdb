/* Coroutines on a part of their thread's own stack, below a page that cannot be read: the code in the process copies stacks, and must
 * never come to that page. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#define HOLES "tests/victims/holes"

/* The victim's ways to make a page unreadable. */
enum { BY_MPROTECT, BY_MUNMAP, BY_MMAP, BY_MADVISE, WAYS };

static const char *const way_names[WAYS] = { "mprotect", "munmap", "mmap", "madvise" };

static void require_counts(struct tool *tool, const struct subject *victim)
{
	json_t *status = tool_status(tool, victim->pid);

	live_note("%s", victim->line);
	require_equal(json_number(status, "blocks"), subject_tally(victim, "blocks"));
	require_equal(json_number(status, "traced_current"), subject_tally(victim, "bytes"));
	require_equal(subject_tally(victim, "faults"), 0);
	require_nothing_unknown(status, 0);
}

static struct subject *start(int way, const char *option)
{
	return victim_start(HOLES, "--way", live_text("%d", way), option, NULL);
}

static void attach(struct tool *tool, const struct subject *victim, bool released)
{
	json_t *status;

	if (!released) {
		tool_attach(tool, victim->pid);
		return;
	}
	tool_out(tool, "attach", "--release", pid_text(victim->pid), NULL);
	status = tool_status(tool, victim->pid);
	require(json_is_true(json_object_get(status, "released")));
}

/* commands: of the victim's, each several times. */
static void go(int way, const char *option, bool released, const char *commands)
{
	struct tool *tool = tool_start();
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
	tool_end_daemon(tool, SIGTERM);
}

static void a_page_that_is_there_at_the_attach_is_not_read(void)
{
	for (int way = 0; way < BY_MADVISE; way++) {
		go(way, "--before", false, "pg");
		go(way, "--before", true, "pg");
	}
}

/* Each thread alone, so that no other one has told of holes. */
static void make_after_the_attach(const char *option, bool released)
{
	for (int way = 0; way < BY_MADVISE; way++) {
		go(way, option, released, "m");
		go(way, option, released, "t");
		go(way, option, released, "n");
	}
}

static void a_page_that_is_made_later_is_not_read(void)
{
	make_after_the_attach(NULL, false);
}

static void a_page_that_is_made_by_a_system_call_is_not_read(void)
{
	make_after_the_attach("--raw", false);
}

static void a_page_of_a_stack_that_a_new_thread_gets_is_not_read(void)
{
	for (int way = 0; way < BY_MADVISE; way++)
		go(way, NULL, false, "N");
}

static const struct live_case cases[] = {
	LIVE_CASE(a_page_that_is_there_at_the_attach_is_not_read),
	LIVE_CASE(a_page_that_is_made_later_is_not_read),
	LIVE_CASE(a_page_that_is_made_by_a_system_call_is_not_read),
	LIVE_CASE(a_page_of_a_stack_that_a_new_thread_gets_is_not_read),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
