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
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX 24
#define PROCESSES_MAX 8
#define ANSWER_MS 60000
#define STACKS 400
#define STACKS_AT_WORK 200
#define STACKS_AT_WORK_LONG 1200
#define STACKS_LEAST 20
#define STEPS_MAX 40
#define GDB_EVERY 19
#define GDB_STACKS 3
#define GDB_ALONE_STACKS 10
#define SETTLE_MS 15000
#define WORK_TRIES 4
#define WORK_S 110
#define WORK_LONG_S 600                /* Node on a busy machine: gdb takes seconds each time */

static const char *const allocator[] = { "malloc", "calloc", "realloc", "posix_memalign", "_Znwm", NULL };

/* Those to attach to. */
struct processes {
	pid_t pids[PROCESSES_MAX];
	size_t count;
};

static char **words_of(const char *command)
{
	char **words = calloc(WORDS_MAX + 1, sizeof(*words)), *text = strdup(matrix_with_folder(command)), *word;
	size_t count = 0;

	require(words && text);
	for (word = strtok(text, " "); word && count < WORDS_MAX; word = strtok(NULL, " "))
		words[count++] = strcmp(word, "~") ? word : word + 1;
	return words;
}

static uid_t user_of(const struct matrix_daemon *daemon)
{
	struct passwd *user;

	if (!daemon->user)
		return geteuid();
	user = getpwnam(daemon->user);
	if (!user)
		live_fail("there is no user %s; contrib/install-deps --test installs what makes it", daemon->user);
	return user->pw_uid;
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

/* Until this process ends.  -1: it does not listen yet. */
static int stay_connected(const struct matrix_daemon *daemon)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	require(fd >= 0 && strlen(daemon->connected) < sizeof(address.sun_path));
	strcpy(address.sun_path, daemon->connected);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	close(fd);
	return -1;
}

static void tidy(const struct matrix_daemon *daemon)
{
	shell(daemon->tidy ? daemon->tidy : "rm -f socket");
}

