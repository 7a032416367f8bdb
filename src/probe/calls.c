#include "probe/calls.h"

#include "probe/probe.h"

#include <string.h>

#define WRAPPER_FRAME_MAX 512          /* bytes of stack between operator delete and the free it calls */
#define FREE_REACH_MAX 65536           /* and between a free and any that it calls */

/* --- the list --- */

static void remove_at(struct calls *calls, uint32_t at)
{
	calls->count--;
	memmove(&calls->items[at], &calls->items[at + 1], (calls->count - at) * sizeof(calls->items[0]));
}

static void release_held(struct calls *calls, uint32_t at)
{
	calls->held[at] = calls->held[--calls->held_count];
}

static bool holds(const struct held_block *held, raddr address)
{
	return address >= held->address && address - held->address <= held->size;
}

void calls_settle(struct calls *calls, const struct call *call, raddr result, const struct calls_eyes *eyes)
{
	for (uint32_t i = calls->held_count; i-- > 0;) {
		struct held_block held = calls->held[i];
		bool moved;

		if (held.owner_sp != call->sp && held.owner_sp != call->outer_sp)
			continue;
		/* A resize, within another call, of what was made there. */
		moved = !call->parked && call->old_address != 0 && held.address == call->old_address && result != 0;
		if (held.owner_sp != call->sp && !moved)
			continue;
		release_held(calls, i);
		if (!moved && result != 0 && holds(&held, result)) {
			calls->last.had_inner = true;
			calls->last.inner = held;
		} else if (!moved) {
			eyes->kept(eyes->context, &held);
		}
	}
}

/* It will not return. */
static void drop_at(struct calls *calls, uint32_t at, const struct calls_eyes *eyes)
{
	struct call call = calls->items[at];

	remove_at(calls, at);
	if (call.kind != CALL_ALLOCATES)
		return;
	calls_settle(calls, &call, 0, eyes);
	if (call.parked)
		eyes->abandoned(eyes->context, &call);
}

/* What has ended unseen goes first: frees, and handlers that came in at one place of the program. */
static void make_room(struct calls *calls, const struct calls_eyes *eyes)
{
	for (uint32_t i = 0; i < calls->count; i++) {
		const struct call *call = &calls->items[i];

		if (call->kind == CALL_FREES ||
		    (call->kind == CALL_SIGNAL && i + 1 < calls->count && call[1].kind == CALL_SIGNAL)) {
			remove_at(calls, i);
			return;
		}
	}
	drop_at(calls, 0, eyes);
}

static struct call *push(struct calls *calls, enum call_kind kind, const struct probe *probe, raddr sp,
			 const struct calls_eyes *eyes)
{
	struct call *call;

	if (calls->count == CALLS_MAX)
		make_room(calls, eyes);
	call = &calls->items[calls->count++];
	*call = (struct call){ .kind = kind, .standing = CALL_STANDS, .probe = probe, .sp = sp };
	return call;
}

/* --- what of it still stands --- */

/* The frees that have ended by now, as far as the stack pointer shows it. */
static void pop_frees(struct calls *calls, raddr sp)
{
	while (calls->count > 0) {
		const struct call *top = &calls->items[calls->count - 1];

		if (top->kind != CALL_FREES || top->sp > sp)
			return;
		calls->count--;
	}
}

/* Whether the call, of a described allocator, may have become this one, of the allocator below, by a jump: both end at one
 * return. */
static bool has_jumped_below(const struct call *call, const struct probe *probe, const struct calls_eyes *eyes)
{
	return call->kind == CALL_ALLOCATES && call->probe->entry->domain >= DOMAIN_USER &&
	       !probe_is_of_family(call->probe, probe) && eyes->continues(call->probe, probe);
}

/* Where a call begins now nothing else goes on. */
static void drop_at_sp(struct calls *calls, const struct probe *probe, raddr sp, const struct calls_eyes *eyes)
{
	for (uint32_t i = calls->count; i-- > 0;) {
		const struct call *call = &calls->items[i];

		if (call->sp == sp && call->kind != CALL_SIGNAL && !has_jumped_below(call, probe, eyes))
			drop_at(calls, i, eyes);
	}
}

