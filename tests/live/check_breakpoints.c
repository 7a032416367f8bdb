/* A debugger's breakpoints over our jumps, with a real gdb: it knows nothing of the jumps, and may put one at any instruction of
 * the files. */
#include "jump_places.h"
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define GDB "/usr/bin/gdb"
#define INT3 0xcc
#define GDB_MS 60000

/* Those of tests/victims/pools.c, but for pool_put and cell_make, which are too short for a jump. */
#define ALLOCATORS \
	"--allocator", "pool pool_get(-, size)", "--allocator", "box box_new(count, size) box_resize(old, size) box_free(old)", \
	"--allocator", "slab slab_get(-)=64", "--allocator", "forward forward_get(size) forward_put(old)"

/* --- gdb --- */

/* raise, at which nothing of ours is, and which nobody calls. */
static uint64_t raise_of(pid_t pid)
{
	FILE *maps = fopen(live_text("/proc/%d/maps", pid), "re");
	unsigned long long base = 0;
	char line[4096];
	Dl_info info;

	require(maps && dladdr(dlsym(RTLD_DEFAULT, "raise"), &info) != 0);
	while (base == 0 && fgets(line, sizeof(line), maps)) {
		if (strstr(line, "/libc.so.6"))
			sscanf(line, "%llx", &base);
	}
	fclose(maps);
	require(base != 0);
	return (uintptr_t)info.dli_saddr - (uintptr_t)info.dli_fbase + base;
}

static bool breakpoint_is_there(void *context)
{
	pid_t pid = *(pid_t *)context;
	int mem = open(live_text("/proc/%d/mem", pid), O_RDONLY | O_CLOEXEC);
	uint8_t byte = 0;

	require(mem >= 0 && pread(mem, &byte, 1, (off_t)raise_of(pid)) == 1);
	close(mem);
	return byte == INT3;
}

/* Goes on with it when all the breakpoints of the file are set, and lets it go when it is interrupted. */
static struct subject *debug(pid_t pid, const char *script)
{
	const char *const argv[] = { GDB, "-q", "-nx", "-batch", "-p", pid_text(pid), "-x", script, "-ex", "continue", "-ex", "detach",
				     NULL };
	struct subject *gdb;

	require(access(GDB, X_OK) == 0);
	gdb = subject_start(geteuid(), argv);
	require(live_wait(breakpoint_is_there, &pid, GDB_MS));
	return gdb;
}

static void let_go(struct subject *gdb, pid_t pid)
{
	int status;

	require_equal(kill(pid, SIGINT), 0);
	status = subject_wait(gdb);
	require(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	require_equal(status_number(pid, "TracerPid", 10), 0);
	require(!breakpoint_is_there(&pid));
}

/* Those of one kind, at every instruction within a jump; at most so many. */
static const char *script_at_starts(pid_t pid, const struct places *places, const char *kind, unsigned most)
{
	const char *path = live_text("%s/script", live_folder());
	FILE *file = fopen(path, "we");
	unsigned set = 0;

	require(file != NULL);
	for (size_t i = 0; i < places->count; i++) {
		for (unsigned k = 1; k < ARCH_JUMP_SIZE; k++) {
			if (!(places->items[i].starts & 1U << k) || set++ >= most)
				continue;
			fprintf(file, "%s *%#llx\n", kind, (unsigned long long)places->items[i].address + k);
		}
	}
	fprintf(file, "break *%#llx\n", (unsigned long long)raise_of(pid));
	require_equal(fclose(file), 0);
	return path;
}

/* --- the program --- */

/* Of each allocator, and of all. */
static const char *const counted[] = { "domains.pool.blocks", "domains.malloc.blocks", "allocations", "frees",
				       "unknown.lost_events" };
#define COUNTED (sizeof(counted) / sizeof(counted[0]))

struct run {
	struct tool *tool;
	struct subject *subject;
	struct state *before;
	struct outline outline;
	unsigned rounds;
	long long at_first[COUNTED], of_a_round[COUNTED];
};

static struct run begin(const char *compile)
{
	const char *program = live_text("%s/program", live_folder()), *argv[] = { program, NULL };
	struct run run = { .tool = tool_start() };

	unlink(program);
	require_equal(system(live_text("%s -g -w -fno-builtin -o %s $(realpath %s/tests/victims/pools.c)", compile, program, live_source())), 0);
	run.subject = subject_start(geteuid(), argv);
	require_text(subject_line(run.subject), "R");
	run.before = state_take(run.subject->pid);
	run.outline = outline_take(run.subject->pid);
	return run;
}

static void attach(const struct run *run)
{
	tool_out(run->tool, "attach", "--release", pid_text(run->subject->pid), ALLOCATORS, NULL);
	require_equal(status_number(run->subject->pid, "TracerPid", 10), 0);
}

static void work(struct run *run, unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++)
		subject_command(run->subject, 'g');
	run->rounds += rounds;
}

