#include "tracer/release.h"

#include "tracer/guard.h"

#include "target/attach.h"
#include "target/jumps.h"
#include "target/park.h"
#include "target/process.h"
#include "target/ptrace.h"
#include "target/resident.h"
#include "target/sharers.h"

#include "base/clock.h"
#include "base/proc.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENDING_MS 2000                 /* that the end of a process may take from its beginning, */
#define ENDING_LOOK_MS 5               /* and between two looks at its threads */
#define LOOKS_BETWEEN_MOST 32          /* seconds between two tries to watch an allocator that came */

static void on_let_go(void *context, struct task *task)
{
	struct session *session = context;

	engine_task_gone(session->engine, task);
}

/* Until then nobody takes it for one whose tracer is dead. */
static void note_until(struct target *target, uint64_t until_ns)
{
	resident_note_traced(target, until_ns);
}

void release_renew(struct session *session)
{
	note_until(session->target, clock_monotonic_ns() + PARK_SECONDS * NSEC_PER_SEC);
}

/* A thread that was not held, since it waits in vfork or makes a call of ours that comes late, is still seized: it is let go at its next
 * stop, and known until then, so that nothing is taken out below it. */
static void note_seized(struct target *target)
{
	for (size_t i = 0; i < target->tasks.count; i++) {
		struct task *task = target->tasks.items[i];

		if (!task->interrupt_due)
			task->interrupt_due = ptrace_interrupt(task->tid) == 0;
	}
}

void release_begin(struct session *session)
{
	/* Where that cannot be it stays, and does no harm. */
	resident_return_handler(session->target);
	release_renew(session);
	/* Who runs again records, and would wait for room. */
	session->target->free_are_due = session_room_is_due;
	session->target->serve_free = session_make_room;
	target_let_go(session->target, on_let_go, session);
	session->target->free_are_due = NULL;
	engine_look_at_noted_stacks(session->engine);
	note_seized(session->target);
	session->released = session->target->was_ours = true;
}

void release_forget_threads(struct session *session)
{
	struct target *target = session->target;

	note_until(target, 0);
	while (target->tasks.count > 0) {
		struct task *task = target->tasks.items[target->tasks.count - 1];

		engine_task_gone(session->engine, task);
		task_remove(task);
	}
	session->released = false;
}

static bool are_there(const struct sharers *sharers)
{
	return sharers->found.count + sharers->suspects.count > 0;
}

/* spared: who shares the memory is looked for, and left alone, and nobody is seized where one was there before; NULL: is seized, too. */
static int seize_again(struct target *target, struct sharers *spared)
{
	struct sharers seized = { .last_pid = 0 };
	int r = sharers_look(target, spared ? spared : &seized);

	if (r == 0 && spared && are_there(spared))
		return -EAGAIN;
	if (r == 0)
		r = target_seize(target, spared ? NULL : &seized);
	if (r == 0)
		r = target_hold_all(target, spared ? NULL : &seized);
	if (r >= 0 && spared)
		r = sharers_look_again(target, spared);
	sharers_fini(&seized);
	return r < 0 ? r : 0;
}

/* What threads have pending, while it is found out which of them there are. */
struct pending {
	pid_t tid, own_number;
	bool unlisted;
	void *calls;
};

struct pending_list {
	VEC_OF(struct pending) items;
};

static int take_calls(struct target *target, struct pending_list *list)
{
	if (vec_reserve(&list->items, target->tasks.count) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < target->tasks.count; i++) {
		struct task *task = target->tasks.items[i];
		struct pending *pending = vec_push(&list->items);

		*pending = (struct pending){ task->tid, task->own_number, task->unlisted, task->calls };
		task->calls = NULL;
	}
	return 0;
}

/* Seized it still is where it could not be held so far. */
static void forget_free_tasks(struct target *target)
{
	for (size_t i = target->tasks.count; i-- > 0;) {
		if (!target->tasks.items[i]->interrupt_due)
			task_remove(target->tasks.items[i]);
	}
}

/* Whose calls those are, made known when it is not. */
static struct task *find_pending(struct target *target, const struct pending *pending, bool *ret_is_new)
{
	struct task *task = task_find(pending->tid);

	/* In a namespace its number may be another thread's by now. */
	if (!task)
		task = task_find_own(target, pending->own_number);
	*ret_is_new = !task && task_add(target, pending->tid, &task) == 0;
	if (*ret_is_new)
		task_set_own_number(task, pending->own_number);
	return task;
}

