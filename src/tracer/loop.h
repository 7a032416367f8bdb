/* The tracer's one loop: the next stop, the next message. */
#ifndef ALLOCWATCH_TRACER_LOOP_H
#define ALLOCWATCH_TRACER_LOOP_H

#include "tracer/link.h"

/* Runs until there is nothing left to trace, the daemon is gone or a signal asks to end. */
void loop_run(struct link *link);

#endif
