/* What the daemon remembers of each ELF file it has had symbolized: a number for the cache, how often the
 * symbolizer died over it, and under which number the symbolizer has it open. */
#ifndef ALLOCWATCH_DAEMON_SYMBOLIZE_FILES_H
#define ALLOCWATCH_DAEMON_SYMBOLIZE_FILES_H

#include "model/snapshot.h"
#include "symbol/wire.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* Files remembered; the one used longest ago is forgotten. */
#define SYMBOLIZE_FILES_MAX 4096
/* A file over which the symbolizer died so often is not handed to it again. */
#define SYMBOLIZE_CRASHES_MAX 2

struct symbolize_file {
	uint64_t number;             /* never given twice */
	uint64_t last_used;
	uint64_t user_key;           /* for whom: what belongs to it may be another's to read */
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec modified, changed;
	uint8_t build_id[BUILD_ID_MAX];
	uint32_t build_id_len;
	uint32_t references;         /* from jobs; a referenced one is not forgotten */
	uint32_t crashes;
	bool names;                  /* of generated code; else an ELF file */
	bool slow;                   /* to open it takes longer than others can wait */
	bool unreadable;             /* the symbolizer said it is no such file */
	bool has_debug;              /* its names come from debug information */
	bool incomplete;             /* some of which was missing, and may be there later */
	bool lacks_debug;            /* open there without the debug information that may be had later */
	int slot;                    /* in the running symbolizer, or -1 */
};

struct symbolize_files {
	VEC_OF(struct symbolize_file *) items;
	struct symbolize_file *slots[SYMBOL_WIRE_MODULES_MAX];
	uint64_t last_number, clock;
};

void symbolize_files_fini(struct symbolize_files *files);

/* The record of an open file for a user, with one more reference; NULL: no memory, or no regular file.  module: NULL: it has
 * names of generated code. */
struct symbolize_file *symbolize_files_get(struct symbolize_files *files, int fd,
					   const struct snapshot_module *module, uint64_t user_key);
/* A record that another daemon has made, as far as it says which file for which user it is; *ret_number is its number here.
 * 0 or -ENOMEM. */
int symbolize_files_restore(struct symbolize_files *files, const struct symbolize_file *like, uint64_t *ret_number);
void symbolize_files_put(struct symbolize_file *file);        /* accepts NULL */
/* Whether it makes sense to hand it to the symbolizer. */
bool symbolize_file_usable(const struct symbolize_file *file);

/* Gives the file a number in the symbolizer; the file that had it before is closed by that. */
void symbolize_files_take_slot(struct symbolize_files *files, struct symbolize_file *file);
void symbolize_files_drop_slot(struct symbolize_files *files, struct symbolize_file *file);
void symbolize_files_drop_slots(struct symbolize_files *files);

#endif
