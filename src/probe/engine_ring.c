/* The ring engine: jumps where they have room, and the records that the code behind them writes.  All else is the int3 engine's, in
 * the same session: before one of its stops is served the ring is read up to there, so that the order stays true. */
#include "probe/engine_private.h"
#include "probe/engine_ring_record.h"

#include "target/jumps.h"
#include "target/layout.h"
#include "target/process.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define READ_AT_ONCE 64
#define CATCH_UP_DEADLINE_MS 20        /* for a record that a thread is writing */
#define CATCH_UP_PAUSE_NS 20000
#define FILTER_LOOKS 64                /* threads that are asked at a time */

/* --- beginning --- */

void engine_want_ring(struct engine *engine, const struct ring_options *options)
{
	engine->ring.wanted = true;
	engine->ring.late = engine->ring.hook_waits_from = UINT64_MAX;
	engine->ring.hook = RING_NO_HOOK;
	engine->ring.options = *options;
	engine_ring_want_helpers(engine);
	tick_clock_begin(&engine->ring.clock);
	engine->ring.wait_ticks = options->wait_ms * tick_clock_per_ms(&engine->ring.clock);
}

static void give_up(struct engine *engine, const char *reason)
{
	snprintf(engine->ring.refusal, sizeof(engine->ring.refusal), "%s", reason);
}

void engine_refuse_ring(struct engine *engine, const char *reason)
{
	if (!engine->ring.wanted || engine->ring.begun)
		return;
	engine->ring.wanted = false;
	give_up(engine, reason);
}

bool engine_ring_is_open(const struct engine *engine)
{
	return engine->ring.wanted && (!engine->ring.begun || engine->ring.ring);
}

static void widen(struct jump_range *range, struct jump_range by)
{
	range->start = by.start < range->start ? by.start : range->start;
	range->end = by.end > range->end ? by.end : range->end;
}

/* From the first to the last window of each object that is not installed yet; of those past `most` in one. */
static size_t window_ranges(const struct engine *engine, struct jump_range *ranges, size_t most)
{
	size_t count = 0;

	for (size_t i = 0; i < engine->plans.count; i++) {
		const struct planned_module *planned = engine->plans.items[i];
		raddr bias = engine->target->modules.modules.items[planned->module].bias;
		struct jump_range range = { .start = UINT64_MAX };

		if (planned->installed)
			continue;
		for (size_t k = 0; k < planned->plan.sites.count; k++) {
			const struct plan_window *window = &planned->plan.sites.items[k].window;

			if (window->length == 0)
				continue;
			if (window->vaddr + bias < range.start)
				range.start = window->vaddr + bias;
			if (window->vaddr + bias + ARCH_WINDOW_MAX > range.end)
				range.end = window->vaddr + bias + ARCH_WINDOW_MAX;
		}
		for (uint32_t k = 0; range.end > 0 && k < planned->plan.unmap_count; k++) {
			raddr at = planned->plan.unmaps[k].window.vaddr + bias;

			widen(&range, (struct jump_range){ at, at + ARCH_WINDOW_MAX });
		}
		if (range.end > 0 && count == most)
			widen(&ranges[most - 1], range);
		else if (range.end > 0)
			ranges[count++] = range;
	}
	return count;
}

#define RANGES_MAX 64

int engine_ring_make(struct engine *engine)
{
	struct ring_control *control;
	int fd, r = jumps_map_ring(engine->target, RING_CONTROL_SIZE, engine->ring.options.size, &fd);

	if (r == 0)
		r = ring_open(fd, engine->ring.options.size, &engine->ring.ring);
	if (r < 0)
		return r;
	control = ring_control(engine->ring.ring);
	control->wait_ticks = engine->ring.wait_ticks;
	control->may_yield = !engine->target->filtered;
	control->thread_offset = engine->ring.layout.tid;
	control->thread_mask = UINT32_MAX;
	ring_set_all_stack_lengths(engine->ring.ring, RING_STACK_UNKNOWN);
	/* What was counted whole goes on so; a copy's counters are the other's. */
	if (!engine->ring.parents && engine->counters.allocations > 0)
		engine->ring.options.sample_bytes = 0;
	if (engine->ring.options.sample_bytes > 0) {
		ring_set_families(engine->ring.ring, engine_ring_families(engine));
		ring_set_sampling(engine->ring.ring, engine->ring.options.sample_bytes);
	}
	return 0;
}