static void count(const struct run *run, long long ret[COUNTED])
{
	json_t *status = tool_status(run->tool, run->subject->pid);

	for (size_t i = 0; i < COUNTED; i++)
		ret[i] = json_number(status, counted[i]);
}

/* Some functions are too short for a jump, which ones depends on the compiler; so two rounds say what each further one is to leave. */
static void work_at_first(struct run *run)
{
	long long then[COUNTED];

	work(run, 1);
	count(run, then);
	work(run, 1);
	count(run, run->at_first);
	for (size_t i = 0; i < COUNTED; i++) {
		run->of_a_round[i] = run->at_first[i] - then[i];
		require_at_least(run->of_a_round[i], i < COUNTED - 1 ? 1 : 0);
	}
	run->rounds = 0;
}

static struct run begin_traced(const char *compiler)
{
	struct run run = begin(compiler);

	attach(&run);
	work_at_first(&run);
	return run;
}

static void require_counts(const struct run *run)
{
	long long now[COUNTED];

	count(run, now);
	for (size_t i = 0; i < COUNTED; i++) {
		if (now[i] != run->at_first[i] + run->rounds * run->of_a_round[i])
			live_fail("%s: %lld, and then %lld after %u rounds, and of each there are %lld", counted[i], run->at_first[i], now[i],
				  run->rounds, run->of_a_round[i]);
	}
}

static void end(struct run *run)
{
	pid_t pid = run->subject->pid;
	const char *difference;

	tool_detach(run->tool, pid);
	work(run, 2);
	difference = outline_wait(pid, &run->outline, true, GDB_MS);
	if (difference)
		live_fail("%s", difference);
	require_unharmed(pid, run->before);
	subject_quit(run->subject);
}

/* --- cases --- */

static void live_with_breakpoints(const char *compile)
{
	struct run run = begin_traced(compile);
	pid_t pid = run.subject->pid;
	const struct places *places;
	struct subject *gdb;

	places = find_places(pid);
	require_at_least(places->count, 30);
	require_at_least(starts_within(places), 8);
	gdb = debug(pid, script_at_starts(pid, places, "break", UINT32_MAX));
	work(&run, 3);
	let_go(gdb, pid);
	require_jumps(pid, places);
	work(&run, 2);
	require_counts(&run);
	live_note("%s: %zu jumps, %u instructions begin within them", compile, places->count, starts_within(places));
	end(&run);
}

static void breakpoints_within_jumps_change_nothing(void)
{
	live_with_breakpoints("clang -O2");
}

static void so_it_is_with_whatever_a_compiler_makes(void)
{
	static const char *const compilers[] = { "gcc -O2", "clang -O0", "gcc -O0", "clang -O1", "gcc -O1", "clang -O3", "gcc -O3",
						 "gcc -Os -fcf-protection=full", "clang -O2 -fno-omit-frame-pointer" };

	for (size_t i = 0; i < live_rounds(2, sizeof(compilers) / sizeof(compilers[0])); i++)
		live_with_breakpoints(compilers[i]);
}

/* As people set them: gdb chooses the place by the line table, and stops there where it is before a jump, or at its first byte. */
static const char *script_at_functions(pid_t pid)
{
	static const char *const names[] = { "pool_get", "pool_put", "cell_make", "slab_get", "box_new", "box_resize", "box_free",
					     "forward_get", "forward_put", "malloc", "realloc", "free" };
	const char *path = live_text("%s/script", live_folder());
	FILE *file = fopen(path, "we");

	require(file != NULL);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		fprintf(file, "break %s\ncommands\nsilent\ncontinue\nend\n", names[i]);
	fprintf(file, "break *%#llx\n", (unsigned long long)raise_of(pid));
	require_equal(fclose(file), 0);
	return path;
}

