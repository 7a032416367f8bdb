/* What an allocator's call does, wherever its entry and return were seen: pending calls, and the events that come of
 * them. */
#include "probe/serve.h"

#include "probe/serve_mapping.h"

#include "target/target.h"

#include "base/clock.h"

#include <errno.h>

/* An overflowing product is a request that fails, and never one of 0 bytes. */
static uint64_t requested_size(const struct catalog_entry *entry, const uint64_t *args)
{
	uint64_t size = entry->fixed_size > 0 ? entry->fixed_size : args[entry->size_arg], product;

	if (entry->count_arg == ARG_NONE)
		return size;
	return __builtin_mul_overflow(size, args[entry->count_arg], &product) ? UINT64_MAX : product;
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

void serve_emit(struct engine *engine, const struct sighting *seen, struct alloc_event *event)
{
	event->tid = seen->tid;
	/* Of nothing else the date is asked. */
	if (event->kind == ALLOC_BORN || event->kind == ALLOC_RESIZE_END)
		event->time_ns = seen->time_ns ? seen->time_ns : clock_monotonic_ns();
	if (event->kind == ALLOC_FREED)
		engine->counters.frees++;
	else if (event->kind == ALLOC_BORN || event->kind == ALLOC_RESIZE_END)
		engine->counters.allocations++;
	engine->sink.event(engine->sink.context, event);
}

static void abandoned(void *context, const struct call *call)
{
	const struct serving *serving = context;

	if (call->probe->entry->mapping != MAPPING_NONE) {
		serve_mapping_left(serving, call);
		return;
	}
	serving->engine->sink.abandoned(serving->engine->sink.context, serving->seen->tid, call->old_address);
}

static void kept(void *context, const struct held_block *block)
{
	const struct serving *serving = context;

	serve_emit(serving->engine, serving->seen, &(struct alloc_event){ .kind = ALLOC_BORN, .address = block->address,
							   .size = block->size, .stack = block->stack,
							   .domain = block->domain });
}

/* Surely: of code whose end is not known nothing is said. */
static bool is_called_by(const struct probe *probe, raddr return_address)
{
	for (size_t i = 0; i < probe->parts.count; i++) {
		if (return_address - 1 - probe->parts.items[i].address < probe->parts.items[i].size)
			return true;
	}
	return false;
}

/* A free within another one is mostly called by that itself.  So is an allocation whose record has no stack though another one is pending
 * further out, as where two threads have one slot: glibc's posix_memalign calls malloc.  A later call of the outer function would be known. */
static enum call_standing standing_unseen(const struct sighting *seen, const struct call *call)
{
	raddr sp = seen->regs.reg[ARCH_DWARF_SP];
	uint64_t return_address;

	if (call->kind == CALL_SIGNAL || reader_u64(seen->reader, sp, &return_address) < 0)
		return CALL_UNKNOWN;
	if (call->kind == CALL_FREES ? view_returns_to(call->probe, return_address) :
	    call->sp > sp && is_called_by(call->probe, return_address))
		return CALL_STANDS;
	return CALL_UNKNOWN;
}

static bool is_of_another_family(const struct serving *serving, const struct call *call)
{
	const struct sighting *seen = serving->seen;

	return seen->is_blind && call->probe && seen->probe && engine_is_sampling(serving->engine) &&
	       !probe_is_of_family(call->probe, seen->probe);
}

static enum call_standing standing(void *context, const struct call *call)
{
	struct serving *serving = context;

	/* Samples come without a stack, which is not asked where calls of other families are: each has its own. */
	if (is_of_another_family(serving, call))
		return CALL_SUSPENDED;
	if (serving->seen->is_blind)
		return standing_unseen(serving->seen, call);
	if (!serving->view.looked)
		view_look(&serving->view, serving->engine->unwinder, serving->seen->reader, &serving->seen->regs);
	return view_standing(&serving->view, call);
}

/* Whether a block is the one call's or the other's, and with it what lives: it is as if it had been lost. */
static void guessed(void *context)
{
	struct serving *serving = context;

	serving->engine->counters.failed_reads++;
}

void serving_init(struct serving *serving, struct engine *engine, const struct sighting *seen)
{
	serving->engine = engine;
	serving->seen = seen;
	serving->eyes = (struct calls_eyes){ .continues = continues, .standing = standing,
					     .guessed = seen->recorded ? guessed : NULL, .abandoned = abandoned,
					     .kept = kept, .context = serving };
	serving->view.looked = false;
	serving->view.recorded = seen->recorded;
	serving->view.stack_start = seen->stack_start;
	serving->view.probes = engine->probes.items;
	serving->view.probe_count = engine->probes.count;
}

/* Only asked about blocks that are not known: it costs a read. */
static bool is_internal_free(const struct engine *engine, const struct reader *reader, const struct probe *probe,
			     raddr sp)
{
	for (size_t i = 0; i < engine->plans.count; i++) {
		const struct planned_module *planned = engine->plans.items[i];
		uint64_t caller;

		if (planned->module != probe->module || planned->plan.internal_end == 0)
			continue;
		if (reader_u64(reader, sp, &caller) < 0)
			return false;
		caller -= engine->target->modules.modules.items[planned->module].bias;
		return caller >= planned->plan.internal_start && caller < planned->plan.internal_end;
	}
	return false;
}

/* --- frees that should not be --- */

/* At a function's start the stack is its caller's: of a free as of an allocation. */
static uint32_t freeing_stack(const struct serving *serving, raddr sp)
{
	struct engine *engine = serving->engine;
	struct arch_regs at_entry = serving->seen->regs;

	at_entry.reg[ARCH_DWARF_PC] = serving->seen->probe->address;
	at_entry.reg[ARCH_DWARF_SP] = sp;
	return unwinder_unwind(engine->unwinder, &at_entry, serving->seen->reader, engine->max_frames, NULL);
}

static uint32_t form_of_domain(uint32_t domain)
{
	switch (domain) {
	case DOMAIN_MALLOC:
		return FORM_MALLOC;
	case DOMAIN_NEW:
		return FORM_NEW;
	case DOMAIN_NEW_ARRAY:
		return FORM_NEW_ARRAY;
	default:
		return FORM_NONE;
	}
}

static uint32_t forms_of(struct engine *engine, uint32_t stack)
{
	return forms_of_stack(&engine->forms, unwinder_stacks(engine->unwinder), &engine->target->modules, &engine->reader, stack);
}

/* What operator new has made goes by delete.  Of allocators that have one function for several forms nothing is said, nor where it
 * cannot be told which operator new it was. */
static bool is_mismatch(struct engine *engine, const struct probe *probe, const struct engine_block *block)
{
	uint32_t forms = form_of_domain(block->domain);

	if (forms != FORM_NONE && probe->forms != FORM_NONE && !(probe->forms & forms) && forms != FORM_MALLOC)
		forms |= forms_of(engine, block->stack);
	return forms != FORM_NONE && probe->forms != FORM_NONE && !(probe->forms & forms) &&
	       !(engine->blurred & (forms | probe->forms));
}

static void look_for_misuse(struct serving *serving, raddr sp, raddr address, bool live)
{
	const struct engine_sink *sink = &serving->engine->sink;
	const struct probe *probe = serving->seen->probe;
	struct misuse misuse = { .kind = MISUSE_WILD_FREE, .address = address, .tid = serving->seen->tid,
				 .freed_forms = probe->forms, .made_stack = STACK_ROOT };
	struct engine_block block;

	/* With a lost event the block may have been made anew; and samples do not tell. */
	if (!sink->misused || engine_is_sampling(serving->engine) || serving->engine->counters.failed_reads > 0)
		return;
	if (live) {
		if (!serving->engine->described || !serving->engine->described->operators ||
		    !sink->find(sink->context, address, probe->entry->domain, &block))
			return;
		misuse.kind = MISUSE_MISMATCH;
		misuse.made_form = form_of_domain(block.domain);
		misuse.made_stack = block.stack;
		misuse.size = block.size;
		if (!is_mismatch(serving->engine, probe, &block))
			return;
	} else if (!sink->is_wild(sink->context, address, probe->entry->domain)) {
		return;
	}
	misuse.freed_stack = freeing_stack(serving, sp);
	sink->misused(sink->context, &misuse);
}

static void free_block(struct serving *serving, raddr sp)
{
	struct engine *engine = serving->engine;
	const struct probe *probe = serving->seen->probe;
	raddr address = serving->seen->args[probe->entry->old_arg];
	bool live;

	if (address == 0)
		return;
	live = engine->sink.is_live(engine->sink.context, address, probe->entry->domain);
	/* Of a block that was not sampled nothing is known. */
	if (!live && engine_is_sampling(engine))
		return;
	if (!calls_free(serving->seen->calls, probe, sp, serving->seen->regs.reg[ARCH_DWARF_BP], address, live,
			&serving->eyes))
		return;
	if (!live && is_internal_free(engine, serving->seen->reader, probe, sp)) {
		engine->counters.internal_frees++;
		return;
	}
	look_for_misuse(serving, sp, address, live);
	serve_emit(engine, serving->seen, &(struct alloc_event){ .kind = ALLOC_FREED, .old_address = address,
						      .domain = probe->entry->domain });
}

/* A call within another resizes what the outer one resizes, or its own part of it, or what was made there: then it is
 * no resize of its own. */
static void park(struct serving *serving, const struct calls *calls, struct call *call, raddr old_address)
{
	struct engine *engine = serving->engine;
	uint32_t domain = call->probe->entry->domain;

	call->parked = old_address != 0 &&
		       (!engine_is_sampling(engine) || engine->sink.is_live(engine->sink.context, old_address, domain)) &&
		       (call->outer_sp == 0 || (!calls_resizes(calls, call, old_address) &&
						engine->sink.is_live(engine->sink.context, old_address, domain)));
	call->old_address = old_address;
	if (call->parked)
		serve_emit(engine, serving->seen, &(struct alloc_event){ .kind = ALLOC_RESIZE_BEGIN, .old_address = old_address,
							      .domain = domain });
}

/* Whether a call of the same family that is pending is not this one's beginning: it has jumped here. */
static bool is_part_of(const struct ring *ring, const struct ring_sampled_call *call, uint64_t outer)
{
	return outer > call->sp ||
	       (outer == call->sp && !ring_is_sampled_site(ring, call->thread, call->family, call->site));
}

static struct ring_sampled_call sampled_call(const struct engine *engine, const struct sighting *seen, const struct call *call)
{
	return (struct ring_sampled_call){
		.thread = seen->word, .family = engine_ring_family(engine, call->probe->entry->domain),
		.sp = call->sp, .bytes = call->size, .site = (uint32_t)call->probe->address | RING_RETURN,
	};
}

/* What an int3 sees of a thread is sampled here.  A part of another call shares its fate: the stack says whether that still
 * stands. */
static bool is_unsampled(const struct serving *serving, const struct call *call)
{
	const struct sighting *seen = serving->seen;
	struct engine *engine = serving->engine;
	struct ring *ring = engine->ring.ring;
	struct ring_sampled_call sampled;
	uint64_t outer, noted, found;

	if (seen->recorded || !engine_is_sampling(engine))
		return seen->unsampled;
	sampled = sampled_call(engine, seen, call);
	if (ring_sampled_outer(ring, sampled.thread, sampled.family, &outer, &noted) && is_part_of(ring, &sampled, outer) &&
	    reader_u64(seen->reader, outer, &found) == 0 && found == noted)
		return true;
	reader_u64(seen->reader, call->sp, &sampled.return_address);
	return ring_sample(ring, &sampled) != RING_SAMPLED;
}

void serve_entry(struct serving *serving)
{
	const struct sighting *seen = serving->seen;
	const struct catalog_entry *entry = seen->probe->entry;
	raddr sp = seen->regs.reg[ARCH_DWARF_SP] + seen->sp_below;
	struct call *call;

	if (!seen->calls) {
		serving->engine->counters.failed_reads++;
		return;
	}
	if (entry->mapping != MAPPING_NONE) {
		serve_mapping_entry(serving, sp);
		return;
	}
	if (!catalog_allocates(entry) || seen->nested) {
		free_block(serving, sp);
		return;
	}
	/* The program's code records no call within another of its family. */
	if (seen->recorded && engine_is_sampling(serving->engine))
		calls_end_family(seen->calls, seen->probe, &serving->eyes);
	call = calls_enter(seen->calls, seen->probe, sp, requested_size(entry, seen->args), &serving->eyes);
	if (!call)
		return;
	call->bp = seen->regs.reg[ARCH_DWARF_BP];
	call->unsampled = is_unsampled(serving, call);
	if (entry->out_arg != ARG_NONE)
		call->out_pointer = seen->args[entry->out_arg];
	if (entry->old_arg == ARG_NONE)
		return;
	park(serving, seen->calls, call, seen->args[entry->old_arg]);
	if (call->parked && call->unsampled && !seen->recorded) {
		const struct ring_sampled_call sampled = sampled_call(serving->engine, seen, call);

		ring_sample_old_alone(serving->engine->ring.ring, &sampled);
	}
}

/* Stored elsewhere than on the stack that has come with the record, and the code in the process could not read it: it is read where it is
 * now.  What is no new block's address has been overwritten since. */
static int read_late(const struct serving *serving, const struct call *call, raddr *ret_address)
{
	const struct engine *engine = serving->engine;
	raddr address;

	if (!serving->seen->recorded || !engine->ring.options.alone || engine_is_sampling(engine) ||
	    target_read(engine->target, call->out_pointer, &address, sizeof(address)) < 0)
		return -EFAULT;
	if (address == 0 || address % sizeof(void *) != 0 ||
	    engine->sink.is_live(engine->sink.context, address, call->probe->entry->domain))
		return -EFAULT;
	*ret_address = address;
	return 0;
}

static int call_result(const struct serving *serving, const struct call *call, raddr *ret_address)
{
	const struct sighting *seen = serving->seen;

	if (seen->kinds & SITE_TAIL) {
		*ret_address = seen->args[0];
		return 0;
	}
	if (call->probe->entry->out_arg == ARG_NONE) {
		*ret_address = seen->result;
		return 0;
	}
	if (seen->stored) {
		*ret_address = seen->result;
		return 0;
	}
	if ((uint32_t)seen->result != 0) {
		*ret_address = 0;
		return 0;
	}
	if (reader_u64(seen->reader, call->out_pointer, ret_address) == 0)
		return 0;
	return read_late(serving, call, ret_address);
}

/* At a function's return its caller's registers are as they were at its entry: unwound from there, a
 * call makes the same stack whichever of its returns it takes. */
uint32_t serve_caller_stack(struct engine *engine, const struct call *call, const struct sighting *seen)
{
	struct arch_regs at_entry = seen->regs;

	if (seen->stack)
		return seen->stack(seen->stack_context, call->probe->address);
	at_entry.reg[ARCH_DWARF_PC] = call->probe->address;
	at_entry.reg[ARCH_DWARF_SP] = call->sp;
	return unwinder_unwind(engine->unwinder, &at_entry, seen->reader, engine->max_frames, NULL);
}

/* Whether it is left to the call that this one was made within. */
static bool hold(struct calls *calls, const struct call *call, const struct alloc_event *event)
{
	const struct held_block block = { call->outer_sp, event->address, event->size, event->stack, event->domain };

	return call->outer_sp != 0 && !call->parked && calls_hold(calls, &block);
}

/* Which of malloc, new and new[] it is, where that is asked for and can be told. */
static uint32_t domain_of(struct engine *engine, const struct probe *probe, uint32_t stack)
{
	uint32_t forms = probe->forms;

	if (!engine->described || !engine->described->operators)
		return probe->entry->domain;
	/* One function for several tells nothing. */
	if (forms & (forms - 1))
		return probe->entry->domain;
	if (forms != FORM_NONE)
		forms = forms_of(engine, stack);
	if (forms & FORM_NEW)
		return DOMAIN_NEW;
	return forms & FORM_NEW_ARRAY ? DOMAIN_NEW_ARRAY : probe->entry->domain;
}

/* It has made a block that is no sample, or none; with the old one goes, unless the call has failed, what was known of it. */
static void settle_unsampled(struct serving *serving, struct calls *calls, const struct call *call, raddr result)
{
	calls->last.result = LAST_NONE;
	if (!call->parked)
		return;
	serve_emit(serving->engine, serving->seen, &(struct alloc_event){ .kind = ALLOC_RESIZE_END, .old_address = call->old_address,
							   .size = result == 0 ? call->size : 0,
							   .domain = call->probe->entry->domain });
}

/* The call has ended. */
static void settle(struct serving *serving, struct calls *calls, struct call call)
{
	struct engine *engine = serving->engine;
	const struct sighting *seen = serving->seen;
	struct alloc_event event = { 0 };

	if (call.probe->entry->mapping != MAPPING_NONE) {
		serve_mapping_return(serving, &call);
		return;
	}
	if (call_result(serving, &call, &event.address) < 0) {
		engine->counters.failed_reads++;
		calls_settle(calls, &call, 0, &serving->eyes);
		calls->last.result = LAST_NONE;
		if (call.parked)
			abandoned(serving, &call);
		return;
	}
	calls_settle(calls, &call, event.address, &serving->eyes);
	if (event.address == 0 && !call.parked)
		return;
	if (call.unsampled) {
		settle_unsampled(serving, calls, &call, event.address);
		return;
	}
	/* What the program's own code counts, it has counted. */
	if (engine_is_sampling(engine) && !seen->recorded && event.address != 0)
		ring_filter_add(engine->ring.ring, event.address);
	/* Where the stack could not be read, an inner call of this one stood on its own after the handler's end, and
	 * has recorded the block. */
	if (call.interrupted && !call.parked &&
	    engine->sink.is_live(engine->sink.context, event.address, call.probe->entry->domain))
		return;
	event.kind = call.parked ? ALLOC_RESIZE_END : ALLOC_BORN;
	event.old_address = call.parked ? call.old_address : 0;
	event.size = call.size;
	if (event.address != 0)
		event.stack = serve_caller_stack(engine, &call, seen);
	event.domain = domain_of(engine, call.probe, event.stack);
	calls->last.address = event.address;
	calls->last.result = LAST_HELD;
	if (hold(calls, &call, &event))
		return;
	serve_emit(engine, seen, &event);
	/* What a resize has done is done. */
	calls->last.result = call.parked ? LAST_NONE : LAST_BORN;
}

/* By a call whose entry was not seen. */
static void serve_stray(struct serving *serving)
{
	struct engine *engine = serving->engine;
	const struct sighting *seen = serving->seen;

	/* Of a call that is no sample. */
	if (engine_is_sampling(engine))
		return;
	engine->counters.strays++;
	engine->counters.orphans += !(seen->kinds & SITE_SHARED) && (!seen->calls || calls_pending(seen->calls) == 0);
	if (seen->kinds & SITE_EXIT && seen->result != 0)
		serve_emit(engine, seen, &(struct alloc_event){ .kind = ALLOC_GIVEN, .address = seen->result });
}

void serve_return(struct serving *serving)
{
	const struct sighting *seen = serving->seen;
	struct calls *calls = seen->calls;
	raddr sp = seen->regs.reg[ARCH_DWARF_SP];
	struct call call;

	if (calls)
		calls->last.result = LAST_NONE;
	if (!calls || !calls_leave(calls, sp, &call, &serving->eyes)) {
		serve_stray(serving);
		return;
	}
	settle(serving, calls, call);
	/* One return ends several calls when a described allocator has jumped to the one below it. */
	while (calls_leave(calls, sp, &call, &serving->eyes))
		settle(serving, calls, call);
}

void serve_unborn(struct serving *serving, const struct last_call *last)
{
	serve_emit(serving->engine, serving->seen, &(struct alloc_event){ .kind = ALLOC_UNBORN, .address = last->address,
								   .domain = last->call.probe->entry->domain });
	serving->engine->counters.allocations--;
}
