#define _GNU_SOURCE
#include "driver.h"

#include "process.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRACER "src/allocwatch-tracer"
#define COUNTER "tests/bench/allocation_counter.so"
#define TRACER_SOCKET 3
#define ANSWER_MS 60000

struct driver {
	struct driver_options options;
	int sock;
	pid_t tracer, target;
	uint32_t serial;
	int received_fd;                /* of the last message */
	union {
		struct wire_head head;
		struct wire_status status;
		struct wire_failed failed;
		struct wire_detached detached;
		char bytes[WIRE_MESSAGE_MAX];
	} message;
};

/* Another build, to compare one with. */
static const char *tracer_path(void)
{
	const char *path = getenv("ALLOCWATCH_BENCH_TRACER");

	return path ? path : bench_path(TRACER);
}

static void execute(const struct driver_options *options, int sock)
{
	/* No session of its own: the scheduler may share the CPUs out by sessions (autogroup), and what the
	 * tracer is compared with runs in this one. */
	if (options->placement)
		setenv("ALLOCWATCH_PLACEMENT", options->placement, 1);
	else
		unsetenv("ALLOCWATCH_PLACEMENT");
	if (options->counter_file) {
		setenv("ALLOCATION_COUNTER_FILE", options->counter_file, 1);
		setenv("LD_PRELOAD", bench_path(COUNTER), 1);
	}
	if (sock == TRACER_SOCKET)
		fcntl(sock, F_SETFD, 0);
	else
		dup2(sock, TRACER_SOCKET);
	execl(tracer_path(), TRACER, (char *)NULL);
	bench_fail("cannot execute %s: %s", tracer_path(), strerror(errno));
}

struct driver *driver_start(const struct driver_options *options)
{
	struct driver *driver = calloc(1, sizeof(*driver));
	int sockets[2];

	tracer_path();
	if (!driver || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		bench_fail("cannot start a tracer: %s", strerror(errno));
	driver->options = *options;
	fflush(stdout);
	driver->tracer = fork();
	if (driver->tracer == 0)
		execute(options, sockets[1]);
	close(sockets[1]);
	driver->sock = sockets[0];
	driver->received_fd = -1;
	return driver;
}

pid_t driver_pid(const struct driver *driver)
{
	return driver->tracer;
}

/* All requests are some head and a body. */
static void ask(struct driver *driver, enum wire_type type, void *request, size_t len)
{
	struct wire_head *head = request;
	int r;

	*head = (struct wire_head){ type, ++driver->serial, driver->target, (uint32_t)len };
	r = fd_send_message(driver->sock, request, len, -1);
	if (r < 0)
		bench_fail("cannot ask the tracer: %s", strerror(-r));
}

/* False when the tracer has closed its end. */
static bool receive(struct driver *driver, uint64_t deadline_ns)
{
	struct pollfd pollfd = { .fd = driver->sock, .events = POLLIN };
	uint64_t now_ns = clock_monotonic_ns();
	ssize_t n;

	if (now_ns >= deadline_ns || poll(&pollfd, 1, (int)((deadline_ns - now_ns) / NSEC_PER_MSEC) + 1) == 0)
		bench_fail("the tracer gave no answer in %d s", ANSWER_MS / 1000);
	fd_close(&driver->received_fd);
	n = fd_receive_message(driver->sock, driver->message.bytes, sizeof(driver->message),
			       &driver->received_fd);
	if (n < 0)
		bench_fail("cannot hear the tracer: %s", strerror((int)-n));
	if (n > 0 && wire_check(driver->message.bytes, (size_t)n, 1) < 0)
		bench_fail("the tracer sent a message that is none");
	return n > 0;
}

/* The answer to the last request; what comes unasked is passed over, but for troubles. */
static void await(struct driver *driver, enum wire_type type)
{
	uint64_t deadline_ns = clock_monotonic_ns() + ANSWER_MS * NSEC_PER_MSEC;
	const struct wire_head *head = &driver->message.head;

	do {
		if (!receive(driver, deadline_ns))
			bench_fail("the tracer ended before its answer");
		if (head->type == WIRE_FAILED || head->type == WIRE_LOG)
			bench_fail("the tracer: %s", driver->message.failed.text);
		if (head->type == WIRE_TARGET_GONE)
			bench_fail("the target is gone");
	} while (head->type != type || head->serial != driver->serial);
}

void driver_attach(struct driver *driver, pid_t target)
{
	struct wire_attach request = {
		.frames_limit = BENCH_FRAMES,
		.domains = 1,
		.engine = driver->options.engine,
		.ring_wait_ms = driver->options.ring_wait_ms,
	};

	driver->target = target;
	ask(driver, WIRE_ATTACH, &request, sizeof(request));
	await(driver, WIRE_ATTACHED);
}

struct wire_status driver_status(struct driver *driver)
{
	struct wire_head request;

	ask(driver, WIRE_STATUS, &request, sizeof(request));
	await(driver, WIRE_STATUS_REPLY);
	return driver->message.status;
}

uint64_t driver_snapshot(struct driver *driver, bool with_blocks)
{
	struct wire_snapshot_request request = { .with_blocks = with_blocks };
	struct stat st;

	ask(driver, WIRE_SNAPSHOT, &request, sizeof(request));
	await(driver, WIRE_SNAPSHOT_READY);
	if (fstat(driver->received_fd, &st) < 0 || st.st_size == 0)
		bench_fail("the tracer sent a snapshot without an image");
	return (uint64_t)st.st_size;
}

void driver_detach(struct driver *driver)
{
	uint64_t deadline_ns = clock_monotonic_ns() + ANSWER_MS * NSEC_PER_MSEC;
	struct wire_head request;
	int status;

	ask(driver, WIRE_DETACH, &request, sizeof(request));
	await(driver, WIRE_DETACHED);
	if (!driver->message.detached.clean)
		bench_fail("the tracer left something behind: %s", driver->message.detached.text);
	while (receive(driver, deadline_ns))
		;
	if (waitpid(driver->tracer, &status, 0) != driver->tracer || status != 0)
		bench_fail("the tracer ended badly");
	fd_close(&driver->received_fd);
	close(driver->sock);
	free(driver);
}
