/* Debug information from servers, which a daemon asks only where it was told to: Debian's debuginfod, and servers that
 * misbehave.  Nobody else's names wait for them, and no target does. */
#include "base/clock.h"
#include "debug_server.h"
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEAKY_C "contrib/sample/leaky.c"
#define BUILD_ID "1234567890abcdef1234567890abcdef12345678"
#define SERVER_MS 60000
#define SILENCE_MS 10000       /* DEBUGINFO_SILENCE_S */
#define ROUND_BYTES 100000
#define ROUND_BLOCKS 100

static uint64_t now_ms(void)
{
	return clock_monotonic_ns() / NSEC_PER_MSEC;
}

/* --- a program without its debug information, which lies in a folder to be served --- */

static const char *program, *served;

static void build(void)
{
	const char *folder = live_folder();

	if (geteuid())
		live_skip("needs root, for a daemon with several users");
	/* Neither a proxy of the machine's, nor its servers. */
	setenv("no_proxy", "127.0.0.1", 1);
	unsetenv("DEBUGINFOD_URLS");
	setenv("SOURCE", realpath(live_source(), NULL), 1);
	program = live_text("%s/stripped", folder);
	served = live_text("%s/served", folder);
	require_equal(mkdir(served, 0755), 0);
	require_equal(system(live_text("cd %s && gcc -O2 -g -Wl,--build-id=0x" BUILD_ID " -o served/whole $SOURCE/" LEAKY_C
				       " && strip -g -o stripped served/whole && chmod 755 stripped", folder)), 0);
}

static struct subject *start(const char *path, uid_t uid)
{
	const char *argv[] = { path, "--commands", NULL };
	struct subject *subject = subject_start(uid, argv);

	require_text(subject_line(subject), "R");
	return subject;
}

static const char *whole(void)
{
	return live_text("%s/whole", served);
}

static bool knows(void *context)
{
	return debug_server_status(context, BUILD_ID) == 200;
}

static const char *start_debuginfod(void)
{
	static char url[64];

	if (debug_server_start(served, url, sizeof(url)) < 0)
		live_fail("Debian's debuginfod is not installed: contrib/install-deps --test");
	require(live_wait(knows, url, SERVER_MS));
	return url;
}

static const char *misbehave(enum debug_server_way way)
{
	static char url[64];

	debug_server_misbehave(way, url, sizeof(url));
	return url;
}

static void attach_and_leak(struct tool *tool, struct subject *subject)
{
	tool_attach(tool, subject->pid);
	subject_command(subject, 'g');
}

static void require_lines(struct tool *tool, struct subject *subject)
{
	json_t *stats = tool_stats(tool, pid_text(subject->pid));

	require_row(stats, LEAKY_C, "/* leak */", ROUND_BYTES, ROUND_BLOCKS);
	require(!json_is_true(json_object_get(stats, "unnamed")));
}

/* By its symbols alone. */
static void require_no_lines(struct tool *tool, struct subject *subject, bool is_said)
{
	json_t *stats = tool_stats(tool, pid_text(subject->pid));

	require(!row_at(stats, LEAKY_C, line_of(LEAKY_C, "/* leak */")));
	require_text(json_dumps(stats, 0), "count\": 100");
	require_equal(json_is_true(json_object_get(stats, "unnamed")), is_said);
}

/* --- Debian's debuginfod --- */

static void what_a_server_has_names_the_lines_of_each_user(void)
{
	struct tool *all, *one;
	struct subject *of_one, *of_root;
	struct state *before;

	build();
	all = tool_start_system("--debuginfod", start_debuginfod());
	one = tool_of_user(all, ORDINARY_UID);
	of_one = start(program, ORDINARY_UID);
	of_root = start(program, 0);
	before = state_take(of_one->pid);
	attach_and_leak(one, of_one);
	require_lines(one, of_one);
	attach_and_leak(all, of_root);
	require_lines(all, of_root);
	tool_end(all, of_root, NULL);
	tool_end(one, of_one, before);
}

static void what_no_server_knows_has_its_symbols_and_is_no_lack(void)
{
	struct tool *all;
	struct subject *subject;

	build();
	all = tool_start_system("--debuginfod", start_debuginfod());
	require_equal(system(live_text("cd %s && gcc -O2 -s -Wl,--build-id=0xffff567890abcdef -o other $SOURCE/" LEAKY_C,
				       live_folder())), 0);
	subject = start(live_text("%s/other", live_folder()), 0);
	attach_and_leak(all, subject);
	require_no_lines(all, subject, false);
	tool_end(all, subject, NULL);
}

static char moved_id[64];

static bool knows_what_was_moved(void *context)
{
	return debug_server_status(context, moved_id) == 200;
}

/* What two debug files share is in a third, which lies where neither says; only the server knows it. */
static void move_by_dwz(void)
{
	FILE *id;

	require_equal(system(live_text("cd %s && gcc -O2 -g -gdwarf-4 -Wl,--build-id=0x" BUILD_ID " -o full $SOURCE/" LEAKY_C
				       " && gcc -O2 -g -gdwarf-4 -o other $SOURCE/" LEAKY_C
				       " && strip -s -o stripped full && chmod 755 stripped && rm served/whole"
				       " && objcopy --only-keep-debug full served/debug && objcopy --only-keep-debug other other.debug"
				       " && dwz -m served/moved -M /nowhere/.dwz/moved served/debug other.debug"
				       " && readelf -n served/moved | sed -n 's/.*Build ID: //p' > id", live_folder())), 0);
	id = fopen(live_text("%s/id", live_folder()), "r");
	require(id && fscanf(id, "%63s", moved_id) == 1);
	fclose(id);
}

