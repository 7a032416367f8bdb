/* The tables of a snapshot file; allocwatch-snapshot(5) explains them.  Private to store/. */
#ifndef ALLOCWATCH_STORE_SCHEMA_H
#define ALLOCWATCH_STORE_SCHEMA_H

#include "store/db.h"

/* Makes the tables in an empty database and marks it as ours. */
int schema_create(struct db *db);
/* Looks at the first bytes of the file just opened: -EMEDIUMTYPE no snapshot file (the reason says
 * what it is instead), -EPROTONOSUPPORT made by a newer version. */
int schema_check_header(struct db *db);
/* -EBADMSG when the file is shorter than it says.  Nobody must be writing it. */
int schema_check_size(struct db *db);
/* The open database has our tables, as schema_create makes them, and nothing else. */
int schema_check_tables(struct db *db);

#endif
