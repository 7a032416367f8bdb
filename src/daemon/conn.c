#include "daemon/conn.h"

#include "base/fd.h"
#include "daemon/limits.h"
#include "varlink/framing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Read at once, so that a flooding client gets no more of the loop than the others. */
#define READ_SIZE 65536

struct conn {
	struct conn_owner owner;
	int sock;
	struct peer peer;
	bool stranger;
	bool input_ended;           /* the peer sends no more (it may still read) */
	bool closing;               /* once the output is out */
	struct varlink_input input;
	char *output;
	size_t output_sent, output_len;
	struct call *call;
	sd_event_source *io;
	sd_event_source *step;      /* there may be something to do without the socket saying so */
	sd_event_source *timer;     /* of a half message or an answer that is not taken */
	uint64_t patience_us;       /* what the timer was set to; 0: off */
};

static bool has_output(const struct conn *conn)
{
	return conn->output_sent < conn->output_len;
}

void conn_close(struct conn *conn)
{
	struct call *call;

	if (!conn)
		return;
	call = conn->call;
	if (call) {
		call->conn = NULL;
		if (call->abandoned)
			call->abandoned(call);
	}
	if (conn->owner.closed)
		conn->owner.closed(conn->owner.context, conn);
	sd_event_source_disable_unref(conn->io);
	sd_event_source_disable_unref(conn->step);
	sd_event_source_disable_unref(conn->timer);
	fd_close(&conn->sock);
	varlink_input_fini(&conn->input);
	free(conn->output);
	free(conn);
}

bool conn_is_stranger(const struct conn *conn)
{
	return conn->stranger;
}

uid_t conn_uid(const struct conn *conn)
{
	return conn->peer.uid;
}

static void wake(struct conn *conn)
{
	sd_event_source_set_enabled(conn->step, SD_EVENT_ONESHOT);
}

/* Each kind of waiting has its time from when it began.  Whole messages and taken output start it
 * anew; another byte of a message does not. */
static void set_patience(struct conn *conn, uint64_t patience_us, bool renew)
{
	if (patience_us == conn->patience_us && !renew)
		return;
	conn->patience_us = patience_us;
	if (patience_us == 0) {
		sd_event_source_set_enabled(conn->timer, SD_EVENT_OFF);
		return;
	}
	sd_event_source_set_time_relative(conn->timer, patience_us);
	sd_event_source_set_enabled(conn->timer, SD_EVENT_ONESHOT);
}

/* What the connection waits for now. */
static void arm(struct conn *conn, bool progress)
{
	uint32_t events = 0;
	uint64_t patience_us = 0;

	if (has_output(conn)) {
		events = EPOLLOUT;
		patience_us = OUTPUT_STALL_TIMEOUT_US;
	} else if (!conn->call && !conn->input_ended) {
		events = EPOLLIN;
		if (varlink_input_is_partial(&conn->input))
			patience_us = HALF_MESSAGE_TIMEOUT_US;
	}
	sd_event_source_set_io_events(conn->io, events);
	set_patience(conn, patience_us, progress);
}

