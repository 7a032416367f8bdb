/* Reading the configuration again while the daemon runs (SIGHUP, `systemctl reload`): all of it or nothing.
 *
 * The files are read in a thread, since a disk may be slow.  What a running daemon can change it changes; of the rest the
 * log says that it takes a restart.  Where something is wrong the old configuration stays in force. */
#ifndef ALLOCWATCH_DAEMON_RELOAD_H
#define ALLOCWATCH_DAEMON_RELOAD_H

struct daemon;
struct options;
struct reload;

/* options: those the daemon was started with, which a reload changes.  NULL without memory. */
struct reload *reload_new(struct daemon *daemon, struct options *options);
void reload_free(struct reload *reload);               /* accepts NULL; no job of it runs any more */
/* Once more when one is under way. */
void reload_begin(struct reload *reload);

#endif
