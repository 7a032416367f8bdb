/* The folder where kept snapshots lie, one file each: locked against a second daemon, and remembering the last id
 * ever used.  "s17.allocwatch" is the daemon's own user's, "s17.u1000.allocwatch" another one's, whom it serves.
 * What is in the files is store/'s. */
#ifndef ALLOCWATCH_DAEMON_SPOOL_H
#define ALLOCWATCH_DAEMON_SPOOL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct spool;

/* Makes the folder (0700) and its parents when they are missing.  0, or negative errno with
 * *ret_reason, to be freed; -EWOULDBLOCK: another daemon has it. */
int spool_open(const char *folder, struct spool **ret, char **ret_reason);
void spool_close(struct spool *spool);              /* accepts NULL */
const char *spool_folder(const struct spool *spool);
/* The file of snapshot `number`; to be freed, NULL without memory. */
char *spool_path(const struct spool *spool, uint64_t number, uid_t owner);

struct spool_file {
	uint64_t number;
	uid_t owner;
};

/* The snapshots that are there, by number; to be freed. */
int spool_list(const struct spool *spool, struct spool_file **ret_files, size_t *ret_count);
uint64_t spool_last_number(const struct spool *spool);
void spool_set_last_number(struct spool *spool, uint64_t number);

/* The folder for this user: $STATE_DIRECTORY, for root without it /var/lib/allocwatch, else
 * $XDG_STATE_HOME/allocwatch or ~/.local/state/allocwatch.  To be freed; NULL: no such place. */
char *spool_default_folder(int private_daemon);

#endif
