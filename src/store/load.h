/* One snapshot out of an open database.  Private to store/. */
#ifndef ALLOCWATCH_STORE_LOAD_H
#define ALLOCWATCH_STORE_LOAD_H

#include "model/snapshot.h"
#include "store/db.h"

/* How many snapshots the file says it holds. */
int load_count(struct db *db, unsigned *ret_count);
/* The one with number `which`, from 1 to that count. */
int load_snapshot(struct db *db, unsigned which, struct snapshot **ret_snapshot);
/* The same without tables. */
int load_description(struct db *db, unsigned which, struct snapshot **ret_snapshot);

#endif
