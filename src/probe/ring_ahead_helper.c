/* A helper's thread: takes over what stacks hang on, and unwinds them a little before the reader comes to their records. */
#define _GNU_SOURCE
#include "probe/ring_ahead_private.h"

#include "base/clock.h"
#include "base/proc.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAUSE_LEAST_NS 50000u          /* when there is nothing to do; twice as long each time */
#define PAUSE_MOST_NS (5 * NSEC_PER_MSEC)
#define LOOK_EVERY_NS (10 * NSEC_PER_MSEC)     /* at what it had of the processors */
#define WAITED_SHARE 8                 /* it waited for a processor for so small a part of the time that it ran, or rests */
#define REST_LEAST_NS (50 * NSEC_PER_MSEC)     /* then, twice as long each time that it is no better */
#define REST_MOST_NS (2 * NSEC_PER_SEC)
#define NODES_SPARE 4096u              /* that are left when it is full: more than a stack has by far, mostly */

/* --- what stacks hang on --- */

/* Of a frame that is not the record's own: what our code stands for there only the reader knows. */
static void on_exact_frame(void *context, struct arch_regs *regs, const struct reader *stack)
{
	struct ahead_helper *helper = context;

	(void)stack;
	helper->gave_up |= regs->reg[ARCH_DWARF_PC] != helper->function;
}

static int read_code(void *context, raddr at, void *buf, size_t len)
{
	struct ahead_helper *helper = context;
	int r = ahead_table_read(helper->table, at, buf, len);

	helper->gave_up |= r == -EAGAIN;
	return r;
}

static void drop_tables(struct ahead_helper *helper)
{
	unwinder_free(helper->unwinder);
	stack_table_free(helper->stacks);
	helper->unwinder = NULL;
	helper->stacks = NULL;
	helper->since.count = 0;
}

static bool begin_tables(struct ahead_helper *helper)
{
	helper->stacks = stack_table_new(helper->ahead->nodes_max);
	helper->unwinder = helper->stacks ? unwinder_new(&helper->map, helper->stacks) : NULL;
	if (!helper->unwinder) {
		drop_tables(helper);
		return false;
	}
	unwinder_set_translation(helper->unwinder, on_exact_frame, helper);
	return true;
}

static bool is_full(const struct ahead_helper *helper)
{
	uint32_t nodes = helper->ahead->nodes_max, spare = nodes / 4 < NODES_SPARE ? nodes / 4 : NODES_SPARE;

	return stack_table_node_count(helper->stacks) >= nodes - spare || stack_table_frame_count(helper->stacks) >= nodes - spare;
}

/* True: it is as the reader's. */
static bool take_over_module(struct ahead_helper *helper, uint32_t module)
{
	const struct ahead_module *given = &helper->table->modules[module];
	uint64_t *since = &helper->since.items[module];

	if (*since == given->known.since)
		return true;
	if (*since != 0)
		unwinder_remove_module(helper->unwinder, module);
	*since = given->known.since;
	return *since == 0 || unwinder_add_module(helper->unwinder, module, given->file->fd) == given->known.error;
}

static bool ends(struct ahead_helper *helper)
{
	bool it_ends;

	pthread_mutex_lock(&helper->ahead->lock);
	it_ends = helper->ends;
	pthread_mutex_unlock(&helper->ahead->lock);
	return it_ends;
}

static bool take_over_modules(struct ahead_helper *helper)
{
	size_t count = helper->table->map.modules.count;

	/* All that is known of a row or a trail was by the old map. */
	if (!helper->unwinder && !begin_tables(helper))
		return false;
	while (helper->since.count < count) {
		if (!vec_push(&helper->since))
			return false;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (!take_over_module(helper, i) || ends(helper))
			return false;
	}
	return unwinder_knows_all_endings(helper->unwinder);
}

static void say_memory(struct ahead_helper *helper)
{
	size_t bytes = sizeof(*helper) + vec_memory(&helper->since);

	if (helper->unwinder)
		bytes += unwinder_memory(helper->unwinder) + stack_table_memory(helper->stacks);
	helper->memory = bytes;
}

/* What could not be taken over whole is begun anew with the next one. */
static void take_over(struct ahead_helper *helper, struct ahead_table *table)
{
	ahead_table_unref(helper->table);
	helper->table = table;
	helper->map = table->map;
	if (helper->unwinder && is_full(helper))
		drop_tables(helper);
	helper->usable = take_over_modules(helper);
	if (!helper->usable)
		drop_tables(helper);
	say_memory(helper);
}

