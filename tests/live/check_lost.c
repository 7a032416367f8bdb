/* What a tracer knows when its daemon is killed is stored, and the next daemon keeps it as PID:lost: the same in every figure
 * as what was told before.  Files that a hostile or a dying tracer has left are refused. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "base/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LEAKY "contrib/sample/leaky"
#define LEAKY_C "contrib/sample/leaky.c"
#define HAMMER "tests/victims/hammer"
#define ANOTHER_UID 61235
#define LET_GO_MS 20000
#define KEPT_MS 30000
#define ROUNDS 2
#define ROUNDS_LONG 100
#define MOMENT_MS 30

static void require_root(void)
{
	if (geteuid())
		live_skip("needs root, to be others");
}

/* --- finding it --- */

struct search {
	struct tool *tool;
	pid_t pid;
	const char *name;
};

static bool is_kept(void *context)
{
	const struct search *search = context;
	json_t *list = json_object_get(tool_json(search->tool, "snapshots", NULL), "snapshots"), *entry;
	size_t i;

	json_array_foreach(list, i, entry) {
		if (json_number(entry, "pid") == search->pid && !strcmp(json_text(entry, "name"), search->name))
			return true;
	}
	return false;
}

static void require_kept(struct tool *tool, pid_t pid)
{
	struct search search = { tool, pid, "lost" };

	if (!live_wait(is_kept, &search, KEPT_MS))
		live_fail("there is no snapshot %d:lost", pid);
}

static void kill_daemon_and_start_it_again(struct tool *tool, pid_t target)
{
	tool_kill_daemon(tool);
	require(live_wait(state_is_untraced, &target, LET_GO_MS));
	tool_start_again(tool);
}

/* --- comparing --- */

static const char *const questions[][4] = {
	{ "--by", "lineno", "--churn" }, { "--by", "traceback", "--functions" }, { "--by", "thread" },
	{ "--by", "object", "--peak" }, { "--by", "traceback", "--show-runtime", "--churn" }, { "--by", "domain" },
	{ "--by", "lineno", "--histogram" },
};

#define QUESTIONS (sizeof(questions) / sizeof(questions[0]))

/* Without what names the snapshot itself. */
static json_t *ask(struct tool *tool, const char *snap, size_t question)
{
	const char *const *q = questions[question];
	json_t *answer = q[2] ? tool_json(tool, "stats", snap, q[0], q[1], q[2], q[3], NULL) :
				tool_json(tool, "stats", snap, q[0], q[1], NULL);

	json_object_del(answer, "snapshot");
	return answer;
}

struct told {
	json_t *answers[QUESTIONS];
};

static struct told ask_all(struct tool *tool, const char *snap)
{
	struct told told = { { NULL } };

	for (size_t i = 0; i < QUESTIONS; i++)
		told.answers[i] = ask(tool, snap, i);
	return told;
}

static void require_same(const struct told *before, const struct told *after, size_t least)
{
	size_t compared = 0;

	for (size_t i = 0; i < QUESTIONS; i++) {
		json_t *was = before->answers[i], *is = after->answers[i];

		compared += json_array_size(json_object_get(was, "statistics"));
		if (!json_equal(was, is))
			live_fail("they differ: %s\n%s", json_dumps(was, JSON_SORT_KEYS), json_dumps(is, JSON_SORT_KEYS));
	}
	live_note("%zu rows of %zu questions are the same", compared, (size_t)QUESTIONS);
	require_at_least((long long)compared, (long long)least);
}

/* --- a quiet target --- */

