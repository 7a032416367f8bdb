/* What the stack says of pending calls, seen from one stop of their thread. */
#ifndef ALLOCWATCH_PROBE_VIEW_H
#define ALLOCWATCH_PROBE_VIEW_H

#include "probe/calls.h"
#include "unwind/unwind.h"

#include <stddef.h>

struct probe;

struct chain {
	struct unwind_frame frames[UNWIND_CHAIN_MAX];
	uint32_t count;
	bool whole;
};

/* Where the kernel's frame stands that brings back the one of this number, which was interrupted: the code that ends a handler finds it
 * behind its first word. */
static inline raddr view_signal_frame(const struct chain *chain, uint32_t number)
{
	return chain->frames[number - 1].sp - sizeof(uint64_t);
}

struct view {
	bool looked;
	struct probe *const *probes;           /* all of the process */
	size_t probe_count;
	struct unwinder *unwinder;
	const struct reader *reader;
	struct chain chain;                    /* from the present call outwards */
	bool recorded;                         /* by the ring engine: what is not in the piece of stack that came with it has gone
						* on since */
	raddr stack_start;                     /* then: the lowest address of that stack; UINT64_MAX: not known */
};

/* Whether a return address is in the code of a function or a part of it. */
bool view_returns_to(const struct probe *probe, raddr return_address);

/* regs: pc is exact. */
void view_look(struct view *view, struct unwinder *unwinder, const struct reader *reader,
	       const struct arch_regs *regs);
enum call_standing view_standing(const struct view *view, const struct call *call);

#endif