/* --- stacks --- */

static void leave(struct ahead_helper *helper, const struct ring_record *record, const struct ring_stack *stack, raddr function)
{
	struct ahead_slot *slot = ahead_slot(helper->ahead, record->position);
	uint64_t word = (uint64_t)helper->number << AHEAD_HELPER_SHIFT | (uint64_t)stack->needed << AHEAD_NEEDED_SHIFT | stack->node;

	atomic_store_explicit(&slot->a, word ^ ahead_key(record->position, helper->table->generation, function), memory_order_relaxed);
	atomic_store_explicit(&slot->b, word, memory_order_relaxed);
}

static void count(_Atomic uint64_t *counter)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* Of what is not whole the reader counts why, and asks for more the next time: it is left to it. */
static void unwind(struct ahead_helper *helper, const struct ring_record *record, raddr function)
{
	struct ring_stack stack;

	helper->gave_up = false;
	helper->function = function;
	stack = ring_stack_unwind(helper->unwinder, &helper->map, &helper->code, record, function, helper->ahead->max_frames);
	if (helper->gave_up || stack.cut || !stack.whole || stack.needed > AHEAD_NEEDED_MAX) {
		count(&helper->given_up);
		return;
	}
	leave(helper, record, &stack, function);
	count(&helper->unwound);
}

static void look_at(struct ahead_helper *helper, const struct ring_record *record)
{
	raddr function;

	if (!record->is_return || !record->has_stack || record->result == 0 || record->site >= AHEAD_SITES)
		return;
	function = atomic_load_explicit(&helper->ahead->functions[record->site], memory_order_relaxed);
	if (function != 0)
		unwind(helper, record, function);
}

static bool is_current(const struct ahead_helper *helper)
{
	return helper->usable && atomic_load_explicit(&helper->ahead->generation, memory_order_relaxed) == helper->table->generation &&
	       !atomic_load_explicit(&helper->ahead->halt, memory_order_relaxed);
}

static bool is_overtaken(const struct ahead_helper *helper, uint64_t position)
{
	return (int64_t)(atomic_load_explicit(&helper->ahead->position, memory_order_relaxed) - position) >= 0;
}

/* Up to where it is not its own any more: what begins before that is. */
static void work(struct ahead_helper *helper, uint64_t position, uint64_t end)
{
	struct ring_record record;
	uint32_t length;

	if (helper->next >= position && helper->next < end)
		position = helper->next;
	else if (!ring_eye_find(&helper->ahead->eye, &position, end))
		return;
	while (position < end && is_current(helper) && !is_overtaken(helper, position) &&
	       ring_eye_look(&helper->ahead->eye, position, &record, &length)) {
		look_at(helper, &record);
		position += length;
	}
	helper->next = position;
}

/* False: not so much has been recorded yet. */
static bool claim(struct ring_ahead *ahead, uint64_t *ret_position)
{
	uint64_t reader = atomic_load_explicit(&ahead->position, memory_order_relaxed);
	uint64_t cursor = atomic_load_explicit(&ahead->cursor, memory_order_relaxed), from;

	do {
		from = (int64_t)(cursor - (reader + AHEAD_LEAD)) < 0 ? reader + AHEAD_LEAD : cursor;
		if (ring_eye_reserved(&ahead->eye, reader) < from - reader + AHEAD_CHUNK)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&ahead->cursor, &cursor, from + AHEAD_CHUNK, memory_order_relaxed,
							memory_order_relaxed));
	*ret_position = from;
	return true;
}

/* --- the thread --- */

static struct timespec in(uint64_t ns)
{
	uint64_t then = clock_monotonic_ns() + ns;

	return (struct timespec){ (time_t)(then / NSEC_PER_SEC), (long)(then % NSEC_PER_SEC) };
}

/* Until something has changed, or so long. */
static void rest(struct ahead_helper *helper, uint64_t ns)
{
	struct ring_ahead *ahead = helper->ahead;
	const struct timespec until = in(ns);
	uint64_t generation;

	pthread_mutex_lock(&ahead->lock);
	generation = ahead->generation;
	helper->rests = true;
	pthread_cond_broadcast(&ahead->rested);
	while (!helper->ends && (ahead->halt || ahead->generation == generation)) {
		if (pthread_cond_timedwait(&ahead->changed, &ahead->lock, &until) != 0 && !ahead->halt)
			break;
		if (ahead->halt)
			pthread_cond_wait(&ahead->changed, &ahead->lock);
	}
	helper->rests = false;
	pthread_mutex_unlock(&ahead->lock);
}

