/* allocwatch run: from the first instruction to the last, and with the command's own end. */
#include "live.h"
#include "subject.h"
#include "tool.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOURCE "tests/victims/brief.c"
#define EARLY_BLOCKS 7
#define EARLY_BYTES 64
#define KEPT_BLOCKS 200
#define KEPT_BYTES 48

static const char *in_folder(const char *name)
{
	return live_text("%s/%s", live_folder(), name);
}

static void write_script(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || fchmod(fd, mode) || close(fd))
		live_fail("%s: %s", path, strerror(errno));
}

/* Runs it; what was still allocated at its end, NULL: it was let go untraced, and has no last snapshot. */
static json_t *run_to_its_end(struct tool *tool, const char *program, const char *argument, int status)
{
	const char *report = in_folder("report.json");
	struct tool_run run = tool_try(tool, "run", "--json", "-o", report, "--", program, argument, NULL);
	json_t *ended = json_load_file(report, 0, NULL), *stats = NULL;

	if (run.status != status || !ended)
		live_fail("status %d, not %d: %s%s", run.status, status, run.out, run.err);
	require_text(run.out, "us=");
	require_equal(json_number(ended, "exit_status"), status);
	if (json_is_object(json_object_get(ended, "snapshot")))
		stats = tool_stats(tool, json_text(ended, "snapshot.id"));
	else
		require_text(run.err, "was let go and runs on untraced: the program that it executes cannot be traced: no room "
			     "beside its code");
	json_decref(ended);
	return stats;
}

static void require_all(json_t *stats)
{
	require_row(stats, SOURCE, "/* early */", EARLY_BLOCKS * EARLY_BYTES, EARLY_BLOCKS);
	require_row(stats, SOURCE, "/* kept */", KEPT_BLOCKS * KEPT_BYTES, KEPT_BLOCKS);
	require(json_is_true(json_object_get(stats, "exact")));
	require_equal(json_number(stats, "unknown.unknown_frees"), 0);
}

static void require_all_caught(struct tool *tool, const char *program, const char *argument, int status)
{
	json_t *stats = run_to_its_end(tool, program, argument, status);

	require(stats != NULL);
	require_all(stats);
	json_decref(stats);
}

static void all_blocks_of_a_program_that_lives_5_ms_are_caught(void)
{
	struct tool *tool = tool_start();
	const char *program = live_text("%s/tests/victims/brief", live_build());
	unsigned int rounds = live_rounds(20, 1000);
	struct subject *plain;
	const char *const argv[] = { program, NULL };

	plain = subject_start(geteuid(), argv);
	subject_line(plain);
	live_note("untraced it lives %ld us", subject_tally(plain, "us"));
	require(subject_tally(plain, "us") < 5000);
	subject_wait(plain);
	for (unsigned int i = 0; i < rounds; i++)
		require_all_caught(tool, program, "0", 0);
	live_note("%u runs, %u blocks each", rounds, EARLY_BLOCKS + KEPT_BLOCKS);
}

/* A static program has only the end of its own last page of text for the code that keeps it safe.  The text of one of
 * the two ends half a page further: one has the room.  The other runs untraced, and that is said. */
static void a_static_program_is_traced_or_said_not_to_be(void)
{
	static const char *const programs[] = { "brief_static", "brief_padded" };
	struct tool *tool = tool_start();
	unsigned int traced = 0;

	for (size_t i = 0; i < 2; i++) {
		json_t *stats = run_to_its_end(tool, live_text("%s/tests/victims/%s", live_build(), programs[i]), "5", 5);

		if (stats) {
			require_all(stats);
			traced++;
		} else {
			live_note("%s is not traced", programs[i]);
		}
		json_decref(stats);
	}
	require_at_least(traced, 1);
}

static bool says_untraced(void *context)
{
	char *text;
	bool says = file_read_text(context, 65536, &text, NULL) == 0 && strstr(text, "was let go and runs on untraced: ");

	return says;
}

/* While it still runs. */
static void who_runs_what_cannot_be_traced_hears_of_it_soon(void)
{
	struct tool *tool = tool_start();
	const char *fifo = in_folder("fifo"), *said = in_folder("said");
	const char *const argv[] = { "sh", "-c", live_text(
		"ALLOCWATCH_SOCKET=%s exec %s/src/allocwatch run -- sh -c 'exec %s/tests/victims/tiny32 <%s' 2>%s",
		tool_socket(tool), live_build(), live_build(), fifo, said), NULL };
	struct subject *client;
	int fd;

	require(mkfifo(fifo, 0600) == 0);
	client = subject_start(geteuid(), argv);
	fd = open(fifo, O_WRONLY | O_CLOEXEC);
	require(fd >= 0);
	if (!live_wait(says_untraced, (void *)said, 30000))
		live_fail("nothing is said");
	require(waitpid(client->pid, NULL, WNOHANG) == 0);
	require(write(fd, "q", 1) == 1);
	require_equal(subject_wait(client), 0);
}

static void a_script_is_its_interpreter(void)
{
	struct tool *tool = tool_start();
	const char *script = in_folder("script"), *bare = in_folder("bare");

	write_script(script, live_text("#!%s/tests/victims/brief 9\n", live_build()), 0755);
	require_all_caught(tool, script, NULL, 9);
	write_script(bare, "exit 11\n", 0755);
	require_equal(tool_try(tool, "run", "--", bare, NULL).status, 11);
}

