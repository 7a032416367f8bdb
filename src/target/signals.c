#include "target/signals.h"

#include "target/process.h"
#include "target/ptrace.h"

#include "base/proc.h"

#include <signal.h>

bool task_signal_is_due(const struct task *task)
{
	unsigned long own, shared;
	const struct status_field fields[] = { { "\nSigPnd:", 16, &own, 1 }, { "\nShdPnd:", 16, &shared, 1 } };
	uint64_t blocked;

	return ptrace_getsigmask(task->tid, &blocked) == 0 && proc_status_fields(task->tid, fields, 2) == 0 &&
	       ((own | shared) & ~blocked) != 0;
}

bool task_signal_is_pending(const struct task *task, int sig)
{
	unsigned long own;

	/* Not to know of one that is to come may be the program's end. */
	if (proc_status_numbers(task->tid, "\nSigPnd:", 16, &own, 1) < 0)
		return ptrace_signal_is_queued(task->tid, sig);
	return own & (1ULL << (sig - 1));
}

bool task_ignores_signal(const struct task *task, int sig)
{
	const uint64_t bit = 1ULL << (sig - 1);
	uint64_t blocked, ignored, caught;

	if (process_signal_masks(task->tid, &blocked, &ignored, &caught) < 0)
		return false;
	if (ignored & bit)
		return true;
	return !(caught & bit) && (sig == SIGCHLD || sig == SIGCONT || sig == SIGURG || sig == SIGWINCH);
}