/* A filter may be one thread's alone: some are asked each time, the others the next times. */
void engine_look_for_filters(struct engine *engine)
{
	struct target *target = engine->target;
	bool filtered;

	if (!engine->ring.ring || !ring_control(engine->ring.ring)->may_yield)
		return;
	filtered = process_is_filtered(target->memory_tid);
	for (size_t i = 0; !filtered && i < target->tasks.count && i < FILTER_LOOKS; i++) {
		const struct task *task = target->tasks.items[engine->ring.filter_looks++ % target->tasks.count];

		filtered = task->tid > 0 && process_is_filtered(task->tid);
	}
	if (filtered)
		__atomic_store_n(&ring_control(engine->ring.ring)->may_yield, 0, __ATOMIC_RELAXED);
}

bool engine_wants_all_held(const struct engine *engine)
{
	struct jump_range range;

	return engine_ring_is_open(engine) && window_ranges(engine, &range, 1) > 0;
}

bool engine_may_begin(const struct engine *engine)
{
	struct thread_layout layout;

	thread_layout_look(engine->target, &layout);
	return layout.has_pointer;
}

/* False: there is none, or none yet. */
static bool begin_ring(struct engine *engine)
{
	char reason[128];
	int r;

	if (engine->ring.begun)
		return engine->ring.ring != NULL;
	thread_layout_look_last(engine->target, &engine->ring.layout_look, &engine->ring.layout);
	if (!engine->ring.layout.has_pointer) {
		give_up(engine, "its C library has not begun yet, so that its threads could be told apart; what it loads may "
				"have another engine");
		return false;
	}
	engine->ring.begun = true;
	if (!engine->ring.layout.has_tid) {
		give_up(engine, "its C library does not keep a thread's number where it could be found");
		return false;
	}
	r = engine_ring_make(engine);
	if (r < 0) {
		snprintf(reason, sizeof(reason), "the ring cannot be mapped in it: %s", strerror(-r));
		give_up(engine, reason);
		return false;
	}
	engine_ring_publish_stacks(engine);
	engine_ring_note_stacks(engine);
	engine->ring.refusal[0] = '\0';
	return true;
}

/* What is asked of in this stop, the loader's hook as well; 0: nothing is. */
static size_t ranges_to_look_at(const struct engine *engine, struct jump_range ranges[RANGES_MAX])
{
	size_t count = engine_ring_is_open(engine) ? window_ranges(engine, ranges, RANGES_MAX) : 0;

	if (count > 0 && engine->ring.expected.end > 0 && count < RANGES_MAX)
		ranges[count++] = engine->ring.expected;
	return count;
}

void engine_look_ahead(struct engine *engine)
{
	struct jump_range ranges[RANGES_MAX];
	size_t count = ranges_to_look_at(engine, ranges);

	if (count == 0)
		return;
	jumps_look_ahead(engine->target, ranges, count);
	if (!engine->ring.begun)
		thread_layout_look_ahead(engine->target, &engine->ring.layout_look);
}

void engine_ring_begin(struct engine *engine)
{
	struct jump_range ranges[RANGES_MAX];
	size_t count = ranges_to_look_at(engine, ranges);
	int r;

	if (count == 0)
		return;
	engine->ring.expected.end = 0;
	jump_words_fini(&engine->ring.awaited);
	r = jumps_look_at_stacks(engine->target, ranges, count, &engine->ring.awaited);
	if (r == 0) {
		engine->ring.planting = begin_ring(engine);
	} else if (!engine->ring.begun) {
		engine->ring.begun = true;
		give_up(engine, r == -EBUSY ? "a thread of it is in a wait that nothing breaks off (in vfork, or for a disk)"
					    : r == -E2BIG ? "its threads' stacks are full of addresses of its allocator's object" : strerror(-r));
	}
}

/* --- places --- */

/* A mismatch is told with the stack of the delete, and an entry's record has none. */
static bool needs_its_stack(const struct engine *engine, const struct probe *probe)
{
	return probe && engine->described && engine->described->operators && !catalog_allocates(probe->entry) &&
	       !(probe->forms & FORM_MALLOC) && probe->forms != FORM_NONE;
}

