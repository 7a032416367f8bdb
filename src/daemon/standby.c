#include "daemon/standby.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/proc.h"
#include "daemon/limits.h"
#include "daemon/tracer_process.h"
#include "tracer/wire.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STAT_PATH_MAX 48

struct standby {
	sd_event *event;
	const char *program, *service;
	pid_t pid;                   /* 0: none, or a service that has not been heard yet */
	int sock;                    /* -1: it is about to leave, or there is none */
	int pidfd;                   /* of a service that was heard, else -1 */
	uint64_t next_ns;            /* not before that */
	sd_event_source *source;     /* a child's end, or a service's word */
};

int standby_new(sd_event *event, const char *program, const char *service, struct standby **ret)
{
	struct standby *standby = calloc(1, sizeof(*standby));

	if (!standby)
		return -ENOMEM;
	*standby = (struct standby){ .event = event, .program = program, .service = service, .sock = -1, .pidfd = -1 };
	*ret = standby;
	return 0;
}

/* A service sees the end of its connection and leaves. */
static void forget(struct standby *standby)
{
	standby->source = sd_event_source_disable_unref(standby->source);
	fd_close(&standby->sock);
	fd_close(&standby->pidfd);
	standby->pid = 0;
}

void standby_free(struct standby *standby)
{
	if (!standby)
		return;
	forget(standby);
	free(standby);
}

/* --- a child --- */

static int on_end(sd_event_source *source, const siginfo_t *si, void *context)
{
	(void)source;
	(void)si;
	forget(context);
	return 0;
}

static int spawn(struct standby *standby)
{
	char name[] = "allocwatch-tracer", option[] = "--stand-by";
	char *const argv[] = { name, option, NULL };
	int socks[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks) < 0)
		return -errno;
	standby->sock = socks[0];
	r = tracer_process_spawn(standby->program, argv, socks[1], &standby->pid);
	fd_close(&socks[1]);
	if (r < 0)
		standby->pid = 0;
	return r;
}

static int start_child(struct standby *standby)
{
	int r = spawn(standby);

	if (r == 0)
		r = sd_event_add_child(standby->event, &standby->source, standby->pid, WEXITED, on_end, standby);
	if (r < 0 && standby->pid > 0) {
		kill(standby->pid, SIGKILL);
		waitpid(standby->pid, NULL, 0);
	}
	return r;
}

/* --- a service --- */

static bool meet(struct standby *standby)
{
	if (standby->pid == 0 && tracer_process_meet(standby->sock, &standby->pid, &standby->pidfd) < 0)
		return false;
	standby->next_ns = clock_monotonic_ns() + STANDBY_PAUSE_NS;
	return true;
}

/* It says that it is ready, and nothing more before it is taken. */
static int on_word(sd_event_source *source, int fd, uint32_t revents, void *context)
{
	struct standby *standby = context;
	int r = -ECONNRESET;
	uint32_t type = 0;

	(void)source;
	(void)revents;
	if (meet(standby))
		r = tracer_process_hear(fd, &type);
	if (r != -EAGAIN && (r < 0 || type != WIRE_HEARTBEAT))
		forget(standby);
	return 0;
}

static int start_service(struct standby *standby)
{
	struct wire_head request = { WIRE_STAND_BY, 0, 0, sizeof(request) };
	int r = tracer_process_connect(standby->service, &standby->sock);

	standby->next_ns = clock_monotonic_ns() + STANDBY_REFUSED_PAUSE_NS;
	if (r == 0)
		r = fd_send_message(standby->sock, &request, sizeof(request), -1);
	if (r == 0)
		r = sd_event_add_io(standby->event, &standby->source, standby->sock, EPOLLIN, on_word, standby);
	return r;
}

/* --- either --- */

void standby_prepare(struct standby *standby)
{
	int r;

	if (standby->pid > 0 || standby->sock >= 0 || !clock_passed(standby->next_ns))
		return;
	standby->next_ns = clock_monotonic_ns() + STANDBY_PAUSE_NS;
	r = standby->service ? start_service(standby) : start_child(standby);
	if (r < 0)
		forget(standby);
}

/* It has nothing in its hands.  A child's end is seen by on_end(); a service's number may be another's by now. */
static void end_by_force(struct standby *standby)
{
	if (!standby->service) {
		fd_close(&standby->sock);
		kill(standby->pid, SIGKILL);
		return;
	}
	if (standby->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, standby->pidfd, SIGKILL, NULL, 0);
	forget(standby);
}

/* A service that is killed is one that has failed, to systemd; it leaves by itself, and one that is stopped when it goes on. */
void standby_dismiss(struct standby *standby)
{
	if (standby->sock < 0)
		return;
	if (!standby->service) {
		end_by_force(standby);
		return;
	}
	forget(standby);
	standby->next_ns = clock_monotonic_ns() + STANDBY_PAUSE_NS;
}

static bool would_do_it(const struct standby *standby)
{
	char path[STAT_PATH_MAX], state;

	snprintf(path, sizeof(path), "/proc/%d/stat", standby->pid);
	state = proc_stat_state(path);
	return state == 'S' || state == 'R' || state == 'D';
}

int standby_take(struct standby *standby, int pid, struct standby_healer *ret)
{
	struct wire_head request = { WIRE_HEAL, 0, pid, sizeof(request) };

	if (standby->sock < 0 || standby->pid == 0)
		return -ESRCH;
	if (!would_do_it(standby) || fd_send_message(standby->sock, &request, sizeof(request), -1) < 0) {
		end_by_force(standby);
		return -ESRCH;
	}
	*ret = (struct standby_healer){ .pid = standby->pid, .sock = -1, .pidfd = -1 };
	if (standby->service) {
		ret->sock = standby->sock;
		ret->pidfd = standby->pidfd;
		standby->sock = standby->pidfd = -1;
	}
	forget(standby);
	standby->next_ns = 0;
	return 0;
}
