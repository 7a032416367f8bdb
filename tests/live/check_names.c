/* A symbolizer that is killed, hangs or eats memory: what it was asked about has names from the next one or none at all,
 * and neither the target nor anybody else's names are worse for it.  And what belongs to a program and lies in other files is
 * read with the rights of who asks, and with no others. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <dwarf.h>
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEAKY "contrib/sample/leaky"
#define LEAKY_C "contrib/sample/leaky.c"
#define TURNOVER "tests/victims/turnover"
#define ROUND_BYTES 100000
#define ROUND_BLOCKS 100
#define NAMES_MS 60000         /* the daemon's patience with a silent one is 20 s */
/* Of an address space: the symbolizer's own limit is larger than what a test should take of a machine. */
#define MEMORY "402653184"
#define INLINED "(inlined)"
#define BOMB_FUNCTIONS 20000
#define BOMB_RANGES 2000

/* --- a client in the background --- */

static bool has_ended(void *context)
{
	pid_t *client = context;
	int status;

	if (waitpid(*client, &status, WNOHANG) != *client)
		return false;
	require_equal(status, 0);
	return true;
}

static void require_answer(pid_t client)
{
	require(live_wait(has_ended, &client, NAMES_MS));
}

/* A symbolizer that has worked and is idle, and is stopped now: what is asked next finds it so. */
static pid_t stop_symbolizer(struct tool *tool, struct subject *plain)
{
	pid_t symbolizer;

	tool_attach(tool, plain->pid);
	subject_command(plain, 'g');
	require_text(tool_out(tool, "stats", pid_text(plain->pid), NULL), "turnover.c");
	symbolizer = tool_symbolizer(tool);
	require(symbolizer > 0 && kill(symbolizer, SIGSTOP) == 0);
	return symbolizer;
}

static void require_names_in_spite_of(bool is_killed)
{
	struct tool *tool = tool_start();
	struct subject *plain = victim_start(TURNOVER, NULL), *leaky = victim_start(LEAKY, "--commands", NULL);
	struct state *before = state_take(leaky->pid);
	pid_t stopped, client;
	const char *id;

	tool_attach(tool, leaky->pid);
	subject_command(leaky, 'g');
	stopped = stop_symbolizer(tool, plain);
	/* Answered as soon as its image is read: the names are on their way then. */
	id = json_text(tool_json(tool, "snapshot", pid_text(leaky->pid), NULL), "id");
	client = tool_begin(tool, "stats", id, NULL);
	/* Nobody waits for them who does not ask for them. */
	subject_command(leaky, 'g');
	require_nothing_unknown(tool_status(tool, leaky->pid), 0);
	require_equal(json_number(tool_status(tool, leaky->pid), "naming"), 1);
	require_text(tool_out(tool, "status", pid_text(leaky->pid), NULL), "Being named");
	require_equal(tool_symbolizer(tool), stopped);
	if (is_killed)
		require_equal(kill(stopped, SIGKILL), 0);
	require_answer(client);
	require(tool_symbolizer(tool) > 0 && tool_symbolizer(tool) != stopped);
	require(!json_object_get(tool_status(tool, leaky->pid), "naming"));
	require_row(tool_stats(tool, id), LEAKY_C, "/* leak */", ROUND_BYTES, ROUND_BLOCKS);
	tool_detach(tool, plain->pid);
	subject_quit(plain);
	tool_end(tool, leaky, before);
}

static void killed_in_the_middle_it_is_started_again_and_all_have_names(void)
{
	require_names_in_spite_of(true);
}

static void one_that_hangs_is_killed_in_time_and_all_have_names(void)
{
	require_names_in_spite_of(false);
}

/* --- a file that kills it --- */

static void write_file(const char *path, const void *bytes, size_t len)
{
	FILE *f = fopen(path, "w");

	require(f && fwrite(bytes, 1, len, f) == len && fclose(f) == 0);
}

