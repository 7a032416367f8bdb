/* Threads that wait in the kernel, one per call, and tell when a wait was broken off by EINTR.
 *
 * 'g' only answers.  'w' wakes them all, each in its own way, waits until they waited again and
 * answers.  A timed wait that ends early is a broken one too.
 * Tally: waiters, waiting (now), woken, broken, and first=NAME of the first broken one. */
#define _GNU_SOURCE
#include "victim.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES (64 * 1024)
#define LONG_SECONDS 3600
#define WAKE_SIGNAL (SIGRTMIN + 2)

/* wait(): 0 when it was woken as meant, else the errno.  wake(): makes exactly one wait end. */
struct waiter {
	const char *name;
	int (*prepare)(struct waiter *w);
	int (*wait)(struct waiter *w);
	void (*wake)(struct waiter *w);
	int fd[2], other;
	atomic_int word;
	atomic_long begun, woken;
	pid_t tid;
};

static atomic_long broken;
static _Atomic(const char *) first_broken;

static int prepare_pipe(struct waiter *w)
{
	return pipe(w->fd);
}

static int prepare_socket(struct waiter *w)
{
	struct timeval timeout = { .tv_sec = LONG_SECONDS };

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, w->fd))
		return -1;
	return setsockopt(w->fd[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
}

static int prepare_epoll(struct waiter *w)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (pipe(w->fd))
		return -1;
	w->other = epoll_create1(0);
	return w->other < 0 ? -1 : epoll_ctl(w->other, EPOLL_CTL_ADD, w->fd[0], &event);
}

static int prepare_eventfd(struct waiter *w)
{
	w->fd[0] = w->fd[1] = eventfd(0, 0);
	return w->fd[0] < 0 ? -1 : 0;
}

static int prepare_semaphore(struct waiter *w)
{
	w->other = semget(IPC_PRIVATE, 1, 0600);
	return w->other < 0 ? -1 : 0;
}

static int prepare_queue(struct waiter *w)
{
	w->other = msgget(IPC_PRIVATE, 0600);
	return w->other < 0 ? -1 : 0;
}

static int take_byte(struct waiter *w)
{
	char c[8];

	return read(w->fd[0], c, w->fd[0] == w->fd[1] ? 8 : 1) > 0 ? 0 : errno;
}

static void give_byte(struct waiter *w)
{
	uint64_t one = 1;
	size_t len = w->fd[0] == w->fd[1] ? 8 : 1;

	if (write(w->fd[1], &one, len) != (ssize_t)len)
		die("waking %s: %s", w->name, strerror(errno));
}

static int wait_recv(struct waiter *w)
{
	char c;

	return recv(w->fd[0], &c, 1, 0) == 1 ? 0 : errno;
}

static int wait_epoll(struct waiter *w)
{
	struct epoll_event event;

	if (epoll_wait(w->other, &event, 1, LONG_SECONDS * 1000) != 1)
		return errno ? errno : ETIMEDOUT;
	return take_byte(w);
}

static int wait_poll(struct waiter *w)
{
	struct pollfd pollfd = { .fd = w->fd[0], .events = POLLIN };

	if (poll(&pollfd, 1, LONG_SECONDS * 1000) != 1)
		return errno ? errno : ETIMEDOUT;
	return take_byte(w);
}

static int wait_select(struct waiter *w)
{
	struct timeval timeout = { .tv_sec = LONG_SECONDS };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(w->fd[0], &set);
	if (select(w->fd[0] + 1, &set, NULL, NULL, &timeout) != 1)
		return errno ? errno : ETIMEDOUT;
	return take_byte(w);
}

/* The wake is a change of the word; the value before it is the one to wait on. */
static int wait_futex(struct waiter *w)
{
	static const struct timespec timeout = { .tv_sec = LONG_SECONDS };

	if (syscall(SYS_futex, &w->word, FUTEX_WAIT, 0, &timeout, NULL, 0) && errno != EAGAIN)
		return errno;
	atomic_store(&w->word, 0);
	return 0;
}

