/* Where jumps lead that a debugger's breakpoints do not change: 820 MiB below, which others may want. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT_MS 60000
#define PADS_SIZE 65536u

struct run {
	struct tool *tool;
	struct subject *subject;
	struct state *before;
	struct outline outline;
};

/* tests/victims/pools.c as an object: by this compiler its slab_get has a jump that needs a pad. */
static const char *build(void)
{
	const char *object = live_text("%s/pools.so", live_folder());

	require_equal(system(live_text("clang -O2 -g -w -fno-builtin -fPIC -shared -Dmain=unused_main -o %s $(realpath %s/tests/victims/pools.c)",
				       object, live_source())), 0);
	return object;
}

/* The same with its code so many bytes further on, which it keeps wherever it is loaded (glibc 2.35), for its segments are aligned as
 * mappings of pads are. */
static const char *build_at(unsigned distance)
{
	const char *object = live_text("%s/pools%u.so", live_folder(), distance);

	require_equal(system(live_text("(echo .text; echo .skip %u; clang -O2 -w -fno-builtin -fPIC -Dmain=unused_main -S -o - "
				       "$(realpath %s/tests/victims/pools.c) | sed /p2align/d) >%s.s && "
				       "clang -shared -Wl,-z,max-page-size=%u -o %s %s.s",
				       distance, live_source(), object, PADS_SIZE, object, object)), 0);
	return object;
}

static struct run begin_with(struct tool *tool, const char *object)
{
	struct run run = { .tool = tool };

	run.subject = victim_start("tests/victims/places", object, NULL);
	run.before = state_take(run.subject->pid);
	run.outline = outline_take(run.subject->pid);
	subject_command(run.subject, 'o');
	return run;
}

static struct run begin(void)
{
	return begin_with(tool_start(), build());
}

static void attach(const struct run *run)
{
	tool_out(run->tool, "attach", pid_text(run->subject->pid), "--engine", "ring", "--allocator", "slab slab_get(-)=64", "--allocator",
		 "box box_new(count, size) box_resize(old, size) box_free(old)", NULL);
	subject_command(run->subject, 'g');
	/* Code and pads at least. */
	require_at_least(outline_take(run->subject->pid).executable, run->outline.executable + 3);
}

static void require_clean(const struct run *run)
{
	const char *difference = outline_wait(run->subject->pid, &run->outline, true, TIMEOUT_MS);

	if (difference)
		live_fail("%s", difference);
	require_unharmed(run->subject->pid, run->before);
}

static void heal_by_hand(const struct run *run)
{
	pid_t tracer = tool_tracer(run->subject->pid);

	kill(tracer, SIGSTOP);
	tool_kill_daemon(run->tool);
	kill(tracer, SIGKILL);
	require_equal(tool_heal(pid_text(run->subject->pid)), 0);
}

static void pads_of_an_object_that_is_gone_go_with_a_heal(void)
{
	struct run run = begin();
	pid_t pid = run.subject->pid;

	attach(&run);
	subject_command(run.subject, 'c');
	tool_out(run.tool, "status", pid_text(pid), NULL);
	heal_by_hand(&run);
	require_clean(&run);
	subject_command(run.subject, 'o');
	subject_command(run.subject, 'g');
	subject_quit(run.subject);
}

static void what_a_program_maps_over_them_stays(void)
{
	static const char how[] = { 'm', 'p' };

	for (size_t i = 0; i < sizeof(how); i++) {
		struct run run = begin();

		attach(&run);
		subject_command(run.subject, how[i]);
		require_at_least(subject_tally(run.subject, "mapped"), 4096);
		tool_detach(run.tool, run.subject->pid);
		subject_command(run.subject, 'h');
		subject_command(run.subject, 'g');
		subject_command(run.subject, 'c');
		require_clean(&run);
		subject_quit(run.subject);
	}
}

/* Of the lowest mapping of code that is in no file, where the object's pads are. */
static unsigned long lowest_pad(pid_t pid)
{
	unsigned long start = 0, end = 0, inode = 1;
	static unsigned char bytes[2 * PADS_SIZE];
	FILE *maps = fopen(live_text("/proc/%d/maps", pid), "re");
	int fd = open(live_text("/proc/%d/mem", pid), O_RDONLY | O_CLOEXEC);
	char line[4352], permissions[8];
	size_t at = 0;

	require(maps && fd >= 0);
	while (inode != 0 && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %7s %*s %*s %lu", &start, &end, permissions, &inode) != 4 || strcmp(permissions, "r-xp") != 0)
			inode = 1;
	}
	fclose(maps);
	require(inode == 0 && end - start <= sizeof(bytes));
	require_equal(pread(fd, bytes, end - start, (off_t)start), (ssize_t)(end - start));
	close(fd);
	while (at < end - start && bytes[at] == 0)
		at++;
	require(at < end - start);
	return start + at;
}

/* One that is begun in a mapping of pads ends in the next one, where something of the program's is: the first one is not kept. */
static void a_pad_that_cannot_end_where_it_has_to_leaves_nothing(void)
{
	struct tool *tool = tool_start();
	struct run run = begin_with(tool, build_at(0));
	unsigned distance;

	attach(&run);
	distance = (unsigned)(PADS_SIZE - 2 - lowest_pad(run.subject->pid)) % PADS_SIZE;
	tool_end(tool, run.subject, NULL);
	run = begin_with(tool, build_at(distance));
	attach(&run);
	require_equal(lowest_pad(run.subject->pid) % PADS_SIZE, PADS_SIZE - 2);
	subject_command(run.subject, 'e');
	tool_detach(tool, run.subject->pid);
	attach(&run);
	heal_by_hand(&run);
	subject_command(run.subject, 'h');
	subject_command(run.subject, 'g');
	subject_command(run.subject, 'c');
	require_clean(&run);
	subject_quit(run.subject);
}

/* Its malloc, and with it all our code, is just below its heap. */
static bool heap_grows_on(struct tool *tool, const char *program)
{
	struct subject *victim = victim_start(program, NULL);
	struct state *before = state_take(victim->pid);
	struct tool_run run = tool_try(tool, "attach", pid_text(victim->pid), "--engine", "ring", NULL);

	if (run.status != 0) {
		require_text(run.err, "no room beside its code");
		subject_quit(victim);
		return false;
	}
	require_text(json_text(tool_status(tool, victim->pid), "engine"), "ring");
	for (int i = 0; i < 32; i++)
		subject_command(victim, 'g');
	require_equal(subject_tally(victim, "grown_mib"), 32 * 64);
	tool_end(tool, victim, before);
	return true;
}

static void the_heap_of_a_program_grows_on(void)
{
	struct tool *tool = tool_start();
	bool one = heap_grows_on(tool, "tests/victims/breaks");

	require(heap_grows_on(tool, "tests/victims/breaks_padded") || one);
}

static const struct live_case cases[] = {
	LIVE_CASE(pads_of_an_object_that_is_gone_go_with_a_heal),
	LIVE_CASE(a_pad_that_cannot_end_where_it_has_to_leaves_nothing),
	LIVE_CASE(the_heap_of_a_program_grows_on),
	LIVE_CASE(what_a_program_maps_over_them_stays),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
