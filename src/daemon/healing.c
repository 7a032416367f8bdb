#include "daemon/healing.h"

#include "base/fd.h"
#include "base/vec.h"
#include "daemon/heartbeat.h"
#include "daemon/limits.h"
#include "daemon/log.h"
#include "daemon/standby.h"
#include "daemon/tracer_process.h"
#include "tracer/wire.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEAL_TRIES 3
#define HEAL_PAUSE_US 100000         /* times the number of tries that have failed */
#define FAILED "the process that does it failed"

struct healings {
	sd_event *event;
	const char *program, *service;
	struct standby *standby;
	VEC_OF(struct healing *) list;
};

/* A process that heals, or the pause before another one does. */
struct healing {
	struct healings *healings;
	int pid;                     /* 0: all processes */
	unsigned tries;
	int sock, pidfd;             /* of one that systemd has started; else -1 */
	bool expected;               /* that one has not been heard yet */
	pid_t pid_of_healer;         /* 0: not known yet */
	struct heartbeat heartbeat;  /* it is not heard, only looked at */
	sd_event_source *healer, *look, *pause;
};

int healings_new(sd_event *event, const char *program, const char *service, struct healings **ret)
{
	struct healings *healings = calloc(1, sizeof(*healings));
	int r;

	if (!healings)
		return -ENOMEM;
	healings->event = event;
	healings->program = program;
	healings->service = service;
	r = standby_new(event, program, service, &healings->standby);
	if (r < 0) {
		healings_free(healings);
		return r;
	}
	*ret = healings;
	return 0;
}

void healings_prepare(struct healings *healings)
{
	standby_prepare(healings->standby);
}

void healings_relax(struct healings *healings)
{
	standby_dismiss(healings->standby);
}

static void stop_listening(struct healing *healing)
{
	healing->healer = sd_event_source_disable_unref(healing->healer);
	healing->look = sd_event_source_disable_unref(healing->look);
	fd_close(&healing->sock);
	fd_close(&healing->pidfd);
}

static void healing_free(struct healing *healing)
{
	stop_listening(healing);
	sd_event_source_disable_unref(healing->pause);
	free(healing);
}

void healings_free(struct healings *healings)
{
	if (!healings)
		return;
	while (healings->list.count > 0)
		healing_free(healings->list.items[--healings->list.count]);
	vec_fini(&healings->list);
	standby_free(healings->standby);
	free(healings);
}

static void give_up(const char *reason)
{
	log_error("cannot take out what a tracer has left: %s; 'allocwatchd --heal' does it", reason);
}

/* reason: why it has failed; NULL: it has not. */
static void end(struct healing *healing, const char *reason)
{
	struct healings *healings = healing->healings;

	if (reason)
		give_up(reason);
	for (size_t i = 0; i < healings->list.count; i++) {
		if (healings->list.items[i] == healing) {
			vec_remove_unordered(&healings->list, i);
			break;
		}
	}
	healing_free(healing);
}

/* --- one try --- */

/* failure: of this try, NULL: none. */
static void take_result(struct healing *healing, const char *failure);

static int on_child_end(sd_event_source *source, const siginfo_t *si, void *context)
{
	(void)source;
	take_result(context, si->si_code == CLD_EXITED && si->si_status == 0 ? NULL : FAILED);
	return 0;
}

/* By its pidfd where it is not ours to reap: its number may be another's by now. */
static void end_by_force(const struct healing *healing)
{
	if (healing->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, healing->pidfd, SIGKILL, NULL, 0);
	else
		kill(healing->pid_of_healer, SIGKILL);
}

/* It may hold the threads of its target, as a tracer does: one that is stopped, or does not come to an end, is killed, and
 * another one goes on where it was.  Of all processes it is said once it is stopped, however long it takes. */
static int on_look(sd_event_source *source, uint64_t usec, void *context)
{
	struct healing *healing = context;
	const char *stuck = NULL;

	(void)usec;
	if (healing->expected && heartbeat_silence_ms(&healing->heartbeat) > SERVICE_START_MS) {
		take_result(healing, "its service was not started in time");
		return 0;
	}
	if (!healing->expected)
		stuck = heartbeat_look(&healing->heartbeat, healing->pid_of_healer);
	if (!stuck) {
		sd_event_source_set_time_relative(source, HEARTBEAT_LOOK_US);
		return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	}
	log_error("the process (%d) that takes out what a tracer has left %s, and is killed: another one does it",
		  healing->pid_of_healer, stuck);
	end_by_force(healing);
	return 0;
}

static void begin_patience(struct healing *healing)
{
	heartbeat_heard(&healing->heartbeat, healing->pid_of_healer, healing->pid > 0 ? HEALER_PATIENCE_MS : INT32_MAX);
}

static int look_after(struct healing *healing)
{
	begin_patience(healing);
	return sd_event_add_time_relative(healing->healings->event, &healing->look, CLOCK_MONOTONIC, HEARTBEAT_LOOK_US,
					  HEARTBEAT_LOOK_US / 10, on_look, healing);
}