static void forget_thread(struct session *session, struct task *task)
{
	engine_task_gone(session->engine, task);
	heap_thread_gone(session->heap, task->tid);
	task_remove(task);
}

/* To those that are held; what those had that are not there stays in the list. */
static void give_to_held(struct session *session, struct pending_list *list)
{
	for (size_t i = 0; i < list->items.count; i++) {
		struct pending *pending = &list->items.items[i];
		struct task *task = task_find(pending->tid);

		/* In a namespace its number may be another thread's by now. */
		if (!task)
			task = task_find_own(session->target, pending->own_number);
		if (!task || task->calls)
			continue;
		task->calls = pending->calls;
		pending->calls = NULL;
	}
}

/* all_are_there: who is not has ended. */
static void give_calls(struct session *session, struct pending_list *list, bool all_are_there)
{
	for (size_t i = 0; i < list->items.count; i++) {
		bool is_new;
		struct pending *pending = &list->items.items[i];
		struct task *task = find_pending(session->target, pending, &is_new);

		if (is_new)
			task->unlisted = all_are_there || pending->unlisted;
		if (task && !task->calls)
			task->calls = pending->calls;
		else
			free(pending->calls);
		pending->calls = NULL;
	}
}

static void forget_unlisted(struct session *session)
{
	struct target *target = session->target;

	for (size_t i = target->tasks.count; i-- > 0;) {
		if (target->tasks.items[i]->unlisted)
			forget_thread(session, target->tasks.items[i]);
	}
}

struct ended_list {
	VEC_OF(pid_t) items;
};

static void find_ended(const struct target *target, struct ended_list *list)
{
	if (vec_reserve(&list->items, target->tasks.count) < 0)
		return;
	for (size_t i = 0; i < target->tasks.count; i++) {
		pid_t tid = target->tasks.items[i]->tid;

		if (proc_thread_group(tid) != target->pid)
			*vec_push(&list->items) = tid;
	}
}

static void drop(struct session *session, const struct ended_list *list)
{
	for (size_t i = 0; i < list->items.count; i++) {
		struct task *task = task_find(list->items.items[i]);

		if (task)
			forget_thread(session, task);
	}
}

/* When all is read that they have recorded.  Whoever has the number of one by now keeps what was taken for that one's. */
void release_drop_ended(struct session *session)
{
	struct ended_list list = { 0 };

	find_ended(session->target, &list);
	if (engine_catch_up(session->engine)) {
		if (session->target->namespace_level > 0)
			target_note_threads(session->target);
		drop(session, &list);
	}
	vec_fini(&list.items);
}

/* The memory that was looked at is the one that its threads have; or they are about to have another one, and say so. */
static int check_memory(struct session *session)
{
	if (target_executed(session->target) || release_state(session) == RELEASE_RUNS)
		return 0;
	return -ESRCH;
}

/* Of threads that were seized when they were killed nobody hears until we have. */
static void reap_ended(pid_t pid)
{
	char path[32];
	pid_t tid;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && proc_next(dir, &tid) > 0) {
		struct stop stop;

		if (process_tracer(tid) == getpid() && stop_look(tid, &stop) == 0 && stop_is_end(stop.kind))
			stop_reap(tid);
	}
	if (dir)
		closedir(dir);
}

/* A thread that is being killed cannot be seized, which is nobody's doing. */
static bool has_just_ended(const struct session *session)
{
	const struct target *target = session->target;
	struct pollfd end = { .fd = target->pid_fd, .events = POLLIN };
	uint64_t deadline_ns = clock_monotonic_ns() + ENDING_MS * NSEC_PER_MSEC;

	if (!process_thread_is_exiting(target->pid, target->pid))
		return false;
	do
		reap_ended(target->pid);
	while (poll(&end, 1, ENDING_LOOK_MS) == 0 && !clock_passed(deadline_ns));
	return poll(&end, 1, 0) == 1;
}

/* Holds them all, with what they have pending.  ret_ended: what those had that have ended; empty where it fails.  Errors: release_end(). */
static int take_back(struct session *session, struct sharers *spared, struct pending_list *ret_ended)
{
	struct target *target = session->target;
	int r = take_calls(target, ret_ended);

	if (r < 0)
		return r;
	forget_free_tasks(target);
	r = seize_again(target, spared);
	if (r == 0)
		r = check_memory(session);
	session->released = r < 0;
	if (r < 0) {
		/* Those that were seized before the one that could not be. */
		target_stop_all(target);
		target_let_go(target, NULL, NULL);
		give_calls(session, ret_ended, false);
		return has_just_ended(session) || check_memory(session) < 0 ? -ESRCH : r;
	}
	note_until(target, 0);
	give_to_held(session, ret_ended);
	return 0;
}

