/* Which file systems are the kernel's own, told without asking any of them.
 *
 * The others (FUSE, those of a network) are served by some process or machine, which may not answer.  Whoever opens, reads,
 * closes or as much as looks at a file there then sleeps in the kernel, and SIGKILL does not end it: for FUSE, until the
 * server dies.  So neither may be done by a process that others depend on. */
#ifndef ALLOCWATCH_BASE_MOUNTS_H
#define ALLOCWATCH_BASE_MOUNTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct mounts;

/* More text than this is refused. */
#define MOUNTS_TEXT_MAX (64u << 20)

/* The mounts that a process sees (/proc/PID/mountinfo, see proc(5)); 0 or negative errno. */
int mounts_read(pid_t pid, struct mounts **ret);
/* The same from such a text, which it writes NULs into. */
int mounts_parse(char *text, struct mounts **ret);
void mounts_free(struct mounts *mounts);               /* accepts NULL */
/* Whether the mount of this number is there and of a file system of the kernel's own. */
bool mounts_has_own(const struct mounts *mounts, uint64_t number);

/* Whether to use an open file may mean to wait for who serves its file system.  fd: of any kind, O_PATH, too.  mounts: of
 * a process that sees the file's, NULL: not known; of what is not among them only memory and disks pass. */
bool mounts_may_wait(const struct mounts *mounts, int fd);

#endif
