#include "daemon/tracer.h"

#include "base/fd.h"
#include "base/proc.h"
#include "base/vec.h"
#include "daemon/healing.h"
#include "daemon/heartbeat.h"
#include "daemon/limits.h"
#include "daemon/log.h"
#include "daemon/tracer_process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Handled in one go, so that a chattering tracer leaves room for the others. */
#define MESSAGES_PER_WAKEUP 16
#define CLOSED "it ended or closed its socket"

struct tracers {
	sd_event *event;
	char *program;
	char *service;               /* the socket where systemd starts them; NULL: they are children */
	void (*gone)(void *context);
	void *context;
	VEC_OF(struct tracer *) running;
	struct healings *healings;
};

struct tracer {
	struct tracers *tracers;
	struct tracer_owner owner;
	int target_pid;
	pid_t pid;                   /* 0 once it has ended and was reaped, and before it is known */
	bool expected;               /* systemd was asked for it, and it has not said anything yet */
	int sock;                    /* -1: hung up */
	int pidfd;                   /* of one that is no child of ours; else -1 */
	bool let_go, lost;
	const char *stuck;           /* in what; NULL: it is not */
	struct heartbeat heartbeat;
	sd_event_source *io, *child, *timer;
};

/* --- the set of them --- */

int tracers_new(sd_event *event, const char *program, const char *service, void (*gone)(void *context),
		void *context, struct tracers **ret)
{
	struct tracers *tracers = calloc(1, sizeof(*tracers));
	int r;

	if (!tracers)
		return -ENOMEM;
	tracers->program = strdup(program);
	tracers->service = service ? strdup(service) : NULL;
	r = tracers->program && (tracers->service || !service)
		    ? healings_new(event, tracers->program, tracers->service, &tracers->healings) : -ENOMEM;
	if (r < 0) {
		tracers_free(tracers);
		return r;
	}
	tracers->event = event;
	tracers->gone = gone;
	tracers->context = context;
	*ret = tracers;
	return 0;
}

static void forget(struct tracer *tracer)
{
	struct tracers *tracers = tracer->tracers;

	for (size_t i = 0; i < tracers->running.count; i++) {
		if (tracers->running.items[i] == tracer) {
			vec_remove_unordered(&tracers->running, i);
			break;
		}
	}
	if (tracers->running.count == 0)
		healings_relax(tracers->healings);
}

static void tracer_free(struct tracer *tracer)
{
	forget(tracer);
	sd_event_source_disable_unref(tracer->io);
	sd_event_source_disable_unref(tracer->child);
	sd_event_source_disable_unref(tracer->timer);
	fd_close(&tracer->sock);
	fd_close(&tracer->pidfd);
	free(tracer);
}

void tracers_free(struct tracers *tracers)
{
	if (!tracers)
		return;
	while (tracers->running.count > 0)
		tracer_free(tracers->running.items[tracers->running.count - 1]);
	vec_fini(&tracers->running);
	healings_free(tracers->healings);
	free(tracers->service);
	free(tracers->program);
	free(tracers);
}

void tracers_heal(struct tracers *tracers, int pid)
{
	healings_begin(tracers->healings, pid);
}

size_t tracers_running(const struct tracers *tracers)
{
	size_t count = 0;

	for (size_t i = 0; i < tracers->running.count; i++)
		count += tracers->running.items[i]->pid > 0;
	return count;
}

/* --- listening --- */

static void hang_up(struct tracer *tracer)
{
	tracer->io = sd_event_source_disable_unref(tracer->io);
	fd_close(&tracer->sock);
}

static void lose(struct tracer *tracer, const char *reason)
{
	if (tracer->lost || tracer->let_go)
		return;
	tracer->lost = true;
	hang_up(tracer);
	tracer->owner.lost(tracer->owner.context, reason);
}

/* A process that ends closes its descriptors a moment before that can be seen; what its loss brings about would keep its target
 * waiting to be healed (for the end of a memory alarm alone, a trigger on memory.pressure, the kernel needs 12 ms).  One that
 * lives on is given up by the next look. */
static void await_end(struct tracer *tracer)
{
	if (tracer->pid > 0)
		hang_up(tracer);
	else
		lose(tracer, CLOSED);
}

