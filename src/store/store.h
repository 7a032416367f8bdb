/* Snapshots in an SQLite file, self-contained; see allocwatch-snapshot(5).
 * One file can hold many snapshots of one process, which share their stacks. */
#ifndef ALLOCWATCH_STORE_STORE_H
#define ALLOCWATCH_STORE_STORE_H

#include "model/snapshot.h"

#define STORE_APPLICATION_ID 0x41574348        /* "AWCH" */
#define STORE_VERSION 3            /* 1 and 2 are still read; see allocwatch-snapshot(5) */
#define STORE_TEXT_MAX (256u << 10)

/* Writes one snapshot as a new file, atomically (a temporary file beside it, fsync, rename).
 * 0, or negative errno with *ret_reason (to be freed): what failed and why.  Texts are cut at STORE_TEXT_MAX bytes. */
int store_save(const char *path, const struct snapshot *snapshot, char **ret_reason);
/* Adds to an existing file of the same process and of this version (or makes it). */
int store_append(const char *path, const struct snapshot *snapshot, char **ret_reason);
/* The same two, telling how far they are: rows that are written, and of how many; again and again, from the same thread. */
struct store_listener {
	void (*told)(void *context, uint64_t done, uint64_t all);
	void *context;
};
int store_save_telling(const char *path, const struct snapshot *snapshot, const struct store_listener *listener,
		       char **ret_reason);
int store_append_telling(const char *path, const struct snapshot *snapshot, const struct store_listener *listener,
			 char **ret_reason);
/* Undoes what a store_append that was interrupted left half done; without that, and until the next
 * store_append, such a file cannot be read (-EBUSY).  For files of one's own: it writes. */
int store_repair(const char *path, char **ret_reason);
/* Reads the snapshot with number `which` (1 is the first; 0 the last).  Everything in the file is
 * treated as hostile: -EBADMSG damaged, -EMEDIUMTYPE foreign, -EPROTONOSUPPORT newer, -ENOENT no such
 * file or no snapshot of that number, -EBUSY locked or interrupted; the file is never changed. */
int store_load(const char *path, unsigned which, struct snapshot **ret_snapshot, char **ret_reason);
/* Only what it is of: identity, counters and `unknown`; its tables are empty, nothing of them was read
 * or checked. */
int store_describe(const char *path, unsigned which, struct snapshot **ret_snapshot, char **ret_reason);
/* The number of the last one with this id or name; -ENOENT when there is none. */
int store_find(const char *path, const char *name, unsigned *ret_which, char **ret_reason);
int store_count(const char *path, unsigned *ret_count, char **ret_reason);

#endif
