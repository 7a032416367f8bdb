#include "target/order.h"

#include "target/process.h"

#include "arch/syscall.h"

#define FEW 16                         /* are held sooner than they are looked at */
#define LOOKS 64                       /* until it is seen whether one has come to wait for us */

static bool any_is_held(const struct target *target)
{
	for (size_t i = 0; i < target->tasks.count; i++) {
		if (target->tasks.items[i]->stopped)
			return true;
	}
	return false;
}

/* Stands at a stop that was not seen yet, as at an int3, or in what the owner knows of: it would wait for the looks. */
static bool any_waits(const struct target *target)
{
	struct stop stop;

	return (target->is_awaited && target->is_awaited(target->context)) ||
	       (stop_look_at_any(&stop) == 0 && stop.kind != STOP_NONE);
}

/* False: somebody has come to wait meanwhile. */
static bool look_at_all(struct target *target)
{
	for (size_t i = 0; i < target->tasks.count; i++) {
		struct task *task = target->tasks.items[i];

		if (i % LOOKS == 0 && any_waits(target))
			return false;
		task->ran = process_thread_state(task->guest ? task->tid : target->pid, task->tid) == 'R';
	}
	return true;
}

void order_look(struct target *target)
{
	if (target->tasks.count > FEW && !any_is_held(target) && look_at_all(target))
		return;
	for (size_t i = 0; i < target->tasks.count; i++)
		target->tasks.items[i]->ran = true;
}

static bool is_held(const struct task *task)
{
	return task->stopped && !stop_is_end(task->stop.kind);
}

/* It may have ended to wait since it was looked at. */
static bool runs(struct task *task)
{
	struct user_regs_struct regs;

	return !task->mended && task_getregs(task, &regs) == 0 && !syscall_waits(&regs);
}

static void let_go(struct target *target, bool those_that_ran, const struct task *but, const struct order_going *going)
{
	size_t i = 0;

	while (i < target->tasks.count) {
		struct task *task = target->tasks.items[i++];

		if (task == but || task->ran != those_that_ran || !is_held(task))
			continue;
		going->go(task);
		/* Others have the places of those that were forgotten. */
		if (going->between && going->between(going->context))
			i = 0;
	}
}

void order_let_go(struct target *target, const struct order_going *going)
{
	struct task *leader = going->leader_last ? target_first_task(target) : NULL;

	for (size_t i = 0; i < target->tasks.count; i++) {
		struct task *task = target->tasks.items[i];

		task->ran = task->ran || (is_held(task) && runs(task));
	}
	let_go(target, true, leader, going);
	let_go(target, false, leader, going);
	if (leader && is_held(leader))
		going->go(leader);
}
