#define _GNU_SOURCE
#include "tracer/snapshot.h"

#include "tracer/placement.h"

#include "model/snapshot.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BUFFER_SIZE (256u << 10)

struct running {
	pid_t child;
	int image;
	uint32_t serial;
	pid_t target;
	struct link *link;
};

static struct running running[SNAPSHOTS_RUNNING_MAX];

struct request {
	struct link *link;
	uint32_t serial;
	pid_t target;
	bool with_blocks;
};

/* Oldest first; empty unless all places are taken, or it is too early. */
static struct request waiting[SNAPSHOTS_WAITING_MAX];
static unsigned waiting_count;

struct sink {
	int fd;
	uint64_t left;                 /* bytes that it may still take */
	size_t used;
	char *buffer;
};

static int sink_put(struct sink *sink, const void *data, size_t len)
{
	if (len > sink->left)
		return -EFBIG;
	sink->left -= len;
	return fd_write_all(sink->fd, data, len);
}

static int sink_flush(struct sink *sink)
{
	int r = sink_put(sink, sink->buffer, sink->used);

	sink->used = 0;
	return r;
}

static int sink_write(void *context, const void *data, size_t len)
{
	struct sink *sink = context;
	int r = 0;

	if (sink->used + len > BUFFER_SIZE)
		r = sink_flush(sink);
	if (r == 0 && len > BUFFER_SIZE)
		return sink_put(sink, data, len);
	if (r == 0) {
		memcpy(sink->buffer + sink->used, data, len);
		sink->used += len;
	}
	return r;
}

static int write_image(const struct session *session, const struct heap *heap, uint64_t clock_ns, bool with_blocks,
		       int fd, uint64_t max_bytes)
{
	struct snapshot_source source = {
		.heap = heap,
		.stacks = session->stacks,
		.modules = &session->target->modules,
		.command = session->command,
		.exe = session->exe,
		.pid = session->target->pid,
		.start_time = session->target->start_time,
		.taken_ns = clock_realtime_ns(),
		.attached_ns = session->attached_realtime_ns,
		.clock_ns = clock_ns,
		.frames_limit = session->frames_limit,
		.exact = session_is_exact(session),
		.with_blocks = with_blocks,
		.lost_events = session_lost_events(session),
		.truncated_stacks = session_truncated(session),
		.probe_gaps = session->probe_gaps,
	};
	struct sink sink = { .fd = fd, .left = max_bytes, .buffer = malloc(BUFFER_SIZE) };
	int r = -ENOMEM;

	if (sink.buffer)
		r = snapshot_image_write(&source, sink_write, &sink);
	if (r == 0)
		r = sink_flush(&sink);
	free(sink.buffer);
	return r;
}

int snapshot_image(struct session *session, struct heap *heap, bool with_blocks, int *ret_fd)
{
	int fd = memfd_create("snapshot", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0)
		return -errno;
	r = write_image(session, heap, heap_cut(heap, clock_monotonic_ns()), with_blocks, fd,
			SNAPSHOT_IMAGE_MAX);
	return fd_seal(fd, r, ret_fd);
}

int snapshot_write_file(struct session *session, bool with_blocks, int fd, uint64_t max_bytes)
{
	return write_image(session, session->heap, heap_cut(session->heap, clock_monotonic_ns()), with_blocks, fd,
			   max_bytes);
}

static void send_ready(struct link *link, uint32_t serial, pid_t pid, enum wire_snapshot_reason reason, int fd)
{
	struct wire_snapshot_ready ready = {
		.head = { WIRE_SNAPSHOT_READY, serial, pid, sizeof(ready) },
		.reason = reason,
	};

	link_send(link, &ready, sizeof(ready), fd);
}

void snapshot_write_now(struct session *session, enum wire_snapshot_reason reason)
{
	int fd, r;

	/* Who goes on has other calls under way, and what was recorded by when it was said to let go of it has been read, or is counted. */
	if (reason == SNAPSHOT_DETACH)
		engine_catch_up(session->engine);
	else
		engine_read_last(session->engine);
	r = snapshot_image(session, session->heap, false, &fd);
	if (r < 0)
		session_fail(session->link, 0, session->target->pid, FAILURE_INTERNAL, 0,
			     "the last snapshot of process %d could not be written: %s", session->target->pid,
			     strerror(-r));
	else
		send_ready(session->link, 0, session->target->pid, reason, fd);
}

