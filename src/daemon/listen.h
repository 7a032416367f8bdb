/* Where the listening socket comes from: systemd, or an own one at a path.
 *
 * An own one is locked against a second daemon (PATH.running, held as long as the process lives), a
 * socket that a dead daemon left is removed, and its folder must be one where nobody else could
 * put another in its place.  Where root's daemon serves all, everybody may connect. */
#ifndef ALLOCWATCH_DAEMON_LISTEN_H
#define ALLOCWATCH_DAEMON_LISTEN_H

#include <stdbool.h>
#include <sys/types.h>

struct listen {
	int fd;                /* the owner takes it by setting -1 */
	int metrics_fd;        /* systemd's for metrics by HTTP, named "metrics", whatever the path; -1: none; the same */
	char *address;         /* for people and for type List's "daemon" */
	/* of an own one */
	char *path;            /* NULL: systemd's */
	int lock_fd;
	dev_t device;
	ino_t inode;
};

/* path: NULL: systemd's, or the place where clients of this user look for it.  0, or negative errno with
 * *ret_reason (to be freed, NULL without memory). */
int listen_open(const char *path, bool private_daemon, struct listen *ret, char **ret_reason);
/* Removes an own socket, if it still is that. */
void listen_close(struct listen *listen);

#endif
