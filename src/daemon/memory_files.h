/* What the kernel says of a process's memory: how much is resident, what its cgroup has counted, how long processes waited
 * for memory.
 *
 * A cgroup of a process is the one of its unit (the last part of the path that ends in .service or .scope), since
 * limits are set there; without such a part the one that it is in.  Version 2 of cgroups is preferred; version 1 counts
 * memory.failcnt (and, for a limit with swap, memory.memsw.failcnt) as `max` and has no `high`.  Without a cgroup's pressure the whole system's is taken. */
#ifndef ALLOCWATCH_DAEMON_MEMORY_FILES_H
#define ALLOCWATCH_DAEMON_MEMORY_FILES_H

#include "model/alarm.h"

#define MEMORY_FILES_CGROUPS "/sys/fs/cgroup"

/* -1: there is no such file. */
struct memory_files {
	int pid;
	int events;                    /* memory.events: readable by poll(2) as POLLPRI when a counter has changed */
	int failures, swap_failures, control;      /* of version 1: memory.failcnt, memory.memsw.failcnt, memory.oom_control */
	int pressure;                  /* POLLPRI when `triggers` */
	bool triggers;                 /* the kernel has taken the order to tell of pressure */
	uint64_t cgroups;              /* a hash of /proc/PID/cgroup as it was when they were opened; 0: it could not be read */
};

/* cgroups: the folder where they are mounted, or its "unified" and "memory".  stalled_us: the pressure to tell of within
 * ALARM_WINDOW_NS, 0: none.  What is not there is left out. */
void memory_files_open(struct memory_files *files, int pid, const char *cgroups, uint64_t stalled_us);
void memory_files_close(struct memory_files *files);
/* Whether its process is in another cgroup by now, so that they should be opened anew. */
bool memory_files_have_moved(const struct memory_files *files);
/* Fills in everything but now_ns and pressed; what cannot be read stays 0.  A file that is gone for good, with its cgroup, is
 * closed: its descriptor would be ready for ever. */
void memory_files_read(struct memory_files *files, struct alarm_figures *ret);

/* The path of a process's cgroup from the text of its /proc/PID/cgroup, cut after its unit, in the text itself; NULL: it has
 * none.  controller: "" for version 2. */
char *memory_files_cgroup(char *text, const char *controller);

#endif
