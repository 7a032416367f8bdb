/* Snapshots of real programs at work: the client's statistics and differences against Python's own
 * tracemalloc on what the client exports of them; tests/oracle/tracemalloc_snapshots.py compares. */
#include "live.h"
#include "subject.h"
#include "tool.h"

#include "workload.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define SNAPSHOTS 4                    /* of each program: half of them with blocks */
#define ALLOCATIONS 1500               /* at least, before each */
#define PROGRESS_MS 60000

struct progress {
	struct tool *tool;
	pid_t pid;
	long long least;
};

static bool has_allocated(void *context)
{
	const struct progress *progress = context;
	struct tool_run run = tool_try(progress->tool, "status", pid_text(progress->pid), "--json", NULL);

	/* What has ended left its last snapshot, which will do. */
	if (run.status != 0)
		return !tool_lists(progress->tool, progress->pid);
	return json_number(json_loads(run.out, 0, NULL), "allocations") >= progress->least;
}

/* It may have been started just now: then its allocator is not loaded yet. */
static bool attaches(void *context)
{
	const struct progress *progress = context;

	return tool_try(progress->tool, "attach", pid_text(progress->pid), NULL).status == 0;
}

static void compare(const char *files)
{
	const char *source = live_source();
	const char *command = live_text("/usr/bin/python3 %s/tests/oracle/tracemalloc_snapshots.py %s/src/allocwatch "
					"1 %s", source, live_build(), files);

	if (system(command) != 0)
		live_fail("the oracle does not agree");
}

static void attach(struct tool *tool, const struct subject *subject)
{
	struct progress progress = { .tool = tool, .pid = subject->pid };

	if (!live_wait(attaches, &progress, PROGRESS_MS))
		live_fail("it cannot be attached to");
}

/* The files of its snapshots, when it is attached to.  work: makes it allocate; NULL when it does so by itself. */
static const char *take_snapshots(struct tool *tool, struct subject *subject, void (*work)(void *context), void *context)
{
	struct progress progress = { .tool = tool, .pid = subject->pid };
	const char *files = "";

	for (int i = 0; i < SNAPSHOTS; i++) {
		const char *file = live_text("%s/%d.aw", live_folder(), i);

		progress.least += ALLOCATIONS;
		if (work)
			work(context);
		else if (!live_wait(has_allocated, &progress, PROGRESS_MS))
			live_fail("it allocates nothing");
		tool_out(tool, "dump", pid_text(subject->pid), file, i % 2 ? "--blocks" : NULL, NULL);
		files = live_text("%s %s", files, file);
	}
	return files;
}

static const char *watch(struct tool *tool, struct subject *subject, void (*work)(void *context), void *context)
{
	attach(tool, subject);
	return take_snapshots(tool, subject, work, context);
}

/* A compiler that waits for its source until it is fed, or it might end before it is attached to. */
static void hold_back(const char *input, const char *kept)
{
	require(rename(input, kept) == 0);
	require(mkfifo(input, 0600) == 0);
}

static pid_t feed(const char *input, const char *kept)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", "cat \"$1\" >\"$2\"", "sh", kept, input, NULL);
		_exit(1);
	}
	require(pid > 0);
	return pid;
}

static void watch_workload(const char *name)
{
	const char *source = live_text("%s/src/cli/options.c", live_source());
	struct workload workload;
	struct subject *subject;
	struct tool *tool = tool_start();
	const char *files, *input = live_text("%s/input.i", live_folder()), *kept = live_text("%s/kept.i", live_folder());
	bool waits = strcmp(name, "cc1") == 0;
	pid_t feeder = 0;
	int r = workload_prepare(&workload, name, live_folder(), source);

	if (r < 0)
		live_fail("%s: %s", name, strerror(-r));
	if (waits)
		hold_back(input, kept);
	subject = subject_start(geteuid(), (const char *const *)workload.argv);
	require_equal(workload_start_client(&workload), 0);
	attach(tool, subject);
	if (waits)
		feeder = feed(input, kept);
	files = take_snapshots(tool, subject, NULL, NULL);
	if (waits)
		require(waitpid(feeder, NULL, 0) == feeder);
	workload_fini(&workload);
	subject_kill(subject);
	compare(files);
}

static void snapshots_of_redis_are_tracemallocs(void)
{
	watch_workload("redis");
}

static void snapshots_of_python3_are_tracemallocs(void)
{
	watch_workload("python3");
}

static void snapshots_of_cc1_are_tracemallocs(void)
{
	watch_workload("cc1");
}