static void breakpoints_at_functions_do_no_harm(void)
{
	static const char *const compilers[] = { "clang -O1", "gcc -O1", "clang -O2", "gcc -O2", "clang -O0", "gcc -O0" };

	for (size_t i = 0; i < live_rounds(2, sizeof(compilers) / sizeof(compilers[0])); i++) {
		struct run run = begin_traced(compilers[i]);
		pid_t pid = run.subject->pid;
		struct subject *gdb;

		gdb = debug(pid, script_at_functions(pid));
		work(&run, 2);
		let_go(gdb, pid);
		work(&run, 1);
		require_counts(&run);
		end(&run);
	}
}

/* Which writes nothing into the program. */
static void hardware_breakpoints_within_jumps_do_no_harm(void)
{
	struct run run = begin_traced("clang -O2");
	pid_t pid = run.subject->pid;
	const struct places *places;
	struct subject *gdb;

	places = find_places(pid);
	gdb = debug(pid, script_at_starts(pid, places, "hbreak", 3));
	work(&run, 2);
	let_go(gdb, pid);
	require_counts(&run);
	end(&run);
}

/* Nothing can be taken out while gdb has it, and what it puts back is put back before that. */
static void a_detach_waits_for_who_debugs(void)
{
	struct run run = begin_traced("clang -O2");
	pid_t pid = run.subject->pid;
	const struct places *places;
	struct subject *gdb;

	places = find_places(pid);
	gdb = debug(pid, script_at_starts(pid, places, "break", UINT32_MAX));
	require_text(tool_try(run.tool, "detach", pid_text(pid), NULL).err, "another tracer has it");
	work(&run, 2);
	let_go(gdb, pid);
	require_jumps(pid, places);
	require_counts(&run);
	end(&run);
}

/* Untraced it would die at the first of them: what a killed gdb leaves it leaves for ever. */
static void what_a_killed_debugger_left_within_a_jump_goes_with_it(void)
{
	struct run run = begin_traced("clang -O2");
	pid_t pid = run.subject->pid;
	const struct places *places;
	struct subject *gdb;

	places = find_places(pid);
	gdb = debug(pid, script_at_starts(pid, places, "break", UINT32_MAX));
	subject_kill(gdb);
	require(live_wait(state_has_no_tracer, &pid, GDB_MS));
	require(breakpoint_is_there(&pid));
	work(&run, 2);
	require_counts(&run);
	tool_detach(run.tool, pid);
	for (size_t i = 0; i < places->count; i++) {
		/* gdb's own, where the loader tells of objects, is at the first byte. */
		if (places->items[i].starts != 0)
			require_bytes(pid, &places->items[i], places->items[i].file);
	}
	work(&run, 2);
	subject_quit(run.subject);
}

struct taken {
	pid_t pid;
	const struct places *places;
};

/* gdb sets them in an order of its own. */
static bool all_first_bytes_are_taken(void *context)
{
	const struct taken *taken = context;
	int mem = open(live_text("/proc/%d/mem", taken->pid), O_RDONLY | O_CLOEXEC);
	size_t count = 0;

	require(mem >= 0);
	for (size_t i = 0; i < taken->places->count; i++) {
		uint8_t byte = 0;

		require(pread(mem, &byte, 1, (off_t)taken->places->items[i].address) == 1);
		count += byte == INT3;
	}
	close(mem);
	return count == taken->places->count;
}

/* Of a killed gdb, or as a uprobe's is: what is put back there later is one byte of the file. */
static void beside_a_breakpoint_at_its_first_byte_nothing_of_a_jump_stays(void)
{
	const char *path = live_text("%s/script", live_folder());
	struct run run = begin_traced("clang -O2");
	FILE *file = fopen(path, "we");
	pid_t pid = run.subject->pid;
	const struct places *places;
	struct subject *gdb;

	places = find_places(pid);
	require(file != NULL);
	for (size_t i = 0; i < places->count; i++)
		fprintf(file, "break *%#llx\n", (unsigned long long)places->items[i].address);
	fprintf(file, "break *%#llx\n", (unsigned long long)raise_of(pid));
	require_equal(fclose(file), 0);
	gdb = debug(pid, path);
	require(live_wait(all_first_bytes_are_taken, &(struct taken){ pid, places }, GDB_MS));
	subject_kill(gdb);
	require(live_wait(state_has_no_tracer, &pid, GDB_MS));
	tool_detach(run.tool, pid);
	for (size_t i = 0; i < places->count; i++) {
		struct place place = places->items[i];

		place.file[0] = INT3;
		require_bytes(pid, &place, place.file);
	}
	subject_kill(run.subject);
}

static const struct place *first_with_starts(const struct places *places)
{
	for (size_t i = 0; i < places->count; i++) {
		if (places->items[i].starts != 0)
			return &places->items[i];
	}
	live_fail("there is no such jump");
}

