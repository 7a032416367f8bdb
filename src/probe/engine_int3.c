/* The int3 engine: a stop at each entry, and at each return of a function that allocates. */
#include "probe/calls.h"
#include "probe/engine_private.h"
#include "probe/view.h"

#include "arch/arch.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int engine_new(struct target *target, struct unwinder *unwinder, const struct engine_sink *sink,
	       uint32_t max_frames, struct engine **ret_engine)
{
	struct engine *engine = calloc(1, sizeof(*engine));

	if (!engine)
		return -ENOMEM;
	engine->target = target;
	engine->unwinder = unwinder;
	engine->sink = *sink;
	engine->max_frames = max_frames;
	engine->reader = target_reader(target);
	*ret_engine = engine;
	return 0;
}

static void probe_free(struct probe *probe)
{
	vec_fini(&probe->parts);
	free(probe);
}

void engine_free(struct engine *engine)
{
	if (!engine)
		return;
	for (size_t i = 0; i < engine->plans.count; i++) {
		plan_fini(&engine->plans.items[i]->plan);
		free(engine->plans.items[i]);
	}
	vec_fini(&engine->plans);
	for (size_t i = 0; i < engine->probes.count; i++)
		probe_free(engine->probes.items[i]);
	vec_fini(&engine->probes);
	for (size_t i = 0; i < engine->target->tasks.count; i++) {
		free(engine->target->tasks.items[i]->calls);
		engine->target->tasks.items[i]->calls = NULL;
	}
	for (size_t i = 0; i < engine->target->breakpoints.count; i++) {
		free(engine->target->breakpoints.items[i]->site);
		engine->target->breakpoints.items[i]->site = NULL;
	}
	free(engine);
}

/* An overflowing product is a request that fails, and never one of 0 bytes. */
static uint64_t requested_size(const struct catalog_entry *entry, const struct user_regs_struct *regs)
{
	uint64_t size = arch_argument(regs, entry->size_arg), product;

	if (entry->count_arg == ARG_NONE)
		return size;
	return __builtin_mul_overflow(size, arch_argument(regs, entry->count_arg), &product) ? UINT64_MAX : product;
}

static struct calls *task_calls(struct task *task)
{
	if (!task->calls)
		task->calls = calloc(1, sizeof(struct calls));
	return task->calls;
}

static bool continues(const struct probe *outer, const struct probe *probe)
{
	if (outer->tails_to_import && outer != probe)
		return true;
	for (size_t i = 0; i < outer->parts.count; i++) {
		if (outer->parts.items[i].address == probe->address && outer != probe)
			return true;
	}
	return false;
}

/* One breakpoint of one thread, while it is served. */
struct hit {
	struct engine *engine;
	struct task *task;
	const struct user_regs_struct *regs;
	struct calls_eyes eyes;
	struct view view;
};

static void emit(struct engine *engine, const struct task *task, struct alloc_event event)
{
	event.tid = task->tid;
	event.time_ns = clock_monotonic_ns();
	if (event.kind == ALLOC_FREED)
		engine->counters.frees++;
	else if (event.kind == ALLOC_BORN || event.kind == ALLOC_RESIZE_END)
		engine->counters.allocations++;
	engine->sink.event(engine->sink.context, &event);
}

static void abandoned(void *context, const struct call *call)
{
	const struct hit *hit = context;

	hit->engine->sink.abandoned(hit->engine->sink.context, hit->task->tid, call->old_address);
}

static void kept(void *context, const struct held_block *block)
{
	const struct hit *hit = context;

	emit(hit->engine, hit->task, (struct alloc_event){ .kind = ALLOC_BORN, .address = block->address,
							   .size = block->size, .stack = block->stack,
							   .domain = block->domain });
}

static enum call_standing standing(void *context, const struct call *call)
{
	struct hit *hit = context;
	struct arch_regs regs;

	if (!hit->view.looked) {
		arch_regs_from_user(hit->regs, &regs);
		regs.reg[ARCH_DWARF_PC] -= 1;          /* behind the int3 */
		view_look(&hit->view, hit->engine->unwinder, &hit->engine->reader, &regs);
	}
	return view_standing(&hit->view, call);
}

/* regs: of the task where it stands, NULL: it does not stand. */
static void hit_init(struct hit *hit, struct engine *engine, struct task *task, const struct user_regs_struct *regs)
{
	hit->engine = engine;
	hit->task = task;
	hit->regs = regs;
	hit->eyes = (struct calls_eyes){ continues, standing, abandoned, kept, hit };
	hit->view.looked = false;
	hit->view.probes = engine->probes.items;
	hit->view.probe_count = engine->probes.count;
}

