/* What was seen of a thread at an entry or a return of an allocator function, and what becomes of it: pending calls and
 * events.  The same for every engine: it knows neither stops nor where the registers and the stack come from. */
#ifndef ALLOCWATCH_PROBE_SERVE_H
#define ALLOCWATCH_PROBE_SERVE_H

#include "probe/calls.h"
#include "probe/engine_private.h"
#include "probe/view.h"

#define SIGHTING_ARGS ALLOCATOR_ARGUMENTS_MAX

struct sighting {
	int32_t tid;                   /* 0: not known, it has ended */
	uint64_t word;                 /* of one that stopped: what it would say of itself in a record */
	struct calls *calls;           /* the thread's; NULL: it has none, or there is no memory for them */
	unsigned kinds;                /* enum site_kind */
	const struct probe *probe;     /* of an entry */
	uint32_t sp_below;             /* there: how much lower the stack pointer is than at the function's start */
	struct arch_regs regs;         /* pc is exact */
	uint64_t args[SIGHTING_ARGS];  /* of an entry; [0] of a jump that ends a function */
	uint64_t result;               /* of a return */
	bool stored;                   /* and it is what the call has stored, and 0 was returned */
	const struct reader *reader;   /* the stack */
	/* The caller's stack at a return, unwound as at the entry of the function at this address; NULL: by registers and reader. */
	uint32_t (*stack)(void *context, raddr function);
	void *stack_context;
	bool unsampled;                /* of an entry: what it makes is no sample, only its old block may be */
	bool nested;                   /* and it is within a call that was passed over, so its return comes unseen */
	bool recorded;                 /* by the ring engine: of the stack no more is known than the reader has */
	bool is_blind;                 /* and that is the return address */
	raddr stack_start;             /* of a recorded one that is not blind: see struct view */
	uint64_t time_ns;              /* CLOCK_MONOTONIC; 0: now */
};

struct serving {
	struct engine *engine;
	const struct sighting *seen;
	struct calls_eyes eyes;
	struct view view;
};

/* Both outlive it. */
void serving_init(struct serving *serving, struct engine *engine, const struct sighting *seen);

void serve_entry(struct serving *serving);
void serve_return(struct serving *serving);
/* An event of this thread's, at the time at which it was seen: both are filled in. */
void serve_emit(struct engine *engine, const struct sighting *seen, struct alloc_event *event);
/* The stack of a call that returns now. */
uint32_t serve_caller_stack(struct engine *engine, const struct call *call, const struct sighting *seen);
/* The block that the thread's last call has made has not been given to anybody after all. */
void serve_unborn(struct serving *serving, const struct last_call *last);

#endif
