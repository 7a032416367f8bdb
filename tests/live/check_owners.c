/* One daemon of root's for all users: each traces what the kernel would let them trace without it, and sees only what is
 * theirs.  As two users and root. */
#include "client.h"
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LEAKY "contrib/sample/leaky"
#define LEAKY_C "contrib/sample/leaky.c"
#define EXECER "tests/victims/execer"
#define EXECER_C "tests/victims/execer.c"
#define KEPT_BYTES 208
#define ROUND_BYTES 100000
#define ROUND_BLOCKS 100
#define ANOTHER_UID 61235
#define LET_GO_MS 20000
#define REUSE_TRIES 200
#define LAST_PID "/proc/sys/kernel/ns_last_pid"

static void require_root(void)
{
	if (geteuid())
		live_skip("needs root, to be others");
}

/* --- programs with something special about their files --- */

enum special { SET_UID, CAPABILITY, UNREADABLE, PLAIN };

/* A copy that belongs to root. */
static const char *special_copy(const char *program, enum special special)
{
	/* struct vfs_cap_data of <linux/capability.h>, version 2: CAP_CHOWN, effective. */
	static const uint32_t capabilities[5] = { 0x02000001, 1 };
	static const mode_t modes[] = { 04755, 0755, 0711, 0755 };
	static int count;
	const char *copy = live_text("%s/special-%d", live_folder(), count++), *from = public_copy(program);
	char buffer[65536];
	int in = open(from, O_RDONLY), out = open(copy, O_WRONLY | O_CREAT | O_EXCL, 0755);
	ssize_t n;

	require(in >= 0 && out >= 0);
	while ((n = read(in, buffer, sizeof(buffer))) > 0)
		require(write(out, buffer, (size_t)n) == n);
	require_equal(n, 0);
	require_equal(fchmod(out, modes[special]), 0);
	if (special == CAPABILITY && fsetxattr(out, "security.capability", capabilities, sizeof(capabilities), 0) < 0)
		live_skip("files in %s cannot have capabilities: %s", live_folder(), strerror(errno));
	close(in);
	close(out);
	return copy;
}

static struct subject *leaky_of(uid_t uid, enum special special)
{
	return victim_start_as(uid, special_copy(LEAKY, special), "--commands", NULL);
}

/* --- what each may see --- */

struct users {
	struct tool *system, *one, *another;
	struct subject *of_root, *of_one, *of_another;
};

static struct users users_start(void)
{
	struct users users;

	require_root();
	users.system = tool_start_system(NULL, NULL);
	users.one = tool_of_user(users.system, ORDINARY_UID);
	users.another = tool_of_user(users.system, ANOTHER_UID);
	users.of_root = leaky_of(0, PLAIN);
	users.of_one = leaky_of(ORDINARY_UID, PLAIN);
	users.of_another = leaky_of(ANOTHER_UID, PLAIN);
	tool_attach(users.system, users.of_root->pid);
	tool_attach(users.one, users.of_one->pid);
	tool_attach(users.another, users.of_another->pid);
	return users;
}

static void require_a_round(struct tool *tool, struct subject *leaky)
{
	subject_command(leaky, 'g');
	require_row(tool_stats(tool, pid_text(leaky->pid)), LEAKY_C, "/* leak */", ROUND_BYTES, ROUND_BLOCKS);
	require_nothing_unknown(tool_status(tool, leaky->pid), 0);
}

static size_t count_of(struct tool *tool, const char *what, const char *list)
{
	return json_array_size(json_object_get(tool_json(tool, what, NULL), list));
}

static void require_unseen(struct tool_run run, const char *said)
{
	if (run.status != 1 || *run.out || !strstr(run.err, said))
		live_fail("status %d, and not '%s': %s%s", run.status, said, run.out, run.err);
}

