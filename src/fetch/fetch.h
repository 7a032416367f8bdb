/* Debug information from the servers of debuginfod(8), by elfutils' libdebuginfod. */
#ifndef ALLOCWATCH_FETCH_FETCH_H
#define ALLOCWATCH_FETCH_FETCH_H

#include "fetch/wire.h"

#include <stdbool.h>

/* Into a folder of its own below `folder`, which is gone again when this returns; one that a fetcher of
 * this user has left, since it was killed, goes before.  cancelled: asked at least once a second;
 * true ends it (-ECANCELED).  A descriptor of the file, or what struct fetch_answer says; -EREMOTE: the folder may be on a
 * file system that does not answer. */
int fetch_debuginfo(const struct fetch_request *request, const char *folder, bool (*cancelled)(void));

#endif
