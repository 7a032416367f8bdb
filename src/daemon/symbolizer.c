#define _GNU_SOURCE              /* posix_spawn_file_actions_addclosefrom_np */

#include "daemon/symbolizer.h"

#include "base/fd.h"
#include "symbol/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOCKET_FD 3              /* where the program looks for its socket */
#define ACCURACY_US 10000

struct symbolizer {
	const struct symbolizer_handler *handler;
	void *context;
	pid_t pid;
	int pidfd, sock;
	sd_event_source *io, *timer;
	uint64_t interval_us;
	uint64_t message[SYMBOL_WIRE_MESSAGE_MAX / sizeof(uint64_t)];
};

/* --- starting --- */

static int prepare(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes, int sock)
{
	sigset_t none, all;
	int r;

	sigemptyset(&none);
	sigfillset(&all);
	r = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (r == 0)
		r = posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(actions, sock, SOCKET_FD);
	if (r == 0)
		r = posix_spawn_file_actions_addclosefrom_np(actions, SOCKET_FD + 1);
	if (r == 0)
		r = posix_spawnattr_setsigmask(attributes, &none);
	if (r == 0)
		r = posix_spawnattr_setsigdefault(attributes, &all);
	if (r == 0)
		r = posix_spawnattr_setflags(attributes,
					     POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	return -r;
}

static int spawn(const char *program, int sock, pid_t *ret_pid)
{
	static char *const environment[] = { (char *)"LC_ALL=C", NULL };
	char *const arguments[] = { (char *)program, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int r;

	r = posix_spawn_file_actions_init(&actions);
	if (r != 0)
		return -r;
	r = posix_spawnattr_init(&attributes);
	if (r != 0) {
		posix_spawn_file_actions_destroy(&actions);
		return -r;
	}
	r = prepare(&actions, &attributes, sock);
	if (r == 0)
		r = -posix_spawn(ret_pid, program, &actions, &attributes, arguments, environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

static int start_process(struct symbolizer *symbolizer, const char *program)
{
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	symbolizer->sock = pair[0];
	r = spawn(program, pair[1], &symbolizer->pid);
	fd_close(&pair[1]);
	if (r < 0)
		return r;
	if (fcntl(symbolizer->sock, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	symbolizer->pidfd = pidfd_open(symbolizer->pid, 0);
	return symbolizer->pidfd < 0 ? -errno : 0;
}

/* --- its messages --- */

static int receive_one(struct symbolizer *symbolizer)
{
	ssize_t n;
	int fd, r;

	n = fd_receive_message(symbolizer->sock, symbolizer->message, sizeof(symbolizer->message),
			       &fd);
	if (n < 0)
		return (int)n;
	fd_close(&fd);
	if (n == 0)
		return -EPIPE;
	r = symbol_wire_check(symbolizer->message, (size_t)n, true);
	if (r < 0)
		return r;
	r = symbolizer_expect(symbolizer, symbolizer->interval_us);
	if (r < 0)
		return r;
	return symbolizer->handler->message(symbolizer->context, symbolizer->message, (size_t)n);
}

static int on_readable(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct symbolizer *symbolizer = userdata;
	int r = 0;

	(void)source, (void)fd, (void)events;
	while (r == 0)
		r = receive_one(symbolizer);
	if (r != -EAGAIN)
		symbolizer->handler->end(symbolizer->context);
	return 0;
}

static int on_silence(sd_event_source *source, uint64_t at, void *userdata)
{
	struct symbolizer *symbolizer = userdata;

	(void)source, (void)at;
	symbolizer->handler->silent(symbolizer->context);
	return 0;
}

static int watch(struct symbolizer *symbolizer, sd_event *event)
{
	int r = sd_event_add_io(event, &symbolizer->io, symbolizer->sock, EPOLLIN, on_readable,
				symbolizer);

	if (r >= 0)
		r = sd_event_add_time(event, &symbolizer->timer, CLOCK_MONOTONIC, 0, ACCURACY_US,
				      on_silence, symbolizer);
	if (r >= 0)
		r = sd_event_source_set_enabled(symbolizer->timer, SD_EVENT_OFF);
	return r < 0 ? r : 0;
}

int symbolizer_start(sd_event *event, const char *program, const struct symbolizer_handler *handler,
		     void *context, struct symbolizer **ret)
{
	struct symbolizer *symbolizer = calloc(1, sizeof(*symbolizer));
	int r;

	if (!symbolizer)
		return -ENOMEM;
	symbolizer->handler = handler;
	symbolizer->context = context;
	symbolizer->sock = symbolizer->pidfd = -1;
	r = start_process(symbolizer, program);
	if (r == 0)
		r = watch(symbolizer, event);
	if (r < 0) {
		symbolizer_free(symbolizer);
		return r;
	}
	*ret = symbolizer;
	return 0;
}

int symbolizer_send(struct symbolizer *symbolizer, const void *message, size_t len, int fd)
{
	return fd_send_message(symbolizer->sock, message, len, fd);
}

int symbolizer_expect(struct symbolizer *symbolizer, uint64_t interval_us)
{
	int r;

	symbolizer->interval_us = interval_us;
	if (interval_us == 0)
		return sd_event_source_set_enabled(symbolizer->timer, SD_EVENT_OFF);
	r = sd_event_source_set_time_relative(symbolizer->timer, interval_us);
	return r < 0 ? r : sd_event_source_set_enabled(symbolizer->timer, SD_EVENT_ONESHOT);
}

pid_t symbolizer_pid(const struct symbolizer *symbolizer)
{
	return symbolizer->pid;
}

/* --- its end --- */

static int on_dead(sd_event_source *source, int pidfd, uint32_t events, void *userdata)
{
	siginfo_t info;

	(void)events, (void)userdata;
	waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG);
	/* The loop gives up the last reference to it, and with it the pidfd. */
	sd_event_source_set_floating(source, 0);
	return 0;
}

/* Whether the process is gone; takes no time. */
static bool kill_now(pid_t pid, int pidfd)
{
	siginfo_t info = { 0 };

	if (pidfd < 0) {
		kill(pid, SIGKILL);
		return waitpid(pid, NULL, 0) != 0;
	}
	pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
	return waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG) < 0 || info.si_pid == pid;
}

/* A process that waits for a dead file server dies late, and the daemon must not wait for it: the
 * event loop reaps it when it is done. */
static void end_process(struct symbolizer *symbolizer)
{
	sd_event *event = symbolizer->io ? sd_event_source_get_event(symbolizer->io) : NULL;
	sd_event_source *source;

	if (symbolizer->pid <= 0)
		return;
	if (!kill_now(symbolizer->pid, symbolizer->pidfd) && event &&
	    sd_event_add_io(event, &source, symbolizer->pidfd, EPOLLIN, on_dead, NULL) >= 0) {
		sd_event_source_set_io_fd_own(source, 1);
		symbolizer->pidfd = -1;
		sd_event_source_set_floating(source, 1);
		sd_event_source_unref(source);
	}
	fd_close(&symbolizer->pidfd);
}

void symbolizer_free(struct symbolizer *symbolizer)
{
	if (!symbolizer)
		return;
	end_process(symbolizer);
	sd_event_source_disable_unref(symbolizer->io);
	sd_event_source_disable_unref(symbolizer->timer);
	fd_close(&symbolizer->sock);
	free(symbolizer);
}