/* Everything that can be asked of a process, and of a snapshot of it. */
static unsigned ask_in_vain(struct tool *tool, pid_t pid, const char *id)
{
	static const char *const commands[] = { "status", "stats", "snapshot", "detach", "clear", "reset-peak" };
	const char *who = pid_text(pid), *named = live_text("%d:before", pid);
	const size_t count = sizeof(commands) / sizeof(commands[0]);

	for (size_t i = 0; i < count; i++)
		require_unseen(tool_try(tool, commands[i], who, NULL), "not traced");
	require_unseen(tool_try(tool, "detach", "--keep", who, NULL), "not traced");
	require_unseen(tool_try(tool, "block", who, "0x1000", NULL), "not traced");
	require_unseen(tool_try(tool, "diff", who, who, NULL), "not traced");
	require_unseen(tool_try(tool, "attach", who, NULL), "for another user");
	require_unseen(tool_try(tool, "stats", id, NULL), "no snapshot");
	require_unseen(tool_try(tool, "stats", named, NULL), "no snapshot");
	require_unseen(tool_try(tool, "dump", id, live_text("%s/file", live_folder()), NULL), "no snapshot");
	require_unseen(tool_try(tool, "rm", id, NULL), "no snapshot");
	return (unsigned)count + 8;
}

static const char *snapshot_of(struct tool *tool, pid_t pid)
{
	return json_text(tool_json(tool, "snapshot", pid_text(pid), "--name", "before", NULL), "id");
}

static void users_see_only_what_is_theirs(void)
{
	struct users users = users_start();
	const char *of_root, *of_one, *of_another;
	unsigned refused = 0;

	require_a_round(users.system, users.of_root);
	require_a_round(users.one, users.of_one);
	require_a_round(users.another, users.of_another);
	of_root = snapshot_of(users.system, users.of_root->pid);
	of_one = snapshot_of(users.one, users.of_one->pid);
	of_another = snapshot_of(users.another, users.of_another->pid);
	refused += ask_in_vain(users.one, users.of_another->pid, of_another);
	refused += ask_in_vain(users.one, users.of_root->pid, of_root);
	refused += ask_in_vain(users.another, users.of_one->pid, of_one);
	refused += ask_in_vain(users.another, users.of_root->pid, of_root);
	live_note("%u requests about other users' processes and snapshots refused", refused);

	require_equal((long long)count_of(users.one, "list", "targets"), 1);
	require_equal((long long)count_of(users.another, "list", "targets"), 1);
	require_equal((long long)count_of(users.system, "list", "targets"), 3);
	require_equal((long long)count_of(users.one, "snapshots", "snapshots"), 1);
	require_equal((long long)count_of(users.another, "snapshots", "snapshots"), 1);
	require_equal((long long)count_of(users.system, "snapshots", "snapshots"), 3);
	/* Nothing of that has come to who was asked about; and root sees and may do everything. */
	require_row(tool_stats(users.one, of_one), LEAKY_C, "/* leak */", ROUND_BYTES, ROUND_BLOCKS);
	require_row(tool_stats(users.system, of_another), LEAKY_C, "/* leak */", ROUND_BYTES, ROUND_BLOCKS);
	require_nothing_unknown(tool_status(users.system, users.of_one->pid), 0);
	tool_end(users.one, users.of_one, NULL);
	tool_end(users.another, users.of_another, NULL);
	tool_end(users.system, users.of_root, NULL);
}

static void require_event(struct varlink_client *client, const char *kind, pid_t pid)
{
	json_t *event = client_event(client);

	if (strcmp(json_text(event, "kind"), kind) || json_number(event, "pid") != pid)
		live_fail("not %s of %d: %s", kind, (int)pid, json_dumps(event, 0));
	json_decref(event);
}

/* Events of three processes in a row: a user's own are all that come to that user. */
static void each_is_told_of_what_is_theirs(void)
{
	struct users users = users_start();
	struct varlink_client *root = client_of(users.system), *one = client_of_user(users.system, ORDINARY_UID),
			      *another = client_of_user(users.system, ANOTHER_UID);
	pid_t of_root = users.of_root->pid, of_one = users.of_one->pid, of_another = users.of_another->pid;

	client_subscribe(root, 0);
	client_subscribe(one, 0);
	client_subscribe(another, 0);
	require_unseen(tool_try(users.one, "events", pid_text(of_another), NULL), "not traced");
	require_unseen(tool_try(users.one, "events", pid_text(of_root), NULL), "not traced");
	snapshot_of(users.system, of_root);
	snapshot_of(users.another, of_another);
	snapshot_of(users.one, of_one);
	tool_end(users.system, users.of_root, NULL);
	tool_end(users.another, users.of_another, NULL);
	tool_end(users.one, users.of_one, NULL);
	require_event(root, "snapshot", of_root);
	require_event(root, "snapshot", of_another);
	require_event(root, "snapshot", of_one);
	/* At a detach a last one is kept, and told before the end. */
	require_event(root, "snapshot", of_root);
	require_event(root, "detached", of_root);
	require_event(root, "snapshot", of_another);
	require_event(root, "detached", of_another);
	require_event(root, "snapshot", of_one);
	require_event(root, "detached", of_one);
	require_event(one, "snapshot", of_one);
	require_event(one, "snapshot", of_one);
	require_event(one, "detached", of_one);
	require_event(another, "snapshot", of_another);
	require_event(another, "snapshot", of_another);
	require_event(another, "detached", of_another);
	varlink_client_close(root);
	varlink_client_close(one);
	varlink_client_close(another);
}