/* As a shell says it, and one line that says why. */
static void require_cannot(struct tool *tool, const char *program, int status, const char *why)
{
	struct tool_run run = tool_try(tool, "run", "--", program, NULL);
	size_t len = strlen(run.err);

	if (run.status != status || *run.out || len < 2 || strchr(run.err, '\n') != run.err + len - 1)
		live_fail("%s: status %d, not %d: %s%s", program, run.status, status, run.out, run.err);
	require_text(run.err, program);
	require_text(run.err, why);
}

static void what_cannot_be_run_is_told_as_a_shell_tells_it(void)
{
	struct tool *tool = tool_start();
	const char *orphan = in_folder("orphan"), *plain = in_folder("plain");

	write_script(orphan, "#!/nowhere/interpreter\n", 0755);
	write_script(plain, "exit 0\n", 0644);
	require_cannot(tool, "no-such-command-anywhere", 127, "no such command");
	require_cannot(tool, "/nowhere/program", 127, "no such command");
	require_cannot(tool, orphan, 127, "interpreter");
	require_cannot(tool, plain, 126, "Permission denied");
	require_cannot(tool, live_folder(), 126, "cannot run");
	/* A command that never was leaves no snapshot. */
	require_equal((long long)json_array_size(json_object_get(tool_json(tool, "snapshots", NULL), "snapshots")), 0);
}

static void the_exit_status_is_the_commands(void)
{
	struct tool *tool = tool_start();

	require_equal(tool_try(tool, "run", "--", "sh", "-c", "exit 0", NULL).status, 0);
	require_equal(tool_try(tool, "run", "--", "sh", "-c", "exit 200", NULL).status, 200);
	require_equal(tool_try(tool, "run", "--", "sh", "-c", "kill -SEGV $$", NULL).status, 128 + SIGSEGV);
	require_equal(tool_try(tool, "run", "--", "sh", "-c", "kill -KILL $$", NULL).status, 128 + SIGKILL);
	require_equal(tool_try(tool, "run", "--", "sh", "-c", "kill -TRAP $$", NULL).status, 128 + SIGTRAP);
}

static bool exists(void *context)
{
	return access(context, F_OK) == 0;
}

static void a_signal_to_the_client_is_the_commands(void)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1 };
	struct tool *tool = tool_start();

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		const char *ready = in_folder(live_text("ready%zu", i));
		struct subject client = { .pid = tool_begin(tool, "run", "--", "sh", "-c",
			/* A trap runs between commands, so none of them may wait for long. */
			live_text("trap 'exit 42' %d; : >%s; while :; do sleep 0.05; done", signals[i], ready), NULL) };
		int status;

		if (!live_wait(exists, (void *)ready, 60000))
			live_fail("the command does not start");
		kill(client.pid, signals[i]);
		status = subject_wait(&client);
		require(WIFEXITED(status));
		require_equal(WEXITSTATUS(status), 42);
	}
}

/* --- Without a daemon --- */

static pid_t peer_of(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		live_fail("no daemon on %s: %s", path, strerror(errno));
	close(fd);
	return peer.pid;
}

/* Its process may stay as a zombie until the case ends. */
static bool is_gone(void *context)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	strncpy(address.sun_path, context, sizeof(address.sun_path) - 1);
	r = connect(fd, (struct sockaddr *)&address, sizeof(address));
	close(fd);
	return r < 0;
}

static void end_private_daemon(const char *folder)
{
	const char *path = live_text("%s/allocwatch.sock", folder);

	kill(peer_of(path), SIGTERM);
	if (!live_wait(is_gone, (void *)path, 60000))
		live_fail("the private daemon on %s does not end", path);
}

static const char *shell(const char *command)
{
	const char *const argv[] = { "sh", "-c", command, NULL };
	struct subject *subject = subject_start(geteuid(), argv);
	const char *line = live_text("%s", subject_line(subject));

	subject_wait(subject);
	return line;
}

static void kept_snapshots_are_shown_when_no_daemon_runs(void)
{
	const char *home = in_folder("private"), *client;

	if (mkdir(home, 0700))
		live_fail("mkdir: %s", strerror(errno));
	client = live_text("env -u ALLOCWATCH_SOCKET XDG_RUNTIME_DIR=%s XDG_STATE_HOME=%s %s/src/allocwatch", home, home,
			   live_build());
	shell(live_text("%s run -- %s/tests/victims/brief", client, live_build()));
	end_private_daemon(home);
	require_text(shell(live_text("%s stats s1 --json 2>&1", client)), "brief.c");
	end_private_daemon(home);
	require_text(shell(live_text("%s snapshots --json 2>&1", client)), "\"s1\"");
	end_private_daemon(home);
	require_text(shell(live_text("%s rm s1 2>&1 && echo removed", client)), "removed");
	end_private_daemon(home);
	require_text(shell(live_text("%s stats s1 2>&1", client)), "no snapshot");
	end_private_daemon(home);
}

static const struct live_case cases[] = {
	LIVE_CASE(all_blocks_of_a_program_that_lives_5_ms_are_caught),
	LIVE_CASE(a_static_program_is_traced_or_said_not_to_be),
	LIVE_CASE(who_runs_what_cannot_be_traced_hears_of_it_soon),
	LIVE_CASE(a_script_is_its_interpreter),
	LIVE_CASE(what_cannot_be_run_is_told_as_a_shell_tells_it),
	LIVE_CASE(the_exit_status_is_the_commands),
	LIVE_CASE(a_signal_to_the_client_is_the_commands),
	LIVE_CASE(kept_snapshots_are_shown_when_no_daemon_runs),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
