#include "tool.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/proc.h"
#include "live.h"
#include "state.h"
#include "subject.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX 24
#define OUTPUT_MAX (64u << 20)
#define ANSWER_MS 90000

/* Beside each other, as in the build tree: each finds the next one there. */
static const char *const programs[] = {
	"src/allocwatch", "src/allocwatchd", "src/allocwatch-tracer", "src/allocwatch-symbolizer",
	"src/allocwatch-fetcher",
};

struct tool {
	uid_t uid;
	struct subject daemon;
	const char *client, *program, *socket, *home;
	const char *const *wrapper;     /* what runs the daemon, up to a NULL; NULL: nothing does */
	const char *const *options;     /* of a daemon for all users, up to a NULL; NULL: it is a private one */
};

static bool is_answering(void *context)
{
	struct tool *tool = context;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r, status;

	strncpy(address.sun_path, tool->socket, sizeof(address.sun_path) - 1);
	r = connect(fd, (struct sockaddr *)&address, sizeof(address));
	close(fd);
	if (r && waitpid(tool->daemon.pid, &status, WNOHANG) == tool->daemon.pid)
		live_fail("the daemon ended at once with wait status 0x%x", (unsigned)status);
	return r == 0;
}

static void set_environment(const struct tool *tool)
{
	setenv("HOME", tool->home, 1);
	setenv("XDG_RUNTIME_DIR", tool->home, 1);
	setenv("XDG_STATE_HOME", tool->home, 1);
	setenv("XDG_CONFIG_HOME", tool->home, 1);
	setenv("ALLOCWATCH_SOCKET", tool->socket, 1);
	setenv("LC_ALL", "C", 1);
}

static pid_t fork_as(const struct tool *tool)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		live_fail("fork: %s", strerror(errno));
	if (pid == 0) {
		set_environment(tool);
		become_user(tool->uid);
	}
	return pid;
}

static void exec_daemon(const struct tool *tool)
{
	const char *argv[ARGUMENTS_MAX];
	size_t n = 0;

	for (; tool->wrapper && tool->wrapper[n]; n++)
		argv[n] = tool->wrapper[n];
	argv[n++] = tool->program;
	for (size_t i = 0; tool->options && tool->options[i]; i++)
		argv[n++] = tool->options[i];
	if (!tool->options)
		argv[n++] = "--private";
	argv[n++] = "--socket";
	argv[n++] = tool->socket;
	argv[n] = NULL;
	execvp(argv[0], (char *const *)argv);
}

static void start_daemon(struct tool *tool)
{
	tool->daemon.pid = fork_as(tool);
	if (tool->daemon.pid == 0) {
		exec_daemon(tool);
		fprintf(stderr, "%s: %s\n", tool->program, strerror(errno));
		_exit(127);
	}
	if (!live_wait(is_answering, tool, ANSWER_MS))
		live_fail("the daemon does not answer on %s", tool->socket);
}

static struct tool *tool_new(const char *name, uid_t uid)
{
	static int count;
	struct tool *tool = calloc(1, sizeof(*tool));

	if (!tool)
		live_fail("out of memory");
	tool->uid = uid;
	tool->home = live_text("%s/%s-%d", live_folder(), name, count++);
	tool->socket = live_text("%s/socket", tool->home);
	if (mkdir(tool->home, 0700) || chown(tool->home, uid, uid == geteuid() ? (gid_t)-1 : uid))
		live_fail("%s: %s", tool->home, strerror(errno));
	return tool;
}

struct tool *tool_start(void)
{
	return tool_start_named("home");
}

struct tool *tool_start_named(const char *name)
{
	struct tool *tool = tool_new(name, geteuid());

	tool->client = live_text("%s/%s", live_build(), programs[0]);
	tool->program = live_text("%s/%s", live_build(), programs[1]);
	start_daemon(tool);
	return tool;
}

struct tool *tool_start_with_tracer(const char *tracer)
{
	struct tool *tool = tool_new(live_text("tracer-%d", getpid()), geteuid());
	const char **options = calloc(4, sizeof(*options));

	if (!options)
		live_fail("out of memory");
	options[0] = "--private";
	options[1] = "--tracer";
	options[2] = live_text("%s/%s", live_build(), tracer);
	tool->options = options;
	tool->client = live_text("%s/%s", live_build(), programs[0]);
	tool->program = live_text("%s/%s", live_build(), programs[1]);
	start_daemon(tool);
	return tool;
}

struct tool *tool_start_wrapped(const char *const *wrapper)
{
	struct tool *tool = tool_new("wrapped", geteuid());

