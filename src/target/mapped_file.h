/* The files behind a process's mappings, opened without ever waiting for who serves their file system.
 *
 * A file on one of the kernel's own file systems is opened as it is.  Any other one, and any whose path cannot be followed
 * without asking, is opened by a process of its own, which copies it; when it is not done in time it is left to itself,
 * and no file of that device is tried again. */
#ifndef ALLOCWATCH_TARGET_MAPPED_FILE_H
#define ALLOCWATCH_TARGET_MAPPED_FILE_H

#include "target/maps.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Limits.  Beyond them a module has no file: its frames are told by object and offset, and nothing in it is probed. */
#define MAPPED_SILENCE_MS 1000               /* until a file gives no more bytes */
#define MAPPED_WAIT_MS 8000                  /* for all of one look at the mappings */
#define MAPPED_COPY_MAX (256u << 20)         /* bytes of one copy */
#define MAPPED_COPIES_MAX (512u << 20)       /* of all of one target */
#define MAPPED_MUTE_DEVICES_MAX 64           /* further ones are tried again */

#define MAPPED_PATH_MAX 256                  /* of what is told of a path */

/* What is known of a target's files of that kind.  Zeroed at first. */
struct mapped_files {
	struct mounts *mounts;               /* during one look; NULL: not read yet */
	uint64_t waited_ms;                  /* in this look */
	uint64_t copied;                     /* bytes, ever */
	uint64_t mute[MAPPED_MUTE_DEVICES_MAX];
	unsigned mute_count;
	uint64_t missed;                     /* files that could not be had */
	const char *missed_why;              /* static text: of the last one */
	char missed_path[MAPPED_PATH_MAX];
};

/* The file of a mapping of the process with this thread: a descriptor for reading, or -1.  *ret_copy: it is of a copy,
 * which is sealed. */
int mapped_file_open(struct mapped_files *files, pid_t tid, const struct map_line *map, bool *ret_copy);
/* One is not to be had, or not looked at; why: static text. */
void mapped_files_miss(struct mapped_files *files, const char *path, const char *why);
/* A look at the mappings ends: the next one sees what is mounted then. */
void mapped_files_look_done(struct mapped_files *files);

/* The first page of the program that a thread runs; a descriptor or -1. */
int mapped_file_open_head(pid_t tid);

#endif
