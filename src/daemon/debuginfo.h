/* Debug information that other machines have (debuginfod(8)), asked for only where the configuration says so: each file by a
 * fetcher of its own (src/fetch), which has the rights of who has had the process traced. */
#ifndef ALLOCWATCH_DAEMON_DEBUGINFO_H
#define ALLOCWATCH_DAEMON_DEBUGINFO_H

#include "daemon/file_user.h"

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

struct debuginfo;

/* Settings that name no server. */
#define DEBUGINFO_NONE "no"
#define DEBUGINFO_ENVIRONMENT "environment"

/* program: a fetcher, to be a child; service: a socket that starts one for each connection, in its place, or NULL.  Without
 * either nobody is asked.
 * arrived: called from the event loop whenever something is known that was not; never from debuginfo_get(). */
int debuginfo_new(sd_event *event, const char *program, const char *service, void (*arrived)(void *context), void *context,
		  struct debuginfo **ret);
void debuginfo_free(struct debuginfo *debuginfo);              /* accepts NULL */

/* setting: NULL or "no": nobody is asked; "environment": the servers of $DEBUGINFOD_URLS, if it is set; else servers, in its form.
 * What was had from others stays.  0 or -ENOMEM. */
int debuginfo_set_servers(struct debuginfo *debuginfo, const char *setting);
/* Nobody is asked any more, and who is being asked is given up. */
void debuginfo_stop(struct debuginfo *debuginfo);

/* As struct symbolize_debug's get (symbolize.h), context being this object: one user's files and failures are no other's. */
int debuginfo_get(void *context, const struct file_user *user, const uint8_t *build_id, size_t len);

#endif
