/* make matrix: every kind of program, with each engine.  A case is a row; tests/live/matrix makes a table of what they print.
 *
 * A program of our own is run twice.  First it is stopped at its calls of the allocator, where our stack must be libunwind's
 * and gdb's, and libunwind's are written down.  Then a daemon attaches to another one, with each engine: its blocks are those
 * that the program has counted, its stacks are among those written down, its names are addr2line's. */
#include "live.h"

#include "matrix.h"
#include "matrix_rows.h"
#include "oracle.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#define FRAMES "100"
#define WORDS_MAX 8
#define ROUNDS 3
#define ROUNDS_WRITTEN_DOWN 12
#define STOPS_MAX 6000
#define GDB_EVERY 11                 /* stops: another shape each time */

const char *const matrix_engine_names[] = { [MATRIX_INT3] = "int3", [MATRIX_RING] = "ring" };
static const char *const allocator[] = {
	"malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign",
	/* operator new and new[]: plain, nothrow, aligned, both */
	"_Znwm", "_Znam", "_ZnwmRKSt9nothrow_t", "_ZnamRKSt9nothrow_t", "_ZnwmSt11align_val_t", "_ZnamSt11align_val_t",
	"_ZnwmSt11align_val_tRKSt9nothrow_t", "_ZnamSt11align_val_tRKSt9nothrow_t",
	/* jemalloc's with the prefix of Rust's crate */
	"_rjem_malloc", "_rjem_calloc", "_rjem_realloc", "_rjem_mallocx", "_rjem_rallocx", NULL,
};

/* That must say something in each row, or why they cannot. */
static const char *const columns[] = { "attach", "blocks", "stacks", "names", "live", "unharmed" };
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))
static bool is_filled[COLUMNS];

static void note_filled(const char *column)
{
	for (size_t i = 0; i < COLUMNS; i++)
		is_filled[i] |= !strcmp(columns[i], column);
}

void matrix_cell(const char *engine, const char *column, const char *format, ...)
{
	va_list args;

	note_filled(column);
	printf("CELL: %s\t%s\t%s\t", live_case_name(), engine, column);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

void matrix_require_filled(void)
{
	for (size_t i = 0; i < COLUMNS; i++)
		if (!is_filled[i])
			live_fail("nothing was compared in the column '%s', and the row does not say why", columns[i]);
}

const char *matrix_in_folder(const char *name)
{
	return live_text("%s/%s", live_folder(), name);
}

const char *matrix_with_folder(const char *text)
{
	const char *at;

	while ((at = strchr(text, '@')))
		text = live_text("%.*s%s%s", (int)(at - text), text, live_folder(), at + 1);
	return text;
}

static const char *victims_folder(void)
{
	return realpath(live_text("%s/tests/victims", live_source()), NULL);
}

void matrix_mount_own(const char *path)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("none", path, "tmpfs", 0, NULL))
		live_skip("a mount of its own on %s is not permitted here: %s", path, strerror(errno));
}

static void build(const struct matrix_row *row)
{
	const char *command = live_text("cd %s && S=%s && %s", live_folder(), victims_folder(), row->build);

	if (row->needs_own_debug_folder)
		matrix_mount_own("/usr/lib/debug");
	if (system(command) != 0)
		live_fail("'%s' does not work; contrib/install-deps --test installs what it needs", command);
}

static FILE *create(const char *name)
{
	FILE *file = fopen(matrix_in_folder(name), "w");

	if (!file)
		live_fail("%s: %s", matrix_in_folder(name), strerror(errno));
	return file;
}

static void write_input(void)
{
	FILE *input = create("input");

	for (unsigned i = 0; i < ROUNDS_WRITTEN_DOWN; i++)
		fputc('g', input);
	fclose(input);
}

static void set_preload(const struct matrix_row *row)
{
	if (row->preload && access(row->preload, R_OK))
		live_fail("%s is not installed; contrib/install-deps --test installs it", row->preload);
	if (row->preload)
		setenv("LD_PRELOAD", row->preload, 1);
}

/* What was done to those of the last one. */
static void restore_files(void)
{
	require_equal(system(live_text("cd %s && cp --remove-destination reference program && for i in reference-*; do "
				       "[ ! -e $i ] || cp --remove-destination $i ${i#reference-}; done", live_folder())), 0);
}

/* The next child is the first process of a new one; returns the old one. */
static int enter_pid_namespace(void)
{
	int old = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);

	if (old < 0 || unshare(CLONE_NEWPID))
		live_skip("a PID namespace is not permitted here: %s", strerror(errno));
	return old;
}

static void leave_pid_namespace(int old)
{
	if (old < 0)
		return;
	require_equal(setns(old, CLONE_NEWPID), 0);
	close(old);
}

static struct subject *start(const struct matrix_row *row)
{
	const char *argv[WORDS_MAX + 2] = { NULL };
	char *words = row->wrapper ? strdup(matrix_with_folder(row->wrapper)) : NULL;
	int pid_namespace = row->own_pid_namespace ? enter_pid_namespace() : -1;
	struct subject *subject;
	size_t count = 0;