static uint64_t longer(uint64_t ns, uint64_t least, uint64_t most)
{
	if (ns < least)
		return least;
	return 2 * ns < most ? 2 * ns : most;
}

/* Whether there are processors enough: what it takes from the program helps nobody. */
static void look_at_turns(struct ahead_helper *helper)
{
	static const char path[] = "/proc/thread-self/schedstat";
	uint64_t now_ns = clock_monotonic_ns(), ran, waited;

	if (helper->ahead->eager || now_ns - helper->looked_ns < LOOK_EVERY_NS)
		return;
	ran = proc_schedstat_ran_ns(path) - helper->ran_ns;
	waited = proc_schedstat_waited_ns(path) - helper->waited_ns;
	helper->ran_ns += ran;
	helper->waited_ns += waited;
	helper->looked_ns = now_ns;
	if (waited * WAITED_SHARE <= ran) {
		helper->rest_ns = 0;
		return;
	}
	helper->rest_ns = longer(helper->rest_ns, REST_LEAST_NS, REST_MOST_NS);
	rest(helper, helper->rest_ns);
}

/* The table that is the present one, where it is another than the helper's. */
static struct ahead_table *next_table(struct ahead_helper *helper)
{
	struct ring_ahead *ahead = helper->ahead;
	struct ahead_table *table = NULL;

	pthread_mutex_lock(&ahead->lock);
	if (!ahead->halt && ahead->generation != 0 && ahead->table && (!helper->table || helper->table->generation != ahead->table->generation))
		table = ahead_table_ref(ahead->table);
	helper->reads_tables = table != NULL;
	pthread_mutex_unlock(&ahead->lock);
	return table;
}

/* There is none that helpers can do with, and no more descriptors to keep files open for what comes. */
static void drop_table(struct ahead_helper *helper)
{
	if (!helper->table || atomic_load_explicit(&helper->ahead->generation, memory_order_relaxed) != 0)
		return;
	helper->usable = false;
	helper->map = (struct module_map){ 0 };
	ahead_table_unref(helper->table);
	helper->table = NULL;
}

static void table_was_read(struct ahead_helper *helper)
{
	pthread_mutex_lock(&helper->ahead->lock);
	helper->reads_tables = false;
	pthread_mutex_unlock(&helper->ahead->lock);
}

static void turn(struct ahead_helper *helper)
{
	struct ahead_table *table = next_table(helper);
	uint64_t from;

	if (table) {
		take_over(helper, table);
		table_was_read(helper);
		return;
	}
	drop_table(helper);
	if (is_current(helper) && is_full(helper))
		helper->is_full = true;
	if (!is_current(helper) || helper->is_full || !claim(helper->ahead, &from)) {
		helper->pause_ns = longer(helper->pause_ns, PAUSE_LEAST_NS, PAUSE_MOST_NS);
		rest(helper, helper->pause_ns);
		return;
	}
	helper->pause_ns = 0;
	work(helper, from, from + AHEAD_CHUNK);
	look_at_turns(helper);
}

void ahead_helper_free(struct ahead_helper *helper)
{
	drop_tables(helper);
	ahead_table_unref(helper->table);
	vec_fini(&helper->since);
	free(helper);
}

static void *run(void *context)
{
	struct ahead_helper *helper = context;
	struct ring_ahead *ahead = helper->ahead;

	if (ahead->begins)
		ahead->begins();
	while (!ends(helper))
		turn(helper);
	ahead_helper_free(helper);
	ahead_unref(ahead);
	return NULL;
}

/* No signal is for it. */
static int start(struct ahead_helper *helper)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&helper->thread, NULL, run, helper);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r == 0)
		pthread_detach(helper->thread);
	return r;
}

int ahead_helper_begin(struct ring_ahead *ahead, unsigned number, struct ahead_helper **ret_helper)
{
	struct ahead_helper *helper = calloc(1, sizeof(*helper));
	int r;

	if (!helper)
		return -ENOMEM;
	helper->ahead = ahead;
	helper->number = number;
	helper->code = (struct reader){ .read = read_code, .context = helper };
	atomic_fetch_add(&ahead->refs, 1);
	*ret_helper = helper;
	r = start(helper);
	if (r == 0)
		return 0;
	*ret_helper = NULL;
	atomic_fetch_sub(&ahead->refs, 1);
	free(helper);
	return r;
}
