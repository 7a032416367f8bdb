/* The names that snapshots may have. */
#ifndef ALLOCWATCH_MODEL_SNAPSHOT_NAME_H
#define ALLOCWATCH_MODEL_SNAPSHOT_NAME_H

#include <stdbool.h>

#define SNAPSHOT_NAME_MAX 64           /* characters */
#define SNAPSHOT_NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

bool snapshot_name_is_valid(const char *name);
/* Valid, and none of those that a daemon gives by itself (model/occasion.h). */
bool snapshot_name_may_be_given(const char *name);

#endif
