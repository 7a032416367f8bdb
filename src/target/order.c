#include "target/order.h"

#include "target/process.h"

#include "arch/syscall.h"

#define FEW 16                         /* are held sooner than they are looked at */

static bool any_is_held(const struct target *target)
{
	for (size_t i = 0; i < target->tasks.count; i++) {
		if (target->tasks.items[i]->stopped)
			return true;
	}
	return false;
}

void order_look(struct target *target)
{
	bool all = target->tasks.count <= FEW || any_is_held(target);

	for (size_t i = 0; i < target->tasks.count; i++) {
		struct task *task = target->tasks.items[i];
		pid_t group = task->guest ? task->tid : target->pid;

		task->ran = all || process_thread_state(group, task->tid) == 'R';
	}
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