static void handle_requests(void *subject)
{
	subject_command(subject, 'g');
}

static void snapshots_of_the_sample_are_tracemallocs(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start("contrib/sample/leaky", "--commands", NULL);
	const char *files = watch(tool, subject, handle_requests, subject);

	subject_quit(subject);
	compare(files);
}

/* --- nginx --- */

static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	close(fd);
	return -1;
}

static bool listens(void *path)
{
	int fd = connect_to(path);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* A request that is answered, on a connection that stays open and is forgotten. */
static void make_requests(void *path)
{
	static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	char answer[4096];

	for (int i = 0; i < 30; i++) {
		int fd = connect_to(path);

		require(fd >= 0);
		require_equal(send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL), (long long)sizeof(request) - 1);
		require_at_least(recv(fd, answer, sizeof(answer), 0), 1);
	}
}

static void snapshots_of_nginx_are_tracemallocs(void)
{
	const char *folder = live_folder(), *conf = live_text("%s/conf", folder), *path = live_text("%s/socket", folder);
	const char *const argv[] = { "/usr/sbin/nginx", "-p", folder, "-c", conf, NULL };
	struct tool *tool = tool_start();
	struct subject *subject;
	const char *files;
	FILE *f = fopen(conf, "w");

	if (access(argv[0], X_OK) < 0)
		live_fail("%s is not installed; contrib/install-deps --test installs it", argv[0]);
	fprintf(f,
		"daemon off; master_process off; error_log /dev/null; pid %s/pid;\n"
		"events { worker_connections 900; }\n"
		"http { access_log off; client_body_temp_path %s/b; proxy_temp_path %s/p; fastcgi_temp_path %s/f;\n"
		"uwsgi_temp_path %s/u; scgi_temp_path %s/s;\n"
		"server { listen unix:%s; location / { return 200 hello; } } }\n",
		folder, folder, folder, folder, folder, folder, path);
	fclose(f);
	subject = subject_start(geteuid(), argv);
	if (!live_wait(listens, (void *)path, PROGRESS_MS))
		live_fail("nginx does not listen");
	files = watch(tool, subject, make_requests, (void *)path);
	subject_kill(subject);
	compare(files);
}

/* --- threads --- */

static void groups_by_thread_are_those_of_the_threads(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start("tests/victims/hammer", "--threads", "4", "--ops", "300", NULL);
	pid_t pid = subject->pid;
	json_t *stats, *row, *first;
	long long size = 0, count = 0, own = 0;
	size_t i;

	tool_attach(tool, pid);
	subject_command(subject, 'g');
	stats = tool_json(tool, "stats", pid_text(pid), "--by", "thread", NULL);
	json_array_foreach(json_object_get(stats, "statistics"), i, row) {
		const char *task = live_text("/proc/%d/task/%lld", pid, json_number(row, "thread"));

		size += json_number(row, "size");
		count += json_number(row, "count");
		own += access(task, F_OK) == 0;
	}
	live_note("%zu threads, %lld blocks, %lld bytes", i, count, size);
	require_at_least((long long)i, 4);
	require_equal(own, (long long)i);
	require_equal(size, subject_tally(subject, "bytes"));
	require_equal(count, subject_tally(subject, "blocks"));
	require_equal(json_number(stats, "total.size"), size);
	/* of kept ones those with blocks only */
	tool_out(tool, "snapshot", pid_text(pid), "--name", "plain", NULL);
	tool_out(tool, "snapshot", pid_text(pid), "--name", "whole", "--blocks", NULL);
	require_text(tool_try(tool, "stats", live_text("%d:plain", pid), "--by", "thread", NULL).err, "--blocks");
	first = json_array_get(json_object_get(stats, "statistics"), 0);
	require_text(tool_out(tool, "stats", live_text("%d:whole", pid), "--by", "thread", NULL),
		     live_text("thread %lld: size=", json_number(first, "thread")));
	subject_quit(subject);
}

static const struct live_case cases[] = {
	LIVE_CASE(groups_by_thread_are_those_of_the_threads),
	LIVE_CASE(snapshots_of_the_sample_are_tracemallocs),
	LIVE_CASE(snapshots_of_redis_are_tracemallocs),
	LIVE_CASE(snapshots_of_nginx_are_tracemallocs),
	LIVE_CASE(snapshots_of_python3_are_tracemallocs),
	LIVE_CASE(snapshots_of_cc1_are_tracemallocs),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