static void settle_threads(const struct target *target, void (*settle)(struct task *task))
{
	for (size_t i = 0; i < target->tasks.count; i++)
		settle(target->tasks.items[i]);
}

int release_end(struct session *session)
{
	struct pending_list ended = { 0 };
	int r;

	if (release_state(session) != RELEASE_RUNS)
		return -ESRCH;
	r = take_back(session, NULL, &ended);
	/* What those have recorded that ended before it was read. */
	if (r == 0) {
		settle_threads(session->target, jumps_settle);
		if (!target_executed(session->target))
			engine_settle(session->engine);
		give_calls(session, &ended, true);
		engine_read_last(session->engine);
		forget_unlisted(session);
	}
	vec_fini(&ended.items);
	return r;
}

/* --- objects that come --- */

/* With what its threads have pending.  One that could not be held is let go at its stop. */
void release_let_go_again(struct session *session)
{
	struct pending_list list = { 0 };
	bool kept = take_calls(session->target, &list) == 0;

	session->exec_seen = false;
	session->hold = HOLD_NOT;
	release_renew(session);
	target_let_go(session->target, kept ? NULL : on_let_go, session);
	note_seized(session->target);
	give_calls(session, &list, false);
	vec_fini(&list.items);
	session->released = true;
}

/* Whoever waits for what he has recorded to be served waits on: it is still to be read.  Who shares the memory is spared while this is for a
 * moment only, since it comes often: he may just be executing a program with rights.  He may be in the midst of a record, too. */
int release_settle(struct session *session, bool hold, bool *ret_held)
{
	struct target *target = session->target;
	struct sharers spared = { .last_pid = 0 };
	struct pending_list ended = { 0 };
	int r;

	session->settles = true;
	r = release_state(session) == RELEASE_RUNS ? take_back(session, hold ? NULL : &spared, &ended) : -ESRCH;
	session->settles = false;
	*ret_held = false;
	if (r == 0) {
		settle_threads(target, jumps_settle_but_waiting);
		*ret_held = target_executed(target) ? !release_unless_exec(session) : hold;
		if (target_executed(target))
			r = -ESRCH;
		else
			r = !are_there(&spared) && engine_settle(session->engine) ? 0 : -EAGAIN;
		if (!*ret_held)
			release_let_go_again(session);
		give_calls(session, &ended, true);
	}
	if (*ret_held) {
		engine_read_last(session->engine);
		forget_unlisted(session);
		release_let_waiting_go(session);
	}
	sharers_fini(&spared);
	vec_fini(&ended.items);
	return r;
}

/* True: all are held, which *ret says of. */
static bool hold_for_jumps(struct session *session, int *ret)
{
	struct target *target = session->target;

	if (session->released)
		*ret = release_end(session);
	else
		*ret = target_stop_all(target) < 0 ? -ESRCH : 0;
	if (*ret < 0)
		return false;
	if (target_executed(target))
		*ret = -ESRCH;
	else if (!target_holds_all(target))
		*ret = -EAGAIN;
	return true;
}

/* What came has an allocator.  *ret_held: who was held for it still is.  0; -EPERM: another tracer has the process; -EAGAIN: a thread of it
 * cannot be held; -ESRCH, or another negative errno. */
static int watch_allocator(struct session *session, bool *ret_held)
{
	bool was_released = session->released;
	int r = 0;

	*ret_held = false;
	/* What has no room for jumps holds nobody up. */
	if (engine_wants_all_held(session->engine))
		*ret_held = hold_for_jumps(session, &r);
	if (r == 0)
		r = engine_install(session->engine);
	if (r >= 0 && *ret_held)
		r = guard_watch_execs(session);
	if (*ret_held && was_released)
		*ret_held = !release_unless_exec(session);
	session_tell_refusal(session);
	return r < 0 ? r : 0;
}

static const char *why_unwatched(const struct session *session, int error, char *text, size_t space)
{
	pid_t other = process_tracer(session->target->pid);

	if (error == -EPERM && other > 0)
		snprintf(text, space, "process %d has it, such as a debugger or strace; end that, and it will be", other);
	else if (error == -EAGAIN)
		snprintf(text, space, "a thread is in a wait that nothing breaks off (in vfork, or for a disk); it will be after that");
	else
		snprintf(text, space, "%s", strerror(-error));
	return text;
}

