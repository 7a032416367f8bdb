#define _GNU_SOURCE
#include "tracer/link.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define RING_MS 1             /* between two interruptions of the ptrace thread */
#define FLUSH_MS 1000
#define SPARES 3              /* messages for what must be told without memory, too: LINK_CLOSED and its like */

struct queued {
	struct queued *next;
	int fd;
	size_t length;
	char bytes[];
};


struct link {
	int sock, wake_fd, signal_fd;
	pthread_t owner, thread;
	pthread_mutex_t lock;
	pthread_cond_t arrived;
	atomic_uint waiting;           /* messages in the inbox */
	struct link_message *inbox, **inbox_end;
	struct queued *outbox, **outbox_end;
	unsigned outbox_count;
	atomic_bool closed;            /* the daemon is gone, and LINK_CLOSED was delivered */
	bool tick_queued;
	bool answers;                  /* the daemon is one that answers heartbeats */
	unsigned silent_ticks;         /* since it did */
	struct link_message *spares[SPARES];
	atomic_bool failed;            /* something could not be told: better to leave than to be silent */
	bool ending;
};

static void deliver(struct link *link, struct link_message *entry)
{
	pthread_mutex_lock(&link->lock);
	entry->next = NULL;
	*link->inbox_end = entry;
	link->inbox_end = &entry->next;
	atomic_fetch_add_explicit(&link->waiting, 1, memory_order_release);
	pthread_cond_signal(&link->arrived);
	pthread_mutex_unlock(&link->lock);
}

static struct link_message *take_spare(struct link *link)
{
	struct link_message *entry = NULL;

	pthread_mutex_lock(&link->lock);
	for (size_t i = 0; !entry && i < SPARES; i++) {
		entry = link->spares[i];
		link->spares[i] = NULL;
	}
	pthread_mutex_unlock(&link->lock);
	return entry;
}

/* False: there is no memory for it. */
static bool deliver_pseudo(struct link *link, uint32_t type)
{
	struct link_message *entry = calloc(1, sizeof(*entry));

	if (!entry && type != LINK_TICK)
		entry = take_spare(link);
	if (!entry)
		return false;
	entry->type = type;
	entry->fd = -1;
	deliver(link, entry);
	return true;
}

/* What was to be said and cannot is missed by somebody: so nothing more is, and the daemon sees the end of it. */
static void daemon_gone(struct link *link)
{
	if (link->closed)
		return;
	link->closed = true;
	shutdown(link->sock, SHUT_RDWR);
	deliver_pseudo(link, LINK_CLOSED);
}

static void receive(struct link *link)
{
	struct link_message *entry;
	ssize_t n;

	if (atomic_load(&link->waiting) >= LINK_INBOX_MAX)
		return;
	entry = malloc(sizeof(*entry));
	if (!entry) {
		daemon_gone(link);
		return;
	}
	n = fd_receive_message(link->sock, entry->body.bytes, WIRE_MESSAGE_MAX, &entry->fd);
	if (n == -EAGAIN || n == -EMSGSIZE) {
		free(entry);
		return;
	}
	if (n <= 0) {
		free(entry);
		daemon_gone(link);
		return;
	}
	if (wire_check(entry->body.bytes, (size_t)n, 0) < 0) {
		fd_close(&entry->fd);
		free(entry);
		return;
	}
	link->silent_ticks = 0;
	if (entry->body.head.type == WIRE_ALIVE) {
		link->answers = true;
		fd_close(&entry->fd);
		free(entry);
		return;
	}
	entry->type = entry->body.head.type;
	entry->length = (size_t)n;
	deliver(link, entry);
}

