#include "tracer/release.h"

#include "target/attach.h"
#include "target/jumps.h"
#include "target/park.h"
#include "target/process.h"
#include "target/resident.h"
#include "target/sharers.h"

#include "base/clock.h"
#include "base/proc.h"

#include <errno.h>
#include <poll.h>

static void on_let_go(void *context, struct task *task)
{
	struct session *session = context;

	engine_task_gone(session->engine, task);
}

const char *release_refusal(const struct session *session)
{
	const struct target *target = session->target;

	if (!engine_has_ring(session->engine))
		return session_engine_reason(session) ? session_engine_reason(session) : "the ring engine was not asked for";
	if (session->described.mappings)
		return "mmap and its like are watched, which int3 alone sees";
	if (session->described.operators)
		return "what new has made is told apart, and the stacks that this takes at a delete come with int3 alone";
	if (target->mem_fd < 0)
		return "its memory cannot be read without ptrace";
	for (size_t i = 0; i < target->tasks.count; i++) {
		if (!target->tasks.items[i]->stopped)
			return "a thread of it is in a wait that nothing breaks off (in vfork, or for a disk)";
	}
	return NULL;
}

/* Until then nobody takes it for one whose tracer is dead. */
static void note_until(struct target *target, uint64_t until_ns)
{
	target_write(target, resident_note(target), &until_ns, sizeof(until_ns));
}

static void renew_note(struct target *target)
{
	note_until(target, clock_monotonic_ns() + PARK_SECONDS * NSEC_PER_SEC);
}

void release_begin(struct session *session)
{
	renew_note(session->target);
	target_let_go(session->target, on_let_go, session);
	session->released = true;
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

static int seize_again(struct target *target)
{
	struct sharers sharers = { .last_pid = 0 };
	int r = sharers_look(target, &sharers);

	if (r == 0)
		r = target_seize(target, &sharers);
	if (r == 0)
		r = target_stop_all(target);
	sharers_fini(&sharers);
	return r < 0 ? r : 0;
}

/* What threads have pending, while it is found out which of them there are. */
struct pending {
	pid_t tid;
	void *calls;
};

struct pending_list {
	VEC_OF(struct pending) items;
};

static int take_calls(struct target *target, struct pending_list *list)
{
	if (vec_reserve(&list->items, target->tasks.count) < 0)
		return -ENOMEM;
	while (target->tasks.count > 0) {
		struct task *task = target->tasks.items[target->tasks.count - 1];
		struct pending *pending = vec_push(&list->items);

		*pending = (struct pending){ task->tid, task->calls };
		task->calls = NULL;
		task_remove(task);
	}
	return 0;
}

/* Who is not there has ended. */
static void give_calls(struct session *session, const struct pending_list *list, bool all_are_there)
{
	for (size_t i = 0; i < list->items.count; i++) {
		const struct pending *pending = &list->items.items[i];
		struct task *task = task_find(pending->tid);
		bool is_new = !task && task_add(session->target, pending->tid, &task) == 0;

		if (task)
			task->calls = pending->calls;
		if (!is_new || !all_are_there)
			continue;
		engine_task_gone(session->engine, task);
		task_remove(task);
	}
}

int release_end(struct session *session)
{
	struct target *target = session->target;
	struct pending_list list = { 0 };
	int r;

	if (release_state(session) != RELEASE_RUNS)
		return -ESRCH;
	r = take_calls(target, &list);
	if (r < 0)
		return r;
	r = seize_again(target);
	/* Those that were seized before the one that could not be. */
	if (r < 0) {
		target_stop_all(target);
		target_let_go(target, NULL, NULL);
	} else {
		note_until(target, 0);
	}
	give_calls(session, &list, r == 0);
	vec_fini(&list.items);
	session->released = r < 0;
	for (size_t i = 0; r == 0 && i < target->tasks.count; i++)
		jumps_settle(target->tasks.items[i]);
	return r;
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

static bool is_held(pid_t pid, pid_t tid)
{
	char state = process_thread_state(pid, tid);

	return state == 't' || state == 'T';
}

bool release_is_held(const struct session *session)
{
	const struct target *target = session->target;
	bool held = is_held(target->pid, target->pid);

	for (size_t i = 0; !held && i < target->tasks.count; i++)
		held = is_held(target->pid, target->tasks.items[i]->tid);
	return held;
}

static void drop_ended_threads(struct session *session)
{
	struct target *target = session->target;

	for (size_t i = target->tasks.count; i-- > 0;) {
		struct task *task = target->tasks.items[i];

		if (proc_thread_group(task->tid) == target->pid)
			continue;
		engine_task_gone(session->engine, task);
		heap_thread_gone(session->heap, task->tid);
		task_remove(task);
	}
}

void release_look(struct session *session)
{
	renew_note(session->target);
	drop_ended_threads(session);
	session_verify(session);
	session_look_at_objects(session);
}