/* in_time: nobody could call it before it was watched.  Said once: a program may load as many as it likes. */
static void tell_of_allocator(struct session *session, int error, bool in_time)
{
	char why[128];

	if (error == -ESRCH || (error == 0 && in_time))
		return;
	session->probe_gaps++;
	session->unwatched = error < 0;
	retry_begin(&session->watch_again);
	if (session->gap_told)
		return;
	session->gap_told = true;
	if (error < 0)
		session_fail(session->link, 0, session->target->pid, FAILURE_UNSUPPORTED, 0,
			     "it has loaded an allocator, which is not watched: %s",
			     why_unwatched(session, error, why, sizeof(why)));
	else
		session_fail(session->link, 0, session->target->pid, FAILURE_INTERNAL, 0,
			     "it has loaded an allocator, whose first calls may have been missed: the tracer did not know of it in time; "
			     "a longer --ring-wait lets the program wait for that");
}

/* True: an allocator is among what came. */
static bool look_at_objects(struct session *session)
{
	int r;

	link_beat(session->link, session->target->pid, LONG_STEP_MS);
	r = session_look_at_objects(session);
	if (r < 0 && r != -ESRCH)
		session->modules_failed = true;
	return r > 0;
}

bool release_objects_changed(struct session *session)
{
	bool has_allocator;

	session->maps_change = true;
	has_allocator = look_at_objects(session);
	session->maps_change = false;
	session->watch_due |= has_allocator;
	return has_allocator;
}

bool release_watch_objects(struct session *session)
{
	bool held;
	int r = watch_allocator(session, &held);

	session->watch_due = false;
	tell_of_allocator(session, r, engine_loader_has_waited(session->engine));
	engine_let_waiting_go(session->engine);
	return held;
}

/* Where no loader tells of them, or its word was lost. */
static bool look_for_objects(struct session *session)
{
	bool has_allocator, held;

	session->maps_change = true;
	has_allocator = look_at_objects(session);
	session->maps_change = false;
	if (!has_allocator)
		return false;
	tell_of_allocator(session, watch_allocator(session, &held), false);
	return held;
}

/* One that could not be watched when it came, which was told. */
static bool try_again(struct session *session)
{
	bool held;

	if (!session->unwatched || process_tracer(session->target->pid) != 0 || !retry_is_due(&session->watch_again))
		return false;
	if (!engine_wants_all_held(session->engine)) {
		session->unwatched = false;     /* it is gone again */
		return false;
	}
	session->unwatched = watch_allocator(session, &held) < 0;
	/* Each try holds the others for a moment. */
	retry_later(&session->watch_again, LOOKS_BETWEEN_MOST);
	if (!session->unwatched)
		session_fail(session->link, 0, session->target->pid, FAILURE_INTERNAL, 0,
			     "the allocator that it has loaded is watched from now on");
	return held;
}

bool release_serve_stop(const struct stop *stop)
{
	struct task *task = task_find(stop->tid);

	if (stop_is_end(stop->kind))
		return false;
	if (!task) {
		stop_let_go(stop);
		return true;
	}
	task_take_stop(task, stop);
	if (target_take_birth(task))
		return true;
	task_detach(task);
	task->stopped = task->interrupt_due = false;
	return true;
}

/* Its end is told by the pidfd, an exec by the old memory being gone: so it is in a process that ends, too, a little before that. */
enum release_state release_state(struct session *session)
{
	struct target *target = session->target;
	struct pollfd end = { .fd = target->pid_fd, .events = POLLIN };
	uint8_t byte;

	if (poll(&end, 1, 0) == 1 && (end.revents & POLLIN))
		return RELEASE_ENDED;
	if (target_read_surely(target, target->ring, &byte, 1) == 0 || process_thread_is_exiting(target->pid, target->pid))
		return RELEASE_RUNS;
	return RELEASE_EXECUTED;
}

void release_note_status(struct session *session)
{
	const struct target *target = session->target;

	process_wait_status(target->pid, target->start_time, target->pid_fd, &session->exit_status);
}

bool release_look(struct session *session)
{
	bool held = false;

	release_renew(session);
	release_drop_ended(session);
	session_verify(session);
	if (engine_take_missed_change(session->engine) || !engine_watches_loader(session->engine))
		held = look_for_objects(session);
	return held || try_again(session);
}
