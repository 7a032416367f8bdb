/* A tracer needs no privileges after SEIZE, but for a second one: it becomes the target's user.  For a user who is not root it becomes
 * that one before (base/user.h). */
#ifndef ALLOCWATCH_TRACER_PRIVILEGES_H
#define ALLOCWATCH_TRACER_PRIVILEGES_H

#include <stdbool.h>
#include <sys/types.h>

/* Run by root, takes the target's ids, no supplementary groups and no capabilities; under Yama, and when the target is to be let go
 * and seized again, the calling thread keeps what target/rights.h says.  The tracer of a target of root's own stays root.  0 or
 * negative errno. */
int privileges_drop_to(uid_t uid, gid_t gid, bool seizes_again);

#endif
