#include "target/target.h"

#include "target/held.h"
#include "target/masks.h"
#include "target/ptrace.h"

#include "base/clock.h"
#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>

#define TABLE_SIZE 4096   /* chains stay short up to TASKS_MAX */

static struct task *table[TABLE_SIZE];

static struct task **chain(pid_t tid)
{
	return &table[hash_u64((uint64_t)tid) & (TABLE_SIZE - 1)];
}

struct task *task_find(pid_t tid)
{
	struct task *task = *chain(tid);

	while (task && task->tid != tid)
		task = task->hash_next;
	return task;
}

int task_add(struct target *target, pid_t tid, struct task **ret_task)
{
	struct task *task, **slot;

	if (target->tasks.count >= TASKS_MAX)
		return -ENOSPC;
	if (vec_reserve(&target->tasks, 1) < 0)
		return -ENOMEM;
	task = calloc(1, sizeof(*task));
	if (!task)
		return -ENOMEM;
	task->tid = tid;
	task->target = target;
	held_runs(task, clock_monotonic_ns());
	task->hash_next = *chain(tid);
	*chain(tid) = task;
	slot = vec_push(&target->tasks);
	*slot = task;
	if (ret_task)
		*ret_task = task;
	return 0;
}

void task_remove(struct task *task)
{
	struct task **link = chain(task->tid);
	struct target *target = task->target;

	while (*link != task)
		link = &(*link)->hash_next;
	*link = task->hash_next;
	masks_forget(task);
	if (target->served == task)
		target->served = NULL;
	for (size_t i = 0; i < target->tasks.count; i++) {
		if (target->tasks.items[i] == task) {
			vec_remove_unordered(&target->tasks, i);
			break;
		}
	}
	free(task);
}

/* One that is not in the table is not told of by task_forget_regs(). */
int task_getregs(struct task *task, struct user_regs_struct *ret_regs)
{
	if (!task->regs_known) {
		int r = ptrace_getregs(task->tid, &task->regs);

		if (r < 0)
			return r;
		task->regs_known = task->stopped && task_find(task->tid) == task;
	}
	*ret_regs = task->regs;
	return 0;
}

void task_forget_seen(struct task *task)
{
	task->regs_known = task->is_frameless = task->is_outside = task->is_looked_at = false;
}

void task_forget_regs(pid_t tid)
{
	struct task *task = task_find(tid);

	if (task)
		task_forget_seen(task);
}

struct task *target_first_task(const struct target *target)
{
	for (size_t i = 0; i < target->tasks.count; i++) {
		if (target->tasks.items[i]->tid == target->pid)
			return target->tasks.items[i];
	}
	return NULL;
}

bool target_has_own_tasks(const struct target *target)
{
	for (size_t i = 0; i < target->tasks.count; i++) {
		if (!target->tasks.items[i]->guest)
			return true;
	}
	return false;
}

struct task *target_stopped_task(const struct target *target)
{
	if (target->served)
		return target->served;
	for (size_t i = 0; i < target->tasks.count; i++) {
		if (target->tasks.items[i]->stopped)
			return target->tasks.items[i];
	}
	return NULL;
}
