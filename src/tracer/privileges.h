/* A tracer needs no privileges after SEIZE: it becomes the target's user.  For a user who is not root it becomes
 * that one before. */
#ifndef ALLOCWATCH_TRACER_PRIVILEGES_H
#define ALLOCWATCH_TRACER_PRIVILEGES_H

#include <stddef.h>
#include <sys/types.h>

/* Run by root, takes the target's ids, no supplementary groups and no capabilities; under Yama the calling thread keeps
 * what target/rights.h says.  The tracer of a target of root's own stays root.  0 or negative errno. */
int privileges_drop_to(uid_t uid, gid_t gid);

/* Run by root, becomes a user for whom it is to trace: before it looks at anything, so that the kernel asks of each thing
 * whether that user may.  0 or negative errno, and then it must not go on. */
int privileges_become(uid_t uid, gid_t gid, const gid_t *groups, size_t count);

#endif