/* Their last ones, too, and after the daemon has gone and come back. */
static void snapshots_stay_their_owners(void)
{
	struct users users = users_start();
	pid_t pid = users.of_one->pid;
	const char *last = live_text("%d:exit", pid);

	require_a_round(users.one, users.of_one);
	subject_quit(users.of_one);
	require_row(tool_stats(users.one, last), LEAKY_C, "/* leak */", ROUND_BYTES, ROUND_BLOCKS);
	require_unseen(tool_try(users.another, "stats", last, NULL), "no snapshot");
	snapshot_of(users.system, users.of_root->pid);
	tool_end_daemon(users.system, SIGTERM);
	tool_start_again(users.system);
	require_row(tool_stats(users.one, last), LEAKY_C, "/* leak */", ROUND_BYTES, ROUND_BLOCKS);
	require_unseen(tool_try(users.another, "stats", last, NULL), "no snapshot");
	require_equal((long long)count_of(users.one, "snapshots", "snapshots"), 1);
	/* Of the one that the daemon let go when it ended. */
	require_equal((long long)count_of(users.another, "snapshots", "snapshots"), 1);
	require_equal((long long)count_of(users.system, "snapshots", "snapshots"), 4);
	subject_quit(users.of_root);
	subject_quit(users.of_another);
}

static void nobody_takes_the_room_of_all(void)
{
	struct tool *system, *one, *another;
	struct subject *leaky[4];

	require_root();
	system = tool_start_system("--max-sessions", "8");
	one = tool_of_user(system, ORDINARY_UID);
	another = tool_of_user(system, ANOTHER_UID);
	for (int i = 0; i < 4; i++)
		leaky[i] = leaky_of(i < 3 ? ORDINARY_UID : ANOTHER_UID, PLAIN);
	tool_attach(one, leaky[0]->pid);
	tool_attach(one, leaky[1]->pid);
	require_unseen(tool_try(one, "attach", pid_text(leaky[2]->pid), NULL), "as one user may have traced");
	tool_attach(another, leaky[3]->pid);
	tool_end(one, leaky[1], NULL);
	tool_attach(one, leaky[2]->pid);
	tool_end(one, leaky[0], NULL);
	tool_end(one, leaky[2], NULL);
	tool_end(another, leaky[3], NULL);
}

/* --- who judges --- */

/* Of the tracer itself, so it is the kernel that says what it may look at. */
static void require_identity(pid_t tracer, uid_t uid)
{
	char path[64], line[512], expected[64];
	unsigned found = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", tracer);
	f = fopen(path, "r");
	require(f != NULL);
	snprintf(expected, sizeof(expected), "\t%u\t%u\t%u\t%u\n", uid, uid, uid, uid);
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "Uid:", 4) || !strncmp(line, "Gid:", 4))
			found += !strcmp(line + 4, expected);
		else if (!strncmp(line, "CapPrm:", 7) || !strncmp(line, "CapEff:", 7) || !strncmp(line, "CapInh:", 7) ||
			 !strncmp(line, "CapAmb:", 7))
			found += strtoull(line + 7, NULL, 16) == 0;
		else if (!strncmp(line, "NoNewPrivs:", 11))
			found += atoi(line + 11) == 1;
	}
	fclose(f);
	require_equal(found, 7);
}

static void the_tracer_is_who_asked(void)
{
	struct users users = users_start();

	require_identity(tool_tracer(users.of_one->pid), ORDINARY_UID);
	require_identity(tool_tracer(users.of_another->pid), ANOTHER_UID);
	tool_end(users.one, users.of_one, NULL);
	tool_end(users.another, users.of_another, NULL);
	tool_end(users.system, users.of_root, NULL);
}