/* Where the code of a program lies, by its own headers. */
static void code_of(const char *path, uint64_t *ret_lo, uint64_t *ret_hi)
{
	FILE *f = fopen(path, "r");
	Elf64_Ehdr head;
	Elf64_Phdr segment;

	require(f && fread(&head, sizeof(head), 1, f) == 1 && fseek(f, (long)head.e_phoff, SEEK_SET) == 0);
	for (unsigned i = 0; i < head.e_phnum; i++) {
		require(fread(&segment, sizeof(segment), 1, f) == 1);
		if (segment.p_type == PT_LOAD && segment.p_flags & PF_X) {
			*ret_lo = segment.p_vaddr;
			*ret_hi = segment.p_vaddr + segment.p_filesz;
		}
	}
	fclose(f);
}

/* A unit of so many functions, each of which names the same long list of ranges: little to read, and a table of all of them
 * that fits into no memory. */
static void write_bomb(uint64_t lo, uint64_t hi)
{
	static const unsigned char abbreviations[] = {
		1, DW_TAG_compile_unit, DW_CHILDREN_yes, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_addr, 0, 0,
		2, DW_TAG_subprogram, DW_CHILDREN_no, DW_AT_ranges, DW_FORM_sec_offset, 0, 0,
		0,
	};
	struct __attribute__((packed)) {
		uint32_t length;
		uint16_t version;
		uint32_t abbreviations;
		uint8_t address_size, unit;
		uint64_t lo, hi;
		struct __attribute__((packed)) {
			uint8_t function;
			uint32_t ranges;
		} functions[BOMB_FUNCTIONS];
		uint8_t end;
	} *info = calloc(1, sizeof(*info));
	uint64_t (*ranges)[2] = calloc(BOMB_RANGES + 1, sizeof(*ranges));

	require(info && ranges);
	info->length = sizeof(*info) - sizeof(info->length);
	info->version = 4;
	info->address_size = 8;
	info->unit = 1;
	info->lo = lo;
	info->hi = hi;
	for (size_t i = 0; i < BOMB_FUNCTIONS; i++)
		info->functions[i].function = 2;
	/* relative to the unit's beginning; all zeros end the list */
	for (size_t i = 0; i < BOMB_RANGES; i++)
		ranges[i][1] = 1 + i % (hi - lo);
	write_file(live_text("%s/info", live_folder()), info, sizeof(*info));
	write_file(live_text("%s/abbreviations", live_folder()), abbreviations, sizeof(abbreviations));
	write_file(live_text("%s/ranges", live_folder()), ranges, (BOMB_RANGES + 1) * sizeof(*ranges));
	free(info);
	free(ranges);
}

/* The program with that as its debug information; it has a table of symbols all the same. */
static const char *bomb(const char *program)
{
	const char *path = live_text("%s/bomb", live_folder()), *folder = live_folder();
	uint64_t lo = 0, hi = 0;

	code_of(program, &lo, &hi);
	require(lo < hi);
	write_bomb(lo, hi);
	require_equal(system(live_text("objcopy --strip-debug %s %s/bare && objcopy --add-section .debug_info=%s/info "
				       "--add-section .debug_abbrev=%s/abbreviations --add-section .debug_ranges=%s/ranges "
				       "%s/bare %s && chmod 755 %s", program, folder, folder, folder, folder, folder, path,
				       path)), 0);
	return path;
}

static void what_eats_its_memory_stays_unnamed_and_nothing_else(void)
{
	static const char *const little_memory[] = { "prlimit", "--as=" MEMORY, NULL };
	const char *path = bomb(LEAKY), *text;
	struct tool *tool = tool_start_wrapped(little_memory);
	struct subject *eater = subject_start(geteuid(), (const char *const[]){ path, "--commands", NULL });
	struct subject *leaky = victim_start(LEAKY, "--commands", NULL);
	struct state *before, *before_other = state_take(leaky->pid);

	require_text(subject_line(eater), "R");
	before = state_take(eater->pid);
	tool_attach(tool, eater->pid);
	subject_command(eater, 'g');
	text = tool_out(tool, "stats", pid_text(eater->pid), NULL);
	require_text(text, live_text("%s(+0x", path));
	require_text(text, "count=100");
	require(!strstr(text, "leaky.c"));
	require_nothing_unknown(tool_status(tool, eater->pid), 0);
	/* Its libraries have names, and so has everything of others. */
	text = tool_out(tool, "stats", pid_text(eater->pid), "--by", "traceback", "--show-runtime", NULL);
	require_text(text, "libc");
	tool_attach(tool, leaky->pid);
	subject_command(leaky, 'g');
	require_row(tool_stats(tool, pid_text(leaky->pid)), LEAKY_C, "/* leak */", ROUND_BYTES, ROUND_BLOCKS);
	/* It is not tried again each time. */
	subject_command(eater, 'g');
	require_text(tool_out(tool, "stats", pid_text(eater->pid), NULL), "count=200");
	tool_end(tool, leaky, before_other);
	tool_end(tool, eater, before);
}

