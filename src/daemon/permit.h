/* Who may ask this daemon, and who sees what.
 *
 * A daemon answers its own user and root.  The one that root runs for all answers everybody: who is not root traces
 * there what the kernel would let them trace without it, for their tracer becomes them before it looks at
 * anything, and sees only what is theirs.  Members of the group READERS_GROUP see what root has had traced, too, and
 * change nothing of it. */
#ifndef ALLOCWATCH_DAEMON_PERMIT_H
#define ALLOCWATCH_DAEMON_PERMIT_H

#include "daemon/call.h"
#include "daemon/daemon.h"
#include "daemon/session.h"
#include "tracer/wire.h"

#include <stdbool.h>

#define READERS_GROUP "allocwatch"

/* The group of that name; (gid_t)-1: there is none. */
gid_t permit_readers(void);
bool permit_peer(const struct daemon *daemon, uid_t uid);
/* Answers a call of somebody who may not ask with NotPermitted, reason and remedy; pid 0: none. */
void permit_refuse(struct call *call, int pid);

/* Whose the sessions and snapshots are that this call makes. */
uid_t permit_owner(const struct call *call);
/* For what is kept. */
struct viewer permit_viewer(const struct call *call);
/* Rules are the daemon's own user's; permit_viewer() says who may read of them. */
bool permit_sees_rules(const struct call *call);
bool permit_sees(const struct call *call, uid_t owner);
/* The session of a process, as far as this peer sees it; else NULL. */
struct session *permit_session(const struct call *call, int pid);
/* Whom the tracer has to become. */
void permit_name_owner(const struct call *call, struct wire_attach *message);

#endif
