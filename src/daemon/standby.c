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
#include <sys/socket.h>
#include <sys/wait.h>

#define STAT_PATH_MAX 48

struct standby {
	sd_event *event;
	const char *program;
	pid_t pid;                   /* 0: none */
	int sock;                    /* -1: it is about to leave */
	uint64_t next_ns;            /* not before that */
	sd_event_source *child;
};

int standby_new(sd_event *event, const char *program, struct standby **ret)
{
	struct standby *standby = calloc(1, sizeof(*standby));

	if (!standby)
		return -ENOMEM;
	*standby = (struct standby){ .event = event, .program = program, .sock = -1 };
	*ret = standby;
	return 0;
}

void standby_free(struct standby *standby)
{
	if (!standby)
		return;
	sd_event_source_disable_unref(standby->child);
	fd_close(&standby->sock);
	free(standby);
}

static void forget(struct standby *standby)
{
	standby->child = sd_event_source_disable_unref(standby->child);
	fd_close(&standby->sock);
	standby->pid = 0;
}

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

void standby_prepare(struct standby *standby)
{
	int r;

	if (!standby || standby->pid > 0 || !clock_passed(standby->next_ns))
		return;
	standby->next_ns = clock_monotonic_ns() + STANDBY_PAUSE_NS;
	r = spawn(standby);
	if (r == 0)
		r = sd_event_add_child(standby->event, &standby->child, standby->pid, WEXITED, on_end, standby);
	if (r < 0 && standby->pid > 0) {
		kill(standby->pid, SIGKILL);
		waitpid(standby->pid, NULL, 0);
	}
	if (r < 0)
		forget(standby);
}

/* It has nothing in its hands; its end is seen by on_end(). */
static void end_by_force(struct standby *standby)
{
	fd_close(&standby->sock);
	kill(standby->pid, SIGKILL);
}

void standby_dismiss(struct standby *standby)
{
	if (standby && standby->sock >= 0)
		end_by_force(standby);
}

static bool would_do_it(const struct standby *standby)
{
	char path[STAT_PATH_MAX], state;

	snprintf(path, sizeof(path), "/proc/%d/stat", standby->pid);
	state = proc_stat_state(path);
	return state == 'S' || state == 'R' || state == 'D';
}

int standby_take(struct standby *standby, int pid, pid_t *ret_healer)
{
	struct wire_head request = { WIRE_HEAL, 0, pid, sizeof(request) };

	if (!standby || standby->sock < 0)
		return -ESRCH;
	if (!would_do_it(standby) || fd_send_message(standby->sock, &request, sizeof(request), -1) < 0) {
		end_by_force(standby);
		return -ESRCH;
	}
	*ret_healer = standby->pid;
	forget(standby);
	standby->next_ns = 0;
	return 0;
}
