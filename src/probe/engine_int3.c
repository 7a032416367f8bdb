/* The int3 engine: a stop at each entry, and at each return of a function that allocates. */
#include "probe/calls.h"
#include "probe/engine.h"
#include "probe/plan.h"
#include "probe/probe.h"

#include "arch/arch.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What stands behind one breakpoint. */
struct site {
	unsigned kinds;                    /* enum site_kind */
	struct probe *probe;               /* of an entry */
	uint32_t sp_below;                 /* there: how much lower the stack pointer is than at the function's start */
};

struct planned_module {
	uint32_t module;
	bool installed;
	struct plan plan;
};

struct engine {
	struct target *target;
	struct unwinder *unwinder;
	struct engine_sink sink;
	struct reader reader;
	uint32_t max_frames;
	VEC_OF(struct planned_module *) plans;
	VEC_OF(struct probe *) probes;
	struct engine_counters counters;
	char refusal[256];
};

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
	vec_fini(&probe->tails);
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

static void refuse(struct engine *engine, uint32_t module, const char *function, const char *reason)
{
	snprintf(engine->refusal, sizeof(engine->refusal), "%s in %s cannot be probed: %s", function,
		 engine->target->modules.modules.items[module].path, reason);
}

int engine_plan_module(struct engine *engine, uint32_t module, int elf_fd)
{
	struct planned_module *planned = calloc(1, sizeof(*planned)), **slot;
	int r;

	if (!planned)
		return -ENOMEM;
	r = plan_make(elf_fd, &planned->plan);
	if (r < 0 || planned->plan.functions.count == 0) {
		if (r == 0)
			plan_fini(&planned->plan);
		free(planned);
		return r == -ENOMEM ? r : 0;
	}
	slot = vec_push(&engine->plans);
	if (!slot) {
		plan_fini(&planned->plan);
		free(planned);
		return -ENOMEM;
	}
	planned->module = module;
	*slot = planned;
	return 0;
}

void engine_drop_module(struct engine *engine, uint32_t module)
{
	struct target *target = engine->target;

	for (size_t i = engine->plans.count; i-- > 0;) {
		if (engine->plans.items[i]->module != module)
			continue;
		plan_fini(&engine->plans.items[i]->plan);
		free(engine->plans.items[i]);
		vec_remove_unordered(&engine->plans, i);
	}
	for (size_t i = 0; i < target->breakpoints.count; i++) {
		if (target->breakpoints.items[i]->module != module)
			continue;
		free(target->breakpoints.items[i]->site);
		target->breakpoints.items[i]->site = NULL;
	}
	bp_drop_module(target, module);
	/* Pending calls may still point at the probes: they stay, marked. */
	for (size_t i = 0; i < engine->probes.count; i++)
		engine->probes.items[i]->gone |= engine->probes.items[i]->module == module;
}

unsigned engine_planned(const struct engine *engine)
{
	unsigned count = 0;

	for (size_t i = 0; i < engine->plans.count; i++) {
		const struct plan *plan = &engine->plans.items[i]->plan;

		for (size_t k = 0; k < plan->functions.count; k++)
			count += !plan->functions.items[k].refused;
	}
	return count;
}

bool engine_unwatchable(const struct engine *engine, uint32_t *ret_module, const char **ret_reason)
{
	for (size_t i = 0; i < engine->plans.count; i++) {
		if (!engine->plans.items[i]->plan.malloc_refused)
			continue;
		*ret_module = engine->plans.items[i]->module;
		*ret_reason = engine->plans.items[i]->plan.malloc_refused;
		return true;
	}
	return false;
}

