/* Which breakpoints and jumps the engines need, by the plan of each object. */
#include "probe/engine_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	r = plan_make(elf_fd, engine->described, engine->target->modules.modules.items[module].path,
		      engine_ring_is_open(engine), &planned->plan);
	if (r < 0 || planned->plan.functions.count + planned->plan.forms.count == 0) {
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
	forms_drop_module(&engine->forms, module);
	bp_drop_module(target, module);
	jumps_drop_module(target, module);
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
	if (!slot || vec_reserve(&probe->parts, function->parts.count) < 0) {
		free(probe);
		engine->probes.count -= slot != NULL;
		return NULL;
	}
	probe->entry = function->entry;
	probe->address = function->vaddr + bias;
	probe->module = module;
	probe->ends_by_jump = function->ends_by_jump;
	probe->tails_to_import = function->tails_to_import;
	probe->forms = function->forms;
	probe->word = function->word + bias;
	if (catalog_allocates(probe->entry) && (probe->forms & (probe->forms - 1)))
		engine->blurred |= probe->forms;
	for (size_t i = 0; i < function->parts.count; i++) {
		probe->parts.items[probe->parts.count] = function->parts.items[i];
		probe->parts.items[probe->parts.count++].address += bias;
	}
	*slot = probe;
	return probe;
}

static const char taken[] = "another tool's breakpoint stands there (a uprobe of perf or bpftrace, or a debugger's); take it "
			    "away and attach again";

static int plant_site(struct engine *engine, const struct plan_site *planned, uint32_t module, raddr bias,
		      struct probe *probe, const char **ret_reason)
{
	struct breakpoint *bp;
	struct site *site;
	int r;

	*ret_reason = taken;
	r = bp_prepare(engine->target, planned->vaddr + bias, module, planned->text, planned->text_len, &bp, ret_reason);
	if (r != -EBUSY && r != -ENOTSUP && r != -ENOSPC)
		*ret_reason = r == -ENOMEM ? "the tracer has no memory for it" : "its code cannot be read or written";
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
	r = bp_plant(engine->target, bp);
	if (r == -EBUSY)
		*ret_reason = taken;
	return r;
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

static int add_forms(struct engine *engine, const struct planned_module *planned, raddr bias)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < planned->plan.forms.count; i++) {
		const struct plan_form *form = &planned->plan.forms.items[i];

		r = forms_add(&engine->forms, &(struct form_function){ form->vaddr + bias, form->size, planned->module, form->form });
	}
	return r;
}

/* Returns are planted before entries: an entry without its return would leave a call pending for ever. */
static int install_module(struct engine *engine, struct planned_module *planned)
{
	raddr bias = engine->target->modules.modules.items[planned->module].bias;
	const struct plan *plan = &planned->plan;
	bool exits_failed = false;
	int probes = 0;

	if (add_forms(engine, planned, bias) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < plan->functions.count; i++) {
		if (plan->functions.items[i].refused)
			refuse(engine, planned->module, plan->functions.items[i].entry->name,
			       plan->functions.items[i].refused);
	}
	if (plan->clash)
		refuse(engine, planned->module, plan->clash, "it is a function of malloc's family, which is watched as such");
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
			r = engine_ring_place(engine, site, planned->module, bias, probe) ? 0 :
			    plant(engine, plan, site, planned->module, bias, probe);
			if (r == -ESRCH || r == -ENOMEM)
				return r;
			exits_failed |= r < 0 && !entry;
			probes += r == 0 && entry;
		}
	}
	engine_ring_watch_unmaps(engine, planned);
	planned->installed = true;
	return probes;
}

int engine_install(struct engine *engine)
{
	int probes = 0, r;

	engine_ring_begin(engine);
	for (size_t i = 0; i < engine->plans.count; i++) {
		if (engine->plans.items[i]->installed)
			continue;
		r = install_module(engine, engine->plans.items[i]);
		if (r < 0)
			return r;
		probes += r;
	}
	r = engine_ring_plant(engine);
	return r < 0 ? r : probes;
}