static bool is_recorded(const struct catalog_entry *entry, bool alone)
{
	return entry->mapping == MAPPING_NONE && (entry->out_arg == ARG_NONE || (alone && entry->out_arg < RING_ARGS)) &&
	       entry->size_arg < RING_ARGS && entry->count_arg < RING_ARGS && entry->old_arg < RING_ARGS;
}

/* Where it is alone a result that is stored through a pointer is read by the code in the process, where that may ask the kernel to; else it
 * is looked for in the stack that comes with the record, and then where it was stored, and lost and counted when it is not there any more. */
static bool fits_a_record(const struct engine *engine, const struct plan_site *site, const struct probe *probe)
{
	const struct catalog_entry *entry = probe ? probe->entry : NULL;
	bool alone = engine->ring.options.alone;

	if (!entry)
		return alone || !site->reads_memory;
	return is_recorded(entry, alone);
}

/* Says of one such place why, and counts them. */
static void note_int3(struct engine *engine, uint32_t module, const struct probe *probe, const char *reason)
{
	const char *path = engine->target->modules.modules.items[module].path, *name = strrchr(path, '/');

	engine->ring.by_int3++;
	if (engine->ring.int3_reason[0] == '\0' || probe)
		snprintf(engine->ring.int3_reason, sizeof(engine->ring.int3_reason), "%s in %.40s: %s",
			 probe ? probe->entry->name : "a return", name ? name + 1 : path, reason);
}

static const char *why_not(int error, const char *reason)
{
	switch (error) {
	case -ENOTSUP:
		return reason;
	case -EBUSY:
		return "something else stands there, or a thread was in the midst of it";
	case -ENOSPC:
		return "there is no room for code within reach";
	default:
		return strerror(-error);
	}
}

/* NULL: a jump can stand there. */
static const char *misses(const struct engine *engine, const struct plan_site *site, const struct probe *probe)
{
	if (!fits_a_record(engine, site, probe))
		return "what it takes or gives is not in the registers that are recorded";
	if (needs_its_stack(engine, probe))
		return "its stack is told with a mismatch";
	if (site->window.length == 0)
		return "there is no room for a jump";
	return engine->ring.planting ? NULL : "when it was loaded a thread was in a wait that nothing breaks off";
}

bool engine_ring_place(struct engine *engine, const struct plan_site *site, uint32_t module, raddr bias, struct probe *probe)
{
	struct ring_window window = {
		.address = site->window.vaddr + bias, .text = site->window.text, .length = site->window.length,
		.record = site->window.record, .is_return = !probe, .stored = !probe && site->reads_memory,
		.hands_on = (site->kinds & SITE_TAIL) != 0, .allocates = probe && catalog_allocates(probe->entry),
		.sp_below = site->window.sp_below, .sampled = engine_is_sampling(engine), .described = engine_ring_families(engine) > 1,
	};
	struct ring_place *place;
	const char *reason;
	uint32_t number;
	int r;

	if (probe)
		engine_ring_tell_arguments(engine, probe->entry, &window);
	if (!engine->ring.ring)
		return false;
	reason = misses(engine, site, probe);
	r = reason ? -ENOTSUP : vec_reserve(&engine->ring.places, 1);
	if (r == 0)
		r = jumps_add(engine->target, &window, module, &engine->ring.awaited, &number, &reason);
	if (r < 0) {
		note_int3(engine, module, probe, why_not(r, reason));
		return engine->ring.options.alone;
	}
	if (window.told)
		engine_ring_tell_shape(engine, probe->entry, number);
	/* Numbers are given one after the other. */
	place = vec_push(&engine->ring.places);
	*place = (struct ring_place){ .kinds = site->kinds, .probe = probe, .sp_below = window.sp_below,
				      .address = probe ? probe->address : window.address + window.record };
	return true;
}

int engine_ring_plant(struct engine *engine)
{
	struct ring_control *control;
	int r;

	if (!engine->ring.planting)
		return 0;
	engine->ring.planting = false;
	jump_words_fini(&engine->ring.awaited);
	control = ring_control(engine->ring.ring);
	if (control->state == RING_OFF)
		__atomic_store_n(&control->state, RING_ON, __ATOMIC_RELEASE);
	r = jumps_plant(engine->target);
	return r == -EBUSY ? -EIO : r;
}

/* --- reading --- */

/* A thread counts before what it did not record has any effect.  The first one does so a moment after it has stalled the ring, and what
 * others do until then may have been missed as well: so each time that it stalls is a loss. */