	for (char *word = words ? strtok(words, " ") : NULL; word && count < WORDS_MAX; word = strtok(NULL, " "))
		argv[count++] = word;
	argv[count] = matrix_in_folder("program");
	if (row->meanwhile)
		restore_files();
	set_preload(row);
	subject = subject_start(geteuid(), argv);
	leave_pid_namespace(pid_namespace);
	unsetenv("LD_PRELOAD");
	require_text(subject_line(subject), "R");
	if (row->is_contained)
		subject_enter(subject);
	free(words);
	if (row->meanwhile && system(live_text("cd %s && S=%s && %s", live_folder(), victims_folder(), row->meanwhile)))
		live_fail("'%s' does not work", row->meanwhile);
	return subject;
}

/* Stops at its calls; what libunwind says, or gdb, goes to the file "record". */
static struct oracle_counts write_down(const struct matrix_row *row)
{
	char *argv[] = { strdup(matrix_in_folder("program")), NULL };
	struct oracle_options options = {
		.sampler = { .argv = argv, .stdin_path = matrix_in_folder("input"), .functions = allocator, .all = true },
		.gdb_alone = row->gdb_alone,
		.gdb_guesses = row->gdb_guesses,
		.moving = row->moving,
		.record = create("record"),
	};
	unsigned wanted = live_rounds(1, 4);
	struct oracle *oracle;
	struct oracle_counts counts;

	write_input();
	set_preload(row);
	oracle = oracle_start(&options);
	unsetenv("LD_PRELOAD");
	if (!oracle)
		live_fail("the program does not start: %s", strerror(errno));
	while (oracle_counts(oracle).compared < STOPS_MAX && oracle_next(oracle)) {
		counts = oracle_counts(oracle);
		if (!row->gdb_alone && counts.compared % GDB_EVERY == 0 && counts.gdb_compared < wanted)
			oracle_ask_gdb(oracle);
	}
	counts = oracle_counts(oracle);
	live_note("%u stacks (%u distinct) compared with libunwind, %u differ; %u with gdb, %u differ, %u are cut, at %u it guesses",
		  counts.compared, counts.distinct, counts.differ, counts.gdb_compared, counts.gdb_differ, counts.cut,
		  counts.guessed);
	oracle_free(oracle);
	fclose(options.record);
	free(argv[0]);
	return counts;
}

/* True: an engine refuses it, as is known, and there is no more to see. */
static bool is_refused(const struct matrix_row *row, enum matrix_engine engine, struct tool *tool, pid_t pid)
{
	struct tool_run run = tool_try(tool, "attach", "--engine", matrix_engine_names[engine], "--frames", FRAMES, pid_text(pid), NULL);
	const char *refusal = row->refusals[engine], *said = run.err;

	if (run.status == 0) {
		json_t *status = tool_status(tool, pid);

		if (!strcmp(json_text(status, "engine"), matrix_engine_names[engine])) {
			matrix_cell(matrix_engine_names[engine], "attach", "yes");
			require(!refusal);
			return false;
		}
		said = json_text(status, "engine_reason");
	}
	matrix_cell(matrix_engine_names[engine], "attach", "refused: %.*s", (int)strcspn(said, "\n"), said);
	if (!refusal)
		live_fail("refused, and it should not: %s", said);
	require_text(said, refusal);
	return true;
}

static void require_counted(const char *engine, struct tool *tool, struct subject *subject)
{
	json_t *status = tool_status(tool, subject->pid);

	matrix_cell(engine, "blocks", "%lld of %ld", json_number(status, "blocks"), subject_tally(subject, "blocks"));
	require_equal(json_number(status, "blocks"), subject_tally(subject, "blocks"));
	require_equal(json_number(status, "traced_current"), subject_tally(subject, "bytes"));
	require_nothing_unknown(status, 0);
}

static const char *const cut_reasons[TRUNCATED_COUNT] = {
	[TRUNCATED_NONE] = "no reason that is known", [TRUNCATED_LIMIT] = "the limit of frames",
	[TRUNCATED_NO_CFI] = "want of unwind information", [TRUNCATED_LOOP] = "Go's change of stacks",
};

static void compare_names_and_stacks(const struct matrix_row *row, const char *engine, const struct oracle_counts *counts)
{
	const char *reference = access(matrix_in_folder("reference"), R_OK) ? "program" : "reference";
	const char *command = live_text("cd %s && python3 %s/tests/oracle/stacks_and_names.py %s saved-%s record program %s",
					live_folder(), realpath(live_source(), NULL), row->names_functions_only ? "--functions" : "", engine,
					reference);
	FILE *script;
	char line[1024];
	unsigned stacks = 0, cut = 0, names = 0, second = 0, symbols = 0;
	int reason = 0;

	script = popen(command, "r");
	while (script && fgets(line, sizeof(line), script)) {
		sscanf(line, "stacks=%u cut=%u reason=%d names=%u second=%u symbols=%u", &stacks, &cut, &reason, &names, &second,
		       &symbols);
		live_note("%.*s", (int)strcspn(line, "\n"), line);
	}
	require(script && pclose(script) == 0);
	matrix_cell(engine, "stacks", "%u%s by gdb%s", stacks, row->gdb_alone ? "" : live_text(", %u", counts->gdb_compared),
		    cut ? live_text(", %u cut for %s", cut, cut_reasons[row->cut]) : "");
	matrix_cell(engine, "names", "%u, %u by LLVM's, %u by symbols", names - second, second, symbols);
	require_at_least(stacks, row->all_are_cut ? 1 : cut + 1);
	require_equal(reason, row->cut);
	require_at_least(names, 1);
}

