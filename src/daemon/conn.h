/* One client's connection: its bytes, its one call at a time, its patience.
 *
 * Nothing is read while a call is being answered or an answer waits to be taken, so a flooding or
 * sleeping client holds one bounded buffer each way and nobody else. */
#ifndef ALLOCWATCH_DAEMON_CONN_H
#define ALLOCWATCH_DAEMON_CONN_H

#include "daemon/call.h"

#include <systemd/sd-event.h>

struct conn_owner {
	void *context;
	/* A message came: makes a call of it with conn_begin().  False: the connection is given up. */
	bool (*message)(void *context, struct conn *conn, json_t *message);
	/* The connection is about to be freed. */
	void (*closed)(void *context, struct conn *conn);
};

/* Takes over sock in any case. */
int conn_new(sd_event *event, int sock, const struct peer *peer, bool stranger,
	     const struct conn_owner *owner, struct conn **ret);
void conn_close(struct conn *conn);
bool conn_is_stranger(const struct conn *conn);
uid_t conn_uid(const struct conn *conn);

/* A new call that this connection waits for; NULL when there is no memory.  parameters is borrowed. */
struct call *conn_begin(struct conn *conn, struct daemon *daemon, json_t *parameters, bool more,
			bool oneway);
/* For call.c: appends a message to what is sent, takes over `text`; and the end of the call. */
int conn_send(struct conn *conn, char *text, size_t len);
void conn_end(struct conn *conn);
/* Sends what there is and closes: for refusing a client. */
void conn_close_after_output(struct conn *conn);

#endif