static void hear(struct tracer *tracer, const struct wire_heartbeat *beat)
{
	struct wire_head alive = { WIRE_ALIVE, 0, beat->head.pid, sizeof(alive) };

	heartbeat_heard(&tracer->heartbeat, tracer->pid,
			beat->patience_ms < PATIENCE_MAX_MS ? beat->patience_ms : PATIENCE_MAX_MS);
	healings_prepare(tracer->tracers->healings);
	fd_send_message(tracer->sock, &alive, sizeof(alive), -1);
}

/* 1: a message was handled; 0: there is none now; negative: there will be none. */
static int receive_one(struct tracer *tracer)
{
	static union {
		char bytes[WIRE_MESSAGE_MAX];
		struct wire_head head;
	} buffer;
	int fd = -1;
	ssize_t n;

	/* Who ends with a request of ours unread in its socket resets ours, and the kernel tells that once,
	 * before what was sent to us and is still there to be read: the target's last snapshot, say. */
	do {
		n = fd_receive_message(tracer->sock, &buffer, sizeof(buffer), &fd);
	} while (n == -ECONNRESET);
	if (n == -EAGAIN)
		return 0;
	if (n == -EMSGSIZE) {
		lose(tracer, "it sent a message that is too long");
		return -EPIPE;
	}
	if (n <= 0) {
		await_end(tracer);
		return -EPIPE;
	}
	if (wire_check(&buffer, (size_t)n, 1) < 0) {
		fd_close(&fd);
		lose(tracer, "it sent a malformed message");
		return -EBADMSG;
	}
	if (buffer.head.type == WIRE_HEARTBEAT)
		hear(tracer, (const struct wire_heartbeat *)&buffer);
	else
		tracer->owner.message(tracer->owner.context, &buffer.head, &fd);
	fd_close(&fd);
	return tracer->sock >= 0 ? 1 : -EPIPE;
}

static int on_adopted_end(sd_event_source *source, int fd, uint32_t revents, void *context);
static void take_end(struct tracer *tracer, bool well);

/* It refuses, and ends before the daemon, which others keep from a CPU, has looked at what it said. */
static void meet_too_late(struct tracer *tracer)
{
	while (tracer->sock >= 0 && receive_one(tracer) > 0)
		;
	take_end(tracer, tracer->let_go && !tracer->lost);
}

/* Which process systemd has started.  False: there is none yet, or none any more. */
static bool meet(struct tracer *tracer)
{
	int r = tracer_process_meet(tracer->sock, &tracer->pid, &tracer->pidfd);

	if (r == -EAGAIN)
		return false;
	if (r == 0)
		r = sd_event_add_io(tracer->tracers->event, &tracer->child, tracer->pidfd, EPOLLIN, on_adopted_end, tracer);
	tracer->expected = false;
	if (r >= 0)
		return true;
	if (r == -ESRCH) {
		meet_too_late(tracer);
		return false;
	}
	tracer->pid = 0;
	lose(tracer, r == -ECONNRESET ? "its service could not be started, which systemd's journal says more of"
				      : strerror(-r));
	return false;
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *context)
{
	struct tracer *tracer = context;

	(void)source;
	(void)fd;
	(void)revents;
	if (tracer->expected && !meet(tracer))
		return 0;
	for (int i = 0; i < MESSAGES_PER_WAKEUP && receive_one(tracer) > 0; i++)
		;
	return 0;
}

static void log_end(const struct tracer *tracer, const siginfo_t *si)
{
	if (si->si_code != CLD_EXITED)
		log_error("process %d: its tracer (%d) was killed by signal %d (%s)", tracer->target_pid,
			  si->si_pid, si->si_status, strsignal(si->si_status));
	else if (si->si_status != 0 && si->si_status != TRACER_LEFT_SOMETHING)
		log_error("process %d: its tracer (%d) ended with status %d", tracer->target_pid, si->si_pid,
			  si->si_status);
}

