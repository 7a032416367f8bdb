#include "target/faults.h"

#include "target/action.h"
#include "target/process.h"
#include "target/ptrace.h"
#include "target/signals.h"

#include <signal.h>

#define BIT(sig) (1ULL << ((sig) - 1))
#define HANDLER_DEFAULT 0
#define HANDLER_IGNORE 1

static const int signals[TARGET_FAULTS] = { SIGSEGV, SIGBUS };

uint64_t faults_in_mask(uint64_t mask)
{
	return mask & (BIT(SIGSEGV) | BIT(SIGBUS));
}

bool faults_need_a_call(const struct target *target)
{
	return target->ask_for_faults || target->reset_faults != 0;
}

bool faults_has(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS;
}

static unsigned place(int sig)
{
	return sig == SIGSEGV ? 0 : 1;
}

int faults_serve_call(struct task *task, int sig)
{
	struct kernel_sigaction action;
	int r = action_see_call(task, sig, &action);

	if (r == 1)
		task->target->fault_handlers[place(sig)] = action.handler;
	return r < 0 ? r : 0;
}

/* Those that are neither caught nor ignored have the default. */
static int look(struct target *target, uint64_t *ret_ignored, uint64_t *ret_caught)
{
	uint64_t blocked;

	return process_signal_masks(target->memory_tid, &blocked, ret_ignored, ret_caught);
}

static void ask(struct task *task)
{
	struct target *target = task->target;
	uint64_t ignored, caught;

	if (look(target, &ignored, &caught) < 0)
		return;
	for (unsigned i = 0; i < TARGET_FAULTS; i++) {
		struct kernel_sigaction now = { .handler = ignored & BIT(signals[i]) ? HANDLER_IGNORE : HANDLER_DEFAULT };

		if ((caught & BIT(signals[i])) && action_get_of(task, signals[i], &now) < 0)
			now.handler = HANDLER_DEFAULT;
		target->fault_handlers[i] = now.handler;
	}
}

/* The kernel leaves all but the handler; what the program has set since stays. */
static void put_back(struct task *task)
{
	struct target *target = task->target;

	for (unsigned i = 0; i < TARGET_FAULTS; i++) {
		struct kernel_sigaction now;

		if (!(target->reset_faults & BIT(signals[i])) || action_get_of(task, signals[i], &now) < 0 ||
		    now.handler != HANDLER_DEFAULT)
			continue;
		now.handler = target->fault_handlers[i];
		action_set_of(task, signals[i], &now);
	}
}

void faults_serve(struct task *task)
{
	struct target *target = task->target;

	bool filtered;

	if (!faults_need_a_call(target) || task->guest || task->stop.kind == STOP_SIGNAL || stop_is_end(task->stop.kind) ||
	    task_signal_is_due(task))
		return;
	filtered = process_is_filtered(task->tid);
	if (target->reset_faults != 0 && !filtered)
		put_back(task);
	if (target->ask_for_faults && !filtered)
		ask(task);
	target->reset_faults = 0;
	target->ask_for_faults = false;
}

/* One that was caught was reset since the thread blocked it. */
void faults_note(struct task *task, int sig)
{
	struct target *target = task->target;
	uint64_t handler = target->fault_handlers[place(sig)], ignored, caught, mask;
	/* A caught signal that has not been reset cannot have been blocked. */
	bool was_blocked = handler <= HANDLER_IGNORE && (task->blocked_faults & BIT(sig));

	if (task->guest)
		return;
	if (handler != HANDLER_DEFAULT && look(target, &ignored, &caught) == 0 && !((ignored | caught) & BIT(sig))) {
		was_blocked |= handler != HANDLER_IGNORE && !(target->reset_faults & BIT(sig));
		target->reset_faults |= BIT(sig);
	}
	if (was_blocked && ptrace_getsigmask(task->tid, &mask) == 0)
		ptrace_setsigmask(task->tid, mask | BIT(sig));
}
