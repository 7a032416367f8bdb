/* The program's own action for SIGTRAP, while ours is the one that the kernel has.
 *
 * What the program sets with sigaction() and its kin is noted and not done, and it is told what it has set itself; the
 * resident handler hands its SIGTRAPs on.  So it never ignores the signal, nor blocks it in its handler: at an int3 the
 * kernel would take that for an error and set the default action, behind everybody's back.  Where it does so because a
 * thread blocks the signal ours is set again. */
#ifndef ALLOCWATCH_TARGET_ACTION_H
#define ALLOCWATCH_TARGET_ACTION_H

#include "target/target.h"

struct kernel_sigaction {                  /* arch/x86/include/uapi/asm/signal.h, as the system call has it */
	uint64_t handler, flags, restorer, mask;
};

/* By a system call of a held task. */
int action_set(struct task *task, const struct kernel_sigaction *action);
int action_get(struct task *task, struct kernel_sigaction *ret_action);
/* Of another signal. */
int action_set_of(struct task *task, int sig, const struct kernel_sigaction *action);
int action_get_of(struct task *task, int sig, struct kernel_sigaction *ret_action);
/* Ours, as it serves best with the program's own that is noted. */
struct kernel_sigaction action_ours(const struct target *target);
/* Notes it in the target, too, for the handler. */
int action_note(struct target *target, const struct kernel_sigaction *programs);

/* The task is at the entry of sigaction() for SIGTRAP, and is run to the end of its system call.  Held then, unless it
 * ended or does not stop (negative errno). */
int action_serve_call(struct task *task);
/* The task is at the delivery of a SIGTRAP of its own, and will be resumed.  Negative errno: it ended, or runs. */
int action_before_delivery(struct task *task);
/* Likewise for another signal, to the entry of its system call.  1: it is to set this; 0: it sets none, or stands elsewhere. */
int action_see_call(struct task *task, int sig, struct kernel_sigaction *ret_action);

/* Looks whether the kernel has taken ours away. */
void action_check(struct target *target);
/* Asks the kernel which handler there is, which nothing else tells, when that is due (ask_for_handler): by a system call of the
 * task, which is held, at no signal.  One of which a signal is due is not asked: that may be of an int3 which it has just met, and
 * the call would hand it to the resident handler, so that what it says would be lost.  A task with a seccomp filter is not asked: it might be killed for the call, or for ours
 * when the tracer dies in that moment. */
void action_ask(struct task *task);
/* Sets it again, when it has; the task is held, at no signal. */
int action_repair(struct task *task);

#endif