static enum call_standing judge(const struct call *call, const struct probe *probe, raddr sp, bool behind_barrier,
				const struct calls_eyes *eyes)
{
	enum call_standing standing;

	/* The present call is where it went on: no stack need say so, and a record at its place comes with none. */
	if (call->sp == sp && has_jumped_below(call, probe, eyes))
		return CALL_STANDS;
	standing = eyes->standing(eyes->context, call);
	if (standing != CALL_UNKNOWN || call->kind == CALL_SIGNAL)
		return standing;
	if (!behind_barrier && call->kind == CALL_ALLOCATES && eyes->guessed)
		eyes->guessed(eyes->context);
	if (call->sp > sp)
		return CALL_STANDS;
	/* A handler may run on a stack of its own. */
	return behind_barrier ? CALL_UNKNOWN : CALL_LEFT;
}

static void look(struct calls *calls, const struct probe *probe, raddr sp, const struct calls_eyes *eyes)
{
	bool barrier = false;

	for (uint32_t i = calls->count; i-- > 0;) {
		struct call *call = &calls->items[i];

		call->standing = judge(call, probe, sp, barrier, eyes);
		barrier |= call->kind == CALL_SIGNAL && call->standing != CALL_LEFT;
		if (call->standing == CALL_LEFT)
			drop_at(calls, i, eyes);
	}
}

static bool only_frees(const struct calls *calls)
{
	for (uint32_t i = 0; i < calls->count; i++) {
		if (calls->items[i].kind != CALL_FREES)
			return false;
	}
	return true;
}

/* The innermost pending call, of the same family, that the present one is made within, and in no handler of a signal. */
static struct call *enclosing(struct calls *calls, const struct probe *probe, raddr sp, const struct calls_eyes *eyes)
{
	drop_at_sp(calls, probe, sp, eyes);
	if (only_frees(calls))
		return NULL;
	look(calls, probe, sp, eyes);
	for (uint32_t i = calls->count; i-- > 0;) {
		struct call *call = &calls->items[i];

		if (call->kind == CALL_SIGNAL)
			return NULL;
		if (call->kind == CALL_ALLOCATES && call->standing == CALL_STANDS && probe_is_of_family(call->probe, probe))
			return call;
	}
	return NULL;
}

/* --- calls that allocate --- */

struct call *calls_enter(struct calls *calls, const struct probe *probe, raddr sp, uint64_t size,
			 const struct calls_eyes *eyes)
{
	const struct call *outer, *top;
	raddr outer_sp = 0;
	struct call *call;

	calls->last.result = LAST_NONE;
	pop_frees(calls, sp);
	if (calls->count > 0) {
		top = &calls->items[calls->count - 1];
		if (top->kind == CALL_ALLOCATES && top->sp == sp && probe_is_of_family(top->probe, probe) &&
		    eyes->continues(top->probe, probe))
			return NULL;
		outer = enclosing(calls, probe, sp, eyes);
		/* operator new may have been left by an exception, whose object malloc is asked for next: only a
		 * request of the same size is its own. */
		if (outer && (!probe_may_throw(outer->probe) || outer->size == size))
			outer_sp = outer->sp;
	}
	call = push(calls, CALL_ALLOCATES, probe, sp, eyes);
	call->outer_sp = outer_sp;
	call->size = size;
	return call;
}

void calls_unenter(struct calls *calls, const struct probe *probe, raddr sp, const struct calls_eyes *eyes)
{
	const struct call *top = calls->count > 0 ? &calls->items[calls->count - 1] : NULL;

	/* One that went on in it by a jump has entered, and will be met again. */
	if (top && top->kind == CALL_ALLOCATES && top->sp == sp && top->probe == probe)
		drop_at(calls, calls->count - 1, eyes);
}

