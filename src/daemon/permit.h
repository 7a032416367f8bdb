/* Who may ask this daemon: its own user and root. */
#ifndef ALLOCWATCH_DAEMON_PERMIT_H
#define ALLOCWATCH_DAEMON_PERMIT_H

#include "daemon/call.h"

#include <stdbool.h>

bool permit_peer(uid_t uid);
/* Answers a call of somebody who may not ask with NotPermitted, reason and remedy; pid 0: none. */
void permit_refuse(struct call *call, int pid);

#endif
