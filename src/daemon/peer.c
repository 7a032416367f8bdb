#define _GNU_SOURCE              /* struct ucred */
#include "daemon/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#define ALL_GROUPS_MAX 65536           /* the kernel's own limit on groups of a process */

/* The option is not answered in part: all of them are asked for. */
static int read_groups(int sock, struct peer *peer)
{
	socklen_t len = ALL_GROUPS_MAX * sizeof(gid_t);
	gid_t *groups = malloc(len);

	if (!groups)
		return -ENOMEM;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, groups, &len) < 0)
		len = 0;               /* then none are used */
	for (size_t i = 0; i < len / sizeof(gid_t) && peer->group_count < WIRE_GROUPS_MAX; i++)
		peer->groups[peer->group_count++] = groups[i];
	free(groups);
	return 0;
}

int peer_of(int sock, struct peer *ret_peer)
{
	struct ucred cred = { .uid = (uid_t)-1, .gid = (gid_t)-1 };
	socklen_t len = sizeof(cred);
	struct peer peer = { 0 };
	int r;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	/* What this daemon's user namespace does not know is nobody's. */
	if (cred.uid == (uid_t)-1 || cred.gid == (gid_t)-1)
		return -EPERM;
	peer.uid = cred.uid;
	peer.gid = cred.gid;
	r = read_groups(sock, &peer);
	if (r == 0)
		*ret_peer = peer;
	return r;
}
