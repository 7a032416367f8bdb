/* The rows of programs that nobody here wrote: at work, attached to with each engine, and asked to give back what it took. */
#include "live.h"

#include "base/clock.h"
#include "matrix.h"
#include "matrix_rows.h"
#include "oracle.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX 24
#define ANSWER_MS 60000
#define STACKS 400
#define STACKS_LEAST 20
#define GDB_EVERY 19
#define GDB_STACKS 3
#define WORK_NS (12 * NSEC_PER_SEC)

static const char *const allocator[] = { "malloc", "calloc", "realloc", "_Znwm", NULL };

const struct matrix_daemon matrix_daemons[] = {
	{ .name = "redis-server (jemalloc)", .is_short = true,
	  .command = "/usr/bin/redis-server --port 0 --save ~ --unixsocket @/socket --dir @",
	  .work = "redis-cli -s socket EVAL \"for i=1,500 do redis.call('SET', 'k'..i, string.rep('v', 1000)) end\" 0",
	  .undo = "redis-cli -s socket FLUSHALL" },
	{ .name = "memcached", .command = "/usr/bin/memcached -u root -s @/socket -t 2",
	  .work = "python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); s.connect('socket')\n"
		  "for i in range(50): s.sendall(b'set k%d 0 0 1000\\r\\n' % i + b'v' * 1000 + b'\\r\\n'); s.recv(100)\"" },
	{ .name = "nginx", .command = "/usr/sbin/nginx -p @ -c @/conf",
	  .prepare = "echo hello >index.html && echo \"daemon off; master_process off; error_log /dev/null; pid pid;"
		     "events { worker_connections 100; } http { access_log off; client_body_temp_path b; proxy_temp_path p;"
		     "fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s; server { listen unix:$PWD/socket; root $PWD; } }\""
		     " >conf",
	  .work = "for i in 1 2 3 4 5; do curl -sf --unix-socket socket http://localhost/ | grep -q hello || exit 1; done" },
	{ .name = "python3", .command = "/usr/bin/python3 -I -m http.server --directory @ --bind 127.0.0.1 18431",
	  .work = "for i in 1 2 3; do curl -sf http://127.0.0.1:18431/ >/dev/null || exit 1; done" },
	{ .name = "sshd", .command = "/usr/sbin/sshd -D -e -h @/key -p 18432 -o ListenAddress=127.0.0.1 -o PidFile=none -f /dev/null",
	  .prepare = "mkdir -p /run/sshd && ssh-keygen -q -t ed25519 -N '' -f key",
	  .work = "ssh-keyscan -p 18432 127.0.0.1 2>/dev/null | grep -q ssh-ed25519" },
	{ .name = "Node", .command = "/usr/bin/node -e require('http').createServer((q,s)=>s.end(Buffer.alloc(70000))).listen('@/socket')",
	  .stacks_elsewhere = true,
	  .work = "for i in 1 2 3; do curl -sf --unix-socket socket http://localhost/ >/dev/null || exit 1; done" },
	{ .name = "JVM", .command = "/usr/bin/java -Xmx64m -cp @ Server", .stacks_elsewhere = true,
	  .prepare = "printf 'import com.sun.net.httpserver.*; import java.net.*; import java.util.zip.*; public class Server {"
		     "public static void main(String[] a) throws Exception { HttpServer s = HttpServer.create("
		     "new InetSocketAddress(\"127.0.0.1\", 18433), 0); s.createContext(\"/\", e -> { Deflater d = new Deflater();"
		     "d.setInput(new byte[9000]); d.finish(); byte[] b = new byte[9000]; int n = d.deflate(b); d.end();"
		     "e.sendResponseHeaders(200, n); e.getResponseBody().write(b, 0, n); e.close(); }); s.start(); } }'"
		     " >Server.java && javac Server.java",
	  .work = "for i in 1 2 3; do curl -sf http://127.0.0.1:18433/ >/dev/null || exit 1; done" },
};
const size_t matrix_daemon_count = sizeof(matrix_daemons) / sizeof(matrix_daemons[0]);

static const char *with_folder(const char *text)
{
	const char *at;

	while ((at = strchr(text, '@')))
		text = live_text("%.*s%s%s", (int)(at - text), text, live_folder(), at + 1);
	return text;
}

static char **words_of(const struct matrix_daemon *daemon)
{
	char **words = calloc(WORDS_MAX + 1, sizeof(*words)), *text = strdup(with_folder(daemon->command)), *word;
	size_t count = 0;

	require(words && text);
	for (word = strtok(text, " "); word && count < WORDS_MAX; word = strtok(NULL, " "))
		words[count++] = strcmp(word, "~") ? word : word + 1;
	return words;
}

static bool shell(const char *command)
{
	return system(live_text("cd %s && %s", live_folder(), command)) == 0;
}

static bool works(void *context)
{
	const struct matrix_daemon *daemon = context;

	return shell(daemon->work);
}

static void await_work(const struct matrix_daemon *daemon)
{
	if (!live_wait(works, (void *)(uintptr_t)daemon, ANSWER_MS))
		live_fail("'%s' never works", daemon->work);
}

/* For a while; what it does not stop at until then it will not. */
static pid_t begin_work(const struct matrix_daemon *daemon, pid_t process)
{
	uint64_t deadline = clock_monotonic_ns() + WORK_NS;
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	while (!clock_passed(deadline))
		shell(daemon->work);
	kill(process, SIGKILL);
	_exit(EXIT_SUCCESS);
}