void engine_take_losses(struct engine *engine)
{
	struct ring_side *side = &engine->ring;
	uint64_t lost = side->ring ? ring_take_lost(side->ring) : 0;
	bool stalled = side->ring && __atomic_load_n(&ring_control(side->ring)->state, __ATOMIC_ACQUIRE) == RING_STALLED;

	if (lost == 0 && stalled && !side->stall_counted)
		lost = 1;
	side->stall_counted |= stalled && lost > 0;
	engine->counters.failed_reads += lost;
	side->change_missed |= lost > 0;
}

/* A writer has waited for too long, so that some calls were not recorded, which their threads have counted. */
static void begin_anew(struct engine *engine)
{
	struct ring_control *control = ring_control(engine->ring.ring);
	bool stalled = __atomic_load_n(&control->state, __ATOMIC_ACQUIRE) == RING_STALLED;

	engine_loader_waits_again(engine);
	engine_take_losses(engine);
	if (!stalled)
		return;
	engine->ring.stall_counted = false;
	engine->ring.change_missed = true;
	__atomic_store_n(&control->state, RING_ON, __ATOMIC_RELEASE);
}

/* Passes what is no record, or will be none. */
static bool pass(struct engine *engine)
{
	engine->counters.failed_reads++;
	return ring_skip(engine->ring.ring) > 0;
}

void engine_pass_record(struct engine *engine)
{
	struct ring_record record;

	if (engine->ring.ring && ring_next(engine->ring.ring, &record) == -EAGAIN)
		pass(engine);
}

static bool is_waited_for(const struct engine *engine, const struct ring_record *record)
{
	return record->site < engine->ring.places.count &&
	       (engine->ring.places.items[record->site].kinds & (SITE_LOADER | SITE_EXEC));
}

static int read_records(struct engine *engine, unsigned most, pid_t *ret_writer)
{
	struct ring_sighting sighting;
	struct ring_record record;
	unsigned served = 0;

	if (ret_writer)
		*ret_writer = 0;
	ring_sighting_init(&sighting, engine);
	engine->ring.now_ns = clock_monotonic_ns();
	if (engine->ring.ring)
		tick_clock_follow(&engine->ring.clock, engine->ring.now_ns);
	while (engine->ring.ring && served < most) {
		int r = ring_next(engine->ring.ring, &record);

		if (r == 0)
			begin_anew(engine);
		if (r == -EAGAIN && ret_writer)
			*ret_writer = engine_ring_tid(engine, record.thread);
		/* Its writer has ended, in the midst of it: it will not come.  Or just now, behind it. */
		if (r == -EAGAIN && record.thread != 0 && engine_ring_writer_is_gone(engine, record.thread)) {
			if (ring_next(engine->ring.ring, &record) == -EAGAIN)
				pass(engine);
			continue;
		}
		if (r == 0 || r == -EAGAIN)
			return served > 0 ? (int)served : r;
		if (r == -EBADMSG && !pass(engine))
			return 0;
		if (r == -EBADMSG) {
			served++;       /* or who only moves the head would keep the reader for ever */
			continue;
		}
		if (engine->ring.signals.count > 0)
			engine_ring_serve_signals(engine);
		if (engine->ring.calls_alone && is_waited_for(engine, &record))
			return (int)served;
		ring_sighting_serve(&sighting, &record);
		ring_done(engine->ring.ring);
		served++;
		if (engine->ring.calls_alone)
			continue;
		engine_ring_look_whether_grown(engine);
	}
	return (int)served;
}

int engine_read_ring(struct engine *engine, unsigned most, pid_t *ret_writer)
{
	int served = read_records(engine, most, ret_writer);

	if (!engine->ring.calls_alone)
		engine_ring_look_after_helpers(engine, served > 0);
	return served;
}

uint64_t engine_ring_head(const struct engine *engine)
{
	return engine->ring.ring ? ring_reserved(engine->ring.ring) : 0;
}

uint64_t engine_ring_position(const struct engine *engine)
{
	return engine->ring.ring ? ring_position(engine->ring.ring) : 0;
}

/* Bytes that were reserved, and not read. */
static uint64_t unread(const struct engine *engine)
{
	return engine_ring_head(engine) - engine_ring_position(engine);
}

bool engine_is_almost_full(const struct engine *engine)
{
	return engine->ring.ring && unread(engine) > engine->ring.options.size / 4 * 3;
}