/* What it had sent is still there to be read; a child of its own may hold the other end open. */
static void take_end(struct tracer *tracer, bool well)
{
	struct tracers *tracers = tracer->tracers;

	while (tracer->sock >= 0 && receive_one(tracer) > 0)
		;
	/* Its target lives on by the resident handler; nobody needs that for longer than this takes. */
	if (!well)
		tracers_heal(tracers, tracer->target_pid);
	lose(tracer, tracer->stuck ? "it was stuck and had to be killed" : "it ended");
	tracer->pid = 0;            /* only now: its owner may have let it go, which frees it without a pid */
	if (tracer->let_go)
		tracer_free(tracer);
	tracers->gone(tracers->context);
}

static int on_process_end(sd_event_source *source, const siginfo_t *si, void *context)
{
	(void)source;
	log_end(context, si);
	take_end(context, si->si_code == CLD_EXITED && si->si_status == 0);
	return 0;
}

/* Nobody tells how it ended: one that was not let go first was lost. */
static int on_adopted_end(sd_event_source *source, int fd, uint32_t revents, void *context)
{
	struct tracer *tracer = context;

	(void)source;
	(void)fd;
	(void)revents;
	tracer->child = sd_event_source_disable_unref(tracer->child);
	take_end(tracer, tracer->let_go && !tracer->lost);
	return 0;
}

static void restart_timer(struct tracer *tracer, uint64_t usec)
{
	sd_event_source_set_time_relative(tracer->timer, usec);
	sd_event_source_set_enabled(tracer->timer, SD_EVENT_ONESHOT);
}

/* By its pidfd where it is not ours to reap: its number may be another's by now. */
static void end_by_force(const struct tracer *tracer)
{
	if (tracer->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, tracer->pidfd, SIGKILL, NULL, 0);
	else
		kill(tracer->pid, SIGKILL);
}

static void end_stuck(struct tracer *tracer)
{
	log_error("process %d: its tracer (%d) %s, was not heard for %" PRIu64 " ms, and is killed: what it has left in "
		  "the process is taken out", tracer->target_pid, tracer->pid, tracer->stuck,
		  heartbeat_silence_ms(&tracer->heartbeat));
	end_by_force(tracer);
	restart_timer(tracer, KILLED_GRACE_US);
}

/* It waits in the kernel for a file system that does not answer, and has what it traces until then; or for a processor. */
static void give_up_unkillable(struct tracer *tracer)
{
	const char *why;

	if (tracer->pid == 0 || tracer->lost)
		return;
	why = heartbeat_outlives_kill(tracer->pid);
	log_error("process %d: its tracer (%d) has not ended by SIGKILL: %s; what it has left in the process is taken out "
		  "when it does", tracer->target_pid, tracer->pid, why);
	lose(tracer, why);
}

/* What it sent before the daemon itself was kept from running is heard first. */
static void look_after(struct tracer *tracer)
{
	for (int i = 0; i < MESSAGES_PER_WAKEUP && tracer->sock >= 0 && !tracer->expected && receive_one(tracer) > 0; i++)
		;
	if (tracer->sock < 0)
		lose(tracer, CLOSED);
	if (tracer->lost || tracer->let_go || tracer->stuck)
		return;
	if (tracer->expected && heartbeat_silence_ms(&tracer->heartbeat) > SERVICE_START_MS) {
		lose(tracer, "its service was not started in time");
		return;
	}
	tracer->stuck = heartbeat_look(&tracer->heartbeat, tracer->pid);
	if (tracer->stuck)
		end_stuck(tracer);
	else
		restart_timer(tracer, HEARTBEAT_LOOK_US);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *context)
{
	struct tracer *tracer = context;

	(void)source;
	(void)usec;
	if (!tracer->let_go && tracer->stuck) {
		give_up_unkillable(tracer);
	} else if (!tracer->let_go) {
		look_after(tracer);
	} else if (tracer->pid > 0) {
		log_error("process %d: its tracer (%d) does not leave and is killed", tracer->target_pid, tracer->pid);
		end_by_force(tracer);
	}
	return 0;
}

/* --- starting --- */

