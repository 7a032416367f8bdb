/* Calls of held threads in a session with a ring: that an int3 beside it has seen, and those in the place of a record.  And their
 * signals: a thread is not held until all is read that others have recorded, which may be a whole ring. */
#include "probe/engine_private.h"
#include "probe/serve.h"

#include "arch/arch.h"

#include <string.h>

#define BEHIND_BYTES (256u << 10)      /* read in about a millisecond */
#define SIGNALS_MAX 1024u              /* that wait for the reader: more of them hold their threads, or count as lost */

void engine_ring_note(struct engine *engine, const struct task *task, raddr sp, bool pending)
{
	if (engine_is_sampling(engine)) {
		if (!pending)
			ring_sample_returned(engine->ring.ring, engine_ring_word(task), sp);
		return;
	}
	if (engine->ring.ring && pending)
		ring_note_pending(engine->ring.ring, engine_ring_word(task), sp);
	else if (engine->ring.ring)
		ring_note_returned(engine->ring.ring, engine_ring_word(task), sp);
}

void engine_ring_forget(struct engine *engine, const struct task *task)
{
	if (engine->ring.ring)
		ring_forget_thread(engine->ring.ring, engine_ring_word(task));
}

/* Whose record it would be: a guest may have the number of another thread in its thread data. */
static struct task *writer_of(const struct engine *engine, const struct user_regs_struct *regs)
{
	raddr at = arch_thread_pointer(regs) + engine->ring.layout.tid;
	uint32_t word;

	return target_read(engine->target, at, &word, sizeof(word)) == 0 ? engine_ring_writer(engine, word) : NULL;
}

static struct sighting sighting_of_place(struct engine *engine, struct task *writer, const struct ring_place *place,
					 const struct user_regs_struct *regs)
{
	struct sighting seen = { .tid = writer->tid, .word = engine_ring_word(writer), .kinds = place->kinds, .probe = place->probe,
				 .reader = &engine->reader, .calls = writer->calls, .result = arch_result(regs) };

	if (place->kinds & SITE_ENTRY)
		seen.calls = engine_task_calls(writer);
	for (int i = 0; i < SIGHTING_ARGS; i++)
		seen.args[i] = arch_argument(regs, i);
	arch_regs_from_user(regs, &seen.regs);
	seen.regs.reg[ARCH_DWARF_PC] = place->address;
	seen.regs.reg[ARCH_DWARF_SP] += place->sp_below;
	return seen;
}

void engine_stand_in(struct engine *engine, uint32_t number, const struct user_regs_struct *regs)
{
	const struct ring_place *place = number < engine->ring.places.count ? &engine->ring.places.items[number] : NULL;
	struct task *writer = place ? writer_of(engine, regs) : NULL;
	struct serving serving;
	struct sighting seen;

	if (place && (place->kinds & SITE_UNMAP))
		engine_ring_see_unmap(engine, number, regs);
	if (place && (place->kinds & (SITE_LOADER | SITE_EXEC | SITE_UNMAP)))
		return;
	if (!writer || writer->target != engine->target) {
		engine->counters.failed_reads++;
		return;
	}
	seen = sighting_of_place(engine, writer, place, regs);
	serving_init(&serving, engine, &seen);
	if (place->kinds & SITE_ENTRY)
		serve_entry(&serving);
	else
		serve_return(&serving);
	if (!(place->kinds & SITE_ENTRY) || catalog_allocates(place->probe->entry))
		engine_ring_note(engine, writer, seen.regs.reg[ARCH_DWARF_SP], place->kinds & SITE_ENTRY);
}

bool engine_is_behind(const struct engine *engine)
{
	return engine->ring.ring && engine->ring.signals.count < SIGNALS_MAX &&
	       engine_ring_head(engine) - ring_position(engine->ring.ring) > BEHIND_BYTES;
}

void engine_signal_later(struct engine *engine, const struct task *task, raddr sp)
{
	struct ring_signal *signal = engine->ring.signals.count < SIGNALS_MAX ? vec_push(&engine->ring.signals) : NULL;

	if (signal)
		*signal = (struct ring_signal){ .position = engine_ring_head(engine), .tid = task->tid, .sp = sp };
	else
		engine->counters.failed_reads++;
}

void engine_ring_serve_signals(struct engine *engine)
{
	const struct ring_signal *signals = engine->ring.signals.items;
	size_t served = 0;

	for (; served < engine->ring.signals.count &&
	       (int64_t)(ring_position(engine->ring.ring) - signals[served].position) >= 0; served++) {
		struct task *task = signals[served].tid ? task_find(signals[served].tid) : NULL;

		if (task && task->target == engine->target && engine_is_inside(task))
			engine_signal(engine, task, signals[served].sp);
	}
	if (served == 0)
		return;
	engine->ring.signals.count -= served;
	memmove(engine->ring.signals.items, signals + served, engine->ring.signals.count * sizeof(*signals));
}

void engine_ring_forget_signals(struct engine *engine, const struct task *task)
{
	for (size_t i = 0; i < engine->ring.signals.count; i++) {
		if (engine->ring.signals.items[i].tid == task->tid)
			engine->ring.signals.items[i].tid = 0;
	}
}
