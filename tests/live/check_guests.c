/* Processes that share the target's memory: whatever the target does, they are let go with nothing of ours in that
 * memory or in their dispositions, and no system call of theirs is lost. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <signal.h>
#include <sys/wait.h>

#define LEAVER "tests/victims/leaver"
#define LET_GO_MS 10000

struct guest {
	struct tool *tool;
	struct subject *leaver;
	pid_t pid;
	struct state *before;
};

static struct guest guest_start(void)
{
	struct guest guest = { tool_start(), victim_start(LEAVER, NULL), 0, NULL };

	subject_command(guest.leaver, 'g');
	guest.pid = (pid_t)subject_tally(guest.leaver, "child");
	guest.before = state_take(guest.pid);
	return guest;
}

static bool is_let_go(void *context)
{
	const struct guest *guest = context;

	return status_number(guest->pid, "TracerPid", 10) == 0;
}

/* It ends by its own word, and had no reason to complain. */
static void guest_end(struct guest *guest)
{
	kill(guest->pid, SIGUSR1);
	subject_line(guest->leaver);
	require_equal(subject_tally(guest->leaver, "bad"), 0);
	require_at_least(subject_tally(guest->leaver, "rounds"), 1);
}

static void no_system_call_of_a_guest_is_lost(void)
{
	struct guest guest = guest_start();
	struct state *before = state_take(guest.leaver->pid);
	unsigned rounds = live_rounds(40, 1000);

	for (unsigned i = 0; i < rounds; i++) {
		tool_attach(guest.tool, guest.leaver->pid);
		require(status_number(guest.pid, "TracerPid", 10) != 0);
		tool_detach(guest.tool, guest.leaver->pid);
		require_unharmed(guest.pid, guest.before);
	}
	live_survey("attach and detach beside a guest in system calls", rounds, 0, 1, 1);
	require_unharmed(guest.leaver->pid, before);
	guest_end(&guest);
	subject_quit(guest.leaver);
}

static void leave_by_exec(bool follow)
{
	unsigned rounds = live_rounds(3, 100);

	for (unsigned i = 0; i < rounds; i++) {
		struct guest guest = guest_start();

		tool_out(guest.tool, "attach", pid_text(guest.leaver->pid), follow ? "--follow-forks" : NULL, NULL);
		require_text(subject_command(guest.leaver, 'e'), "R");
		require(live_wait(is_let_go, &guest, LET_GO_MS));
		text_require_intact(guest.pid);
		guest_end(&guest);
		require_nothing_unknown(tool_status(guest.tool, guest.leaver->pid), 0);
		tool_end(guest.tool, guest.leaver, NULL);
		tool_end_daemon(guest.tool, SIGTERM);
	}
	live_survey("exec that leaves the memory to a guest", rounds, 0, 2 * rounds, 2 * rounds);
}

static void a_target_that_executes_leaves_its_memory_clean_to_guests(void)
{
	leave_by_exec(false);
}

static void a_followed_target_leaves_its_memory_clean_to_guests(void)
{
	leave_by_exec(true);
}

static void a_target_that_ends_leaves_its_memory_clean_to_guests(void)
{
	unsigned rounds = live_rounds(3, 100);

	for (unsigned i = 0; i < rounds; i++) {
		struct guest guest = guest_start();

		tool_attach(guest.tool, guest.leaver->pid);
		subject_quit(guest.leaver);
		require(live_wait(is_let_go, &guest, LET_GO_MS));
		text_require_intact(guest.pid);
		guest_end(&guest);
		tool_end_daemon(guest.tool, SIGTERM);
	}
	live_survey("end that leaves the memory to a guest", rounds, 0, rounds, rounds);
}

static const struct live_case cases[] = {
	LIVE_CASE(no_system_call_of_a_guest_is_lost),
	LIVE_CASE(a_target_that_executes_leaves_its_memory_clean_to_guests),
	LIVE_CASE(a_followed_target_leaves_its_memory_clean_to_guests),
	LIVE_CASE(a_target_that_ends_leaves_its_memory_clean_to_guests),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