/* viewer: who asks; NULL: who had started the daemon, too. */
static void lose_and_find(struct tool *tool, struct tool *viewer, struct subject *leaky)
{
	struct state *before = state_take(leaky->pid);
	const char *lost = live_text("%d:lost", leaky->pid);
	struct told told, found;

	viewer = viewer ? viewer : tool;
	tool_attach(viewer, leaky->pid);
	for (int i = 0; i < 3; i++)
		subject_command(leaky, 'g');
	tool_out(viewer, "snapshot", pid_text(leaky->pid), "--blocks", "--name", "before", NULL);
	told = ask_all(viewer, live_text("%d:before", leaky->pid));
	kill_daemon_and_start_it_again(tool, leaky->pid);
	require_unharmed(leaky->pid, before);
	require_kept(viewer, leaky->pid);
	require_row(tool_stats(viewer, lost), LEAKY_C, "/* leak */", 300 * 1000, 300);
	found = ask_all(viewer, lost);
	require_same(&told, &found, 10);
	/* It can be traced as ever, and that leaves nothing there. */
	tool_attach(viewer, leaky->pid);
	subject_command(leaky, 'g');
	require_row(tool_stats(viewer, pid_text(leaky->pid)), LEAKY_C, "/* leak */", 100 * 1000, 100);
	tool_end(viewer, leaky, before);
}

static void what_was_known_when_the_daemon_was_killed_is_kept(void)
{
	lose_and_find(tool_start(), NULL, victim_start(LEAKY, "--commands", NULL));
}

static void an_ordinary_users_is_kept(void)
{
	require_root();
	lose_and_find(tool_start_ordinary(), NULL, victim_start_ordinary(LEAKY, "--commands", NULL));
}

static void what_roots_daemon_traced_for_a_user_is_kept_for_that_user(void)
{
	struct tool *system, *user, *another;
	struct subject *leaky;
	struct tool_run run;

	require_root();
	system = tool_start_system(NULL, NULL);
	user = tool_of_user(system, ORDINARY_UID);
	another = tool_of_user(system, ANOTHER_UID);
	leaky = victim_start_ordinary(LEAKY, "--commands", NULL);
	lose_and_find(system, user, leaky);
	run = tool_try(another, "stats", live_text("%d:lost", leaky->pid), NULL);
	require_equal(run.status, 1);
	require(!strstr(tool_out(another, "snapshots", NULL), "lost"));
	require_text(tool_out(system, "snapshots", NULL), "lost");
}

/* --- a link that breaks while both ends live --- */

/* What no process does to another: what is on both ends of its sockets is told that the other one has left. */
static void break_links(pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	unsigned broken = 0;

	for (int fd = 0; fd < 64; fd++) {
		int type = 0, copy = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
		socklen_t len = sizeof(type);

		if (copy >= 0 && getsockopt(copy, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_SEQPACKET)
			broken += shutdown(copy, SHUT_RDWR) == 0;
		if (copy >= 0)
			close(copy);
	}
	close(pidfd);
	require_at_least(broken, 1);
}

static void what_was_known_when_the_link_broke_is_kept_by_the_same_daemon(void)
{
	struct tool *tool = tool_start();
	struct subject *leaky = victim_start(LEAKY, "--commands", NULL);
	struct state *before = state_take(leaky->pid);
	const char *lost = live_text("%d:lost", leaky->pid);
	struct told told, found;

	require_root();
	tool_attach(tool, leaky->pid);
	for (int i = 0; i < 3; i++)
		subject_command(leaky, 'g');
	tool_out(tool, "snapshot", pid_text(leaky->pid), "--blocks", "--name", "before", NULL);
	told = ask_all(tool, live_text("%d:before", leaky->pid));
	break_links(tool_tracer(leaky->pid));
	require(live_wait(state_is_untraced, &leaky->pid, LET_GO_MS));
	require_kept(tool, leaky->pid);
	found = ask_all(tool, lost);
	require_same(&told, &found, 10);
	require_unharmed(leaky->pid, before);
	require(tool_lists(tool, leaky->pid));
	tool_attach(tool, leaky->pid);
	tool_end(tool, leaky, before);
	require_text(tool_out(tool, "snapshots", NULL), "lost");
}

/* --- one at work --- */

static void a_busy_process_is_let_go_and_what_was_known_is_kept(void)
{
	struct tool *tool = tool_start();
	unsigned rounds = live_rounds(ROUNDS, ROUNDS_LONG), kept = 0;

	for (unsigned i = 0; i < rounds; i++) {
		struct subject *hammer = victim_start(HAMMER, "--threads", i % 2 ? "16" : "4", "--ops", "100", NULL);
		struct state *before = state_take(hammer->pid);

		tool_attach(tool, hammer->pid);
		subject_send(hammer, 'r');
		live_let_pass(live_random(MOMENT_MS * NSEC_PER_MSEC));
		kill_daemon_and_start_it_again(tool, hammer->pid);
		require_kept(tool, hammer->pid);
		kept++;
		require_at_least(json_number(tool_stats(tool, live_text("%d:lost", hammer->pid)), "total.count"), 0);
		subject_command(hammer, 's');
		require_at_least(subject_tally(hammer, "allocations"), 1);
		require_unharmed(hammer->pid, before);
		subject_quit(hammer);
	}
	live_survey("daemon killed, its snapshot kept", rounds, rounds, rounds, kept);
}

/* --- what is in the folder --- */

static const char *state_folder(const struct tool *tool)
{
	return live_text("%.*s/allocwatch", (int)(strrchr(tool_socket(tool), '/') - tool_socket(tool)), tool_socket(tool));
}

/* How many of these files there are; the last one. */
static unsigned lost_files(const char *folder, const char **ret_path)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	unsigned count = 0;

	require(dir);
	while ((entry = readdir(dir))) {
		if (strncmp(entry->d_name, "lost.", 5))
			continue;
		*ret_path = live_text("%s/%s", folder, entry->d_name);
		count++;
	}
	closedir(dir);
	return count;
}

