/* Which objects of a series of snapshots were built anew between them, as at an upgrade.
 *
 * Objects go by the name of their file without folders and version (see definition.h).  Builds are told apart by build-ids; where
 * neither has one, by what of the same name lies elsewhere in neighbouring snapshots (see layout.h).  Of two modules of one path the last counts: the others were replaced while the process ran. */
#ifndef ALLOCWATCH_MODEL_BUILDS_H
#define ALLOCWATCH_MODEL_BUILDS_H

#include "model/statistics.h"

/* So many objects of one name in one snapshot are looked at; programs have few. */
#define BUILDS_OF_NAME_MAX 64

struct builds;

/* The snapshots outlive it.  0 or -ENOMEM; free with builds_free(). */
int builds_new(const struct snapshot *const *snapshots, size_t count, struct builds **ret);
void builds_free(struct builds *builds);        /* accepts NULL */

/* Whether an object of this path has other builds in one of two snapshots than in the other: each has one that the other
 * has not. */
bool builds_differ(const struct builds *builds, const char *object, size_t a, size_t b);
/* Whether that is so of any object of two neighbouring snapshots. */
bool builds_any_differ(const struct builds *builds);

/* Closes a query's open key: KEY_DEFINITION where any object was built anew.  *ret: NULL when the query needs none. */
int builds_for_query(const struct snapshot *const *snapshots, size_t count, struct statistics_query *query,
		     struct builds **ret);

#endif