static struct oracle_counts compare_stacks(const struct matrix_daemon *daemon)
{
	char **words = words_of(daemon);
	const struct oracle_options options = { .sampler = { .argv = words, .functions = allocator, .max_steps = 40 },
						.gdb_alone = daemon->gdb_alone };
	struct oracle *oracle = oracle_start(&options);
	struct oracle_counts counts;
	pid_t client;

	if (!oracle)
		live_fail("%s does not start: %s", words[0], strerror(errno));
	client = begin_work(daemon, oracle_process(oracle));
	while (oracle_counts(oracle).compared < STACKS && oracle_next(oracle)) {
		if (oracle_counts(oracle).compared % GDB_EVERY == 0 && oracle_counts(oracle).gdb_compared < GDB_STACKS)
			oracle_ask_gdb(oracle);
	}
	kill(client, SIGKILL);
	counts = oracle_counts(oracle);
	oracle_free(oracle);
	free(words);
	shell("rm -f socket");
	require_equal(counts.differ, 0);
	require_equal(counts.gdb_differ, 0);
	require_at_least(counts.compared, STACKS_LEAST);
	require_at_least(counts.gdb_compared, 1);
	return counts;
}

static void compare_names(const char *engine)
{
	FILE *script = popen(live_text("cd %s && python3 %s/tests/oracle/stacks_and_names.py --names saved-%s", live_folder(),
				       realpath(live_source(), NULL), engine), "r");
	unsigned names = 0, second = 0;
	char line[1024];

	while (script && fgets(line, sizeof(line), script)) {
		sscanf(line, "names=%u second=%u", &names, &second);
		live_note("%.*s", (int)strcspn(line, "\n"), line);
	}
	require(script && pclose(script) == 0);
	matrix_cell(engine, "names", "%u, %u by LLVM's", names - second, second);
	require_at_least(names, 1);
}

static void watch(const struct matrix_daemon *daemon, const char *engine, const struct oracle_counts *counts)
{
	struct tool *tool = tool_start_named(engine);
	struct subject *subject = subject_start(geteuid(), (const char *const *)words_of(daemon));
	json_t *status, *stats;
	long long most;
	pid_t pid;

	await_work(daemon);
	if (daemon->undo)
		require(shell(daemon->undo));
	pid = subject->pid;
	tool_out(tool, "attach", "--engine", engine, "--frames", "100", pid_text(pid), NULL);
	status = tool_status(tool, pid);
	if (strcmp(json_text(status, "engine"), engine)) {
		matrix_cell(engine, "attach", "refused: %s", json_text(status, "engine_reason"));
		return;
	}
	matrix_cell(engine, "attach", "yes");
	require(shell(daemon->work));
	status = tool_status(tool, pid);
	stats = tool_stats(tool, pid_text(pid));
	most = json_number(status, "traced_current");
	matrix_cell(engine, "blocks", "%lld calls, nothing unknown", json_number(status, "allocations"));
	require_equal(json_number(status, "unknown.unknown_frees"), 0);
	require_equal(json_number(status, "unknown.lost_events"), 0);
	require_equal(json_number(status, "unknown.probe_gaps"), 0);
	require_at_least(json_number(status, "allocations"), 1);
	require_at_least(json_number(stats, "total.count"), 0);
	if (counts)
		matrix_cell(engine, "stacks", "%u at the same stop, %u by gdb", counts->compared, counts->gdb_compared);
	else
		matrix_cell(engine, "stacks", "not compared: generated code");
	tool_out(tool, "dump", pid_text(pid), matrix_in_folder(live_text("saved-%s", engine)), NULL);
	compare_names(engine);
	if (daemon->undo) {
		require(shell(daemon->undo));
		status = tool_status(tool, pid);
		matrix_cell(engine, "live", "%lld of %lld B", json_number(status, "traced_current"), most);
		require_at_least(most / 2, json_number(status, "traced_current"));
	}
	tool_detach(tool, pid);
	require_unharmed(pid, NULL);
	require(shell(daemon->work));
	matrix_cell(engine, "unharmed", "yes");
	kill(subject->pid, SIGTERM);
	subject_wait(subject);
	shell("rm -f socket");
}

struct watching {
	const struct matrix_daemon *daemon;
	const char *engine;
	const struct oracle_counts *counts;
};

static void watch_one(const void *context)
{
	const struct watching *watching = context;

	watch(watching->daemon, watching->engine, watching->counts);
}

static bool watch_apart(const struct matrix_daemon *daemon, const char *engine, const struct oracle_counts *counts)
{
	bool failed = matrix_fails_apart(watch_one, &(struct watching){ daemon, engine, counts });

	matrix_cell(engine, "verdict", "%s", failed ? "FAILED" : "ok");
	return !failed;
}

void matrix_run_daemon(void)
{
	const struct matrix_daemon *daemon = matrix_daemons;
	struct oracle_counts counts;
	bool passed = true;

	while (strcmp(daemon->name, live_case_name()))
		daemon++;
	if (daemon->prepare)
		require(shell(daemon->prepare));
	if (!daemon->stacks_elsewhere)
		counts = compare_stacks(daemon);
	for (enum matrix_engine engine = 0; engine < MATRIX_ENGINES; engine++)
		passed &= watch_apart(daemon, matrix_engine_names[engine], daemon->stacks_elsewhere ? NULL : &counts);
	require(passed);
}
