/* Processes by every combination of clone's flags: they end as untraced, and those with a copy of the memory find nothing
 * of ours in them.  And those whose making the attach comes into the midst of. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <errno.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLONES "tests/victims/clones"
#define UNBORN "tests/victims/unborn"
#define HELD_MS 20000
#define PAGE 4096
#define GOOD 21
#define KINDS 30

/* One of each, and the one that is ours to wait for. */
static void one_of_each(struct subject *clones)
{
	int status;

	subject_command(clones, 'g');
	if (subject_tally(clones, "bad") != 0)
		live_fail("a child did not end as untraced, or found something: %s", clones->line);
	require(waitpid((pid_t)subject_tally(clones, "parented"), &status, 0) > 0);
	require(WIFEXITED(status));
	require_equal(WEXITSTATUS(status), GOOD);
}

static void make_children(struct tool *tool, struct subject *clones, bool follow)
{
	unsigned rounds = live_rounds(2, 100);
	struct state *before;
	long made, skipped;

	one_of_each(clones);
	made = subject_tally(clones, "children");
	skipped = subject_tally(clones, "skipped");
	require_at_least(made + skipped, KINDS);
	require_at_least(made, KINDS - 6);
	before = state_take(clones->pid);
	for (unsigned i = 0; i < rounds; i++) {
		/* Without ptrace those that are made without the C library keep what is switched off in them. */
		tool_out(tool, "attach", "--hold", pid_text(clones->pid), follow ? "--follow-forks" : NULL, NULL);
		one_of_each(clones);
		one_of_each(clones);
		require_nothing_unknown(tool_status(tool, clones->pid), 0);
		tool_detach(tool, clones->pid);
		require_unharmed(clones->pid, before);
		one_of_each(clones);
	}
	require_equal(subject_tally(clones, "skipped"), skipped * (1 + 3 * (long)rounds));
	require_equal(subject_tally(clones, "children"), made * (1 + 3 * (long)rounds));
	live_note("%ld kinds are not to be had here", skipped);
	live_survey(follow ? "clone with all flags, followed" : "clone with all flags", rounds, 0,
		    (unsigned)subject_tally(clones, "children"), (unsigned)subject_tally(clones, "children"));
	subject_quit(clones);
}

static void children_end_as_untraced_and_find_nothing(void)
{
	make_children(tool_start(), victim_start(CLONES, NULL), false);
}

/* Where it clears handlers the flag clears the program's, and ours does not come in their place. */
static void those_of_a_program_with_a_handler_for_traps(void)
{
	make_children(tool_start(), victim_start(CLONES, "--own-trap", NULL), false);
}

static void those_of_an_ordinary_user(void)
{
	make_children(tool_start_ordinary(), victim_start_ordinary(CLONES, NULL), false);
}

static void followed_ones_end_as_untraced(void)
{
	make_children(tool_start(), victim_start(CLONES, "--blind", NULL), true);
}

/* --- at the attach --- */

static bool main_thread_is_held(void *context)
{
	const struct subject *unborn = context;

	return thread_state(unborn->pid, unborn->pid) == 't';
}

/* The victim's userfaultfd, in which its thread waits in the midst of making another one. */
static int begin_birth(struct subject *unborn)
{
	int victim, fd;

	subject_command(unborn, 'b');
	victim = (int)syscall(SYS_pidfd_open, unborn->pid, 0);
	fd = (int)syscall(SYS_pidfd_getfd, victim, (int)subject_tally(unborn, "uffd"), 0);
	close(victim);
	if (fd < 0)
		live_skip("no userfaultfd of a process of one's own: %s", strerror(errno));
	require_equal(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, HELD_MS), 1);
	return fd;
}

static void end_birth(const struct subject *unborn, int fd, uint64_t page)
{
	struct uffdio_zeropage zero = { .range = { page, PAGE } };

	if (ioctl(fd, UFFDIO_ZEROPAGE, &zero) < 0)
		live_fail("process %d: the missing page: %s", unborn->pid, strerror(errno));
	close(fd);
}

static bool is_born(void *context)
{
	struct subject *unborn = context;

	subject_command(unborn, 't');
	return subject_tally(unborn, "born") + subject_tally(unborn, "failed") != 0;
}

/* Its maker is seized while nobody can know of it, and it begins to run when all others are held already. */
static void one_that_is_being_made_at_the_attach_is_traced(struct subject *unborn)
{
	struct tool *tool = tool_start();
	int fd = begin_birth(unborn), status;
	uint64_t page = (uint64_t)subject_tally(unborn, "page");
	pid_t attaching = tool_begin(tool, "attach", "--hold", pid_text(unborn->pid), NULL);

	require(live_wait(main_thread_is_held, unborn, HELD_MS));
	end_birth(unborn, fd, page);
	require_equal(waitpid(attaching, &status, 0), attaching);
	require_equal(status, 0);
	require(live_wait(is_born, unborn, HELD_MS));
	if (subject_tally(unborn, "failed") == EINVAL)
		live_skip("this kernel makes no descriptor of a thread");
	require_equal(subject_tally(unborn, "failed"), 0);
	require(status_number((pid_t)subject_tally(unborn, "born"), "TracerPid", 10) != 0);
	subject_command(unborn, 'g');
	require_nothing_unknown(tool_status(tool, unborn->pid), 0);
	require_row(tool_stats(tool, pid_text(unborn->pid)), UNBORN ".c", "/* kept by the new one */",
		    subject_tally(unborn, "bytes"), subject_tally(unborn, "blocks"));
	tool_detach(tool, unborn->pid);
	require_equal(status_number((pid_t)subject_tally(unborn, "born"), "TracerPid", 10), 0);
	subject_command(unborn, 'g');
	require_unharmed(unborn->pid, NULL);
	subject_kill(unborn);
}

static void a_thread_that_is_being_made_at_the_attach_is_traced(void)
{
	one_that_is_being_made_at_the_attach_is_traced(victim_start(UNBORN, NULL));
}

static void a_process_that_is_to_share_the_memory_is_traced(void)
{
	one_that_is_being_made_at_the_attach_is_traced(victim_start(UNBORN, "--process", NULL));
}

static const struct live_case cases[] = {
	LIVE_CASE(children_end_as_untraced_and_find_nothing),
	LIVE_CASE(those_of_a_program_with_a_handler_for_traps),
	LIVE_CASE(those_of_an_ordinary_user),
	LIVE_CASE(followed_ones_end_as_untraced),
	LIVE_CASE(a_thread_that_is_being_made_at_the_attach_is_traced),
	LIVE_CASE(a_process_that_is_to_share_the_memory_is_traced),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
