/* Processes that a target makes: told apart by what they share, not by the call that made them. */
#define _GNU_SOURCE
#include "target/attach.h"
#include "target/bp.h"
#include "target/handlers.h"
#include "target/held.h"
#include "target/inject.h"
#include "target/jumps.h"
#include "target/process.h"
#include "target/ptrace.h"
#include "target/resident.h"
#include "target/resident_area.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/proc.h"

#include <errno.h>
#include <linux/kcmp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHILD_DEADLINE_MS 2000

/* Where kcmp is not permitted (a target that made itself undumpable, a tracer that gave up its rights): does a
 * word of our own that is written in the one change in the other?  Writing through ptrace asks for the rights
 * at the attach. */
static bool shares_our_word(struct target *target, pid_t child)
{
	const raddr at = target->areas->start + offsetof(struct resident_header, note);
	uint64_t mark = 1, seen = 0;
	bool shared;

	if (ptrace_poke(child, at, &mark, sizeof(mark)) < 0)
		return false;
	shared = target_read(target, at, &seen, sizeof(seen)) == 0 && seen == mark;
	mark = 0;
	ptrace_poke(child, at, &mark, sizeof(mark));
	return shared;
}

static bool shares_memory(struct target *target, pid_t child)
{
	int r = (int)syscall(SYS_kcmp, target->memory_tid, child, KCMP_VM, 0, 0);

	if (r >= 0)
		return r == 0;
	return target->areas && shares_our_word(target, child);
}

/* A child with a copy of the memory has a copy of our changes.  For a moment it is a target of its own, with the
 * parent's breakpoints and resident code. */
struct copy {
	struct target target;
	struct task task, *tasks[1];
};

static void copy_init(struct copy *copy, const struct target *parent, pid_t child)
{
	copy->target = *parent;
	copy->task = (struct task){ .tid = child, .target = &copy->target, .stopped = true, .masked = true };
	copy->task.stop = (struct stop){ STOP_INTERRUPTED, child, 0 };
	copy->tasks[0] = &copy->task;
	copy->target.served = NULL;
	copy->target.pid = copy->target.memory_tid = child;
	copy->target.tasks.items = copy->tasks;
	copy->target.tasks.count = 1;
	copy->target.mem_fd = target_open_memory(child, &copy->target.mem_writable);
}

static void copy_fini(struct copy *copy)
{
	if (copy->target.mem_fd >= 0)
		fd_close(&copy->target.mem_fd);
}

/* A handler that has interrupted our code, and made the child, will come back to it. */
static int remove_jumps(struct copy *copy)
{
	if (!copy->target.jump_areas)
		return 0;
	if (jumps_restore_copy(&copy->target) > 0)
		return -EIO;
	return task_returns_inside(&copy->task) ? -EBUSY : jumps_remove(&copy->target, &copy->task);
}

/* Everything is undone before it runs its first instruction. */
static void clean_copy(struct target *parent, struct task *parent_task, pid_t child)
{
	struct copy copy;
	int r;

	copy_init(&copy, parent, child);
	if (parent_task)
		copy.task.sigtrap_was_blocked = parent_task->sigtrap_was_blocked;
	/* With an int3 left the handler must stay, too; and with a jump the code that it leads to. */
	r = bp_restore_copy(&copy.target) > 0 ? -EIO : remove_jumps(&copy);
	if (r == 0)
		r = resident_remove_copy(&copy.target, &copy.task);
	if (r == -EKEYREJECTED)
		parent->left_filtered = true;
	else if (r < 0 && r != -ESRCH)
		parent->left_in_copy = true;
	task_detach(&copy.task);
	copy_fini(&copy);
}

/* Which has no number in a namespace that it is not in: there another process would be named. */
static int name_tracer(struct task *task, raddr stub, pid_t tracer)
{
	const struct arch_stub_call call = { .number = SYS_prctl, .args = { PR_SET_PTRACER, (uint64_t)tracer },
					     .data_arg = -1 };
	int64_t result;
	int r = proc_namespace_level(task->tid) > 0 ? -EXDEV : inject_syscall(task, stub, &call, &result);

	return r < 0 ? r : (int)result;
}

int target_child_names_tracer(const struct target *parent, pid_t child, raddr stub, pid_t tracer)
{
	struct copy copy;
	int r;

	copy_init(&copy, parent, child);
	r = name_tracer(&copy.task, stub, tracer);
	copy_fini(&copy);
	return r;
}

int target_names_tracer(struct target *target, pid_t tracer)
{
	struct task *task = target->stub != 0 ? inject_find_task(target) : NULL;

	return task ? name_tracer(task, target->stub, tracer) : -EAGAIN;
}

/* A child is stopped before its first instruction; it comes within microseconds. */
static int wait_first_stop(struct target *target, pid_t child)
{
	uint64_t deadline_ns = clock_monotonic_ns() + CHILD_DEADLINE_MS * NSEC_PER_MSEC;
	struct task task = { .tid = child, .target = target };

	return task_wait(&task, deadline_ns);
}

int target_adopt_child(struct target *target, struct task *parent, pid_t child)
{
	bool thread = proc_thread_group(child) == target->pid;
	struct task *task;
	int r;

	if (task_find(child))
		return 0;
	if (!thread) {
		r = wait_first_stop(target, child);
		if (r < 0)
			return r;          /* killed before it ran: nothing to clean */
		if (!shares_memory(target, child)) {
			if (target->copy_made && target->copy_made(target->context, parent, child))
				return 0;
			clean_copy(target, parent, child);
			return 0;
		}
	}
	r = task_add(target, child, &task);
	if (r < 0) {
		/* Past the limit: it runs on untraced, safe through the resident handler. */
		ptrace_detach(child, 0);
		return r;
	}
	if (parent)
		held_runs(task, parent->running_ns);       /* it stops with its parent, and waits to be adopted */
	task->guest = !thread;
	task->stopped = !thread;
	task->stop = (struct stop){ thread ? STOP_NONE : STOP_INTERRUPTED, child, 0 };
	/* It inherited its parent's mask, without SIGTRAP since that was cleaned. */
	task->masked = parent && parent->masked;
	task->sigtrap_was_blocked = parent && parent->sigtrap_was_blocked;
	return 1;
}

void target_release_guest(struct task *task, bool executed)
{
	/* In a new program nothing of ours is left but a bit in its mask.  Before the exec SIGTRAP stays out of
	 * that: should the call fail it runs on in memory that holds our int3s. */
	if (executed)
		task_remask(task);
	ptrace_detach(task->tid, 0);
}
