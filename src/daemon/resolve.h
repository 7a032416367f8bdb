/* From what a client writes for a snapshot (an id "s17", "PID:NAME", or a PID) to the snapshot itself,
 * with its names.  A PID is a fresh one of a live process, else the last one kept of it. */
#ifndef ALLOCWATCH_DAEMON_RESOLVE_H
#define ALLOCWATCH_DAEMON_RESOLVE_H

#include "daemon/call.h"
#include "model/snapshot.h"

/* `got` is told once, at once or later.  The snapshot's reference is the receiver's; NULL: there is
 * none, and the call is answered with the error right after, so it is only for giving up what
 * belongs to context. */
void resolve_snapshot(struct call *call, const char *snap,
		      void (*got)(void *context, struct snapshot *snapshot), void *context);

#endif
