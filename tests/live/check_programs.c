/* Programs that nobody here wrote: redis (jemalloc), nginx, python3, the C compiler. */
#include "live.h"
#include "programs.h"
#include "state.h"
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

#define VALUE_BYTES 1000

/* Sane names: each frame has an object that is a file or a name in brackets, a frame's function is
 * printable, and the program's own object is among them. */
static void require_sane_names(json_t *document, const char *object)
{
	json_t *row, *frame;
	size_t i, k, frames = 0, own = 0, named = 0;

	json_array_foreach(json_object_get(document, "statistics"), i, row) {
		json_array_foreach(json_object_get(row, "traceback"), k, frame) {
			const char *file = json_string_value(json_object_get(frame, "object"));
			const char *function = json_string_value(json_object_get(frame, "function"));

			frames++;
			if (!file || (*file != '/' && *file != '[' && *file != '?'))
				live_fail("a frame without an object: %s", json_dumps(frame, 0));
			for (const char *p = function ? function : ""; *p; p++) {
				if ((unsigned char)*p < ' ')
					live_fail("a function's name is not printable: %s", json_dumps(frame, 0));
			}
			own += strstr(file, object) != NULL;
			named += function != NULL || json_integer_value(json_object_get(frame, "line")) > 0;
		}
	}
	live_note("%zu rows, %zu frames, %zu of %s, %zu with a function or a line", i, frames, own, object, named);
	require_at_least((long long)frames, 1);
	require_at_least((long long)own, 1);
	/* stripped programs keep the names that they export */
	require_at_least((long long)named * 2, (long long)frames);
}

/* Everything that one asks of a traced program, before and after it works. */
static void watch_program(struct tool *tool, struct program *program, bool quiet)
{
	pid_t pid = program->subject->pid;
	struct state *before = quiet ? state_take(pid) : NULL;
	json_t *status, *diff, *list, *first;
	const char *id;

	tool_attach(tool, pid);
	program->work(program);
	id = json_text(tool_json(tool, "snapshot", pid_text(pid), "--name", "first", NULL), "id");
	require_sane_names(tool_json(tool, "stats", id, "--by", "traceback", NULL), program->object);
	program->work(program);
	diff = tool_diff(tool, live_text("%d:first", pid), pid_text(pid));
	first = json_array_get(json_object_get(diff, "statistics"), 0);
	require(first);
	require_at_least(json_number(diff, "total.size_diff"), program->kept_bytes);
	require_at_least(json_number(first, "size_diff"), program->kept_bytes / 2);
	status = tool_status(tool, pid);
	require_at_least(json_number(status, "traced_current"), 2 * program->kept_bytes);
	require_equal(json_number(status, "unknown.unknown_frees"), 0);
	require_equal(json_number(status, "unknown.lost_events"), 0);
	list = tool_json(tool, "list", NULL);
	require_equal((long long)json_array_size(json_object_get(list, "targets")), 1);
	live_note("%lld allocations, %lld bytes live, %lld truncated stacks", json_number(status, "allocations"),
		  json_number(status, "traced_current"), json_number(status, "unknown.truncated_stacks"));
	tool_detach(tool, pid);
	require_unharmed(pid, before);
	program->work(program);
}

/* Attached once more, it leaves a snapshot at its end, and ends as it does untraced. */
static void watch_its_end(struct tool *tool, struct program *program, int sig)
{
	pid_t pid = program->subject->pid;
	int status;

	tool_attach(tool, pid);
	program->work(program);
	kill(pid, sig);
	status = subject_wait(program->subject);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		live_fail("it ended with wait status 0x%x", (unsigned)status);
	require_at_least(json_number(tool_stats(tool, live_text("%d:exit", pid)), "total.size"), 0);
	require(!tool_lists(tool, pid));
}

/* Keys that were not there before, with values to be kept. */
static void set_keys(struct program *program)
{
	for (int i = 0; i < 500; i++)
		program_set_key(program, program->requests++, VALUE_BYTES);
}

static void start_redis(struct program *program, uid_t uid)
{
	program_start_redis(program, uid);
	program->work = set_keys;
	program->kept_bytes = 500 * VALUE_BYTES;
}

static void redis_with_jemalloc(void)
{
	struct program redis = { .socket = live_text("%s/redis", live_folder()) };
	struct tool *tool = tool_start();

	start_redis(&redis, geteuid());
	set_keys(&redis);
	watch_program(tool, &redis, false);
	watch_its_end(tool, &redis, SIGTERM);
}

static void redis_of_an_ordinary_user(void)
{
	struct program redis = { .socket = NULL };
	struct tool *tool;
	const char *folder;

	if (geteuid())
		live_skip("needs root, to be another user");
	tool = tool_start_ordinary();
	folder = live_text("%s/own", live_folder());
	require(mkdir(folder, 0777) == 0 && chmod(folder, 0777) == 0);
	redis.socket = live_text("%s/redis", folder);
	start_redis(&redis, ORDINARY_UID);
	watch_program(tool, &redis, false);
	watch_its_end(tool, &redis, SIGTERM);
}

