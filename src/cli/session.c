#include "cli/session.h"

#include "base/fd.h"

#include "cli/failure.h"
#include "cli/spawn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMM_MAX 64
#define QUICK_PATIENCE_S 90

static int adopt(struct session *ret_session, struct varlink_client *client, const char *path, bool shared)
{
	struct session session = { .client = client, .path = strdup(path), .shared = shared };

	if (!session.path) {
		varlink_client_close(client);
		return fail_memory();
	}
	varlink_client_set_patience(client, QUICK_PATIENCE_S);
	*ret_session = session;
	return EXIT_DONE;
}

static int open_named(const char *path, const char *origin, struct session *ret_session)
{
	struct varlink_client *client;
	int r = varlink_client_open(path, &client);

	if (r == 0)
		return adopt(ret_session, client, path, false);
	if (r == -ENOENT || r == -ECONNREFUSED)
		return fail("no daemon answers on %s (%s): %s; start one with 'allocwatchd --private --socket %s', "
			    "or leave that path out", path, origin, strerror(-r), path);
	if (r == -EAGAIN)
		return fail("the daemon on %s (%s) takes no connection: it is stopped, or hangs", path, origin);
	return fail("cannot connect to %s (%s): %s", path, origin, strerror(-r));
}

/* EXIT_DONE with ret_session->client NULL: none was asked for by name. */
static int open_asked_for(const struct options *options, struct session *ret_session)
{
	const char *path = getenv("ALLOCWATCH_SOCKET");

	memset(ret_session, 0, sizeof(*ret_session));
	if (options->socket)
		return open_named(options->socket, "given by --socket", ret_session);
	if (path && *path)
		return open_named(path, "given by ALLOCWATCH_SOCKET", ret_session);
	return EXIT_DONE;
}

/* EXIT_DONE with ret_session->client NULL: none runs. */
static int open_running_private(struct session *ret_session)
{
	struct varlink_client *client;
	char *path, *reason;
	int r;

	if (spawn_socket_path(false, &path, &reason) < 0) {
		free(reason);
		return EXIT_DONE;
	}
	r = varlink_client_open(path, &client);
	r = r == 0 ? adopt(ret_session, client, path, false) : EXIT_DONE;
	free(path);
	return r;
}

static int open_running(const struct options *options, struct session *ret_session)
{
	struct varlink_client *client;
	int r = open_asked_for(options, ret_session);

	if (r != EXIT_DONE || ret_session->client)
		return r;
	r = open_running_private(ret_session);
	if (r != EXIT_DONE || ret_session->client)
		return r;
	if (varlink_client_open(SYSTEM_SOCKET, &client) == 0)
		return adopt(ret_session, client, SYSTEM_SOCKET, true);
	return EXIT_DONE;
}

int session_open(const struct options *options, struct session *ret_session)
{
	int r = open_running(options, ret_session);

	if (r != EXIT_DONE || ret_session->client)
		return r;
	return fail("no daemon runs that serves you, neither your own nor the system's (%s), so nothing is "
		    "traced; 'allocwatch attach PID' starts one", SYSTEM_SOCKET);
}

int session_open_private(struct session *ret_session)
{
	struct varlink_client *client;
	char *path, *reason;
	int r;

	r = spawn_socket_path(true, &path, &reason);
	if (r == 0) {
		r = spawn_daemon(path, &client, &reason);
		if (r == 0)
			r = adopt(ret_session, client, path, false);
		else
			r = fail("cannot start a daemon on %s: %s", path, reason ? reason : strerror(-r));
		free(path);
	} else {
		r = fail("there is no safe place for a daemon's socket: %s; set XDG_RUNTIME_DIR, or TMPDIR, to a "
			 "folder of yours", reason ? reason : strerror(-r));
	}
	free(reason);
	return r;
}

/* Root's daemon serves all users, unless it is a private one on that socket. */
static bool permits_us(struct session *session)
{
	json_t *parameters = json_object(), *reply = NULL, *error = NULL;
	bool permits = true;

	if (parameters && varlink_client_call(session->client, "ListSnapshots", parameters, &reply, &error) < 0)
		permits = !session_error_is(error, "NotPermitted");
	json_decref(parameters);
	json_decref(reply);
	json_decref(error);
	return permits;
}

int session_open_or_start(const struct options *options, struct session *ret_session)
{
	int r = open_running(options, ret_session);

	if (r != EXIT_DONE || ret_session->client)
		return r;
	return session_open_private(ret_session);
}

