#define _GNU_SOURCE              /* struct ucred */
#include "varlink/client.h"

#include "base/fd.h"
#include "varlink/framing.h"
#include "varlink/interface.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define METHOD_NAME_MAX 256

struct varlink_client {
	int sock;
	struct varlink_input input;
};

static void set_timeout(int sock, int option, unsigned seconds)
{
	const struct timeval timeout = { .tv_sec = (time_t)seconds };

	setsockopt(sock, SOL_SOCKET, option, &timeout, sizeof(timeout));
}

static int connect_unix(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int sock, r;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -errno;
	set_timeout(sock, SO_SNDTIMEO, VARLINK_CONNECT_SECONDS);
	while (connect(sock, (struct sockaddr *)&address, sizeof(address)) < 0) {
		if (errno == EINTR)
			continue;
		r = -errno;
		close(sock);
		return r;
	}
	set_timeout(sock, SO_SNDTIMEO, 0);
	return sock;
}

void varlink_client_set_patience(struct varlink_client *client, unsigned seconds)
{
	set_timeout(client->sock, SO_RCVTIMEO, seconds);
	set_timeout(client->sock, SO_SNDTIMEO, seconds);
}

pid_t varlink_client_peer(const struct varlink_client *client)
{
	struct ucred peer = { .pid = 0 };
	socklen_t len = sizeof(peer);

	return getsockopt(client->sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 ? peer.pid : 0;
}

int varlink_client_open(const char *path, struct varlink_client **ret_client)
{
	struct varlink_client *client = calloc(1, sizeof(*client));

	if (!client)
		return -ENOMEM;
	varlink_input_init(&client->input);
	client->sock = connect_unix(path);
	if (client->sock < 0) {
		int r = client->sock;

		free(client);
		return r;
	}
	*ret_client = client;
	return 0;
}

void varlink_client_close(struct varlink_client *client)
{
	if (!client)
		return;
	fd_close(&client->sock);
	varlink_input_fini(&client->input);
	free(client);
}

static int send_all(int sock, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = send(sock, text, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

static json_t *make_call(const char *method, json_t *parameters, bool more)
{
	char name[METHOD_NAME_MAX];
	json_t *call;

	if (strchr(method, '.'))
		snprintf(name, sizeof(name), "%s", method);
	else
		snprintf(name, sizeof(name), VARLINK_OWN_INTERFACE ".%s", method);
	call = json_pack("{s:s}", "method", name);
	if (!call)
		return NULL;
	if ((parameters && json_object_set(call, "parameters", parameters) < 0) ||
	    (more && json_object_set_new(call, "more", json_true()) < 0)) {
		json_decref(call);
		return NULL;
	}
	return call;
}

static int send_call(struct varlink_client *client, const char *method, json_t *parameters, bool more)
{
	json_t *call = make_call(method, parameters, more);
	char *text;
	size_t len;
	int r;

	if (!call)
		return -ENOMEM;
	r = varlink_encode(call, &text, &len);
	json_decref(call);
	if (r < 0)
		return r;
	r = send_all(client->sock, text, len);
	free(text);
	/* Who refuses a connection says why and closes: the reason is still there to be read. */
	return r == -EPIPE ? 0 : r;
}

/* flags: of recv(2). */
static int receive_some(struct varlink_client *client, int flags)
{
	size_t space;
	char *into = varlink_input_space(&client->input, &space);
	ssize_t n;

	if (!into)
		return -ENOMEM;
	do {
		n = recv(client->sock, into, space, flags);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN && !(flags & MSG_DONTWAIT))
		return -ETIMEDOUT;
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	if (n == 0)
		return -EPIPE;
	varlink_input_received(&client->input, (size_t)n);
	return 0;
}

static int receive_message(struct varlink_client *client, int flags, json_t **ret_message)
{
	int r;

	while ((r = varlink_input_next(&client->input, ret_message)) == 0) {
		r = receive_some(client, flags);
		if (r < 0)
			return r;
	}
	if (r == -EMSGSIZE)
		return -EPROTO;
	return r < 0 ? r : 0;
}

static int take_error(const json_t *reply, json_t **ret_error)
{
	json_t *parameters = json_object_get(reply, "parameters");
	json_t *error = json_pack("{s:O}", "error", json_object_get(reply, "error"));

	if (!error)
		return -ENOMEM;
	if (json_object_set_new(error, "parameters",
				json_is_object(parameters) ? json_incref(parameters) : json_object()) < 0) {
		json_decref(error);
		return -ENOMEM;
	}
	*ret_error = error;
	return -EREMOTEIO;
}

/* One reply taken apart: 1 when another follows, 0 for the last, negative errno. */
static int receive_reply(struct varlink_client *client, int flags, json_t **ret_reply, json_t **ret_error)
{
	json_t *message, *parameters;
	int r = receive_message(client, flags, &message);

	if (r < 0)
		return r;
	if (json_is_string(json_object_get(message, "error"))) {
		r = take_error(message, ret_error);
		json_decref(message);
		return r;
	}
	parameters = json_object_get(message, "parameters");
	r = json_is_true(json_object_get(message, "continues")) ? 1 : 0;
	if (parameters && !json_is_object(parameters)) {
		json_decref(message);
		return -EPROTO;
	}
	*ret_reply = parameters ? json_incref(parameters) : json_object();
	json_decref(message);
	return *ret_reply ? r : -ENOMEM;
}

int varlink_client_call(struct varlink_client *client, const char *method, json_t *parameters,
			json_t **ret_reply, json_t **ret_error)
{
	json_t *reply;
	int r = send_call(client, method, parameters, false);

	if (r < 0)
		return r;
	r = receive_reply(client, 0, &reply, ret_error);
	if (r < 0)
		return r;
	if (r > 0) {      /* a stream that nobody asked for */
		json_decref(reply);
		return -EPROTO;
	}
	*ret_reply = reply;
	return 0;
}

int varlink_client_stream(struct varlink_client *client, const char *method, json_t *parameters,
			  int (*each)(void *context, json_t *reply), void *context,
			  json_t **ret_error)
{
	int r = send_call(client, method, parameters, true);

	if (r < 0)
		return r;
	do {
		json_t *reply;
		int stop;

		r = receive_reply(client, 0, &reply, ret_error);
		if (r < 0)
			return r;
		stop = each(context, reply);
		json_decref(reply);
		if (stop < 0)
			return stop;
	} while (r > 0);
	return 0;
}

int varlink_client_begin(struct varlink_client *client, const char *method, json_t *parameters, bool more)
{
	return send_call(client, method, parameters, more);
}

int varlink_client_take(struct varlink_client *client, json_t **ret_reply, json_t **ret_error)
{
	return receive_reply(client, MSG_DONTWAIT, ret_reply, ret_error);
}

int varlink_client_descriptor(const struct varlink_client *client)
{
	return client->sock;
}