	tool->client = live_text("%s/%s", live_build(), programs[0]);
	tool->program = live_text("%s/%s", live_build(), programs[1]);
	tool->wrapper = wrapper;
	start_daemon(tool);
	return tool;
}

struct tool *tool_start_ordinary(void)
{
	return tool_start_ordinary_wrapped(NULL);
}

struct tool *tool_start_ordinary_wrapped(const char *const *wrapper)
{
	struct tool *tool = tool_new("ordinary", ORDINARY_UID);

	for (size_t i = 2; i < sizeof(programs) / sizeof(programs[0]); i++)
		public_copy(programs[i]);
	tool->client = public_copy(programs[0]);
	tool->program = public_copy(programs[1]);
	tool->wrapper = wrapper;
	start_daemon(tool);
	return tool;
}

struct tool *tool_start_system(const char *option, const char *value)
{
	struct tool *tool = tool_new("system", geteuid());
	const char **options = calloc(6, sizeof(*options));

	if (!options || chmod(tool->home, 0755))
		live_fail("%s: %s", tool->home, strerror(errno));
	options[0] = "--state";
	options[1] = live_text("%s/state", tool->home);
	options[2] = "--no-heal";          /* other tests have things to be left alone */
	options[3] = option;
	options[4] = value;
	tool->options = options;
	tool->client = live_text("%s/%s", live_build(), programs[0]);
	tool->program = live_text("%s/%s", live_build(), programs[1]);
	start_daemon(tool);
	return tool;
}

struct tool *tool_of_user(const struct tool *system, uid_t uid)
{
	struct tool *tool = tool_new("user", uid);

	tool->client = public_copy(programs[0]);
	tool->socket = system->socket;
	return tool;
}

pid_t tool_daemon(const struct tool *tool)
{
	return tool->daemon.pid;
}

const char *tool_socket(const struct tool *tool)
{
	return tool->socket;
}

void tool_end_daemon(struct tool *tool, int sig)
{
	int status;

	kill(tool->daemon.pid, sig);
	status = subject_wait(&tool->daemon);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		live_fail("after signal %d the daemon ended with wait status 0x%x", sig, (unsigned)status);
}

void tool_kill_daemon(struct tool *tool)
{
	kill(tool->daemon.pid, SIGKILL);
	subject_wait(&tool->daemon);
}

void tool_start_again(struct tool *tool)
{
	start_daemon(tool);
}

struct subject *tool_heal_begin(const char *pid)
{
	const char *const argv[] = { live_text("%s/%s", live_build(), programs[1]), "--heal", pid, NULL };

	return subject_start(geteuid(), argv);
}

/* Until the case ends; once is enough. */
static void keep_out(const char *others, bool *kept)
{
	int lock;

	if (*kept)
		return;
	*kept = true;
	lock = open(live_text("%s/tests/live/%s.lock", live_build(), others), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (lock < 0 || flock(lock, LOCK_EX) < 0)
		live_fail("cannot keep other tests' %s out: %s", others, strerror(errno));
}

void tool_keep_healers_out(void)
{
	static bool kept;

	keep_out("healers", &kept);
}

void tool_keep_uprobes_out(void)
{
	static bool kept;

	keep_out("uprobes", &kept);
}

int tool_heal(const char *pid)
{
	int status = subject_wait(tool_heal_begin(pid));

	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool is_tracer(pid_t pid, bool heals)
{
	FILE *f = fopen(live_text("/proc/%d/cmdline", pid), "r");
	char words[4096] = "";
	const char *name;

	if (!f)
		return false;
	words[fread(words, 1, sizeof(words) - 1, f)] = '\0';
	fclose(f);
	name = strrchr(words, '/') ? strrchr(words, '/') + 1 : words;
	return !strcmp(name, "allocwatch-tracer") && !strcmp(name + sizeof("allocwatch-tracer"), heals ? "--heal" : "");
}

/* It has the memory open of a process that is not traced by ptrace. */
static bool has_memory_of(pid_t tracer, pid_t pid)
{
	const char *wanted = live_text("/proc/%d/mem", pid);
	DIR *files = opendir(live_text("/proc/%d/fd", tracer));
	struct dirent *entry;
	bool found = false;

	while (files && !found && (entry = readdir(files))) {
		char name[64] = "";

		if (readlinkat(dirfd(files), entry->d_name, name, sizeof(name) - 1) > 0)
			found = !strcmp(name, wanted);
	}
	if (files)
		closedir(files);
	return found;
}

static pid_t find_tracer(pid_t pid)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	pid_t found = 0;

	while (found == 0 && (entry = readdir(proc))) {
		pid_t other = (pid_t)atoi(entry->d_name);

		if (other > 0 && is_tracer(other, false) && has_memory_of(other, pid))
			found = other;
	}
	closedir(proc);
	return found;
}

pid_t tool_find_tracer(pid_t pid)
{
	pid_t tracer = (pid_t)status_number(pid, "TracerPid", 10);

	return tracer > 0 ? tracer : find_tracer(pid);
}

pid_t tool_tracer(pid_t pid)
{
	pid_t tracer = tool_find_tracer(living_thread(pid));

	if (tracer <= 0)
		tracer = find_tracer(pid);
	if (tracer <= 0)
		live_fail("nobody traces process %d", pid);
	return tracer;
}

static pid_t child_called(const struct tool *tool, const char *name)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	pid_t found = 0;

	while (proc && found == 0 && (entry = readdir(proc))) {
		pid_t pid = (pid_t)atoi(entry->d_name);
		char command[512] = "";
		FILE *f;

		if (pid <= 0 || proc_parent(pid) != tool->daemon.pid || !(f = fopen(live_text("/proc/%d/cmdline", pid), "r")))
			continue;
		command[fread(command, 1, sizeof(command) - 1, f)] = '\0';
		fclose(f);
		if (strstr(command, name))
			found = pid;
	}
	closedir(proc);
	return found;
}

