/* One question to a fetcher (src/fetch), from its start to its answer. */
#ifndef ALLOCWATCH_DAEMON_DEBUGINFO_FETCH_H
#define ALLOCWATCH_DAEMON_DEBUGINFO_FETCH_H

#include "fetch/wire.h"

#include <systemd/sd-event.h>

struct debuginfo_fetch;

/* program, service: as in debuginfo.h.  done is called once, from the event loop: a descriptor, which is the callee's, or negative
 * errno.  Negative errno: not begun. */
int debuginfo_fetch_begin(sd_event *event, const char *program, const char *service, const struct fetch_request *request,
			  void (*done)(void *context, int fd), void *context, struct debuginfo_fetch **ret);
/* Gives it up, if it is not done; accepts NULL. */
void debuginfo_fetch_free(struct debuginfo_fetch *fetch);

#endif