/* There no jump is made, and nobody takes it out. */
static void a_breakpoint_that_was_there_before_stays_as_it_is(void)
{
	struct run run = begin_traced("clang -O2");
	pid_t pid = run.subject->pid;
	uint8_t left[ARCH_JUMP_SIZE];
	struct places one;
	struct place place;
	struct subject *gdb;
	json_t *status;

	place = *first_with_starts(find_places(pid));
	tool_detach(run.tool, pid);
	one = (struct places){ .count = 1, .items = { place } };
	gdb = debug(pid, script_at_starts(pid, &one, "break", UINT32_MAX));
	require_text(tool_try(run.tool, "attach", pid_text(pid), ALLOCATORS, NULL).err, "gdb");
	subject_kill(gdb);
	memcpy(left, place.file, sizeof(left));
	for (unsigned k = 1; k < sizeof(left); k++) {
		if (place.starts & 1U << k)
			left[k] = INT3;
	}
	require_bytes(pid, &place, left);
	attach(&run);
	require_bytes(pid, &place, left);
	status = tool_status(run.tool, pid);
	require_equal(json_is_true(json_object_get(status, "exact")), 0);
	tool_detach(run.tool, pid);
	require_bytes(pid, &place, left);
	subject_kill(run.subject);
}

static void who_heals_takes_out_where_jumps_lead(void)
{
	struct run run = begin_traced("clang -O2");
	pid_t pid = run.subject->pid;

	require_at_least(starts_within(find_places(pid)), 8);
	kill(tool_tracer(pid), SIGSTOP);
	tool_kill_daemon(run.tool);
	kill(tool_tracer(pid), SIGKILL);
	require(live_wait(state_has_no_tracer, &pid, GDB_MS));
	work(&run, 1);
	require_equal(tool_heal(pid_text(pid)), 0);
	require(live_wait(state_is_untraced, &pid, GDB_MS));
	work(&run, 1);
	require(outline_wait(pid, &run.outline, true, GDB_MS) == NULL);
	require_unharmed(pid, run.before);
	subject_quit(run.subject);
}

static unsigned exposed(const struct run *run)
{
	json_t *status = tool_status(run->tool, run->subject->pid), *reason = json_object_get(status, "engine_reason");
	const char *text = json_is_string(reason) ? strstr(json_string_value(reason), "in the midst of ") : NULL;

	return text ? (unsigned)atoi(text + strlen("in the midst of ")) : 0;
}

/* A program that is not loaded anywhere has no room of 820 MiB below it. */
static void jumps_that_cannot_be_spared_are_told(void)
{
	struct run run = begin_traced("clang -O2 -no-pie");

	require_at_least(exposed(&run), 1);
	require_counts(&run);
	end(&run);
	run = begin("clang -O2");
	attach(&run);
	require_equal(exposed(&run), 0);
	end(&run);
}

/* Of what is taken nothing is taken away, and other places serve where they can. */
static void where_places_are_taken_others_serve(void)
{
	struct run run = begin_traced(live_text("clang -O2 -include $(realpath %s/tests/victims/crowded.h)", live_source()));
	pid_t pid = run.subject->pid;
	const struct places *places;
	unsigned spared = 0;

	require_at_least(exposed(&run), 1);
	places = find_places(pid);
	for (size_t i = 0; i < places->count; i++)
		spared += places->items[i].starts == 1U << 3 && places->items[i].memory[3] == INT3;
	require_at_least(spared, 1);
	require_counts(&run);
	end(&run);
}

static const struct live_case cases[] = {
	LIVE_CASE(breakpoints_within_jumps_change_nothing),
	LIVE_CASE(so_it_is_with_whatever_a_compiler_makes),
	LIVE_CASE(breakpoints_at_functions_do_no_harm),
	LIVE_CASE(hardware_breakpoints_within_jumps_do_no_harm),
	LIVE_CASE(a_detach_waits_for_who_debugs),
	LIVE_CASE(what_a_killed_debugger_left_within_a_jump_goes_with_it),
	LIVE_CASE(beside_a_breakpoint_at_its_first_byte_nothing_of_a_jump_stays),
	LIVE_CASE(a_breakpoint_that_was_there_before_stays_as_it_is),
	LIVE_CASE(who_heals_takes_out_where_jumps_lead),
	LIVE_CASE(jumps_that_cannot_be_spared_are_told),
	LIVE_CASE(where_places_are_taken_others_serve),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
