/* What tracers knew when a daemon was gone or hung, or could not be reached: each has a file for that from its attach on, and
 * what was left there is kept as "PID:lost", by the next daemon that has the folder or by the one that lives on. */
#ifndef ALLOCWATCH_DAEMON_LOST_H
#define ALLOCWATCH_DAEMON_LOST_H

#include "daemon/lost_files.h"
#include "daemon/session.h"

struct daemon;
struct lost;

/* Begins to look once the kept snapshots are known.  NULL: no memory. */
struct lost *lost_new(struct daemon *daemon);
/* What is under way is given up: the files stay for the next one. */
void lost_stop(struct lost *lost);                 /* accepts NULL */
void lost_free(struct lost *lost);                 /* accepts NULL */

/* For sessions_owner: the file of a session (a descriptor, or negative errno), and its end, after which nothing
 * needs to be stored there any more.  context: the daemon. */
int lost_refuge(void *context, const struct session *session, struct lost_file *ret_file);
void lost_leave_refuge(void *context, const struct lost_file *file);
/* Its tracer is not heard any more: what it stores there is read as soon as it has left. */
void lost_seek_refuge(void *context, const struct lost_file *file);

#endif
