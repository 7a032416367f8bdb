/* What a tracer knows, kept when its daemon is gone or hangs: in a file that the daemon has made beforehand in its own
 * folder, so that no right to that folder is needed, and no name is looked up. */
#ifndef ALLOCWATCH_TRACER_REFUGE_H
#define ALLOCWATCH_TRACER_REFUGE_H

#include "tracer/session.h"

/* Takes *fd over, in the place of one it has. */
void refuge_take(struct session *session, int *fd);
/* Stores an image there: with its blocks when there is room for them (REFUGE_BYTES_MAX).  Nothing is left there when it
 * cannot be written, which is said on stderr, and nothing is written when the daemon has taken the file away: then it has
 * heard all. */
void refuge_store(struct session *session);

#endif