/* For a while; what it does not stop at until then it will not.  *ret_worked: that it has once. */
static pid_t begin_work(const struct matrix_daemon *daemon, pid_t process, const bool **ret_worked)
{
	uint64_t deadline = clock_monotonic_ns() + live_rounds(WORK_S, WORK_LONG_S) * NSEC_PER_SEC;
	bool *worked = mmap(NULL, sizeof(*worked), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int connection = -1;
	pid_t pid;

	require(worked != MAP_FAILED);
	*ret_worked = worked;
	pid = fork();
	if (pid != 0)
		return pid;
	while (!clock_passed(deadline)) {
		bool works = shell(daemon->work) && (!daemon->undo || shell(daemon->undo));

		if (daemon->connected && connection < 0)
			connection = stay_connected(daemon);
		*worked |= daemon->serves ? shell(daemon->serves) : works;
	}
	kill(process, SIGKILL);
	_exit(EXIT_SUCCESS);
}

static bool wants_more(const struct matrix_daemon *daemon, const struct oracle_counts *counts, unsigned stacks)
{
	return daemon->generated ? counts->gdb_compared < GDB_ALONE_STACKS : counts->compared < stacks;
}

static void compare_some(const struct matrix_daemon *daemon, struct oracle *oracle, unsigned stacks, unsigned gdb_stacks)
{
	struct oracle_counts counts = oracle_counts(oracle);

	while (wants_more(daemon, &counts, stacks) && oracle_next(oracle)) {
		counts = oracle_counts(oracle);
		if (!daemon->generated && counts.compared % GDB_EVERY == 0 && counts.gdb_compared < gdb_stacks)
			oracle_ask_gdb(oracle);
	}
}

static void require_compared(const struct matrix_daemon *daemon, const struct oracle_counts *counts)
{
	live_note("%u stacks (%u distinct) compared with libunwind, %u differ; %u with gdb, %u differ; %u to generated code",
		  counts->compared, counts->distinct, counts->differ, counts->gdb_compared, counts->gdb_differ, counts->generated);
	require_equal(counts->differ, 0);
	require_equal(counts->gdb_differ, 0);
	if (daemon->generated)
		require_at_least(counts->generated, 1);
	else
		require_at_least(counts->compared, STACKS_LEAST);
	require_at_least(counts->gdb_compared, 1);
}

static unsigned stacks_at_work(const struct matrix_daemon *daemon)
{
	return daemon->serves ? STACKS_AT_WORK : live_rounds(STACKS_AT_WORK, STACKS_AT_WORK_LONG);
}

/* As it begins, and once it has worked. */
static struct oracle_counts compare_stacks(const struct matrix_daemon *daemon)
{
	char **words = words_of(daemon->alone ? daemon->alone : daemon->command);
	const struct oracle_options options = {
		.sampler = { .argv = words, .functions = allocator, .max_steps = daemon->generated ? 0 : STEPS_MAX, .uid = user_of(daemon),
			     .stdin_path = daemon->alone ? matrix_in_folder("input") : NULL },
		.generated = daemon->generated,
		.record = fopen(matrix_in_folder("record"), "w"),
	};
	struct oracle *oracle = oracle_start(&options);
	struct oracle_counts counts;
	const bool *worked;
	pid_t client = 0;

	require(options.record);
	if (!oracle)
		live_fail("%s does not start: %s", words[0], strerror(errno));
	if (!daemon->alone)
		client = begin_work(daemon, oracle_process(oracle), &worked);
	compare_some(daemon, oracle, daemon->stacks ? daemon->stacks : STACKS, GDB_STACKS);
	while (client && !daemon->generated && !*worked && oracle_pass(oracle))
		;
	compare_some(daemon, oracle, client ? oracle_counts(oracle).compared + stacks_at_work(daemon) : 0, 2 * GDB_STACKS);
	if (client)
		kill(client, SIGKILL);
	counts = oracle_counts(oracle);
	oracle_free(oracle);
	fclose(options.record);
	free(words);
	tidy(daemon);
	require_compared(daemon, &counts);
	return counts;
}

/* *ret_stacks: the engine's, of which *ret_found were seen by others as well, in another run. */
static void compare_names(const char *engine, unsigned *ret_stacks, unsigned *ret_found)
{
	FILE *script = popen(live_text("cd %s && python3 %s/tests/oracle/stacks_and_names.py --names saved-%s record", live_folder(),
				       realpath(live_source(), NULL), engine), "r");
	unsigned names = 0, second = 0, symbols = 0;
	char line[1024];

	*ret_stacks = *ret_found = 0;
	while (script && fgets(line, sizeof(line), script)) {
		sscanf(line, "names=%u second=%u symbols=%u stacks=%u found=%u", &names, &second, &symbols, ret_stacks, ret_found);
		live_note("%.*s", (int)strcspn(line, "\n"), line);
	}
	require(script && pclose(script) == 0);
	matrix_cell(engine, "names", "%u, %u by LLVM's, %u by symbols", names - second, second, symbols);
	require_at_least(names, 1);
}

static struct processes find_processes(const struct matrix_daemon *daemon, const struct subject *subject)
{
	struct processes found = { .pids = { subject->pid }, .count = 1 };
	FILE *list;

	if (!daemon->processes)
		return found;
	found.count = 0;
	list = popen(live_text("cd %s && %s", live_folder(), daemon->processes), "r");
	while (list && found.count < PROCESSES_MAX && fscanf(list, "%d", &found.pids[found.count]) == 1)
		found.count++;
	require(list && pclose(list) == 0);
	require_at_least(found.count, 2);
	return found;
}

static void attach(const char *engine, struct tool *tool, const struct processes *processes)
{
	for (size_t i = 0; i < processes->count; i++) {
		pid_t pid = processes->pids[i];
		json_t *status;

		tool_out(tool, "attach", "--engine", engine, "--frames", "100", pid_text(pid), NULL);
		status = tool_status(tool, pid);
		if (strcmp(json_text(status, "engine"), engine)) {
			matrix_cell(engine, "attach", "refused: %s", json_text(status, "engine_reason"));
			live_fail("this engine should not be refused");
		}
	}
	matrix_cell(engine, "attach", processes->count > 1 ? "yes, %zu of them" : "yes", processes->count);
}

static void require_nothing_missed(json_t *status)
{
	require_equal(json_number(status, "unknown.unknown_frees"), 0);
	require_equal(json_number(status, "unknown.lost_events"), 0);
	require_equal(json_number(status, "unknown.probe_gaps"), 0);
	require_at_least(json_number(status, "allocations"), 1);
}

static void require_calls(const char *engine, struct tool *tool, const struct processes *processes)
{
	long long calls = 0;

	for (size_t i = 0; i < processes->count; i++) {
		json_t *status = tool_status(tool, processes->pids[i]);

		require_nothing_missed(status);
		calls += json_number(status, "allocations");
		require_at_least(json_number(tool_stats(tool, pid_text(processes->pids[i])), "total.count"), 0);
	}
	matrix_cell(engine, "blocks", "%lld calls, nothing unknown", calls);
}

static long long live_bytes(struct tool *tool, const struct processes *processes)
{
	long long bytes = 0;

	for (size_t i = 0; i < processes->count; i++)
		bytes += json_number(tool_status(tool, processes->pids[i]), "traced_current");
	return bytes;
}

struct settling {
	struct tool *tool;
	const struct processes *processes;
	long long most;
};

/* What is closed, and what a child has done, it hears of later. */
static bool has_settled(void *context)
{
	const struct settling *settling = context;

	return live_bytes(settling->tool, settling->processes) <= settling->most;
}

static bool takes_no_more(const struct matrix_daemon *daemon, struct settling *settling)
{
	settling->most = live_bytes(settling->tool, settling->processes);
	require(shell(daemon->undo ? daemon->undo : daemon->work));
	if (daemon->undo)
		settling->most /= 2;
	return live_wait(has_settled, settling, SETTLE_MS);
}

/* It gives back what it took; or the same work again takes no more, soon: each of its threads may keep something at first. */
static void require_live_right(const struct matrix_daemon *daemon, const char *engine, struct tool *tool,
			       const struct processes *processes)
{
	struct settling settling = { .tool = tool, .processes = processes };
	unsigned tries = daemon->undo ? 1 : WORK_TRIES;
	long long before = live_bytes(tool, processes);

	if (daemon->no_live) {
		matrix_cell(engine, "live", "not compared: %s", daemon->no_live);
		return;
	}
	while (!takes_no_more(daemon, &settling) && --tries > 0)
		before = live_bytes(tool, processes);
	matrix_cell(engine, "live", daemon->undo ? "%lld of %lld B" : "%lld B after %lld B", live_bytes(tool, processes), before);
	require(has_settled(&settling));
}

static void tell_stacks(const char *engine, const struct matrix_daemon *daemon, const struct oracle_counts *counts, unsigned stacks,
			unsigned found)
{
	if (daemon->generated)
		matrix_cell(engine, "stacks", "%u at the same stop by gdb, %u of them down to generated code", counts->gdb_compared,
			    counts->generated);
	else
		matrix_cell(engine, "stacks", "%u at the same stop, %u by gdb%s", counts->compared, counts->gdb_compared,
			    daemon->alone ? "" : live_text("; %u of the engine's %u seen there, too", found, stacks));
}

static void watch(const struct matrix_daemon *daemon, const char *engine, const struct oracle_counts *counts)
{
	struct tool *tool = tool_start_named(engine);
	struct subject *subject = subject_start(user_of(daemon), (const char *const *)words_of(daemon->command));
	struct processes processes;
	unsigned stacks, found;

	await_work(daemon);
	require(!daemon->connected || stay_connected(daemon) >= 0);
	if (daemon->undo)
		require(shell(daemon->undo));
	processes = find_processes(daemon, subject);
	attach(engine, tool, &processes);
	require(shell(daemon->work));
	require_calls(engine, tool, &processes);
	tool_out(tool, "dump", pid_text(processes.pids[0]), matrix_in_folder(live_text("saved-%s", engine)), NULL);
	compare_names(engine, &stacks, &found);
	tell_stacks(engine, daemon, counts, stacks, found);
	if (!daemon->alone && !daemon->generated)
		require_at_least(found, 1);
	require_live_right(daemon, engine, tool, &processes);
	for (size_t i = 0; i < processes.count; i++) {
		tool_detach(tool, processes.pids[i]);
		require_unharmed(processes.pids[i], NULL);
	}
	require(shell(daemon->work));
	matrix_cell(engine, "unharmed", "yes");
	matrix_require_filled();
	kill(subject->pid, daemon->end_signal ? daemon->end_signal : SIGTERM);
	subject_wait(subject);
	tidy(daemon);
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
	for (size_t i = 0; i < sizeof(daemon->own_folders) / sizeof(daemon->own_folders[0]); i++)
		if (daemon->own_folders[i])
			matrix_mount_own(daemon->own_folders[i]);
	if (daemon->prepare)
		require(shell(daemon->prepare));
	counts = compare_stacks(daemon);
	for (enum matrix_engine engine = 0; engine < MATRIX_ENGINES; engine++)
		passed &= watch_apart(daemon, matrix_engine_names[engine], &counts);
	require(passed);
}
