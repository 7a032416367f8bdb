/* Metrics by HTTP/1.1: GET and HEAD of /metrics, in OpenMetrics or, as the client's Accept says, in Prometheus' older
 * format; 404 and 405 for anything else.
 *
 * Everything happens in the event loop.  A connection is one request; it has its deadline from its beginning to its end,
 * and there are few of them.  Texts are made no more often than once a second for all. */
#ifndef ALLOCWATCH_DAEMON_METRICS_HTTP_H
#define ALLOCWATCH_DAEMON_METRICS_HTTP_H

#include "daemon/metrics.h"

#include <systemd/sd-event.h>

struct metrics_http;

/* Takes over listen_fd.  0; -EOPNOTSUPP: built without it; negative errno. */
int metrics_http_new(struct metrics *metrics, sd_event *event, int listen_fd, struct metrics_viewer viewer,
		     struct metrics_http **ret);
void metrics_http_free(struct metrics_http *http);     /* accepts NULL; closes all connections */
void metrics_http_set_viewer(struct metrics_http *http, struct metrics_viewer viewer);

#endif
