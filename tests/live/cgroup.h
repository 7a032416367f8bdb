/* Real cgroups for live tests, of both versions.  Each case has one of a kind at most; it skips where none can be made. */
#ifndef ALLOCWATCH_TESTS_CGROUP_H
#define ALLOCWATCH_TESTS_CGROUP_H

#include <stdbool.h>
#include <sys/types.h>

/* Where this process's cgroup of a hierarchy is, by its line in /proc/self/cgroup ("0::", ":memory:"); NULL: there is none. */
const char *cgroup_own(const char *mount, const char *prefix);
/* A new one below it. */
const char *cgroup_make(const char *parent);
/* Of so many bytes of memory, of version 2 where that has the controller, else of 1.  with_swap: these count, too;
 * where version 1 has such a limit, newer kernels count no failures. */
const char *cgroup_make_memory(long bytes, bool with_swap);
/* Of version 2 and with the memory controller: below the root, since others may have no processes of their own beside such
 * ones.  NULL: there is none. */
const char *cgroup_make_memory_2(void);
/* Whether a file of it, or any other, took the text. */
bool cgroup_write(const char *path, const char *text);
void cgroup_move(const char *box, pid_t pid);
/* Waits for processes in it that have just ended. */
void cgroup_remove(const char *box);

#endif
