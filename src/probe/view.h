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

struct view {
	bool looked;
	struct probe *const *probes;           /* all of the process */
	size_t probe_count;
	struct unwinder *unwinder;
	const struct reader *reader;
	struct chain chain;                    /* from the present call outwards */
};

/* regs: pc is exact. */
void view_look(struct view *view, struct unwinder *unwinder, const struct reader *reader,
	       const struct arch_regs *regs);
enum call_standing view_standing(const struct view *view, const struct call *call);

#endif
