/* Lines of /proc/PID/maps, see proc(5).  maps_next() is pure: text in, values out. */
#ifndef ALLOCWATCH_TARGET_MAPS_H
#define ALLOCWATCH_TARGET_MAPS_H

#include "base/reader.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct target;

/* More text than this is refused: 65,530 mappings (the kernel's default limit) with long paths. */
#define MAPS_TEXT_MAX (64u << 20)

struct map_line {
	raddr start, end;
	bool readable, writable, executable, shared;
	uint64_t offset;
	uint64_t device;          /* makedev() */
	uint64_t inode;           /* 0: no file */
	char *path;               /* points into the text, "" when there is none */
	bool deleted;             /* " (deleted)" was cut off */
};

/* Parses the line at *cursor (which it writes NULs into) and moves on; false at the end.  Lines that
 * are no map lines are passed over. */
bool maps_next(char **cursor, struct map_line *ret_line);

/* All of a process's lines, as they are at one moment: maps_next(&maps.cursor, ...) tells them one by one. */
struct maps {
	char *text, *cursor;
};
/* tid: any thread that has the memory.  0, to be ended by maps_close(); or what reading gave. */
int maps_open(pid_t tid, struct maps *ret_maps);
/* The same of a target.  Who has given up since what opening them again would take has them open, or those of the process that this
 * one is a fresh copy of. */
int maps_of(const struct target *target, struct maps *ret_maps);
void maps_close(struct maps *maps);

#endif
