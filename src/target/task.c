#include "target/target.h"

#include "target/held.h"
#include "target/masks.h"
#include "target/process.h"
#include "target/ptrace.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/proc.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define TABLE_SIZE 4096   /* chains stay short up to TASKS_MAX */
#define LISTS_MAX 3       /* looks for threads */

static struct task *table[TABLE_SIZE], *own_table[TABLE_SIZE];

static struct task **chain_in(struct task **heads, pid_t number)
{
	return &heads[hash_u64((uint64_t)number) & (TABLE_SIZE - 1)];
}

static struct task **chain(pid_t tid)
{
	return chain_in(table, tid);
}

struct task *task_find_own(const struct target *target, pid_t own_number)
{
	struct task *task = *chain_in(own_table, own_number);

	while (task && (task->own_number != own_number || task->target != target))
		task = task->own_next;
	return task;
}

static void forget_own_number(struct task *task)
{
	struct task **link = chain_in(own_table, task->own_number);

	if (task->own_number == 0)
		return;
	while (*link != task)
		link = &(*link)->own_next;
	*link = task->own_next;
	task->own_number = 0;
}

/* Who was called so has ended, and what seemed to be that one's is this one's. */
static void take_over(struct task *task, struct task *former)
{
	if (!task->calls) {
		task->calls = former->calls;
		former->calls = NULL;
	}
	forget_own_number(former);
}

void task_set_own_number(struct task *task, pid_t own_number)
{
	struct task **head = chain_in(own_table, own_number), *former;

	forget_own_number(task);
	if (own_number == 0)
		return;
	former = task_find_own(task->target, own_number);
	if (former)
		take_over(task, former);
	task->own_number = own_number;
	task->own_next = *head;
	*head = task;
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
	task_set_own_number(task, proc_number_at(tid, target->namespace_level));
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
	forget_own_number(task);
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

int task_getsigmask(struct task *task, uint64_t *ret_mask)
{
	if (!task->mask_known) {
		int r = ptrace_getsigmask(task->tid, &task->mask);

		if (r < 0)
			return r;
		task->mask_known = task->stopped && task_find(task->tid) == task;
	}
	*ret_mask = task->mask;
	return 0;
}

void task_forget_seen(struct task *task)
{
	task->regs_known = task->is_frameless = task->is_outside = task->is_looked_at = false;
	task->layout_seen = task->mask_known = false;
}

void task_forget_regs(pid_t tid)
{
	struct task *task = task_find(tid);

	if (task)
		task_forget_seen(task);
}

void task_forget_sigmask(pid_t tid)
{
	struct task *task = task_find(tid);

	if (task)
		task->mask_known = false;
}

struct task *target_first_task(const struct target *target)
{
	for (size_t i = 0; i < target->tasks.count; i++) {
		if (target->tasks.items[i]->tid == target->pid)
			return target->tasks.items[i];
	}
	return NULL;
}

static int note_listed(struct target *target, DIR *dir, uint64_t *ret_listed)
{
	uint64_t listed = 0;
	pid_t tid;
	int r = 0;

	while (r >= 0 && (r = proc_next(dir, &tid)) > 0) {
		listed++;
		if (!task_find(tid))
			r = task_add(target, tid, NULL);
	}
	*ret_listed = listed;
	return r;
}

/* A list ends early when a thread ends meanwhile. */
int target_note_threads(struct target *target)
{
	uint64_t listed = 0;
	char path[32];
	int r = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", target->pid);
	for (unsigned i = 0; i < LISTS_MAX && r == 0 && (i == 0 || listed < process_threads(target->pid)); i++) {
		DIR *dir = opendir(path);

		if (!dir)
			return errno == ENOENT ? -ESRCH : -errno;
		r = note_listed(target, dir, &listed);
		closedir(dir);
	}
	return r;
}

bool target_has_own_tasks(const struct target *target)
{
	for (size_t i = 0; i < target->tasks.count; i++) {
		if (!target->tasks.items[i]->guest)
			return true;
	}
	return false;
}

bool target_has_guests(const struct target *target)
{
	for (size_t i = 0; i < target->tasks.count; i++) {
		if (target->tasks.items[i]->guest)
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
