/* allocwatch-tracer: traces one process tree for the daemon, which starts it with a socket as descriptor 3. */
#include "tracer/link.h"
#include "tracer/loop.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define DAEMON_SOCKET 3

int main(void)
{
	struct link *link;
	socklen_t len = sizeof(int);
	int type, r;

	if (getsockopt(DAEMON_SOCKET, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_SEQPACKET) {
		fprintf(stderr, "allocwatch-tracer is started by allocwatchd; use allocwatch(1)\n");
		return 2;
	}
	r = link_new(DAEMON_SOCKET, &link);
	if (r < 0) {
		fprintf(stderr, "allocwatch-tracer: cannot start: %s\n", strerror(-r));
		return 1;
	}
	loop_run(link);
	link_free(link);
	return 0;
}