struct emptiness {
	const char *folder;
};

static bool is_empty(void *context)
{
	const char *path;

	return lost_files(((struct emptiness *)context)->folder, &path) == 0;
}

static void who_is_let_go_leaves_no_file(void)
{
	struct tool *tool = tool_start();
	struct subject *leaky = victim_start(LEAKY, "--commands", NULL);
	struct emptiness emptiness = { state_folder(tool) };
	const char *folder = emptiness.folder, *path;
	struct stat st;

	tool_attach(tool, leaky->pid);
	require_equal(lost_files(folder, &path), 1);
	require(stat(path, &st) == 0);
	require_equal(st.st_mode & 07777, 0600);
	require_equal(st.st_uid, geteuid());
	require_equal(st.st_size, 0);
	tool_detach(tool, leaky->pid);
	require_equal(lost_files(folder, &path), 0);
	tool_attach(tool, leaky->pid);
	require_equal(lost_files(folder, &path), 1);
	subject_quit(leaky);
	require(live_wait(is_empty, &emptiness, LET_GO_MS));
	require(!tool_lists(tool, leaky->pid));
	tool_end_daemon(tool, SIGTERM);
	require_equal(lost_files(folder, &path), 0);
}

enum spoilt { HALF, GARBAGE, ANOTHERS, LINK, HUGE, OLD, SPOILTS };

/* A path that nothing but a link leads to, which must not be followed, changed or removed. */
static const char *make_file(const char *name)
{
	const char *path = live_text("%s/%s", live_folder(), name);
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	require(fd >= 0 && write(fd, "data", 4) == 4);
	close(fd);
	return path;
}

static void spoil(const char *path, enum spoilt how)
{
	static const struct timespec long_ago[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };
	char noise[4096];
	struct stat st;
	int fd;

	require(stat(path, &st) == 0 && st.st_size > 100);
	switch (how) {
	case HALF:
		require(truncate(path, st.st_size / 2) == 0);
		break;
	case GARBAGE:
		memset(noise, 0xa5, sizeof(noise));
		fd = open(path, O_WRONLY | O_TRUNC);
		require(fd >= 0 && write(fd, noise, sizeof(noise)) == (ssize_t)sizeof(noise));
		close(fd);
		break;
	case ANOTHERS:           /* of a process that its name does not tell of */
		require(rename(path, live_text("%.*s/lost.1.1.0.u%u", (int)(strrchr(path, '/') - path), path, geteuid())) == 0);
		break;
	case LINK:
		require(unlink(path) == 0 && symlink(make_file("linked"), path) == 0);
		break;
	case HUGE:
		require(truncate(path, 1LL << 40) == 0);
		break;
	default:
		require(utimensat(AT_FDCWD, path, long_ago, 0) == 0);
	}
}