/* --- files that belong to a program --- */

/* Debug information in one piece, to compare with; and in other files beside the program. */
enum form { WHOLE, SPLIT, PACKAGE, SHARED, FORMS };

static const char *const commands[FORMS] = {
	[WHOLE] = "gcc -O2 -g -o leaky $SOURCE/" LEAKY_C,
	[SPLIT] = "gcc -O2 -g -gsplit-dwarf -c -o leaky.o $SOURCE/" LEAKY_C " && gcc -o leaky leaky.o && rm leaky.o && test -e leaky.dwo",
	[PACKAGE] = "gcc -O2 -g -gdwarf-4 -gsplit-dwarf -c -o leaky.o $SOURCE/" LEAKY_C
		    " && gcc -o leaky leaky.o && dwp -e leaky -o leaky.dwp && rm leaky.o leaky.dwo && test -e leaky.dwp",
	[SHARED] = "gcc -O2 -g -o leaky $SOURCE/" LEAKY_C " && cp leaky other && dwz -m more.debug -r leaky other && test -e more.debug",
};
static const char *const beside[FORMS] = { "leaky", "leaky.dwo", "leaky.dwp", "more.debug" };

/* A folder of the user's with a program, which nobody else can enter. */
static const char *private_program(enum form form, uid_t uid)
{
	static unsigned count;
	const char *folder = live_text("%s/private-%u", live_folder(), count++);

	require_equal(mkdir(folder, 0700), 0);
	require_equal(setenv("SOURCE", realpath(live_source(), NULL), 1), 0);
	require_equal(system(live_text("cd %s && %s && chown -R %u:%u .", folder, commands[form], uid, uid)), 0);
	return folder;
}

static struct subject *start_program(const char *folder, uid_t uid)
{
	const char *argv[] = { live_text("%s/leaky", folder), "--commands", NULL };
	struct subject *subject = subject_start(uid, argv);

	require_text(subject_line(subject), "R");
	return subject;
}

/* Every level of the program in the stack of the line that leaks; only debug information knows the inlined ones. */
static const char *names_of(struct tool *tool, struct subject *subject)
{
	json_t *row, *stats;
	const char *text = "";
	json_t *frame;
	size_t i;

	tool_attach(tool, subject->pid);
	subject_command(subject, 'g');
	stats = tool_json(tool, "stats", pid_text(subject->pid), "--by", "traceback", NULL);
	row = row_at(stats, LEAKY_C, line_of(LEAKY_C, "/* leak */"));
	json_array_foreach(json_object_get(row, "traceback"), i, frame) {
		const char *function = json_string_value(json_object_get(frame, "function"));

		if (strstr(json_text(frame, "object"), "leaky"))
			text = live_text("%s %s:%lld%s", text, function ? function : "?", json_number(frame, "line"),
					 json_is_true(json_object_get(frame, "inlined")) ? INLINED : "");
	}
	tool_end(tool, subject, NULL);
	return text;
}

static void require_same_names(const char *is, const char *should)
{
	if (strcmp(is, should))
		live_fail("'%s', not '%s'", is, should);
}

static void what_lies_in_the_owners_own_files_is_read_with_the_owners_rights(void)
{
	struct tool *system, *one;
	const char *should;

	if (geteuid())
		live_skip("needs root, to be others");
	system = tool_start_system(NULL, NULL);
	one = tool_of_user(system, ORDINARY_UID);
	should = names_of(system, start_program(private_program(WHOLE, ORDINARY_UID), ORDINARY_UID));
	require_text(should, INLINED);
	for (enum form form = SPLIT; form < FORMS; form++) {
		require_same_names(names_of(one, start_program(private_program(form, ORDINARY_UID), ORDINARY_UID)), should);
		/* For root with those of the process. */
		require_same_names(names_of(system, start_program(private_program(form, ORDINARY_UID), ORDINARY_UID)),
				   should);
	}
	live_note("%s", should);
}

