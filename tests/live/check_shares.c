/* One daemon of root's for all users: none of them can keep another from what is theirs.  As two users. */
#include "live.h"
#include "subject.h"
#include "tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEAKY "contrib/sample/leaky"
#define SLEEPY "tests/unit/fake_symbolizer"
#define ANOTHER_UID 61235
#define MANY 6
#define STARTED_MS 30000

static void require_root(void)
{
	if (geteuid())
		live_skip("needs root, to be others");
}

/* --- names --- */

/* Takes a third of a second for each address. */
static const char *slow_symbolizer(void)
{
	const char *folder = live_text("%s/symbolizer", live_folder()), *link = live_text("%s/sleepy", folder);

	if (mkdir(folder, 0755) || symlink(live_text("%s/%s", live_build(), SLEEPY), link))
		live_fail("%s: %s", link, strerror(errno));
	return link;
}

static bool has_symbolizer(void *context)
{
	return tool_symbolizer(context) != 0;
}

/* A file of its own, so that no names are known of it. */
static struct subject *traced_leaky(struct tool *tool, uid_t uid)
{
	static unsigned count;
	const char *copy = public_copy_as(LEAKY, live_text("leaky-%u", count++));
	struct subject *leaky = victim_start_as(uid, copy, "--commands", NULL);

	tool_attach(tool, leaky->pid);
	subject_command(leaky, 'g');
	return leaky;
}

static size_t running(const pid_t *clients, size_t count)
{
	size_t left = 0;

	for (size_t i = 0; i < count; i++) {
		siginfo_t end = { 0 };

		left += waitid(P_PID, (id_t)clients[i], &end, WEXITED | WNOHANG | WNOWAIT) == 0 && end.si_pid == 0;
	}
	return left;
}

static void slow_names_of_one_user_do_not_hold_up_anothers(void)
{
	struct tool *system, *one, *another;
	struct subject *many[MANY], *few;
	pid_t clients[MANY];
	json_t *stats;
	size_t left;

	require_root();
	system = tool_start_system("--symbolizer", slow_symbolizer());
	one = tool_of_user(system, ORDINARY_UID);
	another = tool_of_user(system, ANOTHER_UID);
	for (size_t i = 0; i < MANY; i++)
		many[i] = traced_leaky(one, ORDINARY_UID);
	few = traced_leaky(another, ANOTHER_UID);
	for (size_t i = 0; i < MANY; i++)
		clients[i] = tool_begin(one, "stats", pid_text(many[i]->pid), NULL);
	require(live_wait(has_symbolizer, system, STARTED_MS));
	stats = tool_stats(another, pid_text(few->pid));
	left = running(clients, MANY);
	require(row_at(stats, "/lie.c", 1) != NULL);
	live_note("%zu of %d snapshots of the other user still waited for their names", left, MANY);
	require(left > 0);
	for (size_t i = 0; i < MANY; i++) {
		int status;

		require_equal(waitpid(clients[i], &status, 0), clients[i]);
		require_equal(status, 0);
		tool_end(one, many[i], NULL);
	}
	tool_end(another, few, NULL);
}

static const struct live_case cases[] = {
	LIVE_CASE(slow_names_of_one_user_do_not_hold_up_anothers),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
