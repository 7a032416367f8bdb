/* After SEIZE a tracer needs no privileges: it becomes the target's user. */
#ifndef ALLOCWATCH_TRACER_PRIVILEGES_H
#define ALLOCWATCH_TRACER_PRIVILEGES_H

#include <sys/types.h>

/* Run by root, takes the target's ids, no supplementary groups and no capabilities.  The tracer
 * of a target of root's own stays root.  0 or negative errno. */
int privileges_drop_to(uid_t uid, gid_t gid);

#endif
