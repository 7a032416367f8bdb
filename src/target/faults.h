/* The program's own actions for SIGSEGV and SIGBUS, where our code reads what is not there (jumps_mend_fault): when the thread blocks or
 * ignores the signal, the kernel sets the default action for the process, and takes the signal out of the thread's mask (force_sig_fault).
 * What was there is put back.
 *
 * What it is that the program catches them with only a system call of its own tells: it is asked when the process is attached to.  What it
 * sets later by the C library's sigaction() is seen there. */
#ifndef ALLOCWATCH_TARGET_FAULTS_H
#define ALLOCWATCH_TARGET_FAULTS_H

#include "target/target.h"

/* Asks, when that is due (target->ask_for_faults); and puts back, when something was reset.  By system calls of the task, which is held, at
 * no signal, and has no seccomp filter. */
void faults_serve(struct task *task);
/* Whether there is anything for that to do. */
bool faults_need_a_call(const struct target *target);
/* It is one of both. */
bool faults_has(int sig);
/* The task is at the entry of sigaction() for one of both, and is run to its system call: what it sets is noted.  Held then, unless it
 * ended or does not stop (negative errno). */
int faults_serve_call(struct task *task, int sig);
/* It was stopped by this signal for a fault of our code. */
void faults_note(struct task *task, int sig);
/* Which of both a mask blocks. */
uint64_t faults_in_mask(uint64_t mask);

#endif
