/* Which configuration files there are, in the order in which they are read: systemd's rules.
 *
 * The main file is the first that is found in the folders, which come in the order of their weight (/etc, /run, /usr/lib).
 * Then the drop-ins: the *.conf files of NAME.d in all folders, sorted by name; of several with one name that of the
 * weightiest folder counts, and an empty one or a link to /dev/null there takes it out. */
#ifndef ALLOCWATCH_DAEMON_CONF_FOLDERS_H
#define ALLOCWATCH_DAEMON_CONF_FOLDERS_H

#include "base/vec.h"
#include "daemon/conf_file.h"

#include <stdbool.h>

#define CONF_NAME "allocwatchd.conf"
#define CONF_FOLDERS_MAX 4
#define CONF_FILES_MAX 128             /* drop-ins */

struct conf_paths {
	VEC_OF(char *) files;
};

/* Of the system's daemon, or of a user's own ($XDG_CONFIG_HOME/allocwatch); ends with NULL, to be freed with
 * conf_folders_free().  0 or -ENOMEM. */
int conf_folders(bool system, char *ret_folders[CONF_FOLDERS_MAX + 1]);
void conf_folders_free(char *folders[CONF_FOLDERS_MAX + 1]);

/* Finds the files below these folders.  What cannot be looked through is complained of.  0 or -ENOMEM. */
int conf_paths_find(struct conf_reader *reader, char *const *folders, struct conf_paths *ret);
/* One file, and the drop-ins of FILE.d. */
int conf_paths_of_file(struct conf_reader *reader, const char *file, struct conf_paths *ret);
void conf_paths_fini(struct conf_paths *paths);

#endif
