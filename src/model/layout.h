/* Where functions and lines lie in an object, as far as the frames of a snapshot with names tell: what tells builds apart
 * that have no build-id.  It can show that two are not one build, and not that they are. */
#ifndef ALLOCWATCH_MODEL_LAYOUT_H
#define ALLOCWATCH_MODEL_LAYOUT_H

#include "model/snapshot.h"

struct layout;

/* Of all modules without a build-id; the snapshot is not needed any more then.  0 or -ENOMEM; free with layout_free(). */
int layout_new(const struct snapshot *snapshot, struct layout **ret);
void layout_free(struct layout *layout);        /* accepts NULL */

/* Whether something that both modules have lies elsewhere in the one than in the other. */
bool layout_contradicts(const struct layout *a, uint32_t module_a, const struct layout *b, uint32_t module_b);

#endif
