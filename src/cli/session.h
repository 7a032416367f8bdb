/* A connection to a daemon: which one, and how a private one is started.
 *
 * Which: --socket, else ALLOCWATCH_SOCKET, else the user's private one if it runs, else the
 * system's, else (where allowed) a private one is started.  The functions say on stderr what
 * failed and return an exit status. */
#ifndef ALLOCWATCH_CLI_SESSION_H
#define ALLOCWATCH_CLI_SESSION_H

#include "cli/options.h"
#include "varlink/client.h"

#include <sys/types.h>

#define SYSTEM_SOCKET "/run/allocwatch/allocwatch.sock"

struct session {
	struct varlink_client *client;
	char *path;             /* of the socket */
	bool shared;            /* the system's daemon, not asked for by name */
};

/* Fails when no daemon runs. */
int session_open(const struct options *options, struct session *ret_session);
/* Starts a private daemon when none runs. */
int session_open_or_start(const struct options *options, struct session *ret_session);
/* For kept snapshots, which lie on disk whether a daemon runs or not: the same, and a system's daemon that
 * does not serve this user is passed over. */
int session_open_kept(const struct options *options, struct session *ret_session);
/* Passes over the system's daemon, which has refused. */
int session_open_private(struct session *ret_session);
void session_close(struct session *session);
/* The daemon's process; 0: not known, or another program listens for it (systemd). */
pid_t session_daemon(const struct session *session);

/* Calls a method and says "what: why" when it fails.  parameters is taken over and may be NULL (as
 * json_pack returns it without memory); ret_reply may be NULL. */
int session_call(struct session *session, const char *what, const char *method, json_t *parameters,
		 json_t **ret_reply);
/* The same, but a typed error is handed out in *ret_error and nothing is said; the return value is
 * then EXIT_FAILED. */
int session_try(struct session *session, const char *what, const char *method, json_t *parameters,
		json_t **ret_reply, json_t **ret_error);
/* Is this error "org.allocwatch.Tracer.<name>"? */
bool session_error_is(const json_t *error, const char *name);

/* For each reply of a daemon that has much to do. */
#define PATIENCE_S 600
/* An answer in pieces: each goes to `each`, whose negative return ends it.  parameters is taken over, NULL: no memory.
 * 0 or a negative errno, which session_fail_stream() tells; *ret_error is the caller's. */
int session_stream(struct session *session, const char *method, json_t *parameters,
		   int (*each)(void *context, json_t *piece), void *context, json_t **ret_error);
/* Says "what: why" of that result.  reason: what was wrong with the pieces (-EBADMSG), NULL: not known.  EXIT_FAILED. */
int session_fail_stream(const struct session *session, const char *what, int result, json_t *error, const char *reason);
/* A negative errno of varlink_client_call() and its like, but -EREMOTEIO, told; EXIT_FAILED. */
int session_fail_transport(const struct session *session, const char *what, int result);

#endif