/* How often it was opened since it is watched. */
static unsigned opened(int watch)
{
	struct inotify_event event;
	unsigned count = 0;

	while (read(watch, &event, sizeof(event)) > 0)
		count++;
	return count;
}

static void what_its_owner_may_not_read_is_not_read(void)
{
	struct tool *system, *one;
	const char *should;

	if (geteuid())
		live_skip("needs root, to be others");
	system = tool_start_system(NULL, NULL);
	one = tool_of_user(system, ORDINARY_UID);
	should = names_of(one, start_program(private_program(WHOLE, ORDINARY_UID), ORDINARY_UID));
	for (enum form form = SPLIT; form < FORMS; form++) {
		const char *folder = private_program(form, ORDINARY_UID), *file = live_text("%s/%s", folder, beside[form]);
		int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

		require(chown(file, 0, 0) == 0 && chmod(file, 0600) == 0);
		require(watch >= 0 && inotify_add_watch(watch, file, IN_OPEN) >= 0);
		require(strcmp(names_of(one, start_program(folder, ORDINARY_UID)), should) != 0);
		require(strcmp(names_of(system, start_program(folder, ORDINARY_UID)), should) != 0);
		require_equal(opened(watch), 0);
		close(watch);
	}
}

/* --- names that outlive the daemon --- */

static void require_leak(struct tool *tool, struct subject *leaky, long long rounds)
{
	tool_attach(tool, leaky->pid);
	subject_command(leaky, 'g');
	require_row(tool_stats(tool, pid_text(leaky->pid)), LEAKY_C, "/* leak */", rounds * ROUND_BYTES, rounds * ROUND_BLOCKS);
	tool_detach(tool, leaky->pid);
}

static bool is_missing(void *path)
{
	return access(path, F_OK) != 0;
}

static void another_daemon_knows_them_and_asks_for_none(void)
{
	const char *folder = live_text("%s/state", live_folder()), *names = live_text("%s/names", folder);
	struct tool *tool = tool_start_system("--state", folder);
	struct subject *leaky = victim_start(LEAKY, "--commands", NULL);
	struct state *before = state_take(leaky->pid);
	int fd;

	require_leak(tool, leaky, 1);
	require(tool_symbolizer(tool) > 0);
	/* What lies where it is written to holds nobody up. */
	require(mkfifo(live_text("%s.new", names), 0600) == 0);
	tool_end_daemon(tool, SIGTERM);
	require_equal(access(names, R_OK), 0);
	tool_start_again(tool);
	require_leak(tool, leaky, 1);
	require_equal(tool_symbolizer(tool), 0);
	/* A damaged one is none. */
	tool_end_daemon(tool, SIGTERM);
	fd = open(names, O_RDWR);
	require(fd >= 0 && pwrite(fd, "damage", 6, 100) == 6);
	close(fd);
	tool_start_again(tool);
	require(live_wait(is_missing, (void *)names, NAMES_MS));
	require_leak(tool, leaky, 1);
	require(tool_symbolizer(tool) > 0);
	tool_end_daemon(tool, SIGTERM);
	require_equal(access(names, R_OK), 0);
	require_unharmed(leaky->pid, before);
	subject_quit(leaky);
}

static const struct live_case cases[] = {
	LIVE_CASE(another_daemon_knows_them_and_asks_for_none),
	LIVE_CASE(killed_in_the_middle_it_is_started_again_and_all_have_names),
	LIVE_CASE(one_that_hangs_is_killed_in_time_and_all_have_names),
	LIVE_CASE(what_eats_its_memory_stays_unnamed_and_nothing_else),
	LIVE_CASE(what_lies_in_the_owners_own_files_is_read_with_the_owners_rights),
	LIVE_CASE(what_its_owner_may_not_read_is_not_read),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
