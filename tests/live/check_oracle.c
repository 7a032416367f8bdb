/* Stacks of real programs, taken while they run: ours against libunwind's at the same stop, and a sample of
 * them against gdb's.  What is compared are the program counters of all frames, outermost included. */
#include "live.h"

#include "base/vec.h"
#include "sampler.h"
#include "unwind/unwind.h"
#include "workload.h"

#include <errno.h>
#include <libunwind-ptrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STACKS 3500                    /* of each program */
#define GDB_STACKS 4
#define FRAMES_MAX 128
#define NODES_MAX (4u << 20)
#define DIFFERENCES_SHOWN 5

struct trace {
	uint64_t pc[FRAMES_MAX];
	size_t count;
};

struct oracle {
	struct sampler *sampler;
	struct module_map map;
	struct stack_table *stacks;
	struct unwinder *unwinder;
	unw_addr_space_t space;
	uint8_t *seen;                     /* by node */
	unsigned compared, distinct, differ, gdb_compared, gdb_differ;
	uint64_t frames;
};

/* Our stack as run-time addresses; `complete` is false when it says why it ends early. */
static bool ours(struct oracle *o, const struct sample *sample, struct trace *ret)
{
	struct reader reader = sampler_reader(o->sampler);
	uint32_t node = unwinder_unwind(o->unwinder, &sample->regs, &reader, FRAMES_MAX, NULL);

	o->distinct += !o->seen[node];
	o->seen[node] = 1;
	ret->count = 0;
	for (; node != STACK_ROOT; node = stack_table_node(o->stacks, node).parent) {
		struct frame frame = stack_table_get_frame(o->stacks, stack_table_node(o->stacks, node).frame);

		if (frame.kind == FRAME_TRUNCATED)
			return frame.offset == TRUNCATED_LIMIT;
		if (ret->count < FRAMES_MAX)
			ret->pc[ret->count++] = frame.offset +
				(frame.module == MODULE_NONE ? 0 : o->map.modules.items[frame.module].bias);
	}
	return true;
}

static void libunwinds(struct oracle *o, pid_t thread, struct trace *ret)
{
	void *upt = _UPT_create(thread);
	unw_cursor_t cursor;

	ret->count = 0;
	if (upt && unw_init_remote(&cursor, o->space, upt) == 0) {
		do {
			unw_word_t pc;

			if (unw_get_reg(&cursor, UNW_REG_IP, &pc) < 0 || pc == 0)
				break;
			ret->pc[ret->count++] = pc;
		} while (ret->count < FRAMES_MAX && unw_step(&cursor) > 0);
	}
	if (upt)
		_UPT_destroy(upt);
}

static bool same(const struct trace *a, const struct trace *b)
{
	return a->count == b->count && memcmp(a->pc, b->pc, a->count * sizeof(a->pc[0])) == 0;
}

static void show(const char *who, const struct trace *trace)
{
	char line[900];
	size_t used = 0;

	for (size_t i = 0; i < trace->count && used < sizeof(line) - 24; i++)
		used += (size_t)snprintf(line + used, sizeof(line) - used, " %lx", (unsigned long)trace->pc[i]);
	line[used] = '\0';
	live_note("%s: %zu frames:%s", who, trace->count, line);
}

static void compare(struct oracle *o, const struct sample *sample)
{
	struct trace mine, theirs;

	if (!ours(o, sample, &mine)) {
		/* Perhaps it goes through a library that was loaded since the last look. */
		sampler_update_map(o->sampler, &o->map, o->unwinder);
		ours(o, sample, &mine);
	}
	libunwinds(o, sample->thread, &theirs);
	o->compared++;
	o->frames += mine.count;
	if (same(&mine, &theirs))
		return;
	if (o->differ++ < DIFFERENCES_SHOWN) {
		show("ours", &mine);
		show("libunwind's", &theirs);
	}
}

/* gdb's frames as addresses, one a line.  It also shows what has no frame: calls inlined into one, and
 * functions that ended in a jump to the next, which it infers from debug information. */
