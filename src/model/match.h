/* Groups by definition of two builds: which of them are one, though the one build has not the other's names of files.
 *
 * Groups of the same file and function are one anyway.  Of the others, those that one snapshot alone has are matched:
 *
 * - Where an object was built anew: a function whose file has the same base name in both builds, for sources lie elsewhere
 *   (/build/x-1.0/, /build/x-1.1/).  Where several could be meant, those whose folders are most alike, from the end first;
 *   what is as much like one as like another is left alone.  A function without a file, whose object lies elsewhere or has
 *   another version, likewise.
 * - Where one snapshot has files of a function's and the other has none (it is stripped): by function and object.
 * - Where one has functions of an object's and the other has none, and it was built anew: by object. */
#ifndef ALLOCWATCH_MODEL_MATCH_H
#define ALLOCWATCH_MODEL_MATCH_H

#include "model/builds.h"
#include "model/grouping.h"

/* So many groups of one function and one base name are matched on each side; of more each is what its file says. */
#define MATCH_MOST 16

/* To be called after each grouping_add() of a grouping by definition.  builds: of the snapshots in the order in which they
 * are added, from the newest on or to it.  *ret_into: by former group its number now, no higher, to be freed; NULL: no group
 * has changed.  0 or -ENOMEM. */
int match_groups(struct grouping *grouping, const struct builds *builds, bool newest_first, uint32_t **ret_into);

#endif