/* Only asked about blocks that are not known: it costs a read. */
static bool is_internal_free(struct engine *engine, const struct probe *probe, raddr sp)
{
	for (size_t i = 0; i < engine->plans.count; i++) {
		const struct planned_module *planned = engine->plans.items[i];
		uint64_t caller;

		if (planned->module != probe->module || planned->plan.internal_end == 0)
			continue;
		if (reader_u64(&engine->reader, sp, &caller) < 0)
			return false;
		caller -= engine->target->modules.modules.items[planned->module].bias;
		return caller >= planned->plan.internal_start && caller < planned->plan.internal_end;
	}
	return false;
}

static void free_block(struct hit *hit, struct calls *calls, const struct probe *probe,
		       const struct user_regs_struct *regs, raddr sp)
{
	struct engine *engine = hit->engine;
	raddr address = arch_argument(regs, probe->entry->old_arg);
	bool live;

	if (address == 0)
		return;
	live = engine->sink.is_live(engine->sink.context, address, probe->entry->domain);
	if (!calls_free(calls, probe, sp, arch_frame_pointer(regs), address, live, &hit->eyes))
		return;
	if (!live && is_internal_free(engine, probe, sp)) {
		engine->counters.internal_frees++;
		return;
	}
	emit(engine, hit->task, (struct alloc_event){ .kind = ALLOC_FREED, .old_address = address,
						      .domain = probe->entry->domain });
}

/* A call within another resizes what the outer one resizes, or its own part of it, or what was made there: then it is
 * no resize of its own. */
static void park(struct hit *hit, const struct calls *calls, struct call *call, raddr old_address)
{
	struct engine *engine = hit->engine;
	uint32_t domain = call->probe->entry->domain;

	call->parked = old_address != 0 &&
		       (call->outer_sp == 0 || (!calls_resizes(calls, call, old_address) &&
						engine->sink.is_live(engine->sink.context, old_address, domain)));
	call->old_address = old_address;
	if (call->parked)
		emit(engine, hit->task, (struct alloc_event){ .kind = ALLOC_RESIZE_BEGIN, .old_address = old_address,
							      .domain = domain });
}

static void enter_call(struct hit *hit, const struct site *site, const struct user_regs_struct *regs)
{
	const struct probe *probe = site->probe;
	const struct catalog_entry *entry = probe->entry;
	raddr sp = arch_sp(regs) + site->sp_below;
	struct calls *calls = task_calls(hit->task);
	struct call *call;

	if (!calls) {
		hit->engine->counters.failed_reads++;
		return;
	}
	if (!catalog_allocates(entry)) {
		free_block(hit, calls, probe, regs, sp);
		return;
	}
	call = calls_enter(calls, probe, sp, requested_size(entry, regs), &hit->eyes);
	if (!call)
		return;
	call->bp = arch_frame_pointer(regs);
	if (entry->out_arg != ARG_NONE)
		call->out_pointer = arch_argument(regs, entry->out_arg);
	if (entry->old_arg == ARG_NONE)
		return;
	park(hit, calls, call, arch_argument(regs, entry->old_arg));
}

static int call_result(struct engine *engine, const struct call *call, const struct site *site,
		       const struct user_regs_struct *regs, raddr *ret_address)
{
	if (site->kinds & SITE_TAIL) {
		*ret_address = arch_argument(regs, 0);
		return 0;
	}
	if (call->probe->entry->out_arg == ARG_NONE) {
		*ret_address = arch_result(regs);
		return 0;
	}
	if ((uint32_t)arch_result(regs) != 0) {
		*ret_address = 0;
		return 0;
	}
	return reader_u64(&engine->reader, call->out_pointer, ret_address);
}

/* At a function's return its caller's registers are as they were at its entry: unwound from there, a
 * call makes the same stack whichever of its returns it takes. */
static uint32_t caller_stack(struct engine *engine, const struct call *call, const struct user_regs_struct *regs)
{
	struct arch_regs at_entry;

	arch_regs_from_user(regs, &at_entry);
	at_entry.reg[ARCH_DWARF_PC] = call->probe->address;
	at_entry.reg[ARCH_DWARF_SP] = call->sp;
	return unwinder_unwind(engine->unwinder, &at_entry, &engine->reader, engine->max_frames, NULL);
}

/* Whether it is left to the call that this one was made within. */
static bool hold(struct calls *calls, const struct call *call, const struct alloc_event *event)
{
	const struct held_block block = { call->outer_sp, event->address, event->size, event->stack, event->domain };

	return call->outer_sp != 0 && !call->parked && calls_hold(calls, &block);
}