/* The tracer has the lock as long as it lives. */
static bool is_stored(void *context)
{
	int fd = open(context, O_RDONLY | O_CLOEXEC);
	bool stored = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;

	close(fd);
	return stored;
}

static void what_is_spoilt_is_refused_and_removed(void)
{
	struct tool *tool = tool_start();
	struct subject *leaky = victim_start(LEAKY, "--commands", NULL);
	struct emptiness emptiness = { state_folder(tool) };
	unsigned refused = 0;

	for (enum spoilt how = HALF; how < SPOILTS; how++) {
		const char *path;

		tool_attach(tool, leaky->pid);
		subject_command(leaky, 'g');
		tool_kill_daemon(tool);
		require(live_wait(state_is_untraced, &leaky->pid, LET_GO_MS));
		require(lost_files(emptiness.folder, &path) == 1);
		require(live_wait(is_stored, (void *)path, KEPT_MS));
		spoil(path, how);
		tool_start_again(tool);
		require(live_wait(is_empty, &emptiness, KEPT_MS));
		require(!strstr(tool_out(tool, "snapshots", NULL), "lost"));
		refused++;
	}
	require(access(live_text("%s/linked", live_folder()), R_OK) == 0);
	live_note("%u kinds of spoilt files were refused", refused);
	require_equal(refused, SPOILTS);
	subject_quit(leaky);
}

static bool is_there(void *path)
{
	return access(path, F_OK) == 0;
}

/* One that was asked for makes no way, so there is none for what was stored; that comes in when there is. */
static void what_there_is_no_room_for_is_left_to_the_next_start(void)
{
	struct tool *tool = tool_start_system("--max-snapshots", "1");
	struct subject *leaky = victim_start(LEAKY, "--commands", NULL);
	const char *folder = live_text("%.*s/state", (int)(strrchr(tool_socket(tool), '/') - tool_socket(tool)),
				       tool_socket(tool));
	struct search lost = { tool, leaky->pid, "lost" };
	struct emptiness emptiness = { folder };
	const char *path, *id;

	tool_attach(tool, leaky->pid);
	subject_command(leaky, 'g');
	id = json_text(tool_json(tool, "snapshot", pid_text(leaky->pid), "--name", "asked", NULL), "id");
	require(live_wait(is_there, (void *)live_text("%s/%s.allocwatch", folder, id), KEPT_MS));
	for (int i = 0; i < 2; i++) {
		if (i == 0)
			tool_kill_daemon(tool);
		else
			tool_end_daemon(tool, SIGTERM);
		require(live_wait(state_is_untraced, &leaky->pid, LET_GO_MS));
		require(lost_files(folder, &path) == 1);
		require(live_wait(is_stored, (void *)path, KEPT_MS));
		tool_start_again(tool);
		/* the list comes after what was found at the start has been looked at, or is about to be */
		require(!is_kept(&lost));
		require_equal(lost_files(folder, &path), 1);
	}
	/* While no daemon runs: one that is still at its first look would find the room at once. */
	tool_end_daemon(tool, SIGTERM);
	require_equal(lost_files(folder, &path), 1);
	require(unlink(live_text("%s/%s.allocwatch", folder, id)) == 0);
	tool_start_again(tool);
	require_kept(tool, leaky->pid);
	require(live_wait(is_empty, &emptiness, KEPT_MS));
	subject_quit(leaky);
}

static const struct live_case cases[] = {
	LIVE_CASE(what_was_known_when_the_daemon_was_killed_is_kept),
	LIVE_CASE(an_ordinary_users_is_kept),
	LIVE_CASE(what_roots_daemon_traced_for_a_user_is_kept_for_that_user),
	LIVE_CASE(what_was_known_when_the_link_broke_is_kept_by_the_same_daemon),
	LIVE_CASE(a_busy_process_is_let_go_and_what_was_known_is_kept),
	LIVE_CASE(who_is_let_go_leaves_no_file),
	LIVE_CASE(what_is_spoilt_is_refused_and_removed),
	LIVE_CASE(what_there_is_no_room_for_is_left_to_the_next_start),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
