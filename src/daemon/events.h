/* What happens, told to who has subscribed: processes that are traced from now on or no more, snapshots that are kept,
 * limits that are reached.
 *
 * Each subscriber is told what it may see, as `List` shows it, and has a queue of EVENTS_QUEUED_MAX.  One that reads
 * slowly is told how many it has missed; nobody waits for it, and one user's events take no room from another's. */
#ifndef ALLOCWATCH_DAEMON_EVENTS_H
#define ALLOCWATCH_DAEMON_EVENTS_H

#include "daemon/call.h"
#include "daemon/session.h"
#include "daemon/snapshots.h"

#include <stddef.h>
#include <stdint.h>

struct events;

int events_new(struct events **ret);
/* No subscriber may be left. */
void events_free(struct events *events);
size_t events_subscribers(const struct events *events);

/* Takes the call over and tells it that it is subscribed.  session: only what concerns this process, until it is no
 * longer traced; NULL: all that its peer may see, until it leaves.  0, -ENOMEM. */
int events_subscribe(struct events *events, struct call *call, const struct session *session);

void events_attached(struct events *events, const struct session *session);
void events_ended(struct events *events, const struct session *session, const struct ending *ending);
void events_kept(struct events *events, const struct kept *kept);
/* limit: its name as in the error LimitReached; message: for a person.  Of a process (pid, start_time) or of none (0). */
void events_limit(struct events *events, uid_t owner, int pid, uint64_t start_time, const char *limit,
		  const char *message);

#endif
