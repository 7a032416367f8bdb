#include "probe/calls.h"

#include "probe/probe.h"

#include <string.h>

#define WRAPPER_FRAME_MAX 512          /* bytes of stack between operator delete and the free it calls */

static void drop_top(struct calls *calls, void (*dropped)(void *context, const struct call *call), void *context)
{
	struct call *top = &calls->items[--calls->count];

	if (top->parked)
		dropped(context, top);
}

static struct call *push(struct calls *calls)
{
	if (calls->count == CALLS_MAX) {
		memmove(&calls->items[0], &calls->items[1], (CALLS_MAX - 1) * sizeof(calls->items[0]));
		calls->count--;
	}
	memset(&calls->items[calls->count], 0, sizeof(calls->items[0]));
	return &calls->items[calls->count++];
}

/* Is the innermost pending call one that encloses a call at sp? */
static bool encloses(const struct calls *calls, raddr sp)
{
	const struct call *top = calls->count > 0 ? &calls->items[calls->count - 1] : NULL;

	return top && top->probe && top->sp > sp;
}

bool calls_absorb_free(struct calls *calls, const struct probe *probe, raddr sp, raddr address)
{
	bool passed_on = calls->freeing && calls->freeing != probe && calls->freed == address &&
			 sp <= calls->freed_sp && calls->freed_sp - sp < WRAPPER_FRAME_MAX;

	if (encloses(calls, sp) || passed_on)
		return true;
	calls->freeing = probe;
	calls->freed = address;
	calls->freed_sp = sp;
	return false;
}

struct call *calls_enter(struct calls *calls, const struct probe *probe, raddr sp, uint64_t size,
			 bool (*continues)(const struct probe *outer, const struct probe *probe),
			 void (*dropped)(void *context, const struct call *call), void *context)
{
	struct call *call;

	calls->freeing = NULL;
	/* On one stack a pending call at or below the new call's place was left without a return, but for
	 * one whose last act was a jump to this function.  Below a barrier nothing can be said: the
	 * handler may run on a stack of its own. */
	while (calls->count > 0) {
		const struct call *top = &calls->items[calls->count - 1];

		if (!top->probe || top->sp > sp)
			break;
		if (top->sp == sp && continues(top->probe, probe))
			return NULL;
		drop_top(calls, dropped, context);
	}
	/* operator new may have been left by an exception, whose object malloc is asked for next: only a
	 * request of the same size is its own. */
	if (encloses(calls, sp)) {
		const struct call *top = &calls->items[calls->count - 1];

		if (!probe_may_throw(top->probe) || top->size == size)
			return NULL;
	}
	call = push(calls);
	call->probe = probe;
	call->sp = sp;
	call->size = size;
	return call;
}

bool calls_leave(struct calls *calls, raddr sp, struct call *ret_call,
		 void (*dropped)(void *context, const struct call *call), void *context)
{
	uint32_t at = calls->count;

	while (at > 0 && !(calls->items[at - 1].probe && calls->items[at - 1].sp == sp))
		at--;
	if (at == 0)
		return false;
	while (calls->count > at)
		drop_top(calls, dropped, context);
	*ret_call = calls->items[--calls->count];
	/* The barriers of signals that came in before it have been passed. */
	return true;
}

void calls_signal(struct calls *calls, raddr sp)
{
	/* With nothing pending there is nothing to keep apart. */
	if (calls->count == 0)
		return;
	/* A handler that ended long ago leaves its barrier behind: one per place is enough. */
	if (!calls->items[calls->count - 1].probe) {
		calls->items[calls->count - 1].sp = sp;
		return;
	}
	calls->items[calls->count - 1].interrupted = true;
	push(calls)->sp = sp;
}
