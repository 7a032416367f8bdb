/* What the kernel says of the control groups that a process is in. */
#ifndef ALLOCWATCH_BASE_CGROUP_H
#define ALLOCWATCH_BASE_CGROUP_H

#include <stdint.h>

#define CGROUP_TEXT_MAX (64u << 10)            /* of /proc/PID/cgroup */
#define CGROUP_MOUNT "/sys/fs/cgroup"

/* The path of a process's cgroup from the text of its /proc/PID/cgroup, in the text itself, which is changed; NULL: it has
 * none, or none that is seen from here.  controller: of version 1; "" for version 2. */
char *cgroup_path(char *text, const char *controller);

/* How many bytes the process and its cgroup's others may use more before one of its cgroups is at its limit: what the kernel
 * can take from the cache of files counts as free.  mount: CGROUP_MOUNT, with version 2 in it or in its "unified", and
 * version 1's controller in its "memory".  UINT64_MAX: no limit is known. */
uint64_t cgroup_memory_left(int pid, const char *mount);
/* The same of the text of a /proc/PID/cgroup. */
uint64_t cgroup_memory_left_of(const char *text, const char *mount);

#endif
