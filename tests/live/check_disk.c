/* A full disk, and a symbolizer that is killed: what was there stays, what cannot be written is said and lives on in memory,
 * nothing half written is left, and the target does not notice. */
#include "footprint.h"
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define DISK_BYTES "160k"
#define SETTLE_MS 20000

/* A small disk that nobody else sees, and that goes with this case. */
static const char *mount_small_disk(void)
{
	const char *folder = live_text("%s/small", live_folder());

	if (geteuid())
		live_skip("needs root, to mount a small disk");
	require(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	require(mkdir(folder, 0700) == 0);
	require(mount("tmpfs", folder, "tmpfs", 0, "mode=0700,size=" DISK_BYTES) == 0);
	return folder;
}

static unsigned files_that_end(const char *folder, const char *suffix)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	unsigned count = 0;

	require(dir);
	while ((entry = readdir(dir))) {
		size_t len = strlen(entry->d_name), tail = strlen(suffix);

		count += len >= tail && strcmp(entry->d_name + len - tail, suffix) == 0;
	}
	closedir(dir);
	return count;
}

static void fill(const char *folder)
{
	static const char block[4096];
	int fd = open(live_text("%s/filler", folder), O_WRONLY | O_CREAT, 0600);

	require(fd >= 0);
	while (write(fd, block, sizeof(block)) > 0)
		;
	require(errno == ENOSPC);
	close(fd);
}

static bool nothing_is_half_written(void *folder)
{
	return files_that_end(folder, ".tmp") == 0 && files_that_end(folder, "-journal") == 0;
}

struct writing {
	const char *folder;
	unsigned files;
};

static bool is_written(void *context)
{
	const struct writing *writing = context;

	return files_that_end(writing->folder, ".allocwatch") == writing->files && nothing_is_half_written((void *)writing->folder);
}

static const char *take(struct tool *tool, pid_t pid)
{
	return live_text("%s", json_text(tool_json(tool, "snapshot", pid_text(pid), "--name", "taken", NULL), "id"));
}

static void a_full_disk_loses_no_snapshot_and_leaves_no_half_of_one(void)
{
	const char *folder = mount_small_disk(), *first, *id = NULL;
	struct tool *tool = tool_start_system("--state", folder);
	struct subject *subject = victim_start("tests/victims/turnover", NULL);
	struct state *before = state_take(subject->pid);
	struct writing writing = { folder, 1 };
	json_t *was;

	tool_attach(tool, subject->pid);
	subject_command(subject, 'g');
	first = take(tool, subject->pid);
	require(live_wait(is_written, &writing, SETTLE_MS));
	was = tool_json(tool, "stats", first, "--by", "traceback", NULL);
	fill(folder);
	for (int i = 0; i < 3; i++) {
		subject_command(subject, 'g');
		id = take(tool, subject->pid);
		require_equal(json_number(tool_stats(tool, id), "total.count"), i + 2);
	}
	require(live_wait(is_written, &writing, SETTLE_MS));
	require(json_equal(was, tool_json(tool, "stats", first, "--by", "traceback", NULL)));
	/* room again: what comes is written, what is there is still known */
	require(unlink(live_text("%s/filler", folder)) == 0);
	take(tool, subject->pid);
	writing.files = 2;
	require(live_wait(is_written, &writing, SETTLE_MS));
	require_equal(json_number(tool_stats(tool, id), "total.count"), 4);
	subject_command(subject, 'i');
	tool_end(tool, subject, before);
}

static void a_dump_to_a_full_disk_says_so_and_leaves_nothing(void)
{
	const char *folder = mount_small_disk();
	struct tool *tool = tool_start();
	struct subject *subject = victim_start("tests/victims/turnover", NULL);
	struct state *before = state_take(subject->pid);
	const char *file = live_text("%s/dumped", folder);
	struct tool_run run;
	long files;

	tool_attach(tool, subject->pid);
	subject_command(subject, 'g');
	tool_out(tool, "dump", pid_text(subject->pid), file, NULL);
	fill(folder);
	files = folder_entries(folder, NULL);
	run = tool_try(tool, "dump", pid_text(subject->pid), live_text("%s/another", folder), NULL);
	require_equal(run.status, 1);
	require_text(run.err, "no space left on the device");
	require_equal(folder_entries(folder, NULL), files);
	require_equal(json_number(tool_stats(tool, file), "total.count"), 1);
	subject_command(subject, 'i');
	tool_end(tool, subject, before);
}

/* --- what a tracer stores when its daemon is gone --- */

#define LET_GO_MS 20000

/* What daemon and tracers say from now on; to be given back. */
static int log_to(const char *path)
{
	int kept = dup(STDERR_FILENO), fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);

	require(kept >= 0 && fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	close(fd);
	return kept;
}

static void log_back(int kept)
{
	require(dup2(kept, STDERR_FILENO) >= 0);
	close(kept);
}

static const char *log_text(const char *path)
{
	char *text;

	require(file_read_text(path, 1 << 20, &text, NULL) == 0);
	return text;
}

/* The only one of these files; NULL: there is none. */
static const char *lost_file(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	const char *path = NULL;

	require(dir);
	while ((entry = readdir(dir))) {
		if (strncmp(entry->d_name, "lost.", 5) == 0) {
			require(!path);
			path = live_text("%s/%s", folder, entry->d_name);
		}
	}
	closedir(dir);
	return path;
}

static bool no_lost_file(void *folder)
{
	return lost_file(folder) == NULL;
}

/* Its tracer has the lock as long as it lives. */
static bool its_tracer_has_left(void *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool left = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;

	close(fd);
	return left;
}