static void wake_futex(struct waiter *w)
{
	atomic_store(&w->word, 1);
	syscall(SYS_futex, &w->word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static int wait_semop(struct waiter *w)
{
	struct sembuf down = { .sem_op = -1 };

	return semop(w->other, &down, 1) ? errno : 0;
}

static int wait_semtimedop(struct waiter *w)
{
	static const struct timespec timeout = { .tv_sec = LONG_SECONDS };
	struct sembuf down = { .sem_op = -1 };

	return semtimedop(w->other, &down, 1, &timeout) ? errno : 0;
}

static void wake_semaphore(struct waiter *w)
{
	struct sembuf up = { .sem_op = 1 };

	if (semop(w->other, &up, 1))
		die("waking %s: %s", w->name, strerror(errno));
}

struct message {
	long type;
	char text[8];
};

static int wait_queue(struct waiter *w)
{
	struct message message;

	return msgrcv(w->other, &message, sizeof(message.text), 0, 0) < 0 ? errno : 0;
}

static void wake_queue(struct waiter *w)
{
	struct message message = { .type = 1, .text = "wake" };

	if (msgsnd(w->other, &message, sizeof(message.text), 0))
		die("waking %s: %s", w->name, strerror(errno));
}

static int wait_signal(struct waiter *w)
{
	static const struct timespec timeout = { .tv_sec = LONG_SECONDS };
	sigset_t set;

	(void)w;
	sigemptyset(&set);
	sigaddset(&set, WAKE_SIGNAL);
	return sigtimedwait(&set, NULL, &timeout) < 0 ? errno : 0;
}

static void wake_signal(struct waiter *w)
{
	if (syscall(SYS_tgkill, getpid(), w->tid, WAKE_SIGNAL))
		die("waking %s: %s", w->name, strerror(errno));
}

/* Nothing ends a sleep early in a decent way: these are not woken, only watched. */
static int wait_nanosleep(struct waiter *w)
{
	static const struct timespec time = { .tv_sec = LONG_SECONDS };

	(void)w;
	return nanosleep(&time, NULL) ? errno : ETIMEDOUT;
}

static int wait_clock_nanosleep(struct waiter *w)
{
	struct timespec until;
	int r;

	(void)w;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += LONG_SECONDS;
	r = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	return r ? r : ETIMEDOUT;
}

/* The rest is only watched, too. */
static int prepare_full_listener(struct waiter *w)
{
	struct timeval timeout = { .tv_sec = LONG_SECONDS };
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(name);

	w->other = socket(AF_UNIX, SOCK_STREAM, 0);
	w->fd[0] = socket(AF_UNIX, SOCK_STREAM, 0);
	w->fd[1] = socket(AF_UNIX, SOCK_STREAM, 0);
	/* The kernel makes up a name; a backlog of nothing takes one. */
	if (bind(w->other, (struct sockaddr *)&name, sizeof(sa_family_t)) || listen(w->other, 0) ||
	    getsockname(w->other, (struct sockaddr *)&name, &len) ||
	    connect(w->fd[1], (struct sockaddr *)&name, len))
		return -1;
	return setsockopt(w->fd[0], SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
}

static int wait_connect(struct waiter *w)
{
	struct sockaddr_un name;
	socklen_t len = sizeof(name);

	if (getsockname(w->other, (struct sockaddr *)&name, &len))
		return errno;
	return connect(w->fd[0], (struct sockaddr *)&name, len) ? errno : 0;
}

static int prepare_listener(struct waiter *w)
{
	struct timeval timeout = { .tv_sec = LONG_SECONDS };
	struct sockaddr_un name = { .sun_family = AF_UNIX };

	w->fd[0] = socket(AF_UNIX, SOCK_STREAM, 0);
	if (bind(w->fd[0], (struct sockaddr *)&name, sizeof(sa_family_t)) || listen(w->fd[0], 1))
		return -1;
	return setsockopt(w->fd[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
}

static int wait_accept(struct waiter *w)
{
	return accept(w->fd[0], NULL, NULL) < 0 ? errno : 0;
}

static unsigned long aio_context;

static int prepare_aio(struct waiter *w)
{
	(void)w;
	return (int)syscall(SYS_io_setup, 8, &aio_context);
}

static int wait_getevents(struct waiter *w)
{
	char events[64];

	(void)w;
	return syscall(SYS_io_getevents, aio_context, 1L, 1L, events, NULL) < 0 ? errno : 0;
}

static int wait_pgetevents(struct waiter *w)
{
	char events[64];

	(void)w;
	return syscall(SYS_io_pgetevents, aio_context, 1L, 1L, events, NULL, NULL) < 0 ? errno : 0;
}

static int prepare_child(struct waiter *w)
{
	pid_t parent = getpid();

	w->other = fork();
	if (w->other == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == parent)
			pause();
		_exit(0);
	}
	return w->other < 0 ? -1 : 0;
}

static int wait_child(struct waiter *w)
{
	return wait4(w->other, NULL, 0, NULL) < 0 ? errno : 0;
}

static int wait_sigsuspend(struct waiter *w)
{
	sigset_t set;

	(void)w;
	sigfillset(&set);
	sigsuspend(&set);
	return errno;
}

#define WAITER(NAME, PREPARE, WAIT, WAKE) \
	{ .name = NAME, .prepare = PREPARE, .wait = WAIT, .wake = WAKE }

static struct waiter waiters[] = {
	WAITER("read", prepare_pipe, take_byte, give_byte),
	WAITER("eventfd", prepare_eventfd, take_byte, give_byte),
	WAITER("recv-timeout", prepare_socket, wait_recv, give_byte),
	WAITER("epoll_wait", prepare_epoll, wait_epoll, give_byte),
	WAITER("poll", prepare_pipe, wait_poll, give_byte),
	WAITER("select", prepare_pipe, wait_select, give_byte),
	WAITER("futex", NULL, wait_futex, wake_futex),
	WAITER("semop", prepare_semaphore, wait_semop, wake_semaphore),
	WAITER("semtimedop", prepare_semaphore, wait_semtimedop, wake_semaphore),
	WAITER("msgrcv", prepare_queue, wait_queue, wake_queue),
	WAITER("sigtimedwait", NULL, wait_signal, wake_signal),
	WAITER("nanosleep", NULL, wait_nanosleep, NULL),
	WAITER("clock_nanosleep", NULL, wait_clock_nanosleep, NULL),
	WAITER("connect-timeout", prepare_full_listener, wait_connect, NULL),
	WAITER("accept-timeout", prepare_listener, wait_accept, NULL),
	WAITER("io_getevents", prepare_aio, wait_getevents, NULL),
	WAITER("io_pgetevents", NULL, wait_pgetevents, NULL),
	WAITER("wait4", prepare_child, wait_child, NULL),
	WAITER("sigsuspend", NULL, wait_sigsuspend, NULL),
};
#define COUNT ((long)(sizeof(waiters) / sizeof(waiters[0])))

static void *run_waiter(void *argument)
{
	struct waiter *w = argument;

	w->tid = (pid_t)syscall(SYS_gettid);
	for (;;) {
		const char *none = NULL;
		int r;

		atomic_fetch_add(&w->begun, 1);
		errno = 0;
		r = w->wait(w);
		if (r == 0) {
			atomic_fetch_add(&w->woken, 1);
			continue;
		}
		atomic_fetch_add(&broken, 1);
		atomic_compare_exchange_strong(&first_broken, &none, w->name);
	}
	return NULL;
}

/* Blocked in the kernel: it began its n-th wait and the kernel says that the thread sleeps. */
static int is_waiting(struct waiter *w, long begun)
{
	char path[64], text[256], *state;
	ssize_t n;
	int fd;

	if (atomic_load(&w->begun) < begun)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", w->tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die("%s: %s", path, strerror(errno));
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		die("%s: %s", path, strerror(errno));
	text[n] = '\0';
	state = strrchr(text, ')');
	return state && state[1] && state[2] == 'S';
}

static long count_waiting(void)
{
	long n = 0;

	for (long i = 0; i < COUNT; i++)
		n += is_waiting(&waiters[i], 1);
	return n;
}

static void tell(void)
{
	const char *first = atomic_load(&first_broken);
	long woken = 0;

	for (long i = 0; i < COUNT; i++)
		woken += atomic_load(&waiters[i].woken);
	say("waiters=%ld waiting=%ld woken=%ld broken=%ld first=%s", COUNT, count_waiting(), woken,
	    atomic_load(&broken), first ? first : "none");
}

static void wake_all(void)
{
	for (long i = 0; i < COUNT; i++) {
		struct waiter *w = &waiters[i];
		long begun = atomic_load(&w->begun);

		if (!w->wake)
			continue;
		w->wake(w);
		while (!is_waiting(w, begun + 1))
			;
	}
	tell();
}

static void start_waiters(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, WAKE_SIGNAL);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (long i = 0; i < COUNT; i++) {
		if (waiters[i].prepare && waiters[i].prepare(&waiters[i]))
			die("preparing %s: %s", waiters[i].name, strerror(errno));
		start_thread(run_waiter, &waiters[i], STACK_BYTES);
	}
	while (count_waiting() < COUNT)
		;
}

/* What System V leaves behind otherwise. */
static void remove_ipc(void)
{
	for (long i = 0; i < COUNT; i++) {
		if (waiters[i].prepare == prepare_semaphore)
			semctl(waiters[i].other, 0, IPC_RMID);
		if (waiters[i].prepare == prepare_queue)
			msgctl(waiters[i].other, IPC_RMID, NULL);
	}
}

int main(void)
{
	int command;

	start_waiters();
	say("R");
	while ((command = next_command()) != 'q') {
		if (command == 'w')
			wake_all();
		else
			tell();
	}
	remove_ipc();
	_exit(0);
}