static struct subject *leaky_in_namespace(uid_t uid)
{
	const char *argv[] = { "unshare", "--user", "--map-root-user", public_copy(LEAKY), "--commands", NULL };
	struct subject *subject = subject_start(uid, argv);

	require_text(subject_line(subject), "R");
	return subject;
}

/* The daemon is root's, and yet: */
static void what_a_user_could_not_trace_is_refused(void)
{
	struct tool *system, *one;
	const char *reasons[] = { "runs as uid 0", "runs as uid 61235", "runs as uid 0", "not dumpable", "not dumpable",
				  "not dumpable", "runs as uid 0", "runs as uid 61235", };
	struct subject *targets[8];
	const size_t count = sizeof(targets) / sizeof(targets[0]);

	require_root();
	system = tool_start_system(NULL, NULL);
	one = tool_of_user(system, ORDINARY_UID);
	targets[0] = leaky_of(0, PLAIN);
	targets[1] = leaky_of(ANOTHER_UID, PLAIN);
	targets[2] = leaky_of(ORDINARY_UID, SET_UID);
	targets[3] = leaky_of(ORDINARY_UID, CAPABILITY);
	targets[4] = leaky_of(ORDINARY_UID, UNREADABLE);
	targets[5] = victim_start_as(ORDINARY_UID, public_copy("tests/victims/hammer"), "--undumpable", NULL);
	targets[6] = leaky_in_namespace(0);
	targets[7] = leaky_in_namespace(ANOTHER_UID);
	for (size_t i = 0; i < count; i++) {
		struct state *before = state_take(targets[i]->pid);

		require_unseen(tool_try(one, "attach", pid_text(targets[i]->pid), NULL), reasons[i]);
		require_unharmed(targets[i]->pid, before);
	}
	/* What refuses them is the user, not the daemon. */
	for (size_t i = 0; i < count; i++) {
		tool_attach(system, targets[i]->pid);
		subject_command(targets[i], 'g');
		require_nothing_unknown(tool_status(system, targets[i]->pid), 0);
		tool_end(system, targets[i], NULL);
	}
	targets[0] = leaky_in_namespace(ORDINARY_UID);
	tool_attach(one, targets[0]->pid);
	require_a_round(one, targets[0]);
	tool_end(one, targets[0], NULL);
	live_note("%zu processes refused to a user, and none to root", count);
}

/* --- at each exec --- */

struct last {
	struct tool *tool;
	pid_t pid;
};

/* The daemon hears of it when the process is let go already, */
static bool is_not_listed(void *context)
{
	const struct last *last = context;

	return !tool_lists(last->tool, last->pid);
}

/* and reads it then. */
static bool last_is_kept(void *context)
{
	const struct last *last = context;

	return tool_try(last->tool, "stats", pid_text(last->pid), NULL).status == 0;
}

/* Becomes the program, which is more than its user may trace: it has its rights, if it is one that gets any, and what
 * there is to be seen of it is what it was before. */
static void exec_what_is_not_to_be_seen(struct tool *tool, enum special special, bool by_thread, bool raw)
{
	const char *to = special_copy(EXECER, special);
	struct subject *execer = victim_start_as(ORDINARY_UID, public_copy(EXECER), "--to", to, raw ? "--raw" : NULL, NULL);
	struct last last = { tool, execer->pid };
	json_t *stats;

	tool_attach(tool, execer->pid);
	subject_command(execer, 'a');
	subject_command(execer, 'a');
	subject_send(execer, by_thread ? 't' : 'g');
	require_text(subject_line(execer), "R");
	require(state_is_untraced(&execer->pid));
	subject_command(execer, 'a');
	if (special == SET_UID)
		require_at_least(status_number(execer->pid, "CapEff", 16), 2);
	if (special == CAPABILITY)
		require_equal(status_number(execer->pid, "CapEff", 16), 1);
	require(live_wait(is_not_listed, &last, LET_GO_MS));
	require(live_wait(last_is_kept, &last, LET_GO_MS));
	stats = tool_stats(tool, pid_text(execer->pid));
	require_row(stats, EXECER_C, "/* kept */", 2 * KEPT_BYTES, 2);
	text_require_intact(execer->pid);
	subject_quit(execer);
}

