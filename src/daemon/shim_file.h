/* The drop-in that puts the shim before a service's commands: where it lies, and how it comes and goes.  It lies below /run:
 * a boot forgets it, as systemd's own runtime settings. */
#ifndef ALLOCWATCH_DAEMON_SHIM_FILE_H
#define ALLOCWATCH_DAEMON_SHIM_FILE_H

#include <stdbool.h>

#define SHIM_UNIT_FOLDER "/run/systemd/system"
/* Of all drop-ins the last one is in force, by its name; systemd/allocwatch-unshim.in removes it by that, too. */
#define SHIM_FILE_NAME "zz-allocwatch-from-start.conf"

/* To be freed; NULL without memory. */
char *shim_file_path(const char *unit);
/* Whole or not at all: makes the folder, writes beside it and renames.  0 or negative errno. */
int shim_file_write(const char *path, const char *text);
/* With its folder when that is empty then.  Whether it was there. */
bool shim_file_remove(const char *path);
bool shim_file_exists(const char *path);

/* Why services cannot be started through the program at `shim`: it is not there, not for everybody, on a file system
 * without programs, or where a sandbox often hides all.  NULL: they can. */
const char *shim_file_obstacle(const char *shim);

/* What tells one state of a unit's files from another: their paths, inodes, sizes and times; `own` is left out.  NULL in
 * files' place: none.  To be freed; NULL without memory. */
char *shim_file_fingerprint(char *const *files, const char *own);

#endif
