#include "config.h"

#include "daemon/metrics_http.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/vec.h"
#include "daemon/limits.h"
#include "daemon/log.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define PATH "/metrics"
#define OPENMETRICS_TYPE "application/openmetrics-text"

/* A text of one format: the last one, and those who wait for the next. */
struct page {
	struct metrics_http *http;
	enum openmetrics_format format;
	const char *content_type;
	struct MHD_Response *response;         /* NULL: none yet, or it could not be made */
	uint64_t made_ns;
	bool making;
	VEC_OF(struct MHD_Connection *) waiting;
};

struct live {
	int fd;
	uint64_t deadline_ns;
};

struct metrics_http {
	struct metrics *metrics;
	struct metrics_viewer viewer;
	struct MHD_Daemon *server;             /* NULL: it is being taken down */
	struct page pages[2];                  /* by format */
	VEC_OF(struct live) live;
	sd_event_source *io, *timer;
	unsigned references;                   /* the owner, and each text that is being made */
};

static void arm_timer(struct metrics_http *http);

static void unref(struct metrics_http *http)
{
	if (--http->references > 0)
		return;
	for (size_t i = 0; i < 2; i++)
		vec_fini(&http->pages[i].waiting);
	vec_fini(&http->live);
	free(http);
}

/* --- answers --- */

static enum MHD_Result answer_text(struct MHD_Connection *connection, unsigned status, const char *text, const char *allow)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(strlen(text), (void *)text,
									MHD_RESPMEM_PERSISTENT);
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain; charset=utf-8");
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	if (allow)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, allow);
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static void drop_response(struct page *page)
{
	if (page->response)
		MHD_destroy_response(page->response);
	page->response = NULL;
}

/* Its bytes are freed with the last connection that sends them. */
static void keep_text(struct page *page, char *text, size_t len)
{
	drop_response(page);
	if (!text)
		return;
	page->response = MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE);
	if (!page->response) {
		free(text);
		return;
	}
	MHD_add_response_header(page->response, MHD_HTTP_HEADER_CONTENT_TYPE, page->content_type);
	MHD_add_response_header(page->response, MHD_HTTP_HEADER_CONNECTION, "close");
	MHD_add_response_header(page->response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	page->made_ns = clock_monotonic_ns();
}

/* A server that was full looks at its listening socket again only in the run after one that has closed something. */
static void run_server(struct metrics_http *http)
{
	size_t before;

	if (!http->server)
		return;
	do {
		before = http->live.count;
		MHD_run(http->server);
	} while (http->live.count < before);
	arm_timer(http);
}

static void resume_all(struct page *page)
{
	while (page->waiting.count > 0)
		MHD_resume_connection(page->waiting.items[--page->waiting.count]);
}

static void on_made(void *context, char *text, size_t len)
{
	struct page *page = context;
	struct metrics_http *http = page->http;

	page->making = false;
	if (http->server) {
		keep_text(page, text, len);
		resume_all(page);
		run_server(http);
	} else {
		free(text);
	}
	unref(http);
}

/* --- requests --- */

/* A client that names it before, or without, the older one gets OpenMetrics. */
static enum openmetrics_format format_wanted(struct MHD_Connection *connection)
{
	const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);

	return accept && strcasestr(accept, OPENMETRICS_TYPE) ? OPENMETRICS_1_0 : OPENMETRICS_PROMETHEUS;
}

/* Each connection is handed its state through *state: NULL first, then what its request waits for. */
static enum MHD_Result serve_page(struct metrics_http *http, struct MHD_Connection *connection, void **state)
{
	struct page *page = &http->pages[format_wanted(connection)];
	struct MHD_Connection **slot;

	if (*state == page || (page->response && !page->making &&
			       clock_monotonic_ns() - page->made_ns < METRICS_SAME_TEXT_NS)) {
		if (!page->response)
			return answer_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "there is no memory for it\n", NULL);
		return MHD_queue_response(connection, MHD_HTTP_OK, page->response);
	}
	slot = vec_push(&page->waiting);
	if (!slot)
		return MHD_NO;
	*slot = connection;
	*state = page;
	MHD_suspend_connection(connection);
	if (!page->making) {
		page->making = true;
		http->references++;
		metrics_collect(http->metrics, http->viewer, page->format, on_made, page);
	}
	return MHD_YES;
}

static bool is_read(const char *method)
{
	return strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
}

/* Called once when the request's head is there, once more for each piece of a body, and at its end.  What is wrong is
 * answered at once: then the rest is not read. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url, const char *method,
				  const char *version, const char *upload_data, size_t *upload_data_size, void **state)
{
	static int begun;

	(void)version;
	(void)upload_data;
	if (strcmp(url, PATH) != 0)
		return answer_text(connection, MHD_HTTP_NOT_FOUND, "only " PATH " is here\n", NULL);
	if (!is_read(method))
		return answer_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD can be done here\n",
				   "GET, HEAD");
	if (!*state) {
		*state = &begun;
		return MHD_YES;
	}
	if (*upload_data_size > 0) {
		*upload_data_size = 0;         /* nobody wants it */
		return MHD_YES;
	}
	return serve_page(context, connection, state);
}

/* --- connections and their deadlines --- */