static int start_process(struct healing *healing)
{
	char name[] = "allocwatch-tracer", option[] = "--heal", number[16];
	char *const argv[] = { name, option, healing->pid > 0 ? number : NULL, NULL };

	snprintf(number, sizeof(number), "%d", healing->pid);
	return tracer_process_spawn(healing->healings->program, argv, -1, &healing->pid_of_healer);
}

/* False: nobody is. */
static bool take_ready(struct healing *healing)
{
	struct standby_healer ready;

	healing->pid_of_healer = 0;
	if (standby_take(healing->healings->standby, healing->pid, &ready) < 0)
		return false;
	healing->pid_of_healer = ready.pid;
	healing->sock = ready.sock;
	healing->pidfd = ready.pidfd;
	return true;
}

static int spawn_healer(struct healing *healing)
{
	int r = 0;

	if (!take_ready(healing))
		r = start_process(healing);
	if (r == 0)
		r = sd_event_add_child(healing->healings->event, &healing->healer, healing->pid_of_healer, WEXITED,
				       on_child_end, healing);
	if (r >= 0)
		r = look_after(healing);
	if (r < 0 && healing->pid_of_healer > 0) {
		stop_listening(healing);
		kill(healing->pid_of_healer, SIGKILL);
		waitpid(healing->pid_of_healer, NULL, 0);
	}
	return r < 0 ? r : 0;
}

/* Which process systemd has started.  0, -EAGAIN: none yet, or negative errno. */
static int meet(struct healing *healing)
{
	int r = tracer_process_meet(healing->sock, &healing->pid_of_healer, &healing->pidfd);

	if (r < 0)
		return r;
	healing->expected = false;
	begin_patience(healing);
	return 0;
}

static int on_word(sd_event_source *source, int fd, uint32_t revents, void *context)
{
	struct healing *healing = context;
	int r = healing->expected ? meet(healing) : 0;
	uint32_t type;

	(void)source;
	(void)revents;
	if (r == -EAGAIN)
		return 0;
	if (r < 0) {
		take_result(healing, r == -ECONNRESET ? "its service could not be started" : strerror(-r));
		return 0;
	}
	r = tracer_process_hear(fd, &type);
	if (r == -EAGAIN || (r == 0 && type == WIRE_HEARTBEAT))
		return 0;
	take_result(healing, r == 0 && type == WIRE_DONE ? NULL : FAILED);
	return 0;
}

static int start_service(struct healing *healing)
{
	struct wire_head request = { WIRE_HEAL, 0, healing->pid, sizeof(request) };
	int r = tracer_process_connect(healing->healings->service, &healing->sock);

	return r == 0 ? fd_send_message(healing->sock, &request, sizeof(request), -1) : r;
}

static int call_healer(struct healing *healing)
{
	int r = 0;

	healing->expected = !take_ready(healing);
	if (healing->expected)
		r = start_service(healing);
	if (r == 0)
		r = sd_event_add_io(healing->healings->event, &healing->healer, healing->sock, EPOLLIN, on_word, healing);
	if (r >= 0)
		r = look_after(healing);
	return r < 0 ? r : 0;
}

static int start(struct healing *healing)
{
	healing->tries++;
	return healing->healings->service ? call_healer(healing) : spawn_healer(healing);
}

/* --- again --- */

static int on_pause_end(sd_event_source *source, uint64_t usec, void *context)
{
	struct healing *healing = context;
	int r;

	(void)source;
	(void)usec;
	healing->pause = sd_event_source_disable_unref(healing->pause);
	r = start(healing);
	if (r < 0)
		end(healing, strerror(-r));
	return 0;
}

/* What has failed once (no memory, no descriptor, a crash) may do another time. */
static void take_result(struct healing *healing, const char *failure)
{
	int r;

	stop_listening(healing);
	if (!failure) {
		end(healing, NULL);
		return;
	}
	if (healing->tries == HEAL_TRIES) {
		end(healing, failure);
		return;
	}
	r = sd_event_add_time_relative(healing->healings->event, &healing->pause, CLOCK_MONOTONIC,
				       HEAL_PAUSE_US * healing->tries, 0, on_pause_end, healing);
	if (r < 0)
		end(healing, strerror(-r));
}

void healings_begin(struct healings *healings, int pid)
{
	struct healing *healing = vec_reserve(&healings->list, 1) < 0 ? NULL : calloc(1, sizeof(*healing));
	struct healing **slot;
	int r;

	if (!healing) {
		give_up(strerror(ENOMEM));
		return;
	}
	healing->healings = healings;
	healing->pid = pid;
	healing->sock = healing->pidfd = -1;
	slot = vec_push(&healings->list);
	*slot = healing;
	r = start(healing);
	if (r < 0)
		end(healing, strerror(-r));
}
