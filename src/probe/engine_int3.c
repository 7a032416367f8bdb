/* The int3 engine: a stop at each entry, and at each return of a function that allocates. */
#include "probe/calls.h"
#include "probe/engine_private.h"
#include "probe/serve.h"

#include "arch/arch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int engine_new(struct target *target, struct unwinder *unwinder, const struct engine_sink *sink,
	       uint32_t max_frames, struct described *described, struct engine **ret_engine)
{
	struct engine *engine = calloc(1, sizeof(*engine));

	if (!engine)
		return -ENOMEM;
	engine->target = target;
	engine->unwinder = unwinder;
	engine->sink = *sink;
	engine->max_frames = max_frames;
	engine->described = described;
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
	forms_fini(&engine->forms);
	engine_ring_free(engine);
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

struct calls *engine_task_calls(struct task *task)
{
	if (!task->calls)
		task->calls = calloc(1, sizeof(struct calls));
	return task->calls;
}

/* Of a task that does not stand: what it has pending alone. */
static struct sighting sighting_of_task(const struct engine *engine, const struct task *task)
{
	return (struct sighting){ .tid = task->tid, .word = engine_ring_word(task), .calls = task->calls,
				   .reader = &engine->reader };
}

static struct sighting sighting_of_stop(const struct engine *engine, struct task *task, const struct site *site,
					const struct user_regs_struct *regs)
{
	struct sighting seen = sighting_of_task(engine, task);

	if (site->kinds & SITE_ENTRY)
		seen.calls = engine_task_calls(task);
	seen.kinds = site->kinds;
	seen.probe = site->probe;
	seen.sp_below = site->sp_below;
	seen.result = arch_result(regs);
	for (int i = 0; i < SIGHTING_ARGS; i++)
		seen.args[i] = arch_argument(regs, i);
	arch_regs_from_user(regs, &seen.regs);
	seen.regs.reg[ARCH_DWARF_PC] -= 1;             /* behind the int3 */
	return seen;
}

void engine_hit(struct engine *engine, struct task *task, const struct breakpoint *bp,
		const struct user_regs_struct *regs)
{
	const struct site *site = bp->site;
	struct serving serving;
	struct sighting seen;

	engine->counters.stops++;
	if (!site)
		return;
	seen = sighting_of_stop(engine, task, site, regs);
	serving_init(&serving, engine, &seen);
	if (site->kinds & (SITE_EXIT | SITE_TAIL)) {
		serve_return(&serving);
		engine_ring_note(engine, task, arch_sp(regs), false);
	}
	if (site->kinds & SITE_ENTRY)
		serve_entry(&serving);
	if (site->kinds & SITE_ENTRY && catalog_allocates(site->probe->entry))
		engine_ring_note(engine, task, arch_sp(regs) + site->sp_below, true);
}

bool engine_take_back(struct engine *engine, struct task *task, const struct breakpoint *bp, raddr sp)
{
	const struct sighting seen = sighting_of_task(engine, task);
	const struct site *site = bp->site;
	struct serving serving;
	struct last_call last;

	serving_init(&serving, engine, &seen);
	if (!site || !seen.calls)
		return false;
	/* A free is told at its entry, and what came of it cannot be known. */
	if (site->kinds & SITE_ENTRY && catalog_allocates(site->probe->entry)) {
		calls_unenter(seen.calls, site->probe, sp + site->sp_below, &serving.eyes);
		return true;
	}
	if (!(site->kinds & (SITE_EXIT | SITE_TAIL)) || !calls_take_back(seen.calls, sp, &last, &serving.eyes))
		return false;
	if (last.result == LAST_BORN)
		serve_unborn(&serving, &last);
	engine_ring_note(engine, task, sp, true);
	return true;
}

bool engine_is_inside(const struct task *task)
{
	const struct calls *calls = task->calls;

	return calls && calls->count > 0;
}

void engine_signal(struct engine *engine, struct task *task, raddr sp)
{
	const struct sighting seen = sighting_of_task(engine, task);
	struct serving serving;

	serving_init(&serving, engine, &seen);
	if (seen.calls)
		calls_signal(seen.calls, sp, &serving.eyes);
}

void engine_task_gone(struct engine *engine, struct task *task)
{
	const struct sighting seen = sighting_of_task(engine, task);
	struct serving serving;

	serving_init(&serving, engine, &seen);
	if (seen.calls)
		calls_end(seen.calls, &serving.eyes);
	engine_ring_forget(engine, task);
	engine_ring_forget_signals(engine, task);
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
	struct engine_counters counters = engine->counters;

	counters.stacks_ahead += ring_ahead_counters(engine->ring.ahead).taken;
	counters.waits = engine_has_ring(engine) ? ring_waits(engine->ring.ring) : 0;
	return counters;
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
	size_t bytes = sizeof(*engine) + vec_memory(&engine->plans) + vec_memory(&engine->probes) + forms_memory(&engine->forms) +
		       vec_memory(&engine->ring.signals) + ring_ahead_memory(engine->ring.ahead);

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
