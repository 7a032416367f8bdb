/* What /proc says of a process, as values. */
#ifndef ALLOCWATCH_TARGET_PROCESS_H
#define ALLOCWATCH_TARGET_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The CPU a thread last ran on (field 39). */
int process_last_cpu(pid_t pid, pid_t tid, int *ret_cpu);
/* A thread of it that still has memory: the main one, unless it is gone; pid when there is none. */
pid_t process_living_thread(pid_t pid);
/* Who traces it, 0: nobody. */
pid_t process_tracer(pid_t pid);
/* Effective uid, gid of a process. */
int process_ids(pid_t pid, uid_t *ret_uid, gid_t *ret_gid);
/* SigBlk of a task; SigIgn and SigCgt of its process; bit n - 1 is signal n. */
int process_signal_masks(pid_t tid, uint64_t *ret_blocked, uint64_t *ret_ignored, uint64_t *ret_caught);
/* Where its functions return to stands on a shadow stack, too, and cannot be changed. */
bool process_has_shadow_stack(pid_t tid);
/* The system calls of a thread are filtered (seccomp). */
bool process_is_filtered(pid_t tid);
/* Those of some of a process's threads, those of all. */
void process_filters(pid_t pid, bool *ret_some, bool *ret_all);
/* Command line with spaces for NULs, cut to fit; the name of the executable in brackets if empty. */
void process_command(pid_t pid, char *buf, size_t space);
void process_exe(pid_t pid, char *buf, size_t space);
/* 'R', 'S', 'D', ... of a thread; 0: it is gone.  Allocates nothing. */
char process_thread_state(pid_t pid, pid_t tid);
/* Where a thread that waits in the kernel goes on; 0: it runs, or that cannot be seen. */
uint64_t process_blocked_pc(pid_t tid);
/* What it waits in: *ret_number of a system call, and its first argument, PROCESS_RUNS, or another negative number; or
 * negative errno. */
#define PROCESS_RUNS (-2)
int process_call(pid_t tid, long *ret_number, uint64_t *ret_argument);
/* How many threads it has, ended ones that nobody has waited for included; 0: not known. */
uint64_t process_threads(pid_t pid);
/* How a process that is no child of ours ended, as from waitpid.  0; -ENODATA: that cannot be known, as with kernels before 6.15 once its
 * parent has waited for it. */
int process_wait_status(pid_t pid, uint64_t start_time, int pid_fd, int *ret_status);
/* Whether `holder` has a file of that process's folder in /proc open, such as its memory; where that may not be seen, it has not. */
bool process_has_opened(pid_t holder, pid_t pid);
/* The inode of the PID namespace in which this process has the number that it knows itself by; 0: that cannot be seen. */
uint64_t process_own_namespace(void);
/* Whether the process that has this number in it is surely dead: there is none, or a zombie.  One that may not be looked at is not. */
bool process_is_surely_dead(pid_t pid);
/* Gone, or a zombie. */
bool process_thread_is_dead(pid_t pid, pid_t tid);
/* Or about to be: it was killed, or exits, and runs no more of its program. */
bool process_thread_is_exiting(pid_t pid, pid_t tid);

#endif
