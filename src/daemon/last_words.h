/* Snapshots that a tracer sends by itself: at its target's end, exec and detach. */
#ifndef ALLOCWATCH_DAEMON_LAST_WORDS_H
#define ALLOCWATCH_DAEMON_LAST_WORDS_H

#include "daemon/session.h"

/* For sessions_owner.image; context: the daemon. */
void last_words_take(void *daemon, struct session *session, enum wire_snapshot_reason reason, int *fd);

#endif