/* However little text it has. */
static void require_untouched(pid_t pid, const struct state *before)
{
	size_t compared;

	state_require_same(pid, before, true);
	require(!text_difference(pid, &compared));
}

static void watch(const struct matrix_row *row, enum matrix_engine number, const struct oracle_counts *counts)
{
	const char *engine = matrix_engine_names[number];
	struct tool *tool = tool_start_named(engine);
	struct subject *subject = start(row);
	struct state *before;
	bool refused;

	subject_command(subject, 'g');
	subject_command(subject, 'f');
	before = state_take(subject->pid);
	refused = is_refused(row, number, tool, subject->pid);
	if (!refused) {
		for (unsigned i = 0; i < ROUNDS; i++)
			subject_command(subject, 'g');
		require_counted(engine, tool, subject);
		tool_out(tool, "dump", pid_text(subject->pid), matrix_in_folder(live_text("saved-%s", engine)), NULL);
		compare_names_and_stacks(row, engine, counts);
		subject_command(subject, 'f');
		require_equal(json_number(tool_status(tool, subject->pid), "blocks"), 0);
		matrix_cell(engine, "live", "0");
	}
	if (tool_lists(tool, subject->pid))
		tool_end(tool, subject, before);
	else
		require_untouched(subject->pid, before);
	matrix_cell(engine, "unharmed", "yes");
	if (!refused)
		matrix_require_filled();
}

/* A fault that is known must be seen, too, or the row is out of date. */
static const char *verdict_of(const char *fault, bool failed)
{
	if (fault)
		return failed ? live_text("known fault: %s", fault) : "FAILED: holds, and is thought not to";
	return failed ? "FAILED" : "ok";
}

bool matrix_fails_apart(void (*look)(const void *context), const void *context)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	require(pid >= 0);
	if (pid == 0) {
		look(context);
		fflush(stdout);
		_exit(EXIT_SUCCESS);
	}
	require(waitpid(pid, &status, 0) == pid);
	return status != 0;
}

struct watching {
	const struct matrix_row *row;
	enum matrix_engine engine;
	const struct oracle_counts *counts;
};

static void watch_one(const void *context)
{
	const struct watching *watching = context;

	watch(watching->row, watching->engine, watching->counts);
}

static bool watch_apart(const struct matrix_row *row, enum matrix_engine engine, const struct oracle_counts *counts)
{
	bool failed = matrix_fails_apart(watch_one, &(struct watching){ row, engine, counts });

	matrix_cell(matrix_engine_names[engine], "verdict", "%s", verdict_of(row->faults[engine], failed));
	return failed == (row->faults[engine] != NULL);
}

static void run_row(void)
{
	const struct matrix_row *row = matrix_rows;
	struct oracle_counts counts;
	bool passed = true;

	while (strcmp(row->name, live_case_name()))
		row++;
	build(row);
	counts = write_down(row);
	if (!row->faults[MATRIX_INT3]) {
		require_equal(counts.differ, 0);
		require_equal(counts.gdb_differ, 0);
	}
	require_at_least(counts.gdb_compared, 1);
	for (enum matrix_engine engine = 0; engine < MATRIX_ENGINES; engine++)
		passed &= watch_apart(row, engine, &counts);
	require(passed);
}

static void fill_columns(const void *context)
{
	for (size_t i = 0; i < *(const size_t *)context; i++)
		matrix_cell("no engine", columns[i], "filled");
	matrix_require_filled();
}

static void a_row_with_an_empty_column_fails(void)
{
	size_t filled = COLUMNS;

	require(!matrix_fails_apart(fill_columns, &filled));
	filled--;
	require(matrix_fails_apart(fill_columns, &filled));
}

int main(int argc, char **argv)
{
	size_t all = matrix_row_count + matrix_daemon_count, count = 0;
	struct live_case *cases = calloc(all + 1, sizeof(*cases));

	for (size_t i = 0; cases && i < all; i++) {
		bool is_daemon = i >= matrix_row_count;
		const struct matrix_daemon *daemon = is_daemon ? &matrix_daemons[i - matrix_row_count] : NULL;
		bool is_short = is_daemon ? daemon->is_short : matrix_rows[i].is_short;

		if (argc > 1 || is_short || live_rounds(0, 1))
			cases[count++] = (struct live_case){ is_daemon ? daemon->name : matrix_rows[i].name,
							     is_daemon ? matrix_run_daemon : run_row };
	}
	/* no row of the table, which is the long form */
	if (cases && !live_rounds(0, 1))
		cases[count++] = (struct live_case)LIVE_CASE(a_row_with_an_empty_column_fails);
	return live_main(argc, argv, cases, count);
}
