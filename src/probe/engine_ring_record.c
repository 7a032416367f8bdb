#include "probe/engine_ring_record.h"

#include "probe/engine_private.h"

#include "target/held.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>

#define RETURN_ADDRESS_SIZE 8

/* Of a call's record without a stack, its return address. */
static int read_return_address(void *context, raddr at, void *buf, size_t len)
{
	const struct ring_sighting *sighting = context;
	const struct ring_record *record = sighting->record;
	uint64_t offset = at - record->sp;

	if (offset > RETURN_ADDRESS_SIZE || len > RETURN_ADDRESS_SIZE - offset)
		return -EFAULT;
	memcpy(buf, (const uint8_t *)&record->return_address + offset, len);
	return 0;
}

/* It grows downwards into the room that the kernel leaves free for that. */
static bool is_below_first_stack(const struct thread_layout *layout, raddr sp)
{
	return sp < layout->main_stack.start && layout->main_stack.start - sp <= RING_FIRST_STACK_ROOM;
}

static uint32_t stack_of_record(void *context, raddr function)
{
	const struct ring_sighting *sighting = context;
	const struct ring_record *record = sighting->record;
	struct engine *engine = sighting->engine;
	struct ring_ahead_found found;
	struct ring_stack stack;

	if (!ring_ahead_take(engine->ring.ahead, record, function, &stack, &found)) {
		stack = ring_stack_unwind(engine->unwinder, &engine->target->modules, &engine->reader, record, function,
					  engine->max_frames);
		ring_ahead_note(engine->ring.ahead, &found, &stack);
	}
	ring_stack_learn(engine->ring.ring, record, &stack);
	engine->ring.outgrown |= !engine->ring.below_is_anothers && is_below_first_stack(&engine->ring.layout, record->sp);
	return stack.node;
}

/* The others are 0 already. */
static void registers_of(const struct ring_record *record, raddr pc, struct arch_regs *ret_regs)
{
	for (unsigned i = 0; i < ARCH_CALLEE_SAVED; i++)
		ret_regs->reg[arch_callee_saved[i]] = record->has_stack ? record->saved[i] : 0;
	ret_regs->reg[ARCH_DWARF_SP] = record->sp;
	ret_regs->reg[ARCH_DWARF_PC] = pc;
}

/* No date is after its reading.  To ask what time it is takes as long as to walk a stack, and records are mostly older than the last time
 * that it was asked. */
static uint64_t date_of(struct ring_side *ring, const struct ring_record *record)
{
	uint64_t ns = tick_clock_ns(&ring->clock, record->time, ring->now_ns);

	if (ns != ring->now_ns)
		return ns;
	ring->now_ns = clock_monotonic_ns();
	return tick_clock_ns(&ring->clock, record->time, ring->now_ns);
}

static void see_return(struct engine *engine, const struct ring_record *record, const struct ring_place *place, struct sighting *seen)
{
	seen->is_blind = seen->unsampled = seen->nested = false;
	seen->stored = record->stored;
	seen->stack_start = 0;
	seen->result = record->result;
	seen->time_ns = date_of(&engine->ring, record);
	if (place->kinds & SITE_TAIL)
		seen->args[0] = record->result;
}

static void see_call(const struct ring_record *record, struct sighting *seen)
{
	seen->is_blind = !record->has_stack;
	seen->unsampled = record->unsampled;
	seen->stored = false;
	seen->nested = record->nested;
	seen->stack_start = record->has_stack ? record->stack_start : 0;
	seen->time_ns = 0;
	memcpy(seen->args, record->args, sizeof(record->args));
}

void ring_sighting_init(struct ring_sighting *sighting, struct engine *engine)
{
	*sighting = (struct ring_sighting){
		.engine = engine,
		.piece = { .map = &engine->target->modules, .code = &engine->reader },
		.seen = { .stack = stack_of_record, .recorded = true },
	};
	sighting->piece_reader = ring_piece_reader(&sighting->piece);
	sighting->address_reader = (struct reader){ .read = read_return_address, .context = sighting };
	sighting->seen.stack_context = sighting;
}

static void see(struct ring_sighting *sighting, const struct ring_place *place, struct task *task)
{
	const struct ring_record *record = sighting->record;
	struct sighting *seen = &sighting->seen;

	sighting->piece.record = record;
	seen->reader = record->has_stack ? &sighting->piece_reader : &sighting->address_reader;
	seen->tid = task->tid > 0 ? task->tid : 0;
	seen->kinds = place->kinds;
	seen->probe = place->probe;
	seen->calls = record->is_return ? task->calls : engine_task_calls(task);
	registers_of(record, place->address, &seen->regs);
	if (record->is_return)
		see_return(sighting->engine, record, place, seen);
	else
		see_call(record, seen);
}

void ring_sighting_serve(struct ring_sighting *sighting, const struct ring_record *record)
{
	struct engine *engine = sighting->engine;
	const struct ring_place *place = record->site < engine->ring.places.count ?
					 &engine->ring.places.items[record->site] : NULL;
	struct task *task = engine_ring_writer(engine, record->thread);
	struct serving serving;

	engine->counters.records++;
	if (record->is_return)
		ring_ahead_prefetch(engine->ring.ahead, record->position);
	if (place && !record->is_return && (place->kinds & SITE_LOADER)) {
		engine_loader_called(engine, record->position);
		return;
	}
	if (place && !record->is_return && (place->kinds & SITE_EXEC)) {
		engine_exec_called(engine, record, place);
		return;
	}
	if (!place || (place->kinds & (SITE_UNMAP | SITE_LOADER | SITE_EXEC)) || record->is_return != !(place->kinds & SITE_ENTRY) || !task ||
	    task->target != engine->target) {
		engine->counters.failed_reads++;
		return;
	}
	if (record->is_return && engine->ring.options.alone)
		engine_ring_hear_of_pointer(engine, task, record->thread_pointer);
	sighting->record = record;
	see(sighting, place, task);
	/* It may have stopped since: how long it is held counts from here. */
	if (sighting->seen.time_ns > task->running_ns)
		held_runs(task, sighting->seen.time_ns);
	serving_init(&serving, engine, &sighting->seen);
	if (record->is_return)
		serve_return(&serving);
	else
		serve_entry(&serving);
}
