/* Built without libmicrohttpd. */
#include "daemon/metrics_http.h"

#include "base/fd.h"

#include <errno.h>

int metrics_http_new(struct metrics *metrics, sd_event *event, int listen_fd, struct metrics_viewer viewer,
		     struct metrics_http **ret)
{
	(void)metrics;
	(void)event;
	(void)viewer;
	(void)ret;
	fd_close(&listen_fd);
	return -EOPNOTSUPP;
}

void metrics_http_free(struct metrics_http *http)
{
	(void)http;
}

void metrics_http_set_viewer(struct metrics_http *http, struct metrics_viewer viewer)
{
	(void)http;
	(void)viewer;
}