static void leave_call(struct hit *hit, const struct site *site)
{
	struct engine *engine = hit->engine;
	struct calls *calls = hit->task->calls;
	struct alloc_event event = { 0 };
	struct call call;

	if (calls)
		calls->last.result = LAST_NONE;
	if (!calls || !calls_leave(calls, arch_sp(hit->regs), &call, &hit->eyes)) {
		engine->counters.strays++;
		engine->counters.orphans += !calls || calls_pending(calls) == 0;
		return;
	}
	if (call_result(engine, &call, site, hit->regs, &event.address) < 0) {
		engine->counters.failed_reads++;
		calls_settle(calls, &call, 0, &hit->eyes);
		calls->last.result = LAST_NONE;
		if (call.parked)
			abandoned(hit, &call);
		return;
	}
	calls_settle(calls, &call, event.address, &hit->eyes);
	if (event.address == 0 && !call.parked)
		return;
	/* Where the stack could not be read, an inner call of this one stood on its own after the handler's end, and
	 * has recorded the block. */
	if (call.interrupted && !call.parked &&
	    engine->sink.is_live(engine->sink.context, event.address, call.probe->entry->domain))
		return;
	event.kind = call.parked ? ALLOC_RESIZE_END : ALLOC_BORN;
	event.domain = call.probe->entry->domain;
	event.old_address = call.parked ? call.old_address : 0;
	event.size = call.size;
	if (event.address != 0)
		event.stack = caller_stack(engine, &call, hit->regs);
	calls->last.address = event.address;
	calls->last.result = LAST_HELD;
	if (hold(calls, &call, &event))
		return;
	emit(engine, hit->task, event);
	/* What a resize has done is done. */
	calls->last.result = call.parked ? LAST_NONE : LAST_BORN;
}

void engine_hit(struct engine *engine, struct task *task, const struct breakpoint *bp,
		const struct user_regs_struct *regs)
{
	const struct site *site = bp->site;
	struct hit hit;

	engine->counters.stops++;
	if (!site)
		return;
	hit_init(&hit, engine, task, regs);
	if (site->kinds & (SITE_EXIT | SITE_TAIL))
		leave_call(&hit, site);
	if (site->kinds & SITE_ENTRY)
		enter_call(&hit, site, regs);
}

bool engine_take_back(struct engine *engine, struct task *task, const struct breakpoint *bp, raddr sp)
{
	const struct site *site = bp->site;
	struct last_call last;
	struct hit hit;

	hit_init(&hit, engine, task, NULL);
	if (!site || !task->calls)
		return false;
	/* A free is told at its entry, and what came of it cannot be known. */
	if (site->kinds & SITE_ENTRY && catalog_allocates(site->probe->entry)) {
		calls_unenter(task->calls, site->probe, sp + site->sp_below, &hit.eyes);
		return true;
	}
	if (!(site->kinds & (SITE_EXIT | SITE_TAIL)) ||
	    !calls_take_back(task->calls, sp, &last, &hit.eyes))
		return false;
	if (last.result == LAST_BORN) {
		emit(engine, task, (struct alloc_event){ .kind = ALLOC_UNBORN, .address = last.address,
							 .domain = last.call.probe->entry->domain });
		engine->counters.allocations--;
	}
	return true;
}

bool engine_is_inside(const struct task *task)
{
	const struct calls *calls = task->calls;

	return calls && calls->count > 0;
}

void engine_signal(struct engine *engine, struct task *task, raddr sp)
{
	struct hit hit;

	hit_init(&hit, engine, task, NULL);
	if (task->calls)
		calls_signal(task->calls, sp, &hit.eyes);
}

void engine_task_gone(struct engine *engine, struct task *task)
{
	struct hit hit;

	hit_init(&hit, engine, task, NULL);
	if (task->calls)
		calls_end(task->calls, &hit.eyes);
	free(task->calls);
	task->calls = NULL;
}

uint32_t engine_pending(const struct engine *engine)
{
	uint32_t pending = 0;

	for (size_t i = 0; i < engine->target->tasks.count; i++) {
		const struct task *task = engine->target->tasks.items[i];

		pending += task->calls ? calls_pending(task->calls) : 0;
	}
	return pending;
}

struct engine_counters engine_counters(const struct engine *engine)
{
	return engine->counters;
}

unsigned engine_probe_count(const struct engine *engine)
{
	unsigned count = 0;

	for (size_t i = 0; i < engine->probes.count; i++)
		count += !engine->probes.items[i]->gone;
	return count;
}

const char *engine_refusal(const struct engine *engine)
{
	return engine->refusal[0] ? engine->refusal : NULL;
}

size_t engine_memory(const struct engine *engine)
{
	const struct target *target = engine->target;
	size_t bytes = sizeof(*engine) + vec_memory(&engine->plans) + vec_memory(&engine->probes);

	for (size_t i = 0; i < engine->plans.count; i++)
		bytes += sizeof(*engine->plans.items[i]) + plan_memory(&engine->plans.items[i]->plan);
	for (size_t i = 0; i < engine->probes.count; i++)
		bytes += sizeof(struct probe) + vec_memory(&engine->probes.items[i]->parts);
	for (size_t i = 0; i < target->breakpoints.count; i++)
		bytes += target->breakpoints.items[i]->site ? sizeof(struct site) : 0;
	for (size_t i = 0; i < target->tasks.count; i++)
		bytes += target->tasks.items[i]->calls ? sizeof(struct calls) : 0;
	return bytes;
}
