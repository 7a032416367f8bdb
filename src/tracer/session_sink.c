/* What the engine tells of one heap, and asks of it. */
#include "tracer/session.h"

#include "tracer/release.h"

#include "base/clock.h"
#include "base/hash.h"

static size_t freed_slot(raddr address)
{
	return hash_u64(address) % FREED_OF_LATE;
}

static void on_left(void *context, raddr address)
{
	const struct session *session = context;

	engine_block_left(session->engine, address);
}

void session_start_sampling(struct session *session)
{
	heap_set_sampling(session->heap, session->sample_bytes);
	heap_set_left(session->heap, on_left, session);
}

static void on_event(void *context, const struct alloc_event *event)
{
	struct session *session = context;

	/* A program that is executed has its ring once its C library is loaded. */
	if (session->sample_bytes > 0 && heap_sampling(session->heap) == 0 && engine_is_sampling(session->engine))
		session_start_sampling(session);

	if (event->kind == ALLOC_FREED && session->heap_from_start)
		session->freed_of_late[freed_slot(event->old_address)] = event->old_address;
	heap_apply(session->heap, event);          /* what it cannot record it counts itself */
}

static void on_abandoned(void *context, int32_t tid, raddr old_address)
{
	struct session *session = context;
	/* The old block of a resize that was left by a jump stays as it was. */
	struct alloc_event event = { .kind = ALLOC_RESIZE_END, .tid = tid, .old_address = old_address,
				     .size = UINT64_MAX, .time_ns = clock_monotonic_ns() };

	heap_apply(session->heap, &event);
}

static bool on_is_live(void *context, raddr address, uint32_t domain)
{
	const struct session *session = context;

	return heap_is_live(session->heap, address, domain);
}

static bool on_is_wild(void *context, raddr address, uint32_t domain)
{
	const struct session *session = context;

	return heap_is_unknown_free(session->heap, address, domain);
}

static bool on_find(void *context, raddr address, uint32_t domain, struct engine_block *ret)
{
	const struct session *session = context;
	struct heap_block block;

	if (!heap_block_at(session->heap, address, domain, &block))
		return false;
	*ret = (struct engine_block){ block.domain, block.stack, block.size };
	return true;
}

static void on_misused(void *context, const struct misuse *seen)
{
	struct session *session = context;
	struct misuse misuse = *seen;

	/* Attached later, an address whose free is unknown was freed before; else it is asked for the last frees. */
	if (misuse.kind == MISUSE_WILD_FREE &&
	    (!session->heap_from_start || session->freed_of_late[freed_slot(misuse.address)] == misuse.address))
		misuse.kind = MISUSE_DOUBLE_FREE;
	misuses_note(&session->misuses, &misuse);
	if (session->misuse_told)
		return;
	session->misuse_told = true;
	session_fail(session->link, 0, session->target->pid, FAILURE_INTERNAL, 0,
		     "a %s of 0x%llx; 'allocwatch mismatches %d' shows where, and others", misuse_kind_name(misuse.kind),
		     (unsigned long long)misuse.address, session->target->pid);
}

static bool on_objects_changed(void *context)
{
	return release_objects_changed(context);
}

static bool on_executes(void *context, pid_t tid, raddr function, const uint64_t args[3])
{
	return release_wants_exec(context, tid, function, args);
}

struct engine_sink session_sink(struct session *session)
{
	return (struct engine_sink){ .event = on_event, .is_live = on_is_live, .abandoned = on_abandoned, .is_wild = on_is_wild,
				     .find = on_find, .misused = on_misused, .objects_changed = on_objects_changed,
				     .executes = on_executes, .context = session };
}