pid_t tool_symbolizer(const struct tool *tool)
{
	return child_called(tool, "symbolizer");
}

pid_t tool_fetcher(const struct tool *tool)
{
	return child_called(tool, "fetcher");
}

pid_t tool_daemons_child(const struct tool *tool, bool heals)
{
	FILE *children = fopen(live_text("/proc/%d/task/%d/children", tool->daemon.pid, tool->daemon.pid), "r");
	pid_t pid, found = 0;

	while (children && found == 0 && fscanf(children, "%d", &pid) == 1)
		found = is_tracer(pid, heals) ? pid : 0;
	if (children)
		fclose(children);
	return found;
}

/* Every case runs with the engine that the environment names (LIVE_ENGINE), or auto; one that a case names itself comes later, and
 * wins.  With LIVE_HOLD ptrace is held, but where a case asks for another thing; LIVE_READERS says how many threads read a ring. */
static bool takes_engine(const char *command)
{
	return command && (!strcmp(command, "attach") || !strcmp(command, "run") || !strcmp(command, "leaks"));
}

static size_t collect(const char **argv, const char *client, va_list args)
{
	const char *engine = getenv("LIVE_ENGINE");
	size_t n = 1, engine_at = 0, hold_at = 0;

	argv[0] = client;
	argv[n] = va_arg(args, const char *);
	if (takes_engine(argv[n])) {
		argv[++n] = "--engine";
		argv[engine_at = ++n] = engine ? engine : "auto";
		/* On a busy machine a tracer gets no processor for longer than anybody would have his program wait. */
		argv[++n] = "--ring-wait";
		argv[++n] = "10s";
		if (getenv("LIVE_READERS")) {
			argv[++n] = "--ring-readers";
			argv[++n] = getenv("LIVE_READERS");
		}
		if (getenv("LIVE_HOLD"))
			argv[hold_at = ++n] = "--hold";
	}
	if (argv[n])
		n++;
	while (n < ARGUMENTS_MAX - 2 && (argv[n] = va_arg(args, const char *))) {
		/* Without ptrace, and for samples, it can only be the ring. */
		if (engine_at > 0 && (!strcmp(argv[n], "--release") || !strcmp(argv[n], "--sample-bytes")))
			argv[engine_at] = "ring";
		/* Which is what the case asks for. */
		if (hold_at > 0 && !strcmp(argv[n], "--release"))
			argv[hold_at] = "--engine=ring";
		n++;
	}
	return n;
}

