/* The pending allocator calls of one thread, innermost last.  Pure.
 *
 * A call is known by the stack pointer at its entry, which is the one at its return instruction.  A call
 * made within another of its family (calloc -> malloc) is absorbed: the outermost owns the block.  Calls
 * that were unwound past (longjmp, an exception) never return; they are dropped when the stack pointer
 * shows it.  A signal handler's calls are nobody's inner calls: a barrier marks where it came in. */
#ifndef ALLOCWATCH_PROBE_CALLS_H
#define ALLOCWATCH_PROBE_CALLS_H

#include "base/reader.h"

#include <stdbool.h>
#include <stdint.h>

/* Deeper nesting (handlers interrupting handlers inside allocator calls) drops the outermost. */
#define CALLS_MAX 32

struct probe;

struct call {
	const struct probe *probe;     /* NULL: a signal's barrier */
	raddr sp;
	uint64_t size;
	raddr old_address;
	raddr out_pointer;
	bool parked;                   /* a resize whose old block the heap has parked */
	bool interrupted;              /* by a signal: its inner calls may have been taken for the handler's */
};

struct calls {
	/* The free that came last, while nothing else did: operator delete may call free. */
	const struct probe *freeing;
	raddr freed, freed_sp;
	uint32_t count;
	struct call items[CALLS_MAX];
};

/* A call enters.  Returns the new pending call to fill in, or NULL when it is absorbed.  `continues`
 * says whether a call of `outer` may have become one of this probe by a tail jump.  Dropped calls that
 * had parked a block are handed to `dropped`. */
struct call *calls_enter(struct calls *calls, const struct probe *probe, raddr sp, uint64_t size,
			 bool (*continues)(const struct probe *outer, const struct probe *probe),
			 void (*dropped)(void *context, const struct call *call), void *context);
/* A return instruction with this stack pointer: true, and the call it ends, when one is pending. */
bool calls_leave(struct calls *calls, raddr sp, struct call *ret_call,
		 void (*dropped)(void *context, const struct call *call), void *context);
/* A free enters.  True when it is the doing of a call of the same family: of one that is pending, or of
 * another free function that was asked to free the same block and passes it on. */
bool calls_absorb_free(struct calls *calls, const struct probe *probe, raddr sp, raddr address);
/* A signal is about to be delivered to the thread, whose stack pointer was sp. */
void calls_signal(struct calls *calls, raddr sp);

#endif
