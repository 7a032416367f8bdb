#define _GNU_SOURCE
#include "tracer/follow.h"

#include "tracer/loop.h"
#include "tracer/snapshot.h"

#include "target/masks.h"
#include "target/park.h"
#include "target/process.h"
#include "target/ptrace.h"
#include "target/resident.h"
#include "target/rights.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DAEMON_PATIENCE_MS 5000        /* until it has closed its end */
#define BEGIN_MS 15000                 /* until the loop runs, a program to be parsed included */

static VEC_OF(pid_t) tracers;

void follow_child_ended(pid_t pid)
{
	for (size_t i = 0; i < tracers.count; i++) {
		if (tracers.items[i] == pid) {
			vec_remove_unordered(&tracers, i);
			return;
		}
	}
}

/* --- in the forked tracer --- */

static void drop_tasks(struct session *session)
{
	struct target *target = session->target;

	while (target->tasks.count > 0) {
		struct task *task = target->tasks.items[target->tasks.count - 1];

		engine_task_gone(session->engine, task);
		heap_thread_gone(session->heap, task->tid);
		task_remove(task);
	}
}

static int become_target_of(struct target *target, pid_t child)
{
	target->pid = target->memory_tid = child;
	target->namespace_level = proc_namespace_level(child);
	target->gone = false;
	target->longest_stop_ns = 0;
	target->held_ns = 0;
	fd_close(&target->pid_fd);
	target->pid_fd = (int)syscall(SYS_pidfd_open, child, 0);
	if (target->pid_fd < 0)
		return -errno;
	return proc_start_time(child, &target->start_time);
}

/* From here on this process has one target: the child. */
static int take_over(struct session *session, const struct parking *parking, void *calls, bool blocked,
		     bool new_program, struct task **ret_task)
{
	struct target *target = session->target;
	raddr notes = target->masks;
	int r;

	/* The memory that is still open is that of the process which forked, and the notes in it are that one's. */
	masks_drop(target);
	drop_tasks(session);
	r = become_target_of(target, parking->tid);
	if (r == 0)
		r = park_take(target, parking, ret_task);
	if (r == 0)
		r = target_reopen_memory(target);
	if (r < 0)
		return r;
	(*ret_task)->calls = calls;
	(*ret_task)->masked = true;
	(*ret_task)->sigtrap_was_blocked = blocked;
	if (!new_program)
		masks_begin_again(target, notes);
	if (blocked && !new_program)
		masks_note(*ret_task);
	session->exit_status = -1;
	session->not_followed = 0;
	session->attached_realtime_ns = clock_realtime_ns();
	session->stops = 0;
	session_name(session);
	return 0;
}

/* The daemon may only just hear of this process: what was sent to it would be lost with the process. */
static void wait_for_daemon(struct link *link)
{
	uint64_t deadline_ns = clock_monotonic_ns() + DAEMON_PATIENCE_MS * NSEC_PER_MSEC;
	bool closed = false;

	while (!closed && !clock_passed(deadline_ns)) {
		struct link_message *message = link_take(link, true);

		closed = message && (message->type == LINK_CLOSED || message->type == LINK_TERMINATE);
		if (message)
			fd_close(&message->fd);
		free(message);
	}
}

static void begin_ring(struct session *session, struct task *task)
{
	int r;

	session->ring_size = session_ring_size(session->target->pid);
	r = engine_ring_begin_copy(session->engine, task, session->ring_size);

	if (r == 0)
		session_tell_blocks(session);
	/* It was killed: that comes next, and is its end. */
	if (r == 0 || r == -ESRCH)
		return;
	session->refused = true;
	session_say_farewell(session, FAILURE_INTERNAL, "it was to have a ring of its own, as the process has that it was forked "
			     "from, and that cannot be mapped: %s", strerror(-r));
}

/* The life of the forked tracer; does not return.  Where the child is parked comes through `parked`; nothing comes
 * when it is not. */
static void __attribute__((noreturn)) run(struct session *session, int sock, int parked, void *calls, bool blocked,
					  bool new_program)
{
	struct link *old = session->link, *link;
	struct parking parking;
	struct task *task;
	int status;

	engine_ring_leave(session->engine);
	link_abandon(old);
	fd_close(&session->refuge_fd);     /* the parent's */
	snapshot_forget_running();
	vec_fini(&tracers);
	if (read(parked, &parking, sizeof(parking)) != sizeof(parking))
		_exit(EXIT_SUCCESS);
	fd_close(&parked);
	if (take_over(session, &parking, calls, blocked, new_program, &task) < 0 || link_new(sock, &link) < 0)
		_exit(EXIT_FAILURE);
	session->link = link;
	link_beat(link, parking.tid, BEGIN_MS);
	if (new_program) {
		session->waits_for_exec = true;    /* the parent's heap is not its own */
		session_exec(session, task);
	} else {
		session_tell_modules(session);
		begin_ring(session, task);
	}
	/* For whoever heals it, should this process die: then all that was named would be a dead one. */
	if (rights_bound_by_yama())
		target_names_tracer(session->target, session->daemon);
	/* One that is let go at once was not followed: that is how the daemon knows. */
	if (!session->refused)
		session_send_program(session, WIRE_ATTACHED, 0);
	status = loop_run(link, session);
	wait_for_daemon(link);
	link_free(link);
	_exit(status);
}