int session_open_kept(const struct options *options, struct session *ret_session)
{
	int r = session_open_or_start(options, ret_session);

	if (r != EXIT_DONE || !ret_session->shared || permits_us(ret_session))
		return r;
	session_close(ret_session);
	return session_open_private(ret_session);
}

void session_close(struct session *session)
{
	varlink_client_close(session->client);
	free(session->path);
	memset(session, 0, sizeof(*session));
}

pid_t session_daemon(const struct session *session)
{
	pid_t pid = varlink_client_peer(session->client);
	char path[32], *name = NULL;
	bool is_it;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	is_it = pid > 0 && file_read_text(path, COMM_MAX, &name, NULL) == 0 && strcmp(name, "allocwatchd\n") == 0;
	free(name);
	return is_it ? pid : 0;
}

int session_fail_transport(const struct session *session, const char *what, int result)
{
	switch (result) {
	case -EPIPE:
		return fail("%s: the daemon on %s ended in the middle; run the command again, and look at its log "
			    "if that repeats", what, session->path);
	case -ETIMEDOUT:
		return fail("%s: the daemon on %s gives no answer: it is stopped, or hangs; its processes are let go when "
			    "it is killed (its PID is %d)", what, session->path,
			    (int)varlink_client_peer(session->client));
	case -EPROTO:
		return fail("%s: what answers on %s is no allocwatch daemon; name its socket with --socket", what,
			    session->path);
	case -EMSGSIZE:
		return fail("%s: the request is too long for the daemon; give fewer arguments", what);
	default:
		return fail("%s: the daemon on %s: %s", what, session->path, strerror(-result));
	}
}

int session_fail_stream(const struct session *session, const char *what, int result, json_t *error, const char *reason)
{
	if (error)
		return fail_remote(what, error);
	if (result == -ENOMEM)
		return fail_memory();
	if (result == -EBADMSG)
		return fail("%s: the daemon on %s sent a damaged answer%s%s%s; client and daemon may be of different versions",
			    what, session->path, reason ? " (" : "", reason ? reason : "", reason ? ")" : "");
	return session_fail_transport(session, what, result);
}

int session_stream(struct session *session, const char *method, json_t *parameters,
		   int (*each)(void *context, json_t *piece), void *context, json_t **ret_error)
{
	int r = -ENOMEM;

	*ret_error = NULL;
	varlink_client_set_patience(session->client, PATIENCE_S);
	if (parameters)
		r = varlink_client_stream(session->client, method, parameters, each, context, ret_error);
	json_decref(parameters);
	return r;
}

/* Longer than what the daemon itself waits for a tracer, and for the work on a large snapshot. */
static unsigned patience_s(const char *method)
{
	static const char *const quick[] = { "Attach", "Detach", "List", "ListSnapshots", "GetStatus", "Clear", "ResetPeak",
					     "RemoveSnapshots", "Watch", "Unwatch", "ListWatches", "GetHistory" };

	for (size_t i = 0; i < sizeof(quick) / sizeof(quick[0]); i++) {
		if (strcmp(method, quick[i]) == 0)
			return QUICK_PATIENCE_S;
	}
	return PATIENCE_S;
}

int session_try(struct session *session, const char *what, const char *method, json_t *parameters,
		json_t **ret_reply, json_t **ret_error)
{
	json_t *reply;
	int r;

	*ret_error = NULL;
	if (!parameters)
		return fail_memory();
	varlink_client_set_patience(session->client, patience_s(method));
	r = varlink_client_call(session->client, method, parameters, &reply, ret_error);
	json_decref(parameters);
	if (r == -EREMOTEIO)
		return EXIT_FAILED;
	if (r < 0)
		return session_fail_transport(session, what, r);
	if (ret_reply)
		*ret_reply = reply;
	else
		json_decref(reply);
	return EXIT_DONE;
}

int session_call(struct session *session, const char *what, const char *method, json_t *parameters,
		 json_t **ret_reply)
{
	json_t *error;
	int r = session_try(session, what, method, parameters, ret_reply, &error);

	if (error) {
		r = fail_remote(what, error);
		json_decref(error);
	}
	return r;
}

bool session_error_is(const json_t *error, const char *name)
{
	const char *text = json_string_value(json_object_get(error, "error"));
	const char *dot = text ? strrchr(text, '.') : NULL;

	return dot && strcmp(dot + 1, name) == 0;
}