/* Sends until the socket is full; true when something is left. */
static bool flush(struct link *link)
{
	for (;;) {
		struct queued *first;
		int r;

		pthread_mutex_lock(&link->lock);
		first = link->outbox;
		pthread_mutex_unlock(&link->lock);
		if (!first || link->closed)
			return false;
		r = fd_send_message(link->sock, first->bytes, first->length, first->fd);
		if (r == -EAGAIN)
			return true;
		if (r < 0) {
			daemon_gone(link);
			return false;
		}
		pthread_mutex_lock(&link->lock);
		link->outbox = first->next;
		if (!link->outbox)
			link->outbox_end = &link->outbox;
		link->outbox_count--;
		pthread_mutex_unlock(&link->lock);
		fd_close(&first->fd);
		free(first);
	}
}

static void tick(struct link *link, uint64_t *next_ns)
{
	if (!clock_passed(*next_ns))
		return;
	*next_ns = clock_monotonic_ns() + LINK_TICK_MS * NSEC_PER_MSEC;
	if (link->answers && !link->closed && ++link->silent_ticks == LINK_SILENT_TICKS)
		deliver_pseudo(link, LINK_SILENT);
	if (__atomic_exchange_n(&link->tick_queued, true, __ATOMIC_ACQ_REL))
		return;            /* the last one was not taken yet */
	if (!deliver_pseudo(link, LINK_TICK))
		__atomic_store_n(&link->tick_queued, false, __ATOMIC_RELEASE);
}

