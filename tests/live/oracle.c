#include "oracle.h"

#include "live.h"
#include "unwind/unwind.h"

#include <errno.h>
#include <libunwind-ptrace.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_MAX 128
#define GDB_FRAMES_MAX 400             /* and those of calls inlined into them */
#define NODES_MAX (4u << 20)
#define DIFFERENCES_SHOWN 5
#define OTHERS_EVERY 1000              /* stacks that are not through a program's generated code */
#define ENDS_MAX 64

struct trace {
	uint64_t pc[FRAMES_MAX];
	size_t count;
};

struct oracle {
	struct sampler *sampler;
	struct sample sample;
	struct module_map map;
	struct stack_table *stacks;
	struct unwinder *unwinder;
	unw_addr_space_t space;
	uint8_t *seen;                     /* by node */
	struct oracle_counts counts;
	FILE *record;
	bool gdb_alone, gdb_guesses, generated, moving;
	uint64_t ends[ENDS_MAX];           /* outermost frames of whole stacks */
	size_t end_count;
};

/* Our stack as run-time addresses; false when it says why it ends early. */
static bool ours(struct oracle *o, const struct sample *sample, struct trace *ret)
{
	struct reader reader = sampler_reader(o->sampler);
	uint32_t node = unwinder_unwind(o->unwinder, &sample->regs, &reader, FRAMES_MAX, NULL);

	o->counts.distinct += !o->seen[node];
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

static void record(const struct oracle *o, const struct trace *trace)
{
	for (size_t i = 0; i < trace->count; i++) {
		/* of a return address that is the end of its object's code, too */
		const struct module_range *range = module_map_find(&o->map, trace->pc[i] - (i > 0));
		const struct module *module = range ? &o->map.modules.items[range->module] : NULL;

		fprintf(o->record, "%s\t%lx\t", module ? module->path : "", trace->pc[i] - (module ? module->bias : 0));
	}
	fputc('\n', o->record);
}

/* Ends it above the first frame in no object; whether there is one. */
static bool end_at_generated(const struct oracle *o, struct trace *trace)
{
	for (size_t i = 1; i < trace->count; i++) {
		if (!module_map_find(&o->map, trace->pc[i] - 1)) {
			trace->count = i;
			return true;
		}
	}
	return false;
}

static bool is_in_objects(const struct oracle *o, const struct trace *trace)
{
	struct trace part = *trace;

	return !end_at_generated(o, &part);
}

/* Whether it is whole. */
static bool ours_now(struct oracle *o, const struct sample *sample, struct trace *ret)
{
	if (!o->moving && ours(o, sample, ret) && (!o->generated || is_in_objects(o, ret)))
		return true;
	/* Perhaps it goes through a library that was loaded since the last look. */
	sampler_update_map(o->sampler, &o->map, o->unwinder);
	return ours(o, sample, ret);
}

static void compare(struct oracle *o, const struct sample *sample)
{
	struct trace mine, theirs;

	ours_now(o, sample, &mine);
	libunwinds(o, sample->thread, &theirs);
	if (o->record)
		record(o, &theirs);
	o->counts.compared++;
	o->counts.frames += mine.count;
	if (same(&mine, &theirs))
		return;
	if (o->counts.differ++ < DIFFERENCES_SHOWN) {
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
		"    n = 0\n"
		"    while f and n < %d:\n"
		"      n += 1\n"
		"      if f.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME): print(\"PC %%x\" %% f.pc())\n"
		"      f = f.older()\n"
		"' 2>/dev/null", process, thread, GDB_FRAMES_MAX);
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

/* Where nothing says that a stack has ended gdb shows what it takes for callers: 0, and what is no code. */
static void drop_what_is_no_code(const struct oracle *o, struct trace *trace)
{
	while (trace->count > 0 && !module_map_find(&o->map, trace->pc[trace->count - 1] - 1))
		trace->count--;
}

static void learn_end(struct oracle *o, const struct trace *whole)
{
	if (o->end_count < ENDS_MAX && whole->count > 0)
		o->ends[o->end_count++] = whole->pc[whole->count - 1];
}

static bool ends_as_others(const struct oracle *o, const struct trace *trace)
{
	for (size_t i = 0; i < o->end_count; i++)
		if (o->ends[i] == trace->pc[trace->count - 1])
			return true;
	return false;
}

static bool begins_with(const struct trace *whole, const struct trace *part)
{
	return part->count <= whole->count && memcmp(whole->pc, part->pc, part->count * sizeof(part->pc[0])) == 0;
}

/* Whether all of its frames are among those, in their order, and the outermost ones the same. */
static bool is_among(const struct trace *part, const struct trace *whole)
{
	size_t at = 0;

	for (size_t i = 0; at < part->count && i < whole->count; i++)
		at += part->pc[at] == whole->pc[i];
	return at == part->count && part->count > 0 && part->pc[part->count - 1] == whole->pc[whole->count - 1];
}

/* Takes ours for what gdb has guessed at. */
static bool is_guess_at(struct oracle *o, const struct trace *mine, struct trace *theirs)
{
	if (!begins_with(mine, theirs) && !is_among(mine, theirs))
		return false;
	o->counts.guessed++;
	*theirs = *mine;
	return true;
}

/* gdb goes wrong below generated code.  Ours must be the same down to there; then it says that it is cut, or ends
 * where others do. */
static bool is_right(struct oracle *o, const struct trace *mine, bool is_whole, struct trace *theirs)
{
	if (o->generated && end_at_generated(o, theirs)) {
		o->counts.generated++;
		return begins_with(mine, theirs) && (!is_whole || ends_as_others(o, mine));
	}
	drop_what_is_no_code(o, theirs);
	o->counts.cut += !is_whole;
	if (!is_whole)
		return begins_with(theirs, mine);
	learn_end(o, mine);
	return same(mine, theirs) || (o->gdb_guesses && is_guess_at(o, mine, theirs));
}

/* Of a process that is killed meanwhile, as its time is over, gdb says nothing that could be compared. */
static bool ask(struct oracle *o, struct trace *theirs)
{
	int err = sampler_let_go(o->sampler);

	if (err < 0 && err != -ESRCH)
		live_fail("the process cannot be handed to gdb: %s", strerror(-err));
	if (err < 0)
		return false;
	gdbs(o->sample.process, o->sample.thread, theirs);
	err = sampler_take_back(o->sampler);
	/* -EPERM: it is dead, and not yet waited for */
	if (err < 0 && err != -EPERM && err != -ESRCH && err != -ECHILD)
		live_fail("the process cannot be taken back from gdb: %s", strerror(-err));
	return err == 0 && theirs->count > 0;
}

void oracle_ask_gdb(struct oracle *o)
{
	const struct sample *sample = &o->sample;
	struct trace mine, theirs;
	bool is_whole = ours_now(o, sample, &mine);

	if (!ask(o, &theirs))
		return;
	/* Handed over, the thread may have gone back to the int3's own address. */
	theirs.pc[0] = mine.pc[0];
	o->counts.gdb_compared++;
	if (is_right(o, &mine, is_whole, &theirs)) {
		if (o->gdb_alone && o->record)
			record(o, &theirs);
		return;
	}
	o->counts.gdb_differ++;
	show("ours", &mine);
	show("gdb's", &theirs);
}

struct oracle *oracle_start(const struct oracle_options *options)
{
	struct oracle *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	module_map_init(&o->map);
	o->record = options->record;
	o->gdb_alone = options->gdb_alone || options->generated;
	o->generated = options->generated;
	o->gdb_guesses = options->gdb_guesses;
	o->moving = options->moving;
	o->stacks = stack_table_new(NODES_MAX);
	o->unwinder = unwinder_new(&o->map, o->stacks);
	o->seen = calloc(NODES_MAX + 1u, 1);
	o->space = unw_create_addr_space(&_UPT_accessors, 0);
	o->sampler = sampler_start(&options->sampler);
	if (o->stacks && o->unwinder && o->seen && o->space && o->sampler) {
		unw_set_caching_policy(o->space, o->moving ? UNW_CACHE_NONE : UNW_CACHE_GLOBAL);
		return o;
	}
	oracle_free(o);
	return NULL;
}

void oracle_free(struct oracle *o)
{
	int error = errno;

	if (!o)
		return;
	sampler_free(o->sampler);
	if (o->space)
		unw_destroy_addr_space(o->space);
	unwinder_free(o->unwinder);
	stack_table_free(o->stacks);
	module_map_fini(&o->map);
	free(o->seen);
	free(o);
	errno = error;
}

/* Of a program that generates code gdb is asked about those that go through it, and a few others. */
static bool is_wanted(const struct oracle *o, const struct trace *mine)
{
	unsigned others = o->counts.gdb_compared - o->counts.generated;

	return !o->generated || !is_in_objects(o, mine) || others == 0 || o->counts.distinct % OTHERS_EVERY == 0;
}

static void ask_about_new(struct oracle *o)
{
	unsigned known = o->counts.distinct;
	struct trace mine;

	ours_now(o, &o->sample, &mine);
	if (o->counts.distinct > known && is_wanted(o, &mine))
		oracle_ask_gdb(o);
}

bool oracle_next(struct oracle *o)
{
	if (!sampler_next(o->sampler, &o->sample))
		return false;
	if (o->gdb_alone)
		ask_about_new(o);
	else
		compare(o, &o->sample);
	return true;
}

bool oracle_pass(struct oracle *o)
{
	return sampler_next(o->sampler, &o->sample);
}

struct oracle_counts oracle_counts(const struct oracle *o)
{
	return o->counts;
}

pid_t oracle_process(const struct oracle *o)
{
	return sampler_process(o->sampler);
}
