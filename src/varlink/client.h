/* A blocking Varlink client: what allocwatch(1) and the tests speak to the daemon with.
 * See varlink.org; messages are JSON objects, each ended by a NUL byte, at most 1 MiB. */
#ifndef ALLOCWATCH_VARLINK_CLIENT_H
#define ALLOCWATCH_VARLINK_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

struct varlink_client;

/* Connects to an AF_UNIX stream socket; 0 or negative errno.  -EAGAIN: who listens there takes nobody, by
 * VARLINK_CONNECT_SECONDS. */
#define VARLINK_CONNECT_SECONDS 20
int varlink_client_open(const char *path, struct varlink_client **ret_client);
void varlink_client_close(struct varlink_client *client);        /* accepts NULL */
/* A blocking call fails with -ETIMEDOUT when nothing comes, or can be sent, for so long; 0, the default: never. */
void varlink_client_set_patience(struct varlink_client *client, unsigned seconds);
/* The process that listens for whoever answers; 0: it cannot be told. */
pid_t varlink_client_peer(const struct varlink_client *client);

/* Calls "org.allocwatch.Tracer.<method>" (or a method with its interface, when it has a dot) and
 * waits for the answer.  parameters is borrowed and may be NULL.  0: *ret_reply holds the reply's
 * parameters.  -EREMOTEIO: a typed error; *ret_error holds {"error": ..., "parameters": {...}}.
 * Else negative errno (-EPIPE: the daemon closed, -EPROTO: it does not speak Varlink).  The caller
 * owns what is returned.  After any negative errno but -EREMOTEIO and -EMSGSIZE (the call was too
 * large and is not sent) the connection cannot be used further. */
int varlink_client_call(struct varlink_client *client, const char *method, json_t *parameters,
			json_t **ret_reply, json_t **ret_error);
/* The same with `more`: each reply's parameters go to `each` (borrowed); a negative return ends it and
 * is returned; close the connection then, the rest of the stream is still in it. */
int varlink_client_stream(struct varlink_client *client, const char *method, json_t *parameters,
			  int (*each)(void *context, json_t *reply), void *context,
			  json_t **ret_error);

/* The same in steps, for who has other things to wait for, one call at a time.  begin sends the call;
 * take never waits: -EAGAIN until a reply has arrived wholly (poll the descriptor for input then), 1: one
 * of a stream, another follows, 0: the last; else as varlink_client_call(). */
int varlink_client_begin(struct varlink_client *client, const char *method, json_t *parameters, bool more);
int varlink_client_take(struct varlink_client *client, json_t **ret_reply, json_t **ret_error);
int varlink_client_descriptor(const struct varlink_client *client);

#endif
