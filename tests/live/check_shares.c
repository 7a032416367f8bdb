/* One daemon of root's for all users: none of them can keep another from what is theirs.  As two users. */
#include "client.h"
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

static const struct live_case cases[] = {
	LIVE_CASE(slow_names_of_one_user_do_not_hold_up_anothers),
	LIVE_CASE(events_of_one_user_do_not_crowd_out_roots),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