static void gdbs(pid_t process, pid_t thread, struct trace *ret)
{
	const char *command = live_text(
		"gdb -nx -q -batch -p %d -ex 'set backtrace past-main on' -ex 'set backtrace past-entry on' "
		"-ex 'python\n"
		"for t in gdb.selected_inferior().threads():\n"
		"  if t.ptid[1] == %d or t.ptid[1] == 0:\n"
		"    t.switch()\n"
		"    f = gdb.newest_frame()\n"
		"    while f:\n"
		"      if f.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME): print(\"PC %%x\" %% f.pc())\n"
		"      f = f.older()\n"
		"' 2>/dev/null", process, thread);
	FILE *gdb = popen(command, "r");
	char line[256];

	ret->count = 0;
	while (gdb && fgets(line, sizeof(line), gdb)) {
		if (strncmp(line, "PC ", 3) == 0 && ret->count < FRAMES_MAX)
			ret->pc[ret->count++] = strtoull(line + 3, NULL, 16);
	}
	if (gdb)
		pclose(gdb);
}

static void compare_with_gdb(struct oracle *o, const struct sample *sample)
{
	struct trace mine, theirs;

	ours(o, sample, &mine);
	if (sampler_let_go(o->sampler) < 0)
		live_fail("the process cannot be handed to gdb: %s", strerror(errno));
	gdbs(sample->process, sample->thread, &theirs);
	if (sampler_take_back(o->sampler) < 0)
		live_fail("the process cannot be taken back from gdb");
	if (theirs.count == 0)
		return;
	/* Handed over, the thread may have gone back to the int3's own address. */
	theirs.pc[0] = mine.pc[0];
	o->gdb_compared++;
	if (same(&mine, &theirs))
		return;
	o->gdb_differ++;
	show("ours", &mine);
	show("gdb's", &theirs);
}

static void watch(const char *name)
{
	struct workload workload;
	struct sampler_options options = { .every = 3, .max_steps = 40 };
	struct oracle o = { 0 };
	struct sample sample;
	const char *source = live_text("%s/src/probe/engine_int3.c", live_source());
	int r = workload_prepare(&workload, name, live_folder(), source);

	if (r < 0)
		live_fail("%s: %s", name, strerror(-r));
	options.argv = workload.argv;
	module_map_init(&o.map);
	o.stacks = stack_table_new(NODES_MAX);
	o.unwinder = unwinder_new(&o.map, o.stacks);
	o.seen = calloc(NODES_MAX + 1u, 1);
	o.space = unw_create_addr_space(&_UPT_accessors, 0);
	o.sampler = sampler_start(&options);
	if (!o.stacks || !o.unwinder || !o.seen || !o.space || !o.sampler)
		live_fail("%s does not start: %s", name, strerror(errno));
	unw_set_caching_policy(o.space, UNW_CACHE_GLOBAL);
	require_equal(workload_start_client(&workload), 0);
	while (o.compared < STACKS && sampler_next(o.sampler, &sample)) {
		compare(&o, &sample);
		if (o.compared % (STACKS / GDB_STACKS) == 0)
			compare_with_gdb(&o, &sample);
	}
	live_note("%s: %u stacks (%u distinct) of %.1f frames compared with libunwind, %u differ; %u with gdb, %u differ",
		  name, o.compared, o.distinct, o.compared ? (double)o.frames / o.compared : 0, o.differ,
		  o.gdb_compared, o.gdb_differ);
	require_at_least(o.compared, STACKS);
	require_at_least(o.gdb_compared, 1);
	require_equal(o.differ, 0);
	require_equal(o.gdb_differ, 0);
	sampler_free(o.sampler);
	workload_fini(&workload);
}

static void stacks_of_redis_are_those_of_libunwind_and_gdb(void)
{
	watch("redis");
}

static void stacks_of_python3_are_those_of_libunwind_and_gdb(void)
{
	watch("python3");
}

static void stacks_of_cc1_are_those_of_libunwind_and_gdb(void)
{
	watch("cc1");
}

static const struct live_case cases[] = {
	LIVE_CASE(stacks_of_redis_are_those_of_libunwind_and_gdb),
	LIVE_CASE(stacks_of_python3_are_those_of_libunwind_and_gdb),
	LIVE_CASE(stacks_of_cc1_are_those_of_libunwind_and_gdb),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
