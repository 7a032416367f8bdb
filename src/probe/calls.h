/* The pending allocator calls of one thread, innermost last.  Pure.
 *
 * A call is known by the stack pointer at its entry, which is the one at its return instruction.  It is pending until
 * it returns, or until it is seen that it never will: it was unwound past (longjmp, an exception), or its thread
 * ended.  Which of them still stand is asked of the stack, by `standing`, and only when something is pending that
 * should not be: one call within another, a call after a signal, a call beside one that was left.
 *
 * A call made within another of its family (calloc -> malloc, a wrapper -> the real one) is held until the outer one
 * returns.  When the outer one's result lies in its block the two are one block, the outer's; else it is a block of its
 * own, which the outer call (a hook, a wrapper's log) has made for itself.  A signal handler's calls are nobody's inner
 * calls: a barrier marks where it came in.
 *
 * A free returns nothing, and its end is not seen: it stays in the list as long as it may be going on, so that the free
 * that a wrapper or operator delete calls is known to be its own. */
#ifndef ALLOCWATCH_PROBE_CALLS_H
#define ALLOCWATCH_PROBE_CALLS_H

#include "base/reader.h"

#include <stdbool.h>
#include <stdint.h>

/* Beyond that the oldest frees go, then handlers beside others; deeper nesting of calls that allocate (handlers interrupting
 * handlers inside them) drops the outermost. */
#define CALLS_MAX 32
/* More blocks made within one call stand on their own at once. */
#define CALLS_HELD_MAX 8

struct probe;

enum call_kind { CALL_ALLOCATES, CALL_FREES, CALL_SIGNAL };

enum call_standing {
	CALL_UNKNOWN,                  /* the stack cannot be read so far: then its pointer alone decides */
	CALL_STANDS,                   /* it is among the callers of the present call */
	CALL_INTERRUPTED,              /* likewise, but the present call is made in the handler of a signal */
	CALL_SUSPENDED,                /* it is on another stack, a coroutine's, and may go on there */
	CALL_LEFT,                     /* its frame is gone */
};

struct call {
	enum call_kind kind;
	enum call_standing standing;   /* when it was last looked at */
	const struct probe *probe;     /* NULL: a signal's barrier */
	raddr sp;
	raddr bp;                      /* the frame pointer at its entry, to find its callers */
	raddr outer_sp;                /* of the call that it was made within; 0: none */
	uint64_t size;
	raddr old_address;
	raddr out_pointer;
	uint64_t old_size;             /* of a mapping, from old_address on */
	bool replaces;                 /* likewise: what is mapped in its place goes */
	bool internal;                 /* likewise: an allocator makes it for itself */
	bool parked;                   /* a resize whose old block the heap has parked */
	bool unsampled;                /* what it makes is not told */
	bool interrupted;              /* by a signal: its inner calls may have been taken for the handler's */
};

/* The result of a call within a call that has not returned yet. */
struct held_block {
	raddr owner_sp;                /* of the outer call */
	raddr address;
	uint64_t size;
	uint32_t stack, domain;
};

/* The call that returned last, until the next one enters or returns. */
struct last_call {
	enum last_result { LAST_NONE, LAST_WITHOUT_BLOCK, LAST_HELD, LAST_BORN } result;
	struct call call;
	raddr address;
	bool had_inner;                /* a block that was held, and that the result lies in */
	struct held_block inner;
};

struct calls {
	struct last_call last;
	uint32_t count;
	uint32_t held_count;
	struct call items[CALLS_MAX];
	struct held_block held[CALLS_HELD_MAX];
};

/* What must be asked of others. */
struct calls_eyes {
	/* Whether a call of `outer` may have become one of this probe by a tail jump. */
	bool (*continues)(const struct probe *outer, const struct probe *probe);
	enum call_standing (*standing)(void *context, const struct call *call);
	/* Nothing says where a call stands that allocates, and the stack pointers were gone by.  NULL: it does not matter. */
	void (*guessed)(void *context);
	/* A call that had parked a block will not return. */
	void (*abandoned)(void *context, const struct call *call);
	/* A block that was held is one of its own. */
	void (*kept)(void *context, const struct held_block *block);
	void *context;
};

/* A call enters.  Returns the new pending call to fill in, with `outer_sp` set, or NULL when a pending one goes on in
 * it by a tail jump. */
struct call *calls_enter(struct calls *calls, const struct probe *probe, raddr sp, uint64_t size,
			 const struct calls_eyes *eyes);
/* The call at sp, which came last, has not entered after all. */
void calls_unenter(struct calls *calls, const struct probe *probe, raddr sp, const struct calls_eyes *eyes);
/* A return instruction with this stack pointer: true, and the call it ends, when one is pending. */
bool calls_leave(struct calls *calls, raddr sp, struct call *ret_call, const struct calls_eyes *eyes);
/* It has not returned after all, since a signal came before its return instruction was run: it is pending again.  False:
 * that cannot be.  What was held for its outer call is no more; a block that was born (*ret_last) is the caller's to
 * take back. */
bool calls_take_back(struct calls *calls, raddr sp, struct last_call *ret_last, const struct calls_eyes *eyes);
/* The result of a call that has returned (0: none): settles what was held for it. */
void calls_settle(struct calls *calls, const struct call *call, raddr result, const struct calls_eyes *eyes);
/* Holds a block until the outer call returns.  False: it stands on its own. */
bool calls_hold(struct calls *calls, const struct held_block *block);
/* Whether the call was made within a resize of this block. */
bool calls_resizes(const struct calls *calls, const struct call *within, raddr address);

/* Whether the probe's function, which is called now, is called by one of this family that goes on, and in no handler of a
 * signal. */
bool calls_are_within(struct calls *calls, uint32_t family, const struct probe *probe, raddr sp,
		      const struct calls_eyes *eyes);

/* A free enters; live: the heap has the block.  False when it is the doing of another call: of one that is pending,
 * or of another free function that passes it on. */
bool calls_free(struct calls *calls, const struct probe *probe, raddr sp, raddr bp, raddr address, bool live,
		const struct calls_eyes *eyes);
/* A signal is about to be delivered to the thread, whose stack pointer was sp. */
void calls_signal(struct calls *calls, raddr sp, const struct calls_eyes *eyes);
/* The thread has ended. */
void calls_end(struct calls *calls, const struct calls_eyes *eyes);
/* What of it is of the probe's family, and all that does not allocate, is over. */
void calls_end_family(struct calls *calls, const struct probe *probe, const struct calls_eyes *eyes);
/* How many allocating calls have not returned. */
uint32_t calls_pending(const struct calls *calls);

#endif
