/* One snapshot into an open database.  Private to store/. */
#ifndef ALLOCWATCH_STORE_WRITE_H
#define ALLOCWATCH_STORE_WRITE_H

#include "model/snapshot.h"
#include "store/db.h"

/* Inside a transaction, into a database with our tables: adds the snapshot behind those that are
 * there, and of what they share only what is missing.  -EINVAL when they are of another process. */
int write_snapshot(struct db *db, const struct snapshot *snapshot);

#endif