static struct probe *add_probe(struct engine *engine, const struct plan_function *function, uint32_t module,
			       raddr bias)
{
	struct probe *probe = calloc(1, sizeof(*probe)), **slot;

	if (!probe)
		return NULL;
	slot = vec_push(&engine->probes);
	if (!slot || vec_reserve(&probe->tails, function->tails.count) < 0) {
		free(probe);
		engine->probes.count -= slot != NULL;
		return NULL;
	}
	probe->entry = function->entry;
	probe->address = function->vaddr + bias;
	probe->module = module;
	probe->tails_to_import = function->tails_to_import;
	for (size_t i = 0; i < function->tails.count; i++)
		probe->tails.items[probe->tails.count++] = function->tails.items[i] + bias;
	*slot = probe;
	return probe;
}

static int plant_site(struct engine *engine, const struct plan_site *planned, uint32_t module, raddr bias,
		      struct probe *probe, const char **ret_reason)
{
	struct breakpoint *bp;
	struct site *site;
	int r;

	*ret_reason = "another tool's breakpoint stands there (a uprobe of perf or bpftrace, or a debugger's); take it "
		      "away and attach again";
	r = bp_prepare(engine->target, planned->vaddr + bias, module, planned->text, planned->text_len, &bp, ret_reason);
	if (r < 0 && r != -EEXIST)
		return r;
	site = bp->site;
	if (!site)
		site = bp->site = calloc(1, sizeof(*site));
	if (!site)
		return -ENOMEM;
	bp->ambiguous |= planned->ambiguous;
	site->kinds |= planned->kinds;
	if (probe) {
		site->probe = probe;
		site->kinds |= SITE_ENTRY;
		site->sp_below = planned->sp_below;
	}
	return bp_plant(engine->target, bp);
}

/* Where the place that was chosen for an entry is taken by another tool, or cannot be used, the first instruction may
 * be free. */
static int plant(struct engine *engine, const struct plan *plan, const struct plan_site *site, uint32_t module,
		 raddr bias, struct probe *probe)
{
	const char *reason;
	int r = plant_site(engine, site, module, bias, probe, &reason);

	if ((r == -EBUSY || r == -ENOTSUP) && probe &&
	    plan->functions.items[site->entry_index].first.vaddr != site->vaddr)
		r = plant_site(engine, &plan->functions.items[site->entry_index].first, module, bias, probe, &reason);
	if (r < 0)
		refuse(engine, module, probe ? probe->entry->name : "the return of an allocator function", reason);
	return r;
}

/* Returns are planted before entries: an entry without its return would leave a call pending for ever. */
static int install_module(struct engine *engine, struct planned_module *planned)
{
	raddr bias = engine->target->modules.modules.items[planned->module].bias;
	const struct plan *plan = &planned->plan;
	bool exits_failed = false;
	int probes = 0;

	for (size_t i = 0; i < plan->functions.count; i++) {
		if (plan->functions.items[i].refused)
			refuse(engine, planned->module, plan->functions.items[i].entry->name,
			       plan->functions.items[i].refused);
	}
	for (unsigned pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < plan->sites.count; i++) {
			const struct plan_site *site = &plan->sites.items[i];
			bool entry = site->kinds & SITE_ENTRY;
			struct probe *probe = NULL;
			int r;

			if (entry != (pass == 1) ||
			    (entry && exits_failed && catalog_allocates(site->entry)))
				continue;
			if (entry) {
				probe = add_probe(engine, &plan->functions.items[site->entry_index],
						  planned->module, bias);
				if (!probe)
					return -ENOMEM;
			}
			r = plant(engine, plan, site, planned->module, bias, probe);
			if (r == -ESRCH || r == -ENOMEM)
				return r;
			exits_failed |= r < 0 && !entry;
			probes += r == 0 && entry;
		}
	}
	planned->installed = true;
	return probes;
}

int engine_install(struct engine *engine)
{
	int probes = 0;

	for (size_t i = 0; i < engine->plans.count; i++) {
		int r;

		if (engine->plans.items[i]->installed)
			continue;
		r = install_module(engine, engine->plans.items[i]);
		if (r < 0)
			return r;
		probes += r;
	}
	return probes;
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
	for (size_t i = 0; i < outer->tails.count; i++) {
		if (outer->tails.items[i] == probe->address)
			return true;
	}
	return false;
}

