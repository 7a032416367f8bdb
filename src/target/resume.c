#include "target/attach.h"
#include "target/bp.h"
#include "target/held.h"
#include "target/process.h"
#include "target/ptrace.h"
#include "target/resident.h"
#include "target/signals.h"
#include "arch/arch.h"
#include "arch/syscall.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

bool task_mend_restart(struct task *task, struct user_regs_struct *regs)
{
	if (!syscall_restarts_by_call(regs))
		return false;
	if (process_is_filtered(task->tid)) {
		syscall_restart_itself(regs, &task->broken_off);
		return true;
	}
	/* A filter may come while it waits there. */
	if (!syscall_is_restart(regs))
		task->broken_off = *regs;
	return false;
}

void task_mend_call(struct task *task)
{
	struct user_regs_struct regs;

	if (task_getregs(task, &regs) < 0 || !syscall_was_broken_off(&regs))
		return;
	syscall_make_restart(&regs);
	if (ptrace_setregs(task->tid, &regs) < 0)
		return;
	task->mended = true;
	task->mended_pc = arch_pc(&regs);
}

/* At a stop that is ours alone, a system call that the interruption broke off goes on as if nothing had
 * happened.  The kernel restarts the -ERESTART kind by itself.  With a signal due the EINTR is the
 * signal's: a program may wait for it. */
static int mend_interrupted_call(struct task *task)
{
	bool mended = task->mended;
	struct user_regs_struct regs;
	int r = task_getregs(task, &regs);

	task->mended = false;
	if (r < 0)
		return r;
	if (mended) {
		if (arch_pc(&regs) != task->mended_pc || !task_signal_is_due(task))
			return 0;
		syscall_break_off(&regs);
	} else if (!syscall_restarts_by_call(&regs) || task_signal_is_due(task) || !task_mend_restart(task, &regs)) {
		return 0;
	}
	return ptrace_setregs(task->tid, &regs);
}

/* A signal that the program ignores is only seen, and only breaks off a call, because of us. */
static void mend_for_ignored_signal(struct task *task, int sig)
{
	struct user_regs_struct regs;

	if (task_getregs(task, &regs) < 0 || !syscall_was_broken_off(&regs) ||
	    !task_ignores_signal(task, sig) || task_signal_is_due(task))
		return;
	syscall_make_restart(&regs);
	ptrace_setregs(task->tid, &regs);
}

/* What was recorded at the first hit must not be recorded again at the second. */
static void note_rewind(struct task *task, const struct breakpoint *bp, const struct user_regs_struct *regs)
{
	struct task_rewind *rewind;
	struct arch_regs now;

	if (task->rewind_count == TASK_REWINDS) {
		memmove(&task->rewinds[0], &task->rewinds[1], (TASK_REWINDS - 1) * sizeof(task->rewinds[0]));
		task->rewind_count--;
	}
	rewind = &task->rewinds[task->rewind_count++];
	arch_regs_from_user(regs, &now);
	now.reg[ARCH_DWARF_PC] = 0;
	rewind->address = bp->address;
	memcpy(rewind->reg, now.reg, sizeof(rewind->reg));
}

bool task_hits_again(struct task *task, const struct breakpoint *bp, const struct user_regs_struct *regs)
{
	struct arch_regs now;

	if (task->rewind_count == 0)
		return false;
	/* The end of a handler brings all registers back.  A handler may also leave by a jump, and the thread
	 * come to the same place by itself: then hardly with the same registers. */
	arch_regs_from_user(regs, &now);
	now.reg[ARCH_DWARF_PC] = 0;
	for (unsigned i = task->rewind_count; i-- > 0;) {
		if (task->rewinds[i].address != bp->address ||
		    memcmp(task->rewinds[i].reg, now.reg, sizeof(now.reg)) != 0)
			continue;
		task->rewind_count = i;
		return true;
	}
	return false;
}

struct breakpoint *task_before_displaced(struct task *task, struct user_regs_struct *ret_regs)
{
	struct breakpoint *bp;
	raddr pc;

	if (task_getregs(task, ret_regs) < 0)
		return NULL;
	pc = resident_resume(task->target, arch_pc(ret_regs));
	bp = pc == arch_pc(ret_regs) ? NULL : bp_find(task->target, pc);
	return bp && bp->slot == arch_pc(ret_regs) ? bp : NULL;
}

int task_leave_resident(struct task *task)
{
	struct user_regs_struct regs;
	struct breakpoint *bp;
	raddr pc;
	int r = task_getregs(task, &regs);

	if (r < 0)
		return r;
	pc = resident_resume(task->target, arch_pc(&regs));
	if (pc == arch_pc(&regs))
		return 0;
	bp = bp_find(task->target, pc);
	if (bp && bp->slot == arch_pc(&regs) && !task->taken_back)
		note_rewind(task, bp, &regs);
	task->taken_back = false;
	arch_set_pc(&regs, pc);
	return ptrace_setregs(task->tid, &regs);
}

/* Last of all before the request: what is done with the thread until then it is held for, too. */
static void end_hold(struct task *task)
{
	if (task->stopped)
		held_ends(task);
	task->stopped = false;
}

static int cont(struct task *task, int sig)
{
	end_hold(task);
	return task->guest ? ptrace_until_syscall(task->tid, sig) : ptrace_cont(task->tid, sig);
}

int task_resume(struct task *task)
{
	struct stop stop = task->stop;

	/* Taken in while something was done with it, and still to be served. */
	if (task->stopped && stop_is_end(stop.kind))
		return -ESRCH;
	task->stop.kind = STOP_NONE;
	switch (stop.kind) {
	case STOP_SIGNAL:
		/* The frame that the kernel builds must not remember a pc in code that will go away. */
		task_leave_resident(task);
		mend_for_ignored_signal(task, stop.sig);
		return cont(task, stop.sig);
	case STOP_GROUP:
		task->group_stopped = true;
		end_hold(task);
		return ptrace_listen(task->tid);
	case STOP_INTERRUPTED:
		mend_interrupted_call(task);
		return cont(task, 0);
	default:
		return cont(task, 0);
	}
}

void task_remask(struct task *task)
{
	const uint64_t bit = 1ULL << (SIGTRAP - 1);
	uint64_t mask;

	if (task->sigtrap_was_blocked && ptrace_getsigmask(task->tid, &mask) == 0)
		ptrace_setsigmask(task->tid, mask | bit);
}

int task_detach(struct task *task)
{
	struct stop stop = task->stop;

	task_leave_resident(task);
	task_remask(task);
	if (stop.kind == STOP_INTERRUPTED)
		mend_interrupted_call(task);
	/* Job control's stop survives PTRACE_DETACH by itself. */
	return ptrace_detach(task->tid, stop.kind == STOP_SIGNAL ? stop.sig : 0);
}