static int start_process(struct tracer *tracer)
{
	char name[] = "allocwatch-tracer";
	char *const argv[] = { name, NULL };
	int socks[2], r;

	if (tracer->tracers->service) {
		tracer->expected = true;
		return tracer_process_connect(tracer->tracers->service, &tracer->sock);
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks) < 0)
		return -errno;
	tracer->sock = socks[0];
	r = fcntl(socks[0], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
	if (r == 0)
		r = tracer_process_spawn(tracer->tracers->program, argv, socks[1], &tracer->pid);
	close(socks[1]);
	return r;
}

static int add_sources(struct tracer *tracer)
{
	sd_event *event = tracer->tracers->event;
	int r = 0;

	if (tracer->pidfd >= 0)
		r = sd_event_add_io(event, &tracer->child, tracer->pidfd, EPOLLIN, on_adopted_end, tracer);
	else if (!tracer->expected)
		r = sd_event_add_child(event, &tracer->child, tracer->pid, WEXITED, on_process_end, tracer);
	if (r >= 0)
		r = sd_event_add_io(event, &tracer->io, tracer->sock, EPOLLIN, on_io, tracer);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &tracer->timer, CLOCK_MONOTONIC, HEARTBEAT_LOOK_US,
					       HEARTBEAT_LOOK_US / 10, on_timer, tracer);
	return r < 0 ? r : 0;
}

static struct tracer *tracer_new(struct tracers *tracers, int target_pid, const struct tracer_owner *owner)
{
	struct tracer *tracer = vec_reserve(&tracers->running, 1) < 0 ? NULL : calloc(1, sizeof(*tracer));

	if (!tracer)
		return NULL;
	tracer->tracers = tracers;
	tracer->owner = *owner;
	tracer->target_pid = target_pid;
	tracer->sock = tracer->pidfd = -1;
	heartbeat_heard(&tracer->heartbeat, 0, FIRST_HEARTBEAT_MS);
	return tracer;
}

static void add_running(struct tracer *tracer)
{
	struct tracer **slot = vec_push(&tracer->tracers->running);

	*slot = tracer;
}

int tracer_start(struct tracers *tracers, int pid, const struct tracer_owner *owner, struct tracer **ret)
{
	struct tracer *tracer = tracer_new(tracers, pid, owner);
	int r;

	if (!tracer)
		return -ENOMEM;
	r = start_process(tracer);
	if (r == 0)
		r = add_sources(tracer);
	if (r < 0)
		goto undo;
	add_running(tracer);
	*ret = tracer;
	return 0;
undo:
	if (tracer->pid > 0) {
		kill(tracer->pid, SIGKILL);
		waitpid(tracer->pid, NULL, 0);
	}
	tracer_free(tracer);
	return r;
}

/* What a tracer says is not believed: the daemon may be made to watch and end a child of the tracer's, and no other
 * process. */
static int open_child(const struct tracer *parent, pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (pidfd < 0)
		return -errno;
	if (parent->pid == 0 || proc_parent(pid) != parent->pid) {
		close(pidfd);
		return -EPERM;
	}
	return pidfd;
}

int tracer_adopt(struct tracers *tracers, const struct tracer *parent, int target_pid, pid_t pid, int sock,
		 const struct tracer_owner *owner, struct tracer **ret)
{
	struct tracer *tracer = tracer_new(tracers, target_pid, owner);
	int r;

	if (!tracer) {
		close(sock);
		return -ENOMEM;
	}
	tracer->sock = sock;
	tracer->pidfd = r = open_child(parent, pid);
	tracer->pid = pid;
	if (r >= 0)
		r = fcntl(sock, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
	if (r == 0)
		r = add_sources(tracer);
	if (r < 0) {
		tracer_free(tracer);
		return r;
	}
	add_running(tracer);
	*ret = tracer;
	return 0;
}

void tracer_let_go(struct tracer *tracer)
{
	if (!tracer)
		return;
	tracer->let_go = true;
	hang_up(tracer);
	if (tracer->pid == 0)
		tracer_free(tracer);
	else
		restart_timer(tracer, TRACER_EXIT_GRACE_US);
}

int tracer_send(struct tracer *tracer, const void *message, size_t len, int fd)
{
	if (tracer->sock < 0)
		return -ENOTCONN;
	return fd_send_message(tracer->sock, message, len, fd);
}

pid_t tracer_pid(const struct tracer *tracer)
{
	return tracer->pid;
}