static pid_t begin(struct tool *tool, const char **argv, int out, int err, bool as_job)
{
	pid_t pid = fork_as(tool);

	if (pid == 0) {
		int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

		if (as_job)
			setpgid(0, 0);
		dup2(null, STDIN_FILENO);
		if (out >= 0)
			dup2(out, STDOUT_FILENO);
		if (err >= 0)
			dup2(err, STDERR_FILENO);
		execv(argv[0], (char *const *)argv);
		fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	return pid;
}

pid_t tool_begin(struct tool *tool, ...)
{
	const char *argv[ARGUMENTS_MAX] = { NULL };
	va_list args;

	va_start(args, tool);
	collect(argv, tool->client, args);
	va_end(args);
	return begin(tool, argv, -1, -1, false);
}

pid_t tool_begin_job(struct tool *tool, ...)
{
	const char *argv[ARGUMENTS_MAX] = { NULL };
	va_list args;

	va_start(args, tool);
	collect(argv, tool->client, args);
	va_end(args);
	return begin(tool, argv, -1, -1, true);
}

/* A file, not a pipe: nobody has to read while it runs. */
static int open_output(void)
{
	int fd = open(live_folder(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

	if (fd < 0)
		live_fail("%s: %s", live_folder(), strerror(errno));
	return fd;
}

static char *take_output(int fd)
{
	char *text;
	int r;

	lseek(fd, 0, SEEK_SET);
	r = fd_read_text(fd, OUTPUT_MAX, &text, NULL);
	if (r < 0)
		live_fail("reading what allocwatch said: %s", strerror(-r));
	close(fd);
	return text;
}

static struct tool_run run(struct tool *tool, const char **argv)
{
	int out = open_output(), err = open_output(), status;
	struct subject client = { .pid = begin(tool, argv, out, err, false) };
	struct tool_run result;

	status = subject_wait(&client);
	result.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	result.out = take_output(out);
	result.err = take_output(err);
	return result;
}

static void require_success(const char **argv, const struct tool_run *result)
{
	const char *line = "allocwatch";

	if (result->status == 0)
		return;
	for (size_t i = 1; argv[i]; i++)
		line = live_text("%s %s", line, argv[i]);
	live_fail("'%s' exited with %d and said: %s%s", line, result->status, result->out, result->err);
}

struct tool_run tool_try(struct tool *tool, ...)
{
	const char *argv[ARGUMENTS_MAX] = { NULL };
	va_list args;

	va_start(args, tool);
	collect(argv, tool->client, args);
	va_end(args);
	return run(tool, argv);
}

const char *tool_out(struct tool *tool, ...)
{
	const char *argv[ARGUMENTS_MAX] = { NULL };
	struct tool_run result;
	va_list args;

	va_start(args, tool);
	collect(argv, tool->client, args);
	va_end(args);
	result = run(tool, argv);
	require_success(argv, &result);
	return result.out;
}

json_t *tool_json(struct tool *tool, ...)
{
	const char *argv[ARGUMENTS_MAX] = { NULL };
	struct tool_run result;
	json_error_t error;
	json_t *document;
	va_list args;

	va_start(args, tool);
	argv[collect(argv, tool->client, args)] = "--json";
	va_end(args);
	result = run(tool, argv);
	require_success(argv, &result);
	document = json_loads(result.out, 0, &error);
	if (!document)
		live_fail("'allocwatch %s --json' gave no JSON document: %s: %.200s", argv[1], error.text,
			  result.out);
	return document;
}

void tool_attach(struct tool *tool, pid_t pid)
{
	tool_out(tool, "attach", pid_text(pid), NULL);
	tool_tracer(pid);
}

void tool_attach_held(struct tool *tool, pid_t pid)
{
	tool_out(tool, "attach", "--hold", pid_text(pid), NULL);
	require_at_least(status_number(living_thread(pid), "TracerPid", 10), 1);
}

void tool_detach(struct tool *tool, pid_t pid)
{
	tool_out(tool, "detach", pid_text(pid), NULL);
}

static json_t *find(json_t *document, const char *path)
{
	char *copy = strdup(path), *next = copy, *key;
	json_t *at = document;

	while (at && (key = strsep(&next, ".")))
		at = json_object_get(at, key);
	free(copy);
	if (!at)
		live_fail("there is no '%s' in: %s", path, json_dumps(document, 0));
	return at;
}

bool tool_lists(struct tool *tool, pid_t pid)
{
	json_t *list = tool_json(tool, "list", NULL), *target;
	size_t i;

	json_array_foreach(find(list, "targets"), i, target) {
		if (json_number(target, "pid") == pid)
			return true;
	}
	return false;
}

struct traced {
	struct tool *tool;
	pid_t pid;
};

static bool is_tracing(void *context)
{
	const struct traced *traced = context;

	return tool_lists(traced->tool, traced->pid) &&
	       !strcmp(json_text(tool_status(traced->tool, traced->pid), "state"), "tracing");
}

static bool is_gone(void *context)
{
	const struct traced *traced = context;

	return !tool_lists(traced->tool, traced->pid);
}

void tool_wait_until_traced(struct tool *tool, pid_t pid, int timeout_ms)
{
	struct traced traced = { tool, pid };

	if (!live_wait(is_tracing, &traced, timeout_ms))
		live_fail("process %d is not traced", pid);
}

void tool_wait_until_gone(struct tool *tool, pid_t pid, int timeout_ms)
{
	struct traced traced = { tool, pid };

	if (!live_wait(is_gone, &traced, timeout_ms))
		live_fail("process %d is still listed", pid);
}

void tool_end(struct tool *tool, struct subject *subject, const struct state *before)
{
	tool_detach(tool, subject->pid);
	require_unharmed(subject->pid, before);
	require(!tool_lists(tool, subject->pid));
	subject_quit(subject);
}

const char *pid_text(pid_t pid)
{
	return live_text("%d", pid);
}

json_t *tool_status(struct tool *tool, pid_t pid)
{
	return tool_json(tool, "status", pid_text(pid), NULL);
}

json_t *tool_stats(struct tool *tool, const char *snap)
{
	return tool_json(tool, "stats", snap, NULL);
}

json_t *tool_diff(struct tool *tool, const char *old, const char *new)
{
	return tool_json(tool, "diff", old, new, NULL);
}

long long json_number(json_t *document, const char *path)
{
	json_t *value = find(document, path);

	if (json_is_boolean(value))
		return json_is_true(value);
	if (!json_is_number(value))
		live_fail("'%s' is no number in: %s", path, json_dumps(document, 0));
	return (long long)json_number_value(value);
}

long long json_count_of(json_t *statistics, const char *text)
{
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(statistics, "statistics"), i, row) {
		char *dump = json_dumps(row, 0);
		bool is_it = strstr(dump, text) != NULL;

		free(dump);
		if (is_it)
			return json_number(row, "count");
	}
	return 0;
}

const char *json_text(json_t *document, const char *path)
{
	json_t *value = find(document, path);

	if (!json_is_string(value))
		live_fail("'%s' is no text in: %s", path, json_dumps(document, 0));
	return json_string_value(value);
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && !strcmp(text + len - end_len, end);
}

bool has_frame_at(json_t *row, const char *file, int line)
{
	json_t *frame;
	size_t i;

	json_array_foreach(json_object_get(row, "traceback"), i, frame) {
		const char *name = json_string_value(json_object_get(frame, "file"));

		if (name && ends_with(name, file) &&
		    json_integer_value(json_object_get(frame, "line")) == line)
			return true;
	}
	return false;
}

json_t *row_at(json_t *document, const char *file, int line)
{
	json_t *row;
	size_t i;

	json_array_foreach(find(document, "statistics"), i, row) {
		if (has_frame_at(row, file, line))
			return row;
	}
	return NULL;
}

int line_of(const char *source, const char *text)
{
	const char *path = live_text("%s/%s", SOURCE_FOLDER, source);
	char *all, *at;
	int line = 1, r = file_read_text(path, OUTPUT_MAX, &all, NULL);

	if (r < 0)
		live_fail("%s: %s", path, strerror(-r));
	at = strstr(all, text);
	if (!at || strstr(at + 1, text))
		live_fail("%s does not hold '%s' exactly once", path, text);
	for (char *p = all; p < at; p++)
		line += *p == '\n';
	free(all);
	return line;
}

void require_row(json_t *document, const char *source, const char *text, long long size, long long count)
{
	int line = line_of(source, text);
	const char *name = strrchr(source, '/') + 1;
	json_t *row = row_at(document, name, line);

	if (!row)
		live_fail("no row names %s:%d (%s) in: %s", name, line, text, json_dumps(document, 0));
	if (json_number(row, "size") != size || json_number(row, "count") != count)
		live_fail("%s:%d should hold %lld bytes in %lld blocks: %s", name, line, size, count,
			  json_dumps(row, 0));
}

void require_nothing_unknown(json_t *status, long long before_attach_frees)
{
	if (!json_is_true(json_object_get(status, "exact")))
		live_fail("the status does not call itself exact: %s", json_dumps(status, 0));
	require_equal(json_number(status, "unknown.unknown_frees"), 0);
	require_equal(json_number(status, "unknown.before_attach_frees"), before_attach_frees);
	require_equal(json_number(status, "unknown.after_clear_frees"), 0);
	require_equal(json_number(status, "unknown.lost_events"), 0);
	require_equal(json_number(status, "unknown.probe_gaps"), 0);
}

void require_tally(struct tool *tool, const struct subject *victim, long long before_attach_frees)
{
	json_t *status = tool_status(tool, victim->pid);

	/* What is said to be inexact is told as that, and not by the numbers that it makes wrong. */
	require_nothing_unknown(status, before_attach_frees);
	require_equal(json_number(status, "blocks"), subject_tally(victim, "blocks"));
	require_equal(json_number(status, "traced_current"), subject_tally(victim, "bytes"));
	require_equal(json_number(status, "allocations"), subject_tally(victim, "allocations"));
}
