/* From root to another user, for good. */
#ifndef ALLOCWATCH_BASE_USER_H
#define ALLOCWATCH_BASE_USER_H

#include <stddef.h>
#include <sys/types.h>

/* Run by root, becomes the user for whom it is to work: before it looks at anything, so that the kernel asks of each thing
 * whether that user may.  0 or negative errno, and then it must not go on. */
int user_become(uid_t uid, gid_t gid, const gid_t *groups, size_t count);

#endif