/* Room is only there when an eighth was read. */
void engine_make_room(struct engine *engine)
{
	uint64_t until = engine_ring_position(engine) + engine->ring.options.size / 8;

	engine->ring.calls_alone = true;
	while (engine->ring.ring && (int64_t)(until - engine_ring_position(engine)) > 0 && engine_read_ring(engine, READ_AT_ONCE, NULL) > 0)
		;
	engine->ring.calls_alone = false;
}

bool engine_read_until(struct engine *engine, uint64_t head, pid_t *ret_writer)
{
	int r = 1;

	*ret_writer = 0;
	while (r > 0 && engine->ring.ring && (int64_t)(head - ring_position(engine->ring.ring)) > 0)
		r = engine_read_ring(engine, READ_AT_ONCE, ret_writer);
	/* The reader itself does that when nothing is left, which it may not have come to. */
	engine_take_losses(engine);
	if (r < 0)
		return false;
	engine_ring_serve_signals(engine);
	return true;
}

bool engine_is_late(struct engine *engine, bool given_up)
{
	uint64_t position = engine_ring_position(engine);

	if (given_up)
		engine->ring.late = position;
	return engine->ring.late == position;
}

bool engine_catch_up(struct engine *engine)
{
	const struct timespec pause = { 0, CATCH_UP_PAUSE_NS };
	uint64_t head = engine_ring_head(engine), deadline_ns = clock_monotonic_ns() + CATCH_UP_DEADLINE_MS * NSEC_PER_MSEC;
	pid_t writer;

	while (!engine_read_until(engine, head, &writer)) {
		if (clock_passed(deadline_ns))
			return false;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
	return true;
}

void engine_ring_end(struct engine *engine)
{
	engine_take_losses(engine);
	engine_ring_end_helpers(engine);
	engine->ring.signals.count = 0;
}

void engine_ring_free(struct engine *engine)
{
	engine_ring_end(engine);
	ring_free(engine->ring.parents);
	vec_fini(&engine->ring.places);
	vec_fini(&engine->ring.signals);
	vec_fini(&engine->ring.unseen_stacks);
	thread_layout_forget(&engine->ring.layout_look);
	jump_words_fini(&engine->ring.awaited);
}

size_t engine_unwatched(const struct engine *engine)
{
	return engine->ring.options.alone ? engine->ring.by_int3 : 0;
}

static bool lacks_room(const struct plan *plan)
{
	for (size_t i = 0; i < plan->sites.count; i++) {
		const struct plan_site *site = &plan->sites.items[i];

		if (site->window.length == 0 || (site->entry && !is_recorded(site->entry, true)))
			return true;
	}
	return false;
}

bool engine_lacks_room(const struct engine *engine)
{
	for (size_t i = 0; i < engine->plans.count; i++) {
		if (!engine->plans.items[i]->installed && lacks_room(&engine->plans.items[i]->plan))
			return true;
	}
	return false;
}

const char *engine_int3_beside(const struct engine *engine, char *text, size_t space)
{
	size_t places = engine->ring.places.count - (engine->ring.hook != RING_NO_HOOK) - engine->ring.execs -
			engine->ring.unmaps + engine->ring.by_int3;

	if (!engine->ring.ring || engine->ring.by_int3 == 0)
		return NULL;
	snprintf(text, space, "%zu of %zu places %s, such as %s", engine->ring.by_int3, places,
		 engine->ring.options.alone ? "are not watched" : "have int3s", engine->ring.int3_reason);
	return text;
}

const char *engine_ring_limits(const struct engine *engine, char *text, size_t space)
{
	size_t exposed = engine->ring.ring ? jumps_exposed(engine->target) : 0, length = 0;

	if (engine_int3_beside(engine, text, space))
		length = strlen(text);
	else if (exposed == 0)
		return NULL;
	if (exposed > 0)
		snprintf(text + length, space - length, "%sa debugger's breakpoint in the midst of %zu jump%s would end the process",
			 length > 0 ? "; " : "", exposed, exposed > 1 ? "s" : "");
	return text;
}

bool engine_has_ring(const struct engine *engine)
{
	return engine->ring.ring != NULL;
}

const char *engine_ring_refusal(const struct engine *engine)
{
	return engine->ring.refusal[0] ? engine->ring.refusal : NULL;
}