struct hit {
	struct engine *engine;
	struct task *task;
};

static void dropped(void *context, const struct call *call)
{
	const struct hit *hit = context;

	hit->engine->sink.abandoned(hit->engine->sink.context, hit->task->tid, call->old_address);
}

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

	if (address == 0 || calls_absorb_free(calls, probe, sp, address))
		return;
	if (!engine->sink.is_live(engine->sink.context, address, probe->entry->domain) &&
	    is_internal_free(engine, probe, sp)) {
		engine->counters.internal_frees++;
		return;
	}
	emit(engine, hit->task, (struct alloc_event){ .kind = ALLOC_FREED, .old_address = address,
						      .domain = probe->entry->domain });
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
	call = calls_enter(calls, probe, sp, requested_size(entry, regs), continues, dropped, hit);
	if (!call)
		return;
	if (entry->out_arg != ARG_NONE)
		call->out_pointer = arch_argument(regs, entry->out_arg);
	if (entry->old_arg == ARG_NONE)
		return;
	call->old_address = arch_argument(regs, entry->old_arg);
	if (call->old_address != 0) {
		call->parked = true;
		emit(hit->engine, hit->task,
		     (struct alloc_event){ .kind = ALLOC_RESIZE_BEGIN, .old_address = call->old_address,
					   .domain = entry->domain });
	}
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

static void leave_call(struct hit *hit, const struct site *site, const struct user_regs_struct *regs)
{
	struct engine *engine = hit->engine;
	struct calls *calls = hit->task->calls;
	struct alloc_event event = { 0 };
	struct call call;

	if (!calls || !calls_leave(calls, arch_sp(regs), &call, dropped, hit)) {
		engine->counters.strays++;
		engine->counters.orphans += !calls || calls->count == 0;
		return;
	}
	if (call_result(engine, &call, site, regs, &event.address) < 0) {
		engine->counters.failed_reads++;
		if (call.parked)
			dropped(hit, &call);
		return;
	}
	if (event.address == 0 && !call.parked)
		return;
	/* After the handler's end an inner call of this one stood on its own, and has recorded the block. */
	if (call.interrupted && !call.parked &&
	    engine->sink.is_live(engine->sink.context, event.address, call.probe->entry->domain))
		return;
	event.kind = call.parked ? ALLOC_RESIZE_END : ALLOC_BORN;
	event.domain = call.probe->entry->domain;
	event.old_address = call.old_address;
	event.size = call.size;
	if (event.address != 0)
		event.stack = caller_stack(engine, &call, regs);
	emit(engine, hit->task, event);
}

void engine_hit(struct engine *engine, struct task *task, const struct breakpoint *bp,
		const struct user_regs_struct *regs)
{
	struct hit hit = { engine, task };
	const struct site *site = bp->site;

	engine->counters.stops++;
	if (!site)
		return;
	if (site->kinds & (SITE_EXIT | SITE_TAIL))
		leave_call(&hit, site, regs);
	if (site->kinds & SITE_ENTRY)
		enter_call(&hit, site, regs);
}

bool engine_is_inside(const struct task *task)
{
	const struct calls *calls = task->calls;

	return calls && calls->count > 0;
}

void engine_signal(struct engine *engine, struct task *task, raddr sp)
{
	(void)engine;
	if (task->calls)
		calls_signal(task->calls, sp);
}

void engine_task_gone(struct engine *engine, struct task *task)
{
	(void)engine;
	free(task->calls);
	task->calls = NULL;
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
	return sizeof(*engine) + engine->probes.count * sizeof(struct probe) +
	       engine->target->breakpoints.count * (sizeof(struct breakpoint) + sizeof(struct site)) +
	       engine->target->tasks.count * sizeof(struct calls);
}