static void what_dwz_has_moved_is_had_from_there_too(void)
{
	struct subject *subject;
	struct state *before;
	struct tool *all;
	const char *url;

	build();
	move_by_dwz();
	url = start_debuginfod();
	require(live_wait(knows_what_was_moved, (void *)url, SERVER_MS));
	all = tool_start_system("--debuginfod", url);
	subject = start(program, ORDINARY_UID);
	before = state_take(subject->pid);
	attach_and_leak(all, subject);
	require_lines(all, subject);
	/* It has no symbols: its functions' names are in what was moved. */
	require_text(json_dumps(tool_json(all, "stats", pid_text(subject->pid), "--by", "traceback", NULL), 0), "handle_request");
	tool_end(all, subject, before);
}

/* --- servers that misbehave --- */

static void one_that_never_answers_delays_nobody_else(void)
{
	struct tool *all, *one;
	struct subject *waits, *other;
	struct state *before;
	uint64_t began;
	pid_t client;
	int status;

	build();
	all = tool_start_system("--debuginfod", misbehave(DEBUG_SERVER_SILENT));
	one = tool_of_user(all, ORDINARY_UID);
	waits = start(program, ORDINARY_UID);
	other = start(whole(), ORDINARY_UID);
	before = state_take(waits->pid);
	attach_and_leak(one, waits);
	attach_and_leak(one, other);
	began = now_ms();
	client = tool_begin(one, "stats", pid_text(waits->pid), NULL);
	/* The same user's, by a daemon that has only one symbolizer. */
	require_lines(one, other);
	require_nothing_unknown(tool_status(one, waits->pid), 0);
	live_note("another answer came after %llu ms", (unsigned long long)(now_ms() - began));
	require_equal(waitpid(client, &status, WNOHANG), 0);
	require_equal(waitpid(client, &status, 0), client);
	require_equal(status, 0);
	live_note("the one that waited came after %llu ms", (unsigned long long)(now_ms() - began));
	/* What is known to be silent is not waited for again. */
	began = now_ms();
	require_no_lines(one, waits, true);
	require(now_ms() - began < SILENCE_MS);
	tool_end(one, other, NULL);
	tool_end(one, waits, before);
}

static void what_a_server_sends_is_not_believed(void)
{
	struct subject *subject;
	struct tool *all;

	build();
	all = tool_start_system("--debuginfod", misbehave(DEBUG_SERVER_RUBBISH));
	subject = start(program, 0);
	attach_and_leak(all, subject);
	require_no_lines(all, subject, true);
	tool_end(all, subject, NULL);
}

static bool has_child(void *context)
{
	return tool_fetcher(context) > 0;
}

static bool has_gone(void *context)
{
	return kill(*(pid_t *)context, 0) < 0;
}

static void a_daemon_that_ends_waits_for_no_server(void)
{
	struct subject *subject;
	struct state *before;
	struct tool *all;
	pid_t client, fetcher;
	uint64_t began;

	build();
	all = tool_start_system("--debuginfod", misbehave(DEBUG_SERVER_SILENT));
	subject = start(program, ORDINARY_UID);
	before = state_take(subject->pid);
	attach_and_leak(all, subject);
	client = tool_begin(all, "stats", pid_text(subject->pid), NULL);
	require(live_wait(has_child, all, SERVER_MS));
	fetcher = tool_fetcher(all);
	began = now_ms();
	tool_end_daemon(all, SIGTERM);
	live_note("the daemon ended after %llu ms", (unsigned long long)(now_ms() - began));
	require(now_ms() - began < SILENCE_MS / 2);
	require(live_wait(has_gone, &fetcher, SILENCE_MS / 2));
	require_equal(waitpid(client, NULL, 0), client);
	require_unharmed(subject->pid, before);
	subject_quit(subject);
}

/* --- who is asked --- */

/* A socket that this process itself listens on: who connects is seen. */
static int listen_somewhere(const char **ret_url)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	require(sock >= 0 && bind(sock, (const struct sockaddr *)&address, len) == 0 && listen(sock, 8) == 0 &&
		getsockname(sock, (struct sockaddr *)&address, &len) == 0);
	*ret_url = live_text("http://127.0.0.1:%u", ntohs(address.sin_port));
	return sock;
}

static bool was_asked(int sock)
{
	int peer = accept(sock, NULL, NULL);

	if (peer >= 0)
		close(peer);
	return peer >= 0;
}

static void servers_of_the_environment_are_asked_only_when_that_is_said(void)
{
	struct tool *quiet, *asking;
	struct subject *subject;
	const char *url;
	int sock;

	build();
	sock = listen_somewhere(&url);
	setenv("DEBUGINFOD_URLS", url, 1);
	quiet = tool_start_system(NULL, NULL);
	asking = tool_start_system("--debuginfod", "environment");
	subject = start(program, 0);
	attach_and_leak(quiet, subject);
	require_no_lines(quiet, subject, false);
	require(!was_asked(sock));
	tool_detach(quiet, subject->pid);
	tool_attach(asking, subject->pid);
	subject_command(subject, 'g');
	require_no_lines(asking, subject, true);
	require(was_asked(sock));
	tool_end(asking, subject, NULL);
	close(sock);
}

static const struct live_case cases[] = {
	LIVE_CASE(what_a_server_has_names_the_lines_of_each_user),
	LIVE_CASE(what_dwz_has_moved_is_had_from_there_too),
	LIVE_CASE(what_no_server_knows_has_its_symbols_and_is_no_lack),
	LIVE_CASE(one_that_never_answers_delays_nobody_else),
	LIVE_CASE(what_a_server_sends_is_not_believed),
	LIVE_CASE(a_daemon_that_ends_waits_for_no_server),
	LIVE_CASE(servers_of_the_environment_are_asked_only_when_that_is_said),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