/* Requests that are not complete: for each the server keeps a connection and its buffer. */
static void begin_requests(struct program *program)
{
	static const char start[] = "GET / HTTP/1.1\r\nHost: localhost\r\nX-Never-Ending: ";

	for (int i = 0; i < 40; i++)
		program_send(program_connect(program->socket), start, sizeof(start) - 1);
	/* an answer to a later request says that those before it were read */
	for (int i = 0; i < 3; i++) {
		int fd = program_connect(program->socket);

		program_get_page(fd);
		close(fd);
	}
}

static void nginx(void)
{
	struct program nginx = { .socket = live_text("%s/nginx", live_folder()), .work = begin_requests,
				 .kept_bytes = 40 * 1024 };
	struct tool *tool = tool_start();

	program_start_nginx(&nginx);
	begin_requests(&nginx);
	watch_program(tool, &nginx, false);
	watch_its_end(tool, &nginx, SIGTERM);
}

static void give_command(struct program *program)
{
	subject_command(program->subject, 'g');
}

static void python3(void)
{
	static const char script[] =
		"import os, sys\n"
		"kept = []\n"
		"def load():\n"
		"    kept.append([bytearray(2000) for _ in range(200)])\n"
		"print('R', flush=True)\n"
		"while True:\n"
		"    c = sys.stdin.buffer.raw.read(1)\n"
		"    if not c or c == b'q': os._exit(0)\n"       /* gives nothing back */
		"    load()\n"
		"    print('kept=%d' % len(kept), flush=True)\n";
	struct program python = { .work = give_command, .kept_bytes = 200 * 2000 };
	struct tool *tool = tool_start();

	program_start_python(&python, script);
	give_command(&python);
	watch_program(tool, &python, true);
	tool_attach(tool, python.subject->pid);
	give_command(&python);
	subject_quit(python.subject);
	/* it gives all back at its end */
	require_at_least(json_number(tool_stats(tool, live_text("%d:exit", python.subject->pid)), "total.count"), 0);
}

/* A source that keeps the compiler busy for a moment, and the path of its cc1. */
static const char *write_source(int functions)
{
	const char *path = live_text("%s/source.c", live_folder());
	FILE *f = fopen(path, "w");

	if (!f)
		live_fail("%s: %s", path, strerror(errno));
	for (int i = 0; i < functions; i++)
		fprintf(f, "int f%d(int a, const int *p)\n{\n\tint s = a;\n\tfor (int i = 0; i < a; i++)\n"
			"\t\ts += p[i] * %d;\n\treturn s;\n}\n", i, i);
	fclose(f);
	return path;
}

static const char *cc1_path(void)
{
	FILE *f = popen("gcc -print-prog-name=cc1", "r");
	char path[1024] = "";

	if (!f || !fgets(path, sizeof(path), f) || pclose(f))
		live_fail("gcc does not tell where its cc1 is");
	path[strcspn(path, "\n")] = '\0';
	return live_text("%s", path);
}

static const char *exit_snapshot(struct tool *tool)
{
	json_t *list = json_object_get(tool_json(tool, "snapshots", NULL), "snapshots"), *info;
	size_t i;

	json_array_foreach(list, i, info) {
		if (!strcmp(json_text(info, "name"), "exit"))
			return json_text(info, "id");
	}
	live_fail("no exit snapshot is kept");
}

static void require_same_file(const char *a, const char *b)
{
	const char *command = live_text("cmp %s %s", a, b);

	require(system(command) == 0);
}

static void the_c_compiler_by_run(void)
{
	struct tool *tool = tool_start();
	const char *cc1 = cc1_path(), *source = write_source(20);
	const char *traced = live_text("%s/traced.s", live_folder());
	const char *plain = live_text("%s/plain.s", live_folder());
	json_t *stats;

	require(system(live_text("%s -quiet -O1 %s -o %s", cc1, source, plain)) == 0);
	tool_out(tool, "run", "--", cc1, "-quiet", "-O1", source, "-o", traced, NULL);
	require_same_file(plain, traced);
	stats = tool_json(tool, "stats", exit_snapshot(tool), "--by", "traceback", NULL);
	require_sane_names(stats, "cc1");
	require_at_least(json_number(stats, "total.count"), 100);
	require_equal(json_number(stats, "unknown.unknown_frees"), 0);
	require_equal(json_number(stats, "unknown.before_attach_frees"), 0);
	require_equal(json_number(stats, "unknown.lost_events"), 0);
	live_note("%lld blocks, %lld bytes at the end, %lld truncated stacks", json_number(stats, "total.count"),
		  json_number(stats, "total.size"), json_number(stats, "unknown.truncated_stacks"));
}

/* The driver is traced; cc1, as and ld, which it starts, are let go and do their work. */
static void the_compiler_driver_and_its_children(void)
{
	struct tool *tool = tool_start();
	const char *source = write_source(3), *object = live_text("%s/out.o", live_folder());

	tool_out(tool, "run", "--", "gcc", "-c", "-O1", source, "-o", object, NULL);
	require(access(object, R_OK) == 0);
	require_equal(tool_try(tool, "run", "--", "gcc", "-c", "/nowhere.c", NULL).status, 1);
}

static const struct live_case cases[] = {
	LIVE_CASE(redis_with_jemalloc),
	LIVE_CASE(redis_of_an_ordinary_user),
	LIVE_CASE(nginx),
	LIVE_CASE(python3),
	LIVE_CASE(the_c_compiler_by_run),
	LIVE_CASE(the_compiler_driver_and_its_children),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
