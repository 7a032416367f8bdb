/* What others have to do with a process that is attached to: what they have left in it, and whether they have it still. */
#ifndef ALLOCWATCH_TRACER_OTHERS_H
#define ALLOCWATCH_TRACER_OTHERS_H

#include "tracer/session.h"

#include <stdbool.h>

/* A tracer that died has left its breakpoints there, and the handler that serves them.  Another healer may be at it, or come first:
 * that of another daemon, or one that was called by hand.  What cannot be taken out is told to the daemon. */
void others_heal(struct session *session);
/* Its tracer is alive, though the kernel knows of none, or of us alone: another daemon traces it without ptrace.  The modules were
 * scanned.  That stays as it is once all threads are seized. */
bool others_trace(struct target *target);

#endif
