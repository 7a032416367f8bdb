/* One method call of a client: from the message until its last reply.
 *
 * A handler gets the call and ends it with exactly one call_reply(), call_error() or call_drop(), at
 * once or later; the call is then gone.  When the client has left meanwhile, the answer goes
 * nowhere.  A connection has one call at a time, so calls are bounded by CLIENTS_MAX. */
#ifndef ALLOCWATCH_DAEMON_CALL_H
#define ALLOCWATCH_DAEMON_CALL_H

#include "daemon/peer.h"

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

struct conn;
struct daemon;

struct call {
	struct conn *conn;         /* NULL: the client is gone */
	struct daemon *daemon;
	json_t *parameters;        /* an object, checked against the method's table */
	bool more, oneway;
	bool reads;                /* its method changes nothing */
	struct peer peer;
	/* The handler's: */
	void *context;
	/* Streams: makes the next reply; called whenever the client has taken what there was. */
	void (*pull)(struct call *call);
	/* Told once when the client is gone; may end the call at once.  NULL: nothing. */
	void (*abandoned)(struct call *call);
};

/* The only and last reply, or the last of a stream.  parameters is taken over; NULL (no memory, as
 * from json_pack) makes it an error, and so does one that is too large for a message. */
void call_reply(struct call *call, json_t *parameters);
/* A reply that others follow.  0; -EMSGSIZE: too large, nothing was sent; -ENOMEM; -EPIPE: the
 * client is gone.  The call lives on. */
int call_reply_part(struct call *call, json_t *parameters);
/* Like call_reply(), but says -EMSGSIZE instead of an error; the call then lives on. */
int call_try_reply(struct call *call, json_t *parameters);
/* error: a name of org.allocwatch.Tracer's, or one with its interface.  parameters may be NULL. */
void call_error(struct call *call, const char *error, json_t *parameters);
/* Ends a call whose client is gone or was told enough. */
void call_drop(struct call *call);

#endif