/* 0 or negative errno: the connection is of no more use. */
static int send_some(struct conn *conn, bool *ret_progress)
{
	ssize_t n = send(conn->sock, conn->output + conn->output_sent,
			 conn->output_len - conn->output_sent, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	*ret_progress = n > 0;
	conn->output_sent += (size_t)n;
	if (!has_output(conn)) {
		free(conn->output);
		conn->output = NULL;
		conn->output_sent = conn->output_len = 0;
	}
	return 0;
}

static int receive_some(struct conn *conn)
{
	size_t space;
	char *into = varlink_input_space(&conn->input, &space);
	ssize_t n;

	if (!into)
		return -ENOMEM;
	n = recv(conn->sock, into, space < READ_SIZE ? space : READ_SIZE, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		conn->input_ended = true;
	varlink_input_received(&conn->input, (size_t)n);
	return 0;
}

/* Takes the next message, when one is whole.  1: the connection has a call or an answer to send;
 * 0: nothing to do but wait; negative errno: give up. */
static int take_message(struct conn *conn)
{
	json_t *message;
	bool ok;
	int r = varlink_input_next(&conn->input, &message);

	if (r < 0)
		return r;
	if (r == 0)
		return conn->input_ended ? -EPIPE : 0;
	ok = conn->owner.message(conn->owner.context, conn, message);
	json_decref(message);
	return ok ? 1 : -EPROTO;
}

/* One thing at a time: output, then the call, then the next message. */
static int advance(struct conn *conn, bool *ret_progress)
{
	int r;

	if (has_output(conn)) {
		r = send_some(conn, ret_progress);
		if (r < 0 || has_output(conn))
			return r;
	}
	if (conn->closing)
		return -EPIPE;
	if (conn->call) {
		if (conn->call->pull)
			conn->call->pull(conn->call);
		return 0;
	}
	r = take_message(conn);
	*ret_progress = r > 0;
	return r < 0 ? r : 0;
}

static void run(struct conn *conn, int r)
{
	bool progress = false;

	if (r == 0)
		r = advance(conn, &progress);
	if (r < 0)
		conn_close(conn);
	else
		arm(conn, progress);
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *context)
{
	struct conn *conn = context;
	int r = 0;

	(void)source;
	(void)fd;
	if (!conn->call && !has_output(conn)) {
		/* Of a client that is gone, too: it may have left `oneway` calls behind. */
		r = receive_some(conn);
	} else if (revents & (EPOLLERR | EPOLLHUP)) {
		r = -EPIPE;          /* an answer would reach nobody */
	}
	run(conn, r);
	return 0;
}

static int on_step(sd_event_source *source, void *context)
{
	(void)source;
	run(context, 0);
	return 0;
}

static int on_patience_lost(sd_event_source *source, uint64_t usec, void *context)
{
	(void)source;
	(void)usec;
	conn_close(context);
	return 0;
}

static int add_sources(struct conn *conn, sd_event *event)
{
	int r = sd_event_add_io(event, &conn->io, conn->sock, EPOLLIN, on_io, conn);

	if (r >= 0)
		r = sd_event_add_defer(event, &conn->step, on_step, conn);
	if (r >= 0)
		r = sd_event_source_set_enabled(conn->step, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &conn->timer, CLOCK_MONOTONIC, UINT32_MAX, 0,
					       on_patience_lost, conn);
	if (r >= 0)
		r = sd_event_source_set_enabled(conn->timer, SD_EVENT_OFF);
	return r < 0 ? r : 0;
}

int conn_new(sd_event *event, int sock, const struct peer *peer, bool stranger,
	     const struct conn_owner *owner, struct conn **ret)
{
	struct conn *conn = calloc(1, sizeof(*conn));
	int r;

	if (!conn) {
		close(sock);
		return -ENOMEM;
	}
	conn->sock = sock;
	conn->peer = *peer;
	conn->stranger = stranger;
	varlink_input_init(&conn->input);
	r = add_sources(conn, event);
	if (r < 0) {
		conn_close(conn);
		return r;
	}
	conn->owner = *owner;
	*ret = conn;
	return 0;
}

struct call *conn_begin(struct conn *conn, struct daemon *daemon, json_t *parameters, bool more,
			bool oneway)
{
	struct call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	call->conn = conn;
	call->daemon = daemon;
	call->parameters = parameters ? json_incref(parameters) : json_object();
	call->more = more;
	call->oneway = oneway;
	call->peer = conn->peer;
	conn->call = call;
	return call;
}

int conn_send(struct conn *conn, char *text, size_t len)
{
	char *joined;

	if (!has_output(conn)) {
		conn->output = text;
		conn->output_sent = 0;
		conn->output_len = len;
		wake(conn);
		return 0;
	}
	joined = realloc(conn->output, conn->output_len + len);
	if (joined) {
		memcpy(joined + conn->output_len, text, len);
		conn->output = joined;
		conn->output_len += len;
	}
	free(text);
	return joined ? 0 : -ENOMEM;
}

void conn_end(struct conn *conn)
{
	conn->call = NULL;
	wake(conn);
}

void conn_close_after_output(struct conn *conn)
{
	conn->closing = true;
	wake(conn);
}