/* What was called within a call that has returned is over, but not what runs on another stack. */
static void drop_above(struct calls *calls, uint32_t at, const struct calls_eyes *eyes)
{
	uint32_t end = at + 1;

	while (end < calls->count &&
	       (calls->items[end].kind != CALL_ALLOCATES || calls->items[end].outer_sp != 0))
		end++;
	while (end-- > at + 1)
		drop_at(calls, end, eyes);
}

bool calls_leave(struct calls *calls, raddr sp, struct call *ret_call, const struct calls_eyes *eyes)
{
	uint32_t at = calls->count;

	while (at > 0 && !(calls->items[at - 1].kind == CALL_ALLOCATES && calls->items[at - 1].sp == sp))
		at--;
	if (at-- == 0)
		return false;
	/* The barriers of signals that came in before it have been passed. */
	drop_above(calls, at, eyes);
	*ret_call = calls->items[at];
	remove_at(calls, at);
	/* Not all of it is cleared: that would take longer than to find the call. */
	calls->last.result = LAST_WITHOUT_BLOCK;
	calls->last.call = *ret_call;
	calls->last.address = 0;
	calls->last.had_inner = false;
	return true;
}

bool calls_take_back(struct calls *calls, raddr sp, struct last_call *ret_last, const struct calls_eyes *eyes)
{
	struct last_call last = calls->last;

	if (last.result == LAST_NONE || last.call.sp != sp)
		return false;
	calls->last.result = LAST_NONE;
	for (uint32_t i = calls->held_count; last.result == LAST_HELD && i-- > 0;) {
		if (calls->held[i].owner_sp == last.call.outer_sp && calls->held[i].address == last.address)
			release_held(calls, i);
	}
	*push(calls, CALL_ALLOCATES, last.call.probe, sp, eyes) = last.call;
	if (last.had_inner && !calls_hold(calls, &last.inner))
		eyes->kept(eyes->context, &last.inner);
	*ret_last = last;
	return true;
}

bool calls_hold(struct calls *calls, const struct held_block *block)
{
	if (calls->held_count == CALLS_HELD_MAX)
		return false;
	calls->held[calls->held_count++] = *block;
	return true;
}

static const struct call *pending_at(const struct calls *calls, raddr sp)
{
	for (uint32_t i = calls->count; sp != 0 && i-- > 0;) {
		if (calls->items[i].kind == CALL_ALLOCATES && calls->items[i].sp == sp)
			return &calls->items[i];
	}
	return NULL;
}

bool calls_resizes(const struct calls *calls, const struct call *within, raddr address)
{
	const struct call *call = within;

	for (uint32_t depth = 0; call && depth < CALLS_MAX; depth++) {
		if (call->old_address == address)
			return true;
		call = pending_at(calls, call->outer_sp);
	}
	return false;
}

uint32_t calls_pending(const struct calls *calls)
{
	uint32_t pending = 0;

	for (uint32_t i = 0; i < calls->count; i++)
		pending += calls->items[i].kind == CALL_ALLOCATES;
	return pending;
}

/* --- frees, signals, the end --- */

/* A free may have ended unseen: only the stack can say that it goes on. */
static bool goes_on(const struct call *call, const struct calls_eyes *eyes)
{
	if (call->kind == CALL_FREES)
		return eyes->standing(eyes->context, call) == CALL_STANDS;
	return call->standing == CALL_STANDS;
}

bool calls_are_within(struct calls *calls, uint32_t family, const struct probe *probe, raddr sp,
		      const struct calls_eyes *eyes)
{
	pop_frees(calls, sp);
	look(calls, probe, sp, eyes);
	for (uint32_t i = calls->count; i-- > 0;) {
		const struct call *call = &calls->items[i];

		if (call->kind == CALL_SIGNAL)
			return false;
		if (domain_family(call->probe->entry->domain) == family && goes_on(call, eyes))
			return true;
	}
	return false;
}

static bool release_freed(struct calls *calls, const struct probe *probe, raddr address)
{
	uint32_t family = domain_family(probe->entry->domain);

	for (uint32_t i = 0; i < calls->held_count; i++) {
		if (calls->held[i].address != address || domain_family(calls->held[i].domain) != family)
			continue;
		release_held(calls, i);
		return true;
	}
	return false;
}

