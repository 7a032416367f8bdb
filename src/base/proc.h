/* What /proc says of a process or a thread, see proc(5): its stat, read without allocating anything, and its status. */
#ifndef ALLOCWATCH_BASE_PROC_H
#define ALLOCWATCH_BASE_PROC_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROC_NAMESPACES_MAX 33     /* MAX_PID_NS_LEVEL and the first one: pid_namespaces(7) */

/* A numeric field, counted as in proc(5).  0; -ESRCH: the process is gone; -EBADMSG, or what reading gave. */
int proc_stat_number(const char *path, unsigned field, uint64_t *ret_value);
/* Field 3: 'R', 'S', 'D', 'Z', ...; 0: gone. */
char proc_stat_state(const char *path);
/* Field 2 is this name. */
bool proc_stat_is_named(const char *path, const char *name);
/* User and system time, in clock ticks; 0: gone. */
uint64_t proc_stat_cpu(const char *path);
/* How long it has run on CPUs, has waited for one, and how often it has been given one, by its schedstat file; 0: that is not told. */
uint64_t proc_schedstat_ran_ns(const char *path);
uint64_t proc_schedstat_waited_ns(const char *path);
uint64_t proc_schedstat_turns(const char *path);
/* The next process of an open /proc, or thread of an open /proc/PID/task: 1; 0: there are no more; or what folder_next() gives. */
int proc_next(DIR *folder, pid_t *ret_pid);
/* The process that it is a child of; 0: not known. */
pid_t proc_parent(pid_t pid);

/* Field 22: with its number a process's identity.  0, -ESRCH, -EBADMSG, or what reading gave. */
int proc_start_time(pid_t pid, uint64_t *ret_ticks);

/* Of /proc/PID/status: the numbers behind "\nName:", all of one moment.  0; -ESRCH; -EBADMSG: one is not there, and some may
 * have been filled in. */
struct status_field {
	const char *key;
	int base;
	unsigned long *ret;
	unsigned count;
};
int proc_status_fields(pid_t pid, const struct status_field *fields, size_t count);
int proc_status_numbers(pid_t pid, const char *key, int base, unsigned long *ret, unsigned count);
/* The process that a thread belongs to; 0: not known. */
pid_t proc_thread_group(pid_t tid);

/* A process or thread has a number in its own PID namespace and in each of those around it, as far as that of /proc: see
 * pid_namespaces(7).  How many namespaces further in than that one it is; 0: none, or not known. */
unsigned proc_namespace_level(pid_t pid);
/* The same of the numbers behind "\nNSpid:", which begin with that for /proc and end at a 0: numbers[of this] is its own. */
unsigned proc_innermost(const unsigned long numbers[PROC_NAMESPACES_MAX]);
/* Its number in the one that is so much further in than that of /proc; 0: not known. */
pid_t proc_number_at(pid_t tid, unsigned level);

/* How a process ended, for people: "was killed by signal 9 (Killed)", "has ended with status 3".  wait_status: as from
 * waitpid; -1: "has ended".  Returns text. */
#define PROC_END_MAX 64
const char *proc_end_text(char text[PROC_END_MAX], int wait_status);

#endif
