/* One daemon of root's for all users: none of them can keep another from what is theirs.  As two users. */
#include "client.h"
#include "live.h"
#include "subject.h"
#include "tool.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
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
#define FLOOD 3000

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

/* A file of its own, so that no names are known of it; traced, unless tool is NULL. */
static struct subject *leaky_of(struct tool *tool, uid_t uid)
{
	static unsigned count;
	const char *copy = public_copy_as(LEAKY, live_text("leaky-%u", count++));
	struct subject *leaky = victim_start_as(uid, copy, "--commands", NULL);

	if (tool)
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
		many[i] = leaky_of(one, ORDINARY_UID);
	few = leaky_of(another, ANOTHER_UID);
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

/* --- events --- */

/* Each attach that is refused is one of its user's. */
static void flood(struct varlink_client *client, pid_t refused)
{
	for (int i = 0; i < FLOOD; i++) {
		json_t *parameters = json_pack("{s:i}", "pid", (int)refused);

		require(client_call(client, "Attach", parameters, NULL) == NULL);
	}
}

/* How many events are missed until one of this kind and process comes. */
static long long missed_before(struct varlink_client *client, const char *kind, pid_t pid)
{
	long long missed = 0;
	bool found = false;

	while (!found) {
		json_t *event = client_event(client);

		if (strcmp(json_text(event, "kind"), "missed") == 0)
			missed += json_number(event, "count");
		else
			found = strcmp(json_text(event, "kind"), kind) == 0 && json_number(event, "pid") == pid;
		json_decref(event);
	}
	return missed;
}

static void events_of_one_user_do_not_crowd_out_roots(void)
{
	struct subject *of_root, *of_one, *refused;
	struct varlink_client *listener, *client;
	struct tool *system, *one;

	require_root();
	system = tool_start_system("--max-sessions", "4");
	one = tool_of_user(system, ORDINARY_UID);
	of_one = leaky_of(one, ORDINARY_UID);
	refused = leaky_of(NULL, ORDINARY_UID);
	of_root = leaky_of(NULL, 0);
	listener = client_of(system);
	client = client_of_user(system, ORDINARY_UID);
	client_subscribe(listener, 0);
	flood(client, refused->pid);
	tool_attach(system, of_root->pid);
	live_note("%lld of %d events of the other user were missed", missed_before(listener, "attached", of_root->pid), FLOOD);
	varlink_client_close(client);
	varlink_client_close(listener);
	tool_end(system, of_root, NULL);
	tool_end(one, of_one, NULL);
	subject_quit(refused);
}

/* --- all of it at once --- */

/* One user's part of a round: a new target, and clients that wait for the names of its snapshots. */
struct part {
	struct tool *tool;
	uid_t uid;
	struct subject *leaky;
	pid_t clients[2];
};

static void part_begin(struct part *part)
{
	part->leaky = leaky_of(part->tool, part->uid);
	for (int i = 0; i < 2; i++)
		part->clients[i] = tool_begin(part->tool, "stats", pid_text(part->leaky->pid), NULL);
}

/* One whose client was killed, or whose target was, need not have an answer. */
static void part_end(struct part *part)
{
	for (int i = 0; i < 2; i++)
		require_equal(waitpid(part->clients[i], NULL, 0), part->clients[i]);
	tool_end(part->tool, part->leaky, NULL);
}

static void kill_symbolizer(struct tool *system)
{
	pid_t pid = tool_symbolizer(system);

	if (pid > 0)
		kill(pid, live_random(2) ? SIGKILL : SIGTERM);
}

static const char *two_processes_a_user(void)
{
	const char *path = live_text("%s/allocwatchd.conf", live_folder());
	FILE *file = fopen(path, "w");

	require(file && fprintf(file, "[Daemon]\nMaxSessions=8\nSymbolizer=%s\n", slow_symbolizer()) > 0 &&
		fclose(file) == 0);
	return path;
}

/* Who subscribes, reads nothing and leaves, while a user's attaches are refused. */
static void flood_and_leave(struct tool *system, pid_t refused)
{
	struct varlink_client *listener = client_of(system), *client = client_of_user(system, ORDINARY_UID);

	client_subscribe(listener, 0);
	flood(client, refused);
	varlink_client_close(listener);
	varlink_client_close(client);
}

static void whoever_leaves_or_dies_the_others_have_their_names(void)
{
	const unsigned rounds = live_rounds(3, 200);
	struct part parts[2] = { { .uid = ORDINARY_UID }, { .uid = ANOTHER_UID } };
	struct subject *held, *refused;
	struct tool *system;

	require_root();
	system = tool_start_system("--config", two_processes_a_user());
	for (int i = 0; i < 2; i++)
		parts[i].tool = tool_of_user(system, parts[i].uid);
	held = leaky_of(parts[0].tool, ORDINARY_UID);
	refused = leaky_of(NULL, ORDINARY_UID);
	for (unsigned round = 0; round < rounds; round++) {
		for (int i = 0; i < 2; i++)
			part_begin(&parts[i]);
		live_let_pass(live_random(1500000000));
		kill(parts[live_random(2)].clients[live_random(2)], SIGKILL);
		live_let_pass(live_random(1500000000));
		kill_symbolizer(system);
		flood_and_leave(system, refused->pid);
		for (int i = 0; i < 2; i++)
			part_end(&parts[i]);
	}
	for (int i = 0; i < 2; i++) {
		parts[i].leaky = leaky_of(parts[i].tool, parts[i].uid);
		require(row_at(tool_stats(parts[i].tool, pid_text(parts[i].leaky->pid)), "/lie.c", 1) != NULL);
		tool_end(parts[i].tool, parts[i].leaky, NULL);
	}
	live_survey("a symbolizer or a client killed in a user's turn", rounds, 2 * rounds, 2 * rounds, 2 * rounds);
	tool_end(parts[0].tool, held, NULL);
	subject_quit(refused);
}

static const struct live_case cases[] = {
	LIVE_CASE(slow_names_of_one_user_do_not_hold_up_anothers),
	LIVE_CASE(events_of_one_user_do_not_crowd_out_roots),
	LIVE_CASE(whoever_leaves_or_dies_the_others_have_their_names),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
