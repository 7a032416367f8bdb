/* On which CPU the tracer runs.  A stop costs a fifth when tracer and thread share one (5 us against 25 us):
 * nothing has to be woken on another core.  So the tracer follows the thread that stops, as long as it is
 * one; with several it goes where the scheduler puts it.  The target's own placement is never touched. */
#ifndef ALLOCWATCH_TRACER_PLACEMENT_H
#define ALLOCWATCH_TRACER_PLACEMENT_H

#include "target/target.h"

#include <stdbool.h>

struct placement {
	unsigned stops;
	unsigned changes;              /* of the thread that stops, since the last look */
	pid_t last_tid;
	int cpu;                       /* pinned to, when `pinned` */
	bool pinned;
	bool off;                      /* ALLOCWATCH_PLACEMENT says so, or it is not possible */
	bool read_environment;
};

/* Notes a stop that was served. */
void placement_note(struct placement *placement, const struct target *target, const struct task *task);
/* For a forked child with work of its own: it shall not stay on the CPU of the target's thread. */
void placement_release(void);

#endif
