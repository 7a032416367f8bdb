/* The listening socket and its connections: who is let in, how many, and what becomes of a message. */
#ifndef ALLOCWATCH_DAEMON_SERVER_H
#define ALLOCWATCH_DAEMON_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

struct daemon;
struct server;

/* Takes over listen_fd.  changed: called when the number of clients has changed. */
int server_new(sd_event *event, int listen_fd, size_t max_clients, struct daemon *daemon,
	       void (*changed)(struct daemon *daemon), struct server **ret);
void server_free(struct server *server);               /* closes all connections */
void server_stop_listening(struct server *server);
/* Those that are there stay. */
void server_set_max_clients(struct server *server, size_t max_clients);
size_t server_client_count(const struct server *server);

#endif
