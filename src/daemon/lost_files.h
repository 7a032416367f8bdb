/* Files in the state folder in which tracers store what they know when the daemon is gone (tracer/refuge.h): one for each
 * process that is traced, empty as long as all is well.  Their names are the daemon's, and say whose process it is;
 * what is in them is the tracer's.  Each is locked as long as its tracer has it. */
#ifndef ALLOCWATCH_DAEMON_LOST_FILES_H
#define ALLOCWATCH_DAEMON_LOST_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct lost_file {
	int pid;
	uint64_t start_time;           /* with pid, which process */
	unsigned number;               /* of several of one process */
	uid_t owner;
};

/* Makes one, locked: fills in its number.  A descriptor, or negative errno. */
int lost_file_make(const char *folder, struct lost_file *file);
/* Opens one, locked.  -EWOULDBLOCK: its tracer has it; -ENODATA: nothing was stored; -EFBIG; -ETIME: it is too old; -EPERM: it
 * is no plain file of the daemon's user. */
int lost_file_open(const char *folder, const struct lost_file *file);
void lost_file_remove(const char *folder, const struct lost_file *file);
/* Those that are there; to be freed. */
int lost_files_list(const char *folder, struct lost_file **ret_files, size_t *ret_count);

#endif