static struct running *free_place(void)
{
	for (size_t i = 0; i < SNAPSHOTS_RUNNING_MAX; i++) {
		if (running[i].child == 0)
			return &running[i];
	}
	return NULL;
}

static void start(struct session *session, struct running *place, uint32_t serial, bool with_blocks)
{
	uint64_t clock_ns = heap_cut(session->heap, clock_monotonic_ns());
	pid_t pid = session->target->pid, child;
	int fd = memfd_create("snapshot", MFD_CLOEXEC | MFD_ALLOW_SEALING), error;

	engine_take_losses(session->engine);
	child = fd < 0 ? -1 : fork();
	error = errno;
	if (child == 0) {
		placement_release();
		_exit(write_image(session, session->heap, clock_ns, with_blocks, fd, SNAPSHOT_IMAGE_MAX) < 0);
	}
	if (child < 0) {
		fd_close(&fd);
		session_fail(session->link, serial, pid, FAILURE_INTERNAL, 0, "cannot take a snapshot of process %d: %s",
			     pid, strerror(error));
		return;
	}
	*place = (struct running){ child, fd, serial, pid, session->link };
}

static bool is_too_early(const struct session *session)
{
	return heap_ahead_ns(session->heap, clock_monotonic_ns()) > SNAPSHOTS_AHEAD_MS * NSEC_PER_MSEC;
}

void snapshot_start(struct session *session, uint32_t serial, bool with_blocks)
{
	struct running *place = free_place();

	if (place && waiting_count == 0 && !is_too_early(session))
		start(session, place, serial, with_blocks);
	else if (waiting_count < SNAPSHOTS_WAITING_MAX)
		waiting[waiting_count++] = (struct request){ session->link, serial, session->target->pid, with_blocks };
	else
		session_fail(session->link, serial, session->target->pid, FAILURE_LIMIT, 0,
			     "cannot take a snapshot of process %d: too many are asked for; try again",
			     session->target->pid);
}

void snapshot_start_waiting(struct session *session)
{
	bool traces = session && (!session->leaving || session->set_aside);
	struct running *place;
	unsigned served = 0;

	for (; served < waiting_count && (!traces || ((place = free_place()) && !is_too_early(session)));
	     served++) {
		const struct request *request = &waiting[served];

		if (traces)
			start(session, place, request->serial, request->with_blocks);
		else
			session_fail(request->link, request->serial, request->target, FAILURE_NOT_TRACED, 0,
				     "process %d is not traced any more", request->target);
	}
	waiting_count -= served;
	memmove(waiting, waiting + served, waiting_count * sizeof(waiting[0]));
}

/* Hands over what a child has written. */
static void finish(struct running *r, bool well)
{
	if (fd_seal(r->image, well ? 0 : -EIO, &r->image) == 0) {
		send_ready(r->link, r->serial, r->target, SNAPSHOT_ASKED, r->image);
	} else {
		r->image = -1;
		session_fail(r->link, r->serial, r->target, FAILURE_INTERNAL, 0,
			     "the snapshot of process %d could not be written: no memory for it?", r->target);
	}
	r->child = 0;
}

bool snapshot_child_ended(struct session *session, pid_t child, bool well)
{
	for (size_t i = 0; i < SNAPSHOTS_RUNNING_MAX; i++) {
		if (running[i].child != child)
			continue;
		finish(&running[i], well);
		snapshot_start_waiting(session);
		return true;
	}
	return false;
}

unsigned snapshot_running(void)
{
	unsigned count = 0;

	for (size_t i = 0; i < SNAPSHOTS_RUNNING_MAX; i++)
		count += running[i].child != 0;
	return count;
}

void snapshot_forget_running(void)
{
	for (size_t i = 0; i < SNAPSHOTS_RUNNING_MAX; i++) {
		if (running[i].child != 0)
			fd_close(&running[i].image);
		running[i] = (struct running){ 0 };
	}
	waiting_count = 0;
}