static void *run(void *context)
{
	struct link *link = context;
	uint64_t next_tick_ns = 0;

	for (;;) {
		bool ending = __atomic_load_n(&link->ending, __ATOMIC_ACQUIRE);
		bool unsent = flush(link), ringing = atomic_load(&link->waiting) > 0;
		struct pollfd fds[] = {
			{ .fd = link->closed ? -1 : link->sock, .events = POLLIN | (unsent ? POLLOUT : 0) },
			{ .fd = link->wake_fd, .events = POLLIN },
			{ .fd = link->signal_fd, .events = POLLIN },
		};
		struct signalfd_siginfo info;
		eventfd_t value;

		if (ending && !unsent)
			return NULL;
		if (atomic_load(&link->failed))
			daemon_gone(link);
		if (ringing && !ending)
			pthread_kill(link->owner, SIGUSR1);
		poll(fds, 3, ringing ? RING_MS : LINK_TICK_MS / 2);
		if (fds[1].revents)
			eventfd_read(link->wake_fd, &value);
		if (fds[2].revents && read(link->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
			deliver_pseudo(link, LINK_TERMINATE);
		if (fds[0].revents & (POLLIN | POLLHUP | POLLERR))
			receive(link);
		tick(link, &next_tick_ns);
	}
}

static void on_doorbell(int sig)
{
	(void)sig;                 /* its only use is to end waitid with EINTR */
}

static int prepare_signals(struct link *link)
{
	struct sigaction doorbell = { .sa_handler = on_doorbell };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0 || sigaction(SIGUSR1, &doorbell, NULL) < 0)
		return -errno;
	link->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return link->signal_fd < 0 ? -errno : 0;
}

static void free_spares(struct link *link)
{
	for (size_t i = 0; i < SPARES; i++)
		free(link->spares[i]);
}

size_t link_memory(struct link *link)
{
	size_t memory = sizeof(*link);

	pthread_mutex_lock(&link->lock);
	for (size_t i = 0; i < SPARES; i++)
		memory += link->spares[i] ? sizeof(*link->spares[i]) : 0;
	pthread_mutex_unlock(&link->lock);
	return memory;
}

int link_new(int sock, struct link **ret_link)
{
	struct link *link = calloc(1, sizeof(*link));
	int r;

	if (!link)
		return -ENOMEM;
	link->sock = sock;
	link->signal_fd = -1;
	link->owner = pthread_self();
	link->inbox_end = &link->inbox;
	link->outbox_end = &link->outbox;
	pthread_mutex_init(&link->lock, NULL);
	pthread_cond_init(&link->arrived, NULL);
	fcntl(sock, F_SETFL, fcntl(sock, F_GETFL) | O_NONBLOCK);
	link->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = link->wake_fd < 0 ? -errno : prepare_signals(link);
	for (size_t i = 0; r == 0 && i < SPARES; i++) {
		link->spares[i] = calloc(1, sizeof(*link->spares[i]));
		r = link->spares[i] ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = -pthread_create(&link->thread, NULL, run, link);
	if (r < 0) {
		fd_close(&link->wake_fd);
		fd_close(&link->signal_fd);
		free_spares(link);
		free(link);
		return r;
	}
	*ret_link = link;
	return 0;
}

static void wake(struct link *link)
{
	eventfd_write(link->wake_fd, 1);
}

void link_free(struct link *link)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += FLUSH_MS / 1000;
	__atomic_store_n(&link->ending, true, __ATOMIC_RELEASE);
	wake(link);
	/* A daemon that does not read keeps the thread: the process ends all the same. */
	if (pthread_timedjoin_np(link->thread, NULL, &until) != 0)
		return;
	while (link->inbox) {
		struct link_message *entry = link->inbox;

		link->inbox = entry->next;
		fd_close(&entry->fd);
		free(entry);
	}
	while (link->outbox) {
		struct queued *queued = link->outbox;

		link->outbox = queued->next;
		fd_close(&queued->fd);
		free(queued);
	}
	fd_close(&link->wake_fd);
	fd_close(&link->signal_fd);
	free_spares(link);
	free(link);
}

void link_abandon(struct link *link)
{
	fd_close(&link->sock);
	fd_close(&link->wake_fd);
	fd_close(&link->signal_fd);
}

bool link_has_message(const struct link *link)
{
	return atomic_load_explicit(&link->waiting, memory_order_acquire) > 0;
}

struct link_message *link_take(struct link *link, bool wait)
{
	struct link_message *entry;

	pthread_mutex_lock(&link->lock);
	while (wait && !link->inbox)
		pthread_cond_wait(&link->arrived, &link->lock);
	entry = link->inbox;
	if (entry) {
		link->inbox = entry->next;
		if (!link->inbox)
			link->inbox_end = &link->inbox;
		atomic_fetch_sub(&link->waiting, 1);
	}
	pthread_mutex_unlock(&link->lock);
	if (entry && entry->type == LINK_TICK)
		__atomic_store_n(&link->tick_queued, false, __ATOMIC_RELEASE);
	return entry;
}

/* A message less is an answer that somebody waits for. */
static void give_up(struct link *link)
{
	atomic_store(&link->failed, true);
	wake(link);
}

void link_send(struct link *link, const void *message, size_t len, int fd)
{
	struct queued *queued = malloc(sizeof(*queued) + len);
	bool full;

	if (!queued) {
		fd_close(&fd);
		give_up(link);
		return;
	}
	queued->next = NULL;
	queued->fd = fd;
	queued->length = len;
	memcpy(queued->bytes, message, len);
	pthread_mutex_lock(&link->lock);
	full = link->outbox_count >= LINK_OUTBOX_MAX;
	if (!full) {
		*link->outbox_end = queued;
		link->outbox_end = &queued->next;
		link->outbox_count++;
	}
	pthread_mutex_unlock(&link->lock);
	if (full) {
		fd_close(&queued->fd);
		free(queued);
		give_up(link);
		return;
	}
	wake(link);
}

bool link_is_closed(const struct link *link)
{
	return atomic_load(&link->closed);
}

void link_beat(struct link *link, pid_t target, uint32_t patience_ms)
{
	struct wire_heartbeat beat = { .head = { WIRE_HEARTBEAT, 0, target, sizeof(beat) },
				       .patience_ms = patience_ms };

	link_send(link, &beat, sizeof(beat), -1);
}

void link_flush(struct link *link)
{
	uint64_t deadline_ns = clock_monotonic_ns() + LINK_FLUSH_MS * NSEC_PER_MSEC;
	struct timespec pause = { 0, 50 * NSEC_PER_USEC };
	bool empty = false;

	while (!empty && !clock_passed(deadline_ns)) {
		pthread_mutex_lock(&link->lock);
		empty = !link->outbox || link->closed;
		pthread_mutex_unlock(&link->lock);
		if (!empty)
			clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
}
