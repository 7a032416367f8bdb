/* The tracer's one loop: the next stop, the next message. */
#ifndef ALLOCWATCH_TRACER_LOOP_H
#define ALLOCWATCH_TRACER_LOOP_H

#include "tracer/link.h"

struct session;

/* session: one whose tasks are held, or NULL: it comes with a message.  Frees it.  Runs until there is nothing left to
 * trace, the daemon is gone or a signal asks to end.  Returns the exit status of the tracer. */
int loop_run(struct link *link, struct session *session);

#endif