/* Is it a free that calls this one? */
static bool passes_on(const struct call *call, const struct probe *probe, raddr sp, raddr address,
		      const struct calls_eyes *eyes)
{
	enum call_standing standing;

	if (call->kind != CALL_FREES || !probe_is_of_family(call->probe, probe) || call->sp <= sp || call->sp - sp > FREE_REACH_MAX)
		return false;
	standing = eyes->standing(eyes->context, call);
	return standing == CALL_STANDS || (standing == CALL_UNKNOWN && call->old_address == address &&
					   call->sp - sp < WRAPPER_FRAME_MAX);
}

static bool is_passed_on(struct calls *calls, const struct probe *probe, raddr sp, raddr address,
			 const struct calls_eyes *eyes)
{
	for (uint32_t i = calls->count; i-- > 0 && calls->items[i].kind != CALL_SIGNAL;) {
		if (passes_on(&calls->items[i], probe, sp, address, eyes))
			return true;
	}
	return false;
}

/* By a free, as its last act. */
static bool is_jumped_to(const struct calls *calls, const struct probe *probe, raddr sp, raddr address)
{
	const struct call *top = calls->count > 0 ? &calls->items[calls->count - 1] : NULL;

	return top && top->kind == CALL_FREES && top->sp == sp && top->probe != probe &&
	       probe_is_of_family(top->probe, probe) &&
	       (top->old_address == address || top->probe->ends_by_jump);
}

bool calls_free(struct calls *calls, const struct probe *probe, raddr sp, raddr bp, raddr address, bool live,
		const struct calls_eyes *eyes)
{
	const struct call *outer;
	struct call *call;

	calls->last.result = LAST_NONE;
	pop_frees(calls, sp - 1);
	if (!live && is_jumped_to(calls, probe, sp, address))
		return false;
	pop_frees(calls, sp);
	if (calls->count > 0) {
		outer = enclosing(calls, probe, sp, eyes);
		if (release_freed(calls, probe, address))
			return false;
		if (outer && (!live || calls_resizes(calls, outer, address)))
			return false;
		if (!live && is_passed_on(calls, probe, sp, address, eyes))
			return false;
	}
	call = push(calls, CALL_FREES, probe, sp, eyes);
	call->bp = bp;
	call->old_address = address;
	return true;
}

/* A place that is interrupted again is one to which the handlers have come back, and their frees. */
static void forget_handlers(struct calls *calls, raddr sp)
{
	uint32_t barrier = 0, kept;

	while (barrier < calls->count && !(calls->items[barrier].kind == CALL_SIGNAL && calls->items[barrier].sp == sp))
		barrier++;
	kept = barrier + 1;
	for (uint32_t i = kept; i < calls->count; i++) {
		if (calls->items[i].kind == CALL_ALLOCATES)
			calls->items[kept++] = calls->items[i];
	}
	if (barrier < calls->count)
		calls->count = kept;
}

void calls_signal(struct calls *calls, raddr sp, const struct calls_eyes *eyes)
{
	/* With nothing pending there is nothing to keep apart. */
	if (calls->count == 0)
		return;
	forget_handlers(calls, sp);
	/* A handler that ended long ago leaves its barrier behind: one per place is enough. */
	if (calls->items[calls->count - 1].kind == CALL_SIGNAL) {
		calls->items[calls->count - 1].sp = sp;
		return;
	}
	calls->items[calls->count - 1].interrupted = true;
	push(calls, CALL_SIGNAL, NULL, sp, eyes);
}

void calls_end(struct calls *calls, const struct calls_eyes *eyes)
{
	while (calls->count > 0)
		drop_at(calls, calls->count - 1, eyes);
}

void calls_end_family(struct calls *calls, const struct probe *probe, const struct calls_eyes *eyes)
{
	for (uint32_t i = calls->count; i-- > 0;) {
		if (i < calls->count &&
		    (calls->items[i].kind != CALL_ALLOCATES || probe_is_of_family(calls->items[i].probe, probe)))
			drop_at(calls, i, eyes);
	}
}
