#include "daemon/metrics_serve.h"

#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/metrics_address.h"
#include "daemon/metrics_http.h"
#include "daemon/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct metrics_serve {
	struct daemon *daemon;
	struct metrics_http *http;             /* NULL: nowhere */
	struct metrics_address address;        /* where that is; len 0 */
	bool handed_over;
};

static struct metrics_viewer viewer_of(const struct options *options)
{
	return (struct metrics_viewer){ .uid = geteuid(), .all = options->metrics_show == METRICS_SHOW_ALL };
}

static const char *explain(int r)
{
	if (r == -EOPNOTSUPP)
		return "it was built without libmicrohttpd";
	if (r == -EAFNOSUPPORT)
		return "the service may not use the network; allocwatchd.conf(5) says how it can";
	return strerror(-r);
}

static bool is_same(const struct metrics_address *a, const struct metrics_address *b)
{
	return a->len == b->len && memcmp(&a->address, &b->address, a->len) == 0;
}

static int start(struct metrics_serve *serve, const struct options *options, int fd, struct metrics_http **ret)
{
	return metrics_http_new(serve->daemon->metrics, serve->daemon->event, fd, viewer_of(options), ret);
}

static int open_address(struct metrics_serve *serve, const struct options *options,
			const struct metrics_address *address, struct metrics_http **ret)
{
	int r = metrics_address_listen(address);

	return r < 0 ? r : start(serve, options, r, ret);
}

static void close_address(struct metrics_serve *serve)
{
	if (!serve->http)
		return;
	metrics_http_free(serve->http);
	serve->http = NULL;
	metrics_address_remove(&serve->address);
}

/* One address may be within the other (0.0.0.0 and 127.0.0.1): then the old one has to go first, and comes back when the
 * new one cannot be had even so. */
static int open_instead(struct metrics_serve *serve, const struct options *options,
			const struct metrics_address *address, struct metrics_http **ret)
{
	struct metrics_address old = serve->address;
	int r = open_address(serve, options, address, ret);

	if (r != -EADDRINUSE || !serve->http)
		return r;
	close_address(serve);
	r = open_address(serve, options, address, ret);
	if (r < 0 && open_address(serve, options, &old, &serve->http) < 0)
		serve->address = (struct metrics_address){ 0 };
	return r;
}

static void log_open(const struct options *options, const struct metrics_address *address, int r)
{
	if (r < 0)
		log_error("metrics cannot be served at %s: %s", options->metrics_listen, explain(r));
	else if (!address->loopback)
		log_warning("metrics are served at %s, which other machines may reach", options->metrics_listen);
	else
		log_info("metrics are served at %s", options->metrics_listen);
}

int metrics_serve_set(struct metrics_serve *serve, const struct options *options)
{
	struct metrics_address address = { 0 };
	struct metrics_http *http = NULL;
	int r = 0;

	if (!serve->handed_over && options->metrics_listen)
		r = metrics_address_parse(options->metrics_listen, &address);
	if (r < 0)
		return r;
	if (serve->handed_over || is_same(&address, &serve->address)) {
		if (serve->http)
			metrics_http_set_viewer(serve->http, viewer_of(options));
		return 0;
	}
	if (address.len > 0) {
		r = open_instead(serve, options, &address, &http);
		log_open(options, &address, r);
	}
	if (r < 0)
		return r;
	close_address(serve);
	serve->http = http;
	serve->address = address;
	return 0;
}

static void take_handed_over(struct metrics_serve *serve, const struct options *options, int fd)
{
	int r = start(serve, options, fd, &serve->http);

	serve->handed_over = true;
	if (r < 0)
		log_error("metrics cannot be served at the socket that was handed over: %s", explain(r));
	else
		log_info("metrics are served at the socket that was handed over");
}

int metrics_serve_new(struct daemon *daemon, const struct options *options, int handed_over, struct metrics_serve **ret)
{
	struct metrics_serve *serve = calloc(1, sizeof(*serve));

	if (!serve) {
		if (handed_over >= 0)
			close(handed_over);
		return -ENOMEM;
	}
	serve->daemon = daemon;
	if (handed_over >= 0)
		take_handed_over(serve, options, handed_over);
	else
		metrics_serve_set(serve, options);
	*ret = serve;
	return 0;
}

void metrics_serve_free(struct metrics_serve *serve)
{
	if (!serve)
		return;
	close_address(serve);
	free(serve);
}