/* Room for an image without blocks, and for the beginning of one with them. */
static void leave_a_page(const char *folder)
{
	const char *filler = live_text("%s/filler", folder);
	struct stat st;

	require(stat(filler, &st) == 0 && truncate(filler, st.st_size - 4096) == 0);
}

/* Kills the daemon, and waits until the tracer has stored what it can; the bytes of that. */
static long long lose_daemon(struct tool *tool, pid_t target, const char *folder)
{
	const char *path = lost_file(folder);
	struct stat st;

	require(path);
	tool_kill_daemon(tool);
	require(live_wait(state_is_untraced, &target, LET_GO_MS));
	require(live_wait(its_tracer_has_left, (void *)path, LET_GO_MS));
	require(stat(path, &st) == 0);
	return st.st_size;
}

static bool lost_is_kept(void *tool)
{
	return strstr(tool_out(tool, "snapshots", NULL), "lost") != NULL;
}

static void what_a_full_disk_does_not_take_when_the_daemon_is_gone_is_said_and_harms_nobody(void)
{
	const char *folder = mount_small_disk(), *log = live_text("%s/log", live_folder());
	struct subject *subject = victim_start("contrib/sample/leaky", "--commands", NULL);
	struct state *before = state_take(subject->pid);
	int kept = log_to(log);
	struct tool *tool = tool_start_system("--state", folder);

	tool_attach(tool, subject->pid);
	subject_command(subject, 'g');
	fill(folder);
	require_equal(lose_daemon(tool, subject->pid, folder), 0);
	require_text(log_text(log), "cannot be stored for the next daemon in its state folder, and is lost: No space left on device");
	require_unharmed(subject->pid, before);
	tool_start_again(tool);
	require(live_wait(no_lost_file, (void *)folder, LET_GO_MS));
	require(!lost_is_kept(tool));
	require_text(log_text(log), "what its tracer knew is lost");
	tool_attach(tool, subject->pid);
	subject_command(subject, 'g');
	leave_a_page(folder);
	require_at_least(lose_daemon(tool, subject->pid, folder), 1);
	require_text(log_text(log), "is stored for the next daemon without its blocks: No space left on device");
	require(unlink(live_text("%s/filler", folder)) == 0);
	tool_start_again(tool);
	require(live_wait(lost_is_kept, tool, SETTLE_MS));
	require_row(tool_stats(tool, live_text("%d:lost", subject->pid)), "contrib/sample/leaky.c", "/* leak */", 100 * 1000, 100);
	log_back(kept);
	tool_attach(tool, subject->pid);
	tool_end(tool, subject, before);
}

/* It is all there is until the snapshot that is made of it is on disk. */
static void what_was_stored_stays_until_its_snapshot_is_written(void)
{
	const char *folder = mount_small_disk();
	struct subject *subject = victim_start("contrib/sample/leaky", "--commands", NULL);
	struct state *before = state_take(subject->pid);
	struct tool *tool = tool_start_system("--state", folder);

	tool_attach(tool, subject->pid);
	subject_command(subject, 'g');
	fill(folder);
	leave_a_page(folder);
	require_at_least(lose_daemon(tool, subject->pid, folder), 1);
	/* The first one has no room for it, either. */
	tool_start_again(tool);
	require(live_wait(lost_is_kept, tool, SETTLE_MS));
	tool_end_daemon(tool, SIGTERM);
	require(lost_file(folder));
	require(unlink(live_text("%s/filler", folder)) == 0);
	tool_start_again(tool);
	require(live_wait(lost_is_kept, tool, SETTLE_MS));
	require(live_wait(no_lost_file, (void *)folder, SETTLE_MS));
	require_row(tool_stats(tool, live_text("%d:lost", subject->pid)), "contrib/sample/leaky.c", "/* leak */", 100 * 1000, 100);
	tool_attach(tool, subject->pid);
	tool_end(tool, subject, before);
}

/* --- the symbolizer --- */

static void a_symbolizer_that_is_killed_is_started_again_and_the_target_never_knows(void)
{
	struct tool *tool = tool_start();
	struct subject *plain = victim_start("tests/victims/turnover", NULL);
	struct subject *other = victim_start("tests/victims/hammer", "--threads", "1", "--ops", "100", NULL);
	struct state *before = state_take(plain->pid);
	pid_t first, second;

	tool_attach(tool, plain->pid);
	subject_command(plain, 'g');
	require_text(tool_out(tool, "stats", pid_text(plain->pid), NULL), "turnover.c");
	first = tool_symbolizer(tool);
	require(first > 0 && kill(first, SIGKILL) == 0);
	/* places that nobody asked for before */
	tool_attach(tool, other->pid);
	subject_command(other, 'g');
	require_text(tool_out(tool, "stats", pid_text(other->pid), NULL), "hammer.c");
	second = tool_symbolizer(tool);
	require(second > 0 && second != first);
	subject_command(plain, 'g');
	require_equal(json_number(tool_stats(tool, pid_text(plain->pid)), "total.count"), 2);
	tool_detach(tool, other->pid);
	subject_quit(other);
	subject_command(plain, 'i');
	tool_end(tool, plain, before);
}

static const struct live_case cases[] = {
	LIVE_CASE(a_full_disk_loses_no_snapshot_and_leaves_no_half_of_one),
	LIVE_CASE(a_dump_to_a_full_disk_says_so_and_leaves_nothing),
	LIVE_CASE(what_a_full_disk_does_not_take_when_the_daemon_is_gone_is_said_and_harms_nobody),
	LIVE_CASE(what_was_stored_stays_until_its_snapshot_is_written),
	LIVE_CASE(a_symbolizer_that_is_killed_is_started_again_and_the_target_never_knows),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
