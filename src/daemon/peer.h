/* Who is at the other end of a connection, by the kernel's word. */
#ifndef ALLOCWATCH_DAEMON_PEER_H
#define ALLOCWATCH_DAEMON_PEER_H

#include "tracer/wire.h"

#include <stdint.h>
#include <sys/types.h>

struct peer {
	uid_t uid;
	gid_t gid;
	uint32_t group_count;          /* supplementary ones; of more than there is room for some are not used */
	uint32_t groups[WIRE_GROUPS_MAX];
};

/* As they were when it connected.  0 or negative errno. */
int peer_of(int sock, struct peer *ret_peer);

#endif
