/* /proc/PID/stat and /proc/PID/task/TID/stat, see proc(5).  Allocates nothing. */
#ifndef ALLOCWATCH_BASE_PROC_H
#define ALLOCWATCH_BASE_PROC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A numeric field, counted as in proc(5).  0; -ESRCH: the process is gone; -EBADMSG, or what reading gave. */
int proc_stat_number(const char *path, unsigned field, uint64_t *ret_value);
/* Field 3: 'R', 'S', 'D', 'Z', ...; 0: gone. */
char proc_stat_state(const char *path);
/* The process that it is a child of; 0: not known. */
pid_t proc_parent(pid_t pid);

/* How a process ended, for people: "was killed by signal 9 (Killed)", "has ended with status 3".  wait_status: as from
 * waitpid; -1: "has ended".  Returns text. */
#define PROC_END_MAX 64
const char *proc_end_text(char text[PROC_END_MAX], int wait_status);

#endif
