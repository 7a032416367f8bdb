/* Coming and going: seizing all threads, holding them all for a moment, letting them go. */
#ifndef ALLOCWATCH_TARGET_ATTACH_H
#define ALLOCWATCH_TARGET_ATTACH_H

#include "target/sharers.h"
#include "target/target.h"

/* Named deadlines. */
#define STOP_ALL_DEADLINE_MS 2000      /* to have all threads stopped; those in an uninterruptible wait
					* (vfork, D state) stop before they run another instruction */
#define UNINTERRUPTIBLE_MS 10          /* others are held no longer for those */
#define PATIENCE_MS 3000               /* at the attach, for a process all of whose threads are in such waits */
#define SCAN_DEADLINE_MS 5000          /* for a task list that never gets stable */
#define ENDING_DEADLINE_MS 2000        /* for the ends of threads that exit, of a process that may go on */
#define KILLED_DEADLINE_MS 10000       /* of one that was killed and goes nowhere else: a dump of its memory, a slow disk */

/* Seizes and interrupts every thread, scanning the task list until it is stable, and every process that has the same
 * memory.  0; -EPERM (target->stranger: whom one may not trace), -ESRCH, -ENOSPC past TASKS_MAX, -ETIMEDOUT.
 * sharers: looked for while nobody was held; NULL: its own threads alone, now and in target_hold_all(). */
int target_seize(struct target *target, struct sharers *sharers);

/* Interrupts what runs and waits for it; on return every task has `stopped` set with its stop, but those
 * that could not stop yet (interrupt_due).  Children that appear meanwhile are dealt with.  Returns how
 * many tasks still run, or -ESRCH when the process has ended. */
int target_stop_all(struct target *target);

/* The same for all that have the memory: also those that were being made when their makers were seized, which nobody tells of.  Else as
 * target_seize. */
int target_hold_all(struct target *target, struct sharers *sharers);

/* A task that has just made another is in the middle of a system call, from which it cannot make one for us: its child is
 * dealt with, and it goes on to the call's end, where an interruption holds it.  (After vfork that is when the child lets
 * it.)  False: that is not what it was stopped for. */
bool target_take_birth(struct task *task);

/* Is at least one thread of the process itself held? */
bool target_holds_any(const struct target *target);
/* Are all tasks held, guests as well? */
bool target_holds_all(const struct target *target);
/* When none is, because all are in waits that nothing breaks off: lets the guests go, for which they may be waiting (vfork), and
 * waits until one stops.  0; -EAGAIN: none did by PATIENCE_MS; -ESRCH: the process has ended. */
int target_wait_for_any(struct target *target);

/* Was the process killed while its tasks were held, or has it ended before?  Its threads' ends are then taken in. */
bool target_has_ended(struct target *target);

/* Waits for one task's next stop and takes it in; -ETIMEDOUT, -ESRCH when it ended (the task then is
 * still there with that stop). */
int task_wait(struct task *task, uint64_t deadline_ns);
/* Notes a stop that was looked at; events are reaped here. */
void task_take_stop(struct task *task, const struct stop *stop);
/* At a stop that is ours alone: a system call that it broke off with EINTR begins again, even if we die now.  Should a
 * signal be due when the task is resumed, the EINTR is the signal's, and comes back. */
void task_mend_call(struct task *task);

/* Takes SIGTRAP out of the mask of a stopped task, once. */
int task_unmask(struct task *task);
/* Puts it back there where it was. */
void task_remask(struct task *task);

/* Resumes a task from its stop as if we had not been there: delivers its signal, keeps it in job
 * control's stop, makes an interrupted system call go on.  -ESRCH: it has ended; when that was its stop, it stays. */
int task_resume(struct task *task);
/* The same by going away.  Our own int3 under it must be gone from the text already. */
int task_detach(struct task *task);

/* A call that was broken off, and that the kernel would go on with by another call which the task's filter may
 * kill it for, is made to be issued again itself.  True: `regs`, the task's, were changed. */
bool task_mend_restart(struct task *task, struct user_regs_struct *regs);

/* Moves a stopped task's pc out of the resident code to where it stands for in the text. */
int task_leave_resident(struct task *task);
/* The breakpoint whose displaced instruction a stopped task is about to run, with its registers; NULL: it stands elsewhere.
 * With task->taken_back set task_leave_resident puts it back as if it had not been there yet. */
struct breakpoint *task_before_displaced(struct task *task, struct user_regs_struct *ret_regs);
/* Is this hit one that was served already, the task having been put back by task_leave_resident?  Asked once
 * for each hit.  `regs` as at the hit, its pc aside. */
bool task_hits_again(struct task *task, const struct breakpoint *bp, const struct user_regs_struct *regs);

/* A new process of fork, vfork or clone: decides by kcmp whether it shares the memory; one that does
 * becomes a guest, one with a copy is cleaned of all that is ours and let go.  1 when a task was added, 0
 * when it was let go, negative errno.  A guest is added in its first stop, a thread running. */
int target_adopt_child(struct target *target, struct task *parent, pid_t child);
/* Has a held child that `tracer` shall seize name it to Yama, by a call of the child's own in the stub (bytes of its
 * memory that it does not need).  0; negative errno, the call's or ours: it could not. */
int target_child_names_tracer(const struct target *parent, pid_t child, raddr stub, pid_t tracer);
/* The same for a target with resident code, some task of which is held. */
int target_names_tracer(struct target *target, pid_t tracer);
/* Lets a guest go: at its exec, or just before one that must not be traced. */
void target_release_guest(struct task *task, bool executed);

/* A held task of the process, its only one, that has just executed a program; NULL: none.  What is known of the memory is of the
 * one that it had: nothing may be done through it. */
struct task *target_executed(const struct target *target);
/* Takes everything of ours out of the process: breakpoints, handler, resident code.  False with *ret_text
 * (static) when something had to stay.  The tasks that could be stopped are held afterwards. */
bool target_undo(struct target *target, const char **ret_text);
/* Lets the held threads run out of the resident handler and of stubs, which are some fifty instructions long, and waits for
 * those that could not be stopped, unless they wait in the kernel and go on elsewhere.  False: one would not leave, or is not
 * known to be out of it. */
bool target_leave_resident(struct target *target);
/* Lets all held tasks go, and then forgets them; `gone`, when not NULL, is told of each before that. */
void target_let_go(struct target *target, void (*gone)(void *context, struct task *task), void *context);
/* `executed`, the only thread of the process that is left, has begun another program, and guests may still share the
 * memory that it had: everything is taken out of that, and they are let go. */
bool target_leave_old_memory(struct target *target, struct task *executed,
			     void (*gone)(void *context, struct task *task), void *context, const char **ret_text);

#endif