/* --- in the tracer of the parent --- */

/* Whether the forked tracer will be let: it asks anew, with the rights that are left now. */
static bool may_take(pid_t child, raddr at)
{
	uint8_t byte;

	return rights_read_memory(child, at, &byte, 1);
}

/* To Yama the forked tracer is a stranger to the child, unless that names it. */
static bool may_seize(struct session *session, pid_t child, raddr stub, pid_t tracer)
{
	return !rights_bound_by_yama() || target_child_names_tracer(session->target, child, stub, tracer) == 0;
}

static void tell_daemon(struct session *session, pid_t child, pid_t tracer, int fd)
{
	struct wire_forked forked = { .head = { WIRE_FORKED, 0, session->target->pid, sizeof(forked) },
				      .child = child, .tracer = tracer };

	proc_start_time(child, &forked.start_time);
	link_send(session->link, &forked, sizeof(forked), fd);
}

struct handover {
	int socks[2];                      /* the daemon's end, the forked tracer's */
	int parked[2];
	pid_t tracer;
};

static void handover_fini(struct handover *handover)
{
	for (size_t i = 0; i < 2; i++) {
		fd_close(&handover->socks[i]);
		fd_close(&handover->parked[i]);
	}
}

/* Forks the child's tracer, which waits to be told where the child is parked. */
static int fork_tracer(struct session *session, struct task *parent, bool new_program, struct handover *ret)
{
	struct handover handover = { { -1, -1 }, { -1, -1 }, -1 };
	bool failed;
	void *calls = new_program || !parent ? NULL : parent->calls;

	if (parent && !new_program)
		engine_ring_fork(session->engine, parent);
	engine_before_fork(session->engine);
	failed = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, handover.socks) < 0 ||
		 pipe2(handover.parked, O_CLOEXEC) < 0 || (handover.tracer = fork()) < 0;
	if (failed || handover.tracer > 0)
		engine_after_fork(session->engine);
	if (failed) {
		handover_fini(&handover);
		return -EAGAIN;
	}
	if (handover.tracer == 0) {
		fd_close(&handover.socks[0]);
		fd_close(&handover.parked[1]);
		if (calls)
			parent->calls = NULL;
		run(session, handover.socks[1], handover.parked[0], calls, parent && parent->sigtrap_was_blocked,
		    new_program);
	}
	*ret = handover;
	return 0;
}

/* Parks the child in `stub` of its memory and leaves it to a tracer of its own.  False: it is as it was. */
static bool hand_over(struct session *session, struct task *parent, pid_t child, raddr stub, raddr note,
		      bool new_program)
{
	struct handover handover;
	struct parking parking;
	pid_t *slot;

	/* Nobody could lift its filter while it waits in a call of ours. */
	if (process_is_filtered(child) || tracers.count >= FOLLOWED_MAX || vec_reserve(&tracers, 1) < 0 ||
	    !may_take(child, stub) || fork_tracer(session, parent, new_program, &handover) < 0)
		return false;
	slot = vec_push(&tracers);
	*slot = handover.tracer;
	if (!may_seize(session, child, stub, handover.tracer) || park_leave(child, stub, note, &parking) < 0) {
		handover_fini(&handover);
		return false;
	}
	/* A tracer that is dead by now takes nothing: the daemon hears of it, and has the child healed. */
	fd_write_all(handover.parked[1], &parking, sizeof(parking));
	tell_daemon(session, child, handover.tracer, handover.socks[0]);
	handover.socks[0] = -1;
	handover_fini(&handover);
	return true;
}

bool follow_copy(void *context, struct task *parent, pid_t child)
{
	struct session *session = context;

	if (!session->target->handler_installed || session->leaving)
		return false;
	if (hand_over(session, parent, child, session->target->stub, resident_note(session->target), false))
		return true;
	session->not_followed++;
	session_fail(session->link, 0, session->target->pid, FAILURE_LIMIT, 0,
		     "its child %d is not followed: it has a seccomp filter, the limit of %u is reached, or this user may not "
		     "trace it", child, FOLLOWED_MAX);
	return false;
}

/* Room for the stub in the new program: unused bytes at the end of the mapping that its pc is in, the loader's or
 * that of a static program. */
static raddr find_room(pid_t tid)
{
	struct user_regs_struct regs;
	raddr at = 0;

	/* Where a stub of 64-bit code would not be understood there is none. */
	if (!session_is_foreign(tid) && ptrace_getregs(tid, &regs) == 0)
		resident_find_room(tid, arch_pc(&regs), PARK_DATA, &at);
	return at;
}

void follow_guest(struct session *session, struct task *guest)
{
	pid_t child = guest->tid;
	raddr room = find_room(child);

	task_remask(guest);                /* it is the new tracer's to look at */
	engine_task_gone(session->engine, guest);
	heap_thread_gone(session->heap, child);
	task_remove(guest);
	if (room != 0 && hand_over(session, NULL, child, room, 0, true))
		return;
	session->not_followed++;
	session_fail(session->link, 0, session->target->pid, FAILURE_LIMIT, 0,
		     "the program that its child %d executes is not followed: a 32-bit one, no room for a moment's stub, "
		     "a seccomp filter, a limit, or no right to", child);
	ptrace_detach(child, 0);
}
