/* A process's mappings, those of files with code say, asked of the kernel one by one (PROCMAP_QUERY, since Linux 6.11), which does not
 * make the text of all others: of 1,000 threads with 300 objects that is 3,500 lines. */
#ifndef ALLOCWATCH_TARGET_MAPS_QUERY_H
#define ALLOCWATCH_TARGET_MAPS_QUERY_H

#include "base/reader.h"

#include <stdint.h>

struct mapped_code {
	raddr start, end;
	uint64_t device;          /* makedev() */
	uint64_t inode;
};

/* The first executable mapping of a file at or behind `from`.  `maps_fd`: an open /proc/PID/maps.  0; -ENOENT: there is none;
 * -ESRCH: the memory is gone; -ENOTTY: the kernel has no such call. */
int maps_query_code(int maps_fd, raddr from, struct mapped_code *ret);

struct mapped_range {
	raddr start, end;
};

/* The readable mapping that `from` is in, or the first one behind it.  As maps_query_code. */
int maps_query_readable(int maps_fd, raddr from, struct mapped_range *ret);

#endif
