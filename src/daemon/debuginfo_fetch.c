#include "daemon/debuginfo_fetch.h"

#include "base/clock.h"
#include "base/fd.h"
#include "daemon/limits.h"
#include "daemon/tracer_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

struct debuginfo_fetch {
	void (*done)(void *context, int fd);
	void *context;
	int sock;
	sd_event_source *io, *deadline;
};

/* --- the process --- */

/* One that is given up sees its socket closed, and ends a moment later. */
static int on_dead(sd_event_source *source, const siginfo_t *info, void *context)
{
	(void)source, (void)info, (void)context;
	return 0;
}

static int start_child(sd_event *event, const char *program, int *ret_sock)
{
	char *const argv[] = { (char *)program, NULL };
	int pair[2], r;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	r = tracer_process_spawn(program, argv, pair[1], &pid);
	fd_close(&pair[1]);
	if (r == 0)
		r = sd_event_add_child(event, NULL, pid, WEXITED, on_dead, NULL);
	if (r < 0 || fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0) {
		fd_close(&pair[0]);
		return r < 0 ? r : -EIO;
	}
	*ret_sock = pair[0];
	return 0;
}

static int start_service(const char *service, int *ret_sock)
{
	int zero = 0, r = tracer_process_connect(service, ret_sock);

	if (r == 0 && setsockopt(*ret_sock, SOL_SOCKET, SO_PASSCRED, &zero, sizeof(zero)) < 0) {
		r = -errno;
		fd_close(ret_sock);
	}
	return r;
}

/* --- its answer --- */

static void finish(struct debuginfo_fetch *fetch, int fd)
{
	void (*done)(void *context, int fd) = fetch->done;
	void *context = fetch->context;

	sd_event_source_set_enabled(fetch->io, SD_EVENT_OFF);
	sd_event_source_set_enabled(fetch->deadline, SD_EVENT_OFF);
	fd_close(&fetch->sock);
	/* Last: it frees this object. */
	done(context, fd);
}

static int on_readable(sd_event_source *source, int sock, uint32_t events, void *context)
{
	struct fetch_answer answer;
	int fd = -1;
	ssize_t n = fd_receive_message(sock, &answer, sizeof(answer), &fd);

	(void)source, (void)events;
	if (n == -EAGAIN)
		return 0;
	if (n < 0 || fetch_check_answer(&answer, (size_t)n, fd) < 0) {
		fd_close(&fd);
		finish(context, n < 0 ? (int)n : n == 0 ? -ECONNRESET : -EPROTO);
	} else {
		finish(context, fd >= 0 ? fd : answer.result);
	}
	return 0;
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *context)
{
	(void)source, (void)usec;
	finish(context, -ETIMEDOUT);
	return 0;
}

static int watch(struct debuginfo_fetch *fetch, sd_event *event)
{
	int r = sd_event_add_io(event, &fetch->io, fetch->sock, EPOLLIN, on_readable, fetch);

	if (r >= 0)
		r = sd_event_add_time_relative(event, &fetch->deadline, CLOCK_MONOTONIC, DEBUGINFO_PATIENCE_US, 0, on_deadline,
					       fetch);
	return r < 0 ? r : 0;
}

int debuginfo_fetch_begin(sd_event *event, const char *program, const char *service, const struct fetch_request *request,
			  void (*done)(void *context, int fd), void *context, struct debuginfo_fetch **ret)
{
	struct debuginfo_fetch *fetch = calloc(1, sizeof(*fetch));
	int r;

	if (!fetch)
		return -ENOMEM;
	fetch->sock = -1;
	fetch->done = done;
	fetch->context = context;
	r = service ? start_service(service, &fetch->sock) : start_child(event, program, &fetch->sock);
	if (r == 0)
		r = fd_send_message(fetch->sock, request, sizeof(*request), -1);
	if (r == 0)
		r = watch(fetch, event);
	if (r < 0) {
		debuginfo_fetch_free(fetch);
		return r;
	}
	*ret = fetch;
	return 0;
}

void debuginfo_fetch_free(struct debuginfo_fetch *fetch)
{
	if (!fetch)
		return;
	sd_event_source_disable_unref(fetch->io);
	sd_event_source_disable_unref(fetch->deadline);
	fd_close(&fetch->sock);
	free(fetch);
}
