/* Where metrics are served by HTTP: "127.0.0.1:9772", "[::1]:9772", "9772" (of the loopback), "/path" (a Unix socket),
 * "none".  Names are not looked up. */
#ifndef ALLOCWATCH_DAEMON_METRICS_ADDRESS_H
#define ALLOCWATCH_DAEMON_METRICS_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

#define METRICS_NOWHERE "none"

struct metrics_address {
	struct sockaddr_storage address;
	socklen_t len;                 /* 0: nowhere */
	bool loopback;                 /* nobody else's machine reaches it */
};

/* -EINVAL: it is none. */
int metrics_address_parse(const char *text, struct metrics_address *ret);
/* A listening socket.  A Unix socket that nobody listens on any more is replaced; everybody may connect.  Negative errno. */
int metrics_address_listen(const struct metrics_address *address);
/* Removes a Unix socket that was made. */
void metrics_address_remove(const struct metrics_address *address);

#endif