static void exec_matrix(struct tool *tool, bool raw)
{
	static const enum special specials[] = { SET_UID, CAPABILITY, UNREADABLE };
	unsigned rounds = live_rounds(1, 50), count = 0;

	for (unsigned i = 0; i < rounds; i++) {
		for (size_t j = 0; j < sizeof(specials) / sizeof(specials[0]); j++) {
			exec_what_is_not_to_be_seen(tool, specials[j], false, raw);
			exec_what_is_not_to_be_seen(tool, specials[j], true, raw);
			count += 2;
		}
	}
	live_survey("exec of what the user may not trace", rounds, 0, count, count);
}

static void at_an_exec_it_is_asked_again(void)
{
	struct tool *system;

	require_root();
	system = tool_start_system(NULL, NULL);
	exec_matrix(tool_of_user(system, ORDINARY_UID), false);
	exec_matrix(tool_of_user(system, ORDINARY_UID), true);
}

/* --- for each new process --- */

#define PRIVILEGED "tests/victims/privileged"
#define FORKER "tests/victims/forker"
#define FORKER_C "tests/victims/forker.c"
#define WAYS 8             /* at least, in which the victim executes it each time */

/* Children that execute what their user may not trace, in each way: each has its rights, so none is traced. */
static long children_with_rights(struct tool *tool, enum special special, bool follow)
{
	const char *program = special_copy(PRIVILEGED, special);
	struct subject *parent = victim_start_as(ORDINARY_UID, public_copy(PRIVILEGED), program, NULL);
	long runs;

	tool_out(tool, "attach", pid_text(parent->pid), follow ? "--follow-forks" : NULL, NULL);
	subject_command(parent, 'g');
	subject_command(parent, 'g');
	runs = subject_tally(parent, "runs");
	require_at_least(runs, 2 * WAYS);
	require_equal(subject_tally(parent, "good"), runs);
	require_nothing_unknown(tool_status(tool, parent->pid), 0);
	tool_end(tool, parent, NULL);
	return runs;
}

static void for_each_new_process_it_is_asked_again(void)
{
	struct tool *system, *one;
	long count = 0;

	require_root();
	system = tool_start_system(NULL, NULL);
	one = tool_of_user(system, ORDINARY_UID);
	for (unsigned i = 0; i < live_rounds(1, 30); i++) {
		count += children_with_rights(one, SET_UID, false);
		count += children_with_rights(one, SET_UID, true);
		count += children_with_rights(one, CAPABILITY, false);
		count += children_with_rights(one, CAPABILITY, true);
	}
	live_survey("children with rights that their user has not", live_rounds(1, 30), 0, (unsigned)count, (unsigned)count);
}

/* A followed child is its parent's owner's, and its tracer is that user. */
static void a_followed_child_is_its_owners(void)
{
	struct users users = users_start();
	struct subject *forker = victim_start_as(ORDINARY_UID, public_copy(FORKER), NULL);
	pid_t child;

	tool_out(users.one, "attach", "--follow-forks", pid_text(forker->pid), NULL);
	for (int i = 1; i <= 3; i++) {
		subject_command(forker, 'g');
		child = (pid_t)subject_tally(forker, "child");
		tool_wait_until_traced(users.one, child, LET_GO_MS);
		require_identity(tool_tracer(child), ORDINARY_UID);
		require_row(tool_stats(users.one, pid_text(child)), FORKER_C, "/* kept */", 104 * i, i);
		require_unseen(tool_try(users.another, "status", pid_text(child), NULL), "not traced");
		require_unseen(tool_try(users.another, "stats", pid_text(child), NULL), "not traced");
		subject_command(forker, 'g');
		require_equal(subject_tally(forker, "status"), 7);
	}
	require_equal((long long)count_of(users.another, "snapshots", "snapshots"), 0);
	require_equal((long long)count_of(users.another, "list", "targets"), 1);
	tool_end(users.one, forker, NULL);
	tool_end(users.one, users.of_one, NULL);
	tool_end(users.another, users.of_another, NULL);
	tool_end(users.system, users.of_root, NULL);
}

/* --- numbers that come again --- */

