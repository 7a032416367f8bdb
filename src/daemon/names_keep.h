/* Names that are remembered outlive the daemon: in the file "names" of its state folder, which is its own user's alone. */
#ifndef ALLOCWATCH_DAEMON_NAMES_KEEP_H
#define ALLOCWATCH_DAEMON_NAMES_KEEP_H

#include "daemon/symbolize.h"
#include "daemon/work.h"

struct names_keep;

/* folder: which belongs to this daemon; NULL: nothing is kept.  Reads what there is; one that is damaged, or another version's, is
 * removed, which is logged.  0 or negative errno. */
int names_keep_new(sd_event *event, struct work *work, struct symbolize *symbolize, const char *folder,
		   struct names_keep **ret);
/* Writes what has come since; call it when no job runs any more.  Accepts NULL. */
void names_keep_free(struct names_keep *keep);

#endif