static void on_connection(void *context, struct MHD_Connection *connection, void **state,
			  enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct metrics_http *http = context;
	struct live *slot;

	(void)state;
	if (!info)
		return;
	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		slot = vec_push(&http->live);
		if (slot)
			*slot = (struct live){ info->connect_fd,
					       clock_monotonic_ns() + METRICS_CONNECTION_S * NSEC_PER_SEC };
		return;
	}
	for (size_t i = 0; i < http->live.count; i++) {
		if (http->live.items[i].fd == info->connect_fd) {
			vec_remove_unordered(&http->live, i);
			return;
		}
	}
}

/* The server sees the end of the connection then, and closes it.  One that is suspended has its answer by
 * METRICS_DEADLINE_US. */
static void shut_late_ones(struct metrics_http *http)
{
	uint64_t now_ns = clock_monotonic_ns();

	for (size_t i = 0; i < http->live.count; i++) {
		if (http->live.items[i].deadline_ns > now_ns)
			continue;
		shutdown(http->live.items[i].fd, SHUT_RDWR);
		http->live.items[i].deadline_ns = UINT64_MAX;
	}
}

static uint64_t next_deadline_ns(const struct metrics_http *http)
{
	uint64_t next_ns = UINT64_MAX;

	for (size_t i = 0; i < http->live.count; i++)
		next_ns = http->live.items[i].deadline_ns < next_ns ? http->live.items[i].deadline_ns : next_ns;
	return next_ns;
}

/* At the next deadline of a connection, or when the server itself wants to run. */
static void arm_timer(struct metrics_http *http)
{
	uint64_t at_us = next_deadline_ns(http) / NSEC_PER_USEC, own_us;
	MHD_UNSIGNED_LONG_LONG timeout_ms;

	if (MHD_get_timeout(http->server, &timeout_ms) == MHD_YES) {
		own_us = clock_monotonic_ns() / NSEC_PER_USEC + timeout_ms * 1000;
		at_us = own_us < at_us ? own_us : at_us;
	}
	if (at_us > UINT64_MAX / NSEC_PER_USEC - 1) {
		sd_event_source_set_enabled(http->timer, SD_EVENT_OFF);
		return;
	}
	sd_event_source_set_time(http->timer, at_us);
	sd_event_source_set_enabled(http->timer, SD_EVENT_ONESHOT);
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *context)
{
	(void)source;
	(void)fd;
	(void)revents;
	run_server(context);
	return 0;
}

static int on_time(sd_event_source *source, uint64_t usec, void *context)
{
	(void)source;
	(void)usec;
	shut_late_ones(context);
	run_server(context);
	return 0;
}

static void on_log(void *context, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

static void on_log(void *context, const char *format, va_list args)
{
	char text[256];

	(void)context;
	vsnprintf(text, sizeof(text), format, args);
	text[strcspn(text, "\n")] = '\0';
	log_debug("metrics by HTTP: %s", text);
}

/* --- the whole --- */

static struct MHD_Daemon *start_server(struct metrics_http *http, int listen_fd)
{
	return MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request,
				http, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_LISTEN_SOCKET, listen_fd,
				MHD_OPTION_CONNECTION_LIMIT, (unsigned)METRICS_CONNECTIONS_MAX,
				MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)METRICS_REQUEST_BYTES_MAX,
				MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)METRICS_CONNECTION_S,
				MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_END);
}

static int add_sources(struct metrics_http *http, sd_event *event)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->server, MHD_DAEMON_INFO_EPOLL_FD);
	int r;

	if (!info || info->epoll_fd < 0)
		return -EIO;
	r = sd_event_add_io(event, &http->io, info->epoll_fd, EPOLLIN, on_io, http);
	if (r >= 0)
		r = sd_event_add_time(event, &http->timer, CLOCK_MONOTONIC, 0, 0, on_time, http);
	return r;
}

int metrics_http_new(struct metrics *metrics, sd_event *event, int listen_fd, struct metrics_viewer viewer,
		     struct metrics_http **ret)
{
	static const char *const types[] = { OPENMETRICS_CONTENT_TYPE, OPENMETRICS_PROMETHEUS_CONTENT_TYPE };
	struct metrics_http *http = calloc(1, sizeof(*http));
	int r;

	if (!http) {
		fd_close(&listen_fd);
		return -ENOMEM;
	}
	http->references = 1;
	http->metrics = metrics;
	http->viewer = viewer;
	for (unsigned i = 0; i < 2; i++) {
		http->pages[i].http = http;
		http->pages[i].format = (enum openmetrics_format)i;
		http->pages[i].content_type = types[i];
	}
	http->server = start_server(http, listen_fd);
	if (!http->server) {
		unref(http);                   /* the socket is the server's, also of one that did not start */
		return -EIO;
	}
	r = add_sources(http, event);
	if (r < 0) {
		metrics_http_free(http);
		return r;
	}
	*ret = http;
	return 0;
}

void metrics_http_free(struct metrics_http *http)
{
	struct MHD_Daemon *server;

	if (!http)
		return;
	http->io = sd_event_source_disable_unref(http->io);
	http->timer = sd_event_source_disable_unref(http->timer);
	server = http->server;
	/* None may be suspended when the server ends. */
	for (size_t i = 0; i < 2; i++)
		resume_all(&http->pages[i]);
	http->server = NULL;
	MHD_stop_daemon(server);
	for (size_t i = 0; i < 2; i++)
		drop_response(&http->pages[i]);
	unref(http);
}

void metrics_http_set_viewer(struct metrics_http *http, struct metrics_viewer viewer)
{
	http->viewer = viewer;
	for (size_t i = 0; i < 2; i++)
		drop_response(&http->pages[i]);
}