/* NULL: somebody else on this machine got it. */
static struct subject *start_with_pid(pid_t pid, uid_t uid)
{
	for (unsigned i = 0; i < REUSE_TRIES && kill(pid, 0) < 0; i++) {
		const char *text = live_text("%d", pid - 1);
		int fd = open(LAST_PID, O_WRONLY | O_CLOEXEC);
		struct subject *subject;

		if (fd < 0)
			live_skip("%s: %s", LAST_PID, strerror(errno));
		public_copy(LEAKY);
		if (write(fd, text, strlen(text)) < 0)
			live_skip("%s: %s", LAST_PID, strerror(errno));
		close(fd);
		subject = victim_start_as(uid, public_copy(LEAKY), "--commands", NULL);
		if (subject->pid == pid)
			return subject;
		subject_quit(subject);
	}
	return NULL;
}

/* The old one may still be being seen off. */
static struct tool_run attach_again(struct tool *tool, pid_t pid)
{
	struct tool_run run;

	do {
		run = tool_try(tool, "attach", pid_text(pid), NULL);
	} while (strstr(run.err, "seen off; try again"));
	return run;
}

static void require_end_of(struct varlink_client *client, pid_t pid)
{
	require_event(client, "snapshot", pid);
	require_event(client, "exited", pid);
}

/* What was one's own a moment ago is another's by now. */
static void a_number_used_again_is_another_process(void)
{
	struct users users = users_start();
	struct varlink_client *told = client_of_user(users.system, ORDINARY_UID), *of_mine;
	unsigned rounds = live_rounds(3, 50);
	pid_t of_one;

	client_subscribe(told, 0);
	for (unsigned i = 0, missed = 0; i < rounds;) {
		struct subject *mine = leaky_of(ORDINARY_UID, PLAIN), *theirs;
		bool kept = i % 2;

		tool_attach(users.one, mine->pid);
		require_event(told, "attached", mine->pid);
		of_mine = client_of_user(users.system, ORDINARY_UID);
		client_subscribe(of_mine, mine->pid);
		require_a_round(users.one, mine);
		if (kept)
			tool_out(users.one, "detach", "--keep", pid_text(mine->pid), NULL);
		subject_quit(mine);
		if (kept) {
			require_event(told, "detached", mine->pid);
			require_event(told, "snapshot", mine->pid);
		}
		theirs = start_with_pid(mine->pid, i % 3 ? ANOTHER_UID : 0);
		if (!theirs && ++missed < REUSE_TRIES)
			continue;
		require(theirs != NULL);
		require_unseen(attach_again(users.one, theirs->pid), "runs as uid");
		require_unseen(tool_try(users.one, "snapshot", pid_text(theirs->pid), NULL), "not traced");
		require_unharmed(theirs->pid, NULL);
		if (kept) {
			require_event(of_mine, "detached", mine->pid);
		} else {
			require_end_of(told, mine->pid);
			require_end_of(of_mine, mine->pid);
		}
		varlink_client_close(of_mine);
		/* and who may, does, whosever the old one was */
		require_equal(attach_again(users.system, theirs->pid).status, 0);
		require_a_round(users.system, theirs);
		require_unseen(tool_try(users.one, "status", pid_text(theirs->pid), NULL), "not traced");
		tool_end(users.system, theirs, NULL);
		i++;
	}
	/* Nothing of the others' has come. */
	of_one = users.of_one->pid;
	tool_end(users.one, users.of_one, NULL);
	require_event(told, "snapshot", of_one);
	require_event(told, "detached", of_one);
	varlink_client_close(told);
	live_survey("a PID that is another user's by now", rounds, 0, 2 * rounds, 2 * rounds);
	tool_end(users.another, users.of_another, NULL);
	tool_end(users.system, users.of_root, NULL);
}

static const struct live_case cases[] = {
	LIVE_CASE(users_see_only_what_is_theirs),
	LIVE_CASE(each_is_told_of_what_is_theirs),
	LIVE_CASE(snapshots_stay_their_owners),
	LIVE_CASE(nobody_takes_the_room_of_all),
	LIVE_CASE(the_tracer_is_who_asked),
	LIVE_CASE(what_a_user_could_not_trace_is_refused),
	LIVE_CASE(at_an_exec_it_is_asked_again),
	LIVE_CASE(for_each_new_process_it_is_asked_again),
	LIVE_CASE(a_followed_child_is_its_owners),
	LIVE_CASE(a_number_used_again_is_another_process),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
