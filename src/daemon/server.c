#define _GNU_SOURCE              /* accept4 */
#include "daemon/server.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/vec.h"
#include "daemon/conn.h"
#include "daemon/daemon.h"
#include "daemon/events.h"
#include "daemon/limits.h"
#include "daemon/log.h"
#include "daemon/peer.h"
#include "daemon/permit.h"
#include "daemon/requests.h"
#include "varlink/interface.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct server {
	sd_event *event;
	struct daemon *daemon;
	void (*changed)(struct daemon *daemon);
	int listen_fd;
	int spare_fd;            /* closed to be able to refuse when there are no descriptors left */
	sd_event_source *source;
	size_t max_clients, strangers;
	uint64_t told_ns;        /* when subscribers were told of one that was refused; 0: never */
	VEC_OF(struct conn *) conns;
};

static bool on_message(void *context, struct conn *conn, json_t *message)
{
	struct server *server = context;

	return requests_dispatch(server->daemon, conn, message);
}

static void on_closed(void *context, struct conn *conn)
{
	struct server *server = context;

	for (size_t i = 0; i < server->conns.count; i++) {
		if (server->conns.items[i] != conn)
			continue;
		vec_remove_unordered(&server->conns, i);
		server->strangers -= conn_is_stranger(conn);
		break;
	}
	server->changed(server->daemon);
}

/* Anybody can be refused as often as they like, and must not drive out what else subscribers hear. */
static void tell_refused(struct server *server)
{
	uint64_t now = clock_monotonic_ns();

	if (server->told_ns > 0 && now - server->told_ns < REFUSED_TELL_PERIOD_NS)
		return;
	server->told_ns = now;
	events_limit(server->daemon->events, geteuid(), 0, 0, "clients",
		     "a client was refused: there are as many as are served at a time");
}

/* Best effort: the client reads it as the answer to its first call. */
static void refuse(struct server *server, int sock)
{
	static const char text[] =
		"{\"error\":\"" VARLINK_OWN_INTERFACE ".LimitReached\",\"parameters\":{\"limit\":\"clients\","
		"\"message\":\"the daemon has as many clients as it serves at a time; try again\"}}";

	if (send(sock, text, sizeof(text), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		log_warning("a client could not be told that there are too many: %s", strerror(errno));
	close(sock);
	tell_refused(server);
}

/* One user of several must not take all connections. */
static bool has_its_share(const struct server *server, uid_t uid)
{
	size_t count = 0;

	if (uid == 0 || uid == geteuid())
		return false;
	for (size_t i = 0; i < server->conns.count; i++)
		count += conn_uid(server->conns.items[i]) == uid;
	return count >= OWNER_SHARE(server->max_clients);
}

static void admit(struct server *server, int sock)
{
	const struct conn_owner owner = { server, on_message, on_closed };
	struct conn **slot;
	struct peer peer;
	bool stranger;

	if (peer_of(sock, &peer) < 0) {
		close(sock);
		return;
	}
	stranger = !permit_peer(server->daemon, peer.uid);
	if (server->conns.count >= server->max_clients || has_its_share(server, peer.uid) ||
	    (stranger && server->strangers >= STRANGERS_MAX) || vec_reserve(&server->conns, 1) < 0) {
		refuse(server, sock);
		return;
	}
	slot = vec_push(&server->conns);
	if (conn_new(server->event, sock, &peer, stranger, &owner, slot) < 0) {
		server->conns.count--;
		return;
	}
	server->strangers += stranger;
	server->changed(server->daemon);
}

/* Without a free descriptor the connection would stay in the queue and the loop would spin. */
static void refuse_with_spare(struct server *server)
{
	int sock;

	fd_close(&server->spare_fd);
	sock = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (sock >= 0)
		refuse(server, sock);
	server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int on_connection(sd_event_source *source, int fd, uint32_t revents, void *context)
{
	struct server *server = context;
	int sock = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)source;
	(void)revents;
	if (sock >= 0)
		admit(server, sock);
	else if (errno == EMFILE || errno == ENFILE)
		refuse_with_spare(server);
	return 0;
}

int server_new(sd_event *event, int listen_fd, size_t max_clients, struct daemon *daemon,
	       void (*changed)(struct daemon *daemon), struct server **ret)
{
	struct server *server = calloc(1, sizeof(*server));
	int r;

	if (!server) {
		close(listen_fd);
		return -ENOMEM;
	}
	server->event = event;
	server->daemon = daemon;
	server->changed = changed;
	server->listen_fd = listen_fd;
	server->max_clients = max_clients;
	server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	r = fcntl(listen_fd, F_SETFL, fcntl(listen_fd, F_GETFL) | O_NONBLOCK) < 0 ? -errno : 0;
	if (r == 0)
		r = sd_event_add_io(event, &server->source, listen_fd, EPOLLIN, on_connection, server);
	if (r < 0) {
		server_free(server);
		return r;
	}
	*ret = server;
	return 0;
}

void server_stop_listening(struct server *server)
{
	server->source = sd_event_source_disable_unref(server->source);
	fd_close(&server->listen_fd);
}

void server_set_max_clients(struct server *server, size_t max_clients)
{
	server->max_clients = max_clients;
}

void server_free(struct server *server)
{
	if (!server)
		return;
	server_stop_listening(server);
	while (server->conns.count > 0)
		conn_close(server->conns.items[server->conns.count - 1]);
	fd_close(&server->spare_fd);
	vec_fini(&server->conns);
	free(server);
}

size_t server_client_count(const struct server *server)
{
	return server->conns.count;
}
