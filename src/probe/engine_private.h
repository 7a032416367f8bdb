/* The int3 engine's parts: engine_sites.c (where its breakpoints stand), engine_int3.c (who stops there), serve.c (what that
 * means). */
#ifndef ALLOCWATCH_PROBE_ENGINE_PRIVATE_H
#define ALLOCWATCH_PROBE_ENGINE_PRIVATE_H

#include "probe/engine.h"
#include "probe/plan.h"
#include "probe/probe.h"

/* What stands behind one breakpoint. */
struct site {
	unsigned kinds;                    /* enum site_kind */
	struct probe *probe;               /* of an entry */
	uint32_t sp_below;                 /* there: how much lower the stack pointer is than at the function's start */
};

struct planned_module {
	uint32_t module;
	bool installed;
	struct plan plan;
};

struct engine {
	struct target *target;
	struct unwinder *unwinder;
	struct engine_sink sink;
	struct reader reader;
	uint32_t max_frames;
	struct described *described;
	uint32_t blurred;                  /* forms of functions that are several in one: what they make cannot be told apart */
	VEC_OF(struct planned_module *) plans;
	VEC_OF(struct probe *) probes;
	struct engine_counters counters;
	char refusal[256];
};

#endif
