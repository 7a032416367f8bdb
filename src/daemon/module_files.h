/* The open ELF files of one target's modules: what symbols are read from, also when the paths are
 * gone.  Shared by reference between the session and the snapshots that wait for their names. */
#ifndef ALLOCWATCH_DAEMON_MODULE_FILES_H
#define ALLOCWATCH_DAEMON_MODULE_FILES_H

#include "daemon/file_user.h"
#include "daemon/generated.h"
#include "model/snapshot.h"
#include "tracer/wire.h"

struct module_files;

/* Raises the limit of open files as far as allowed; what is not reserved for others, or half of it, is for the files of
 * modules. */
void module_files_set_limit(size_t reserved);

struct module_files *module_files_new(void);        /* one reference; NULL: no memory */
struct module_files *module_files_ref(struct module_files *files);
void module_files_unref(struct module_files *files);        /* accepts NULL; the last closes all */

/* With whose rights what belongs to them is opened; nobody's, unless it is said. */
void module_files_set_user(struct module_files *files, const struct file_user *user);
const struct file_user *module_files_user(const struct module_files *files);

/* Looks at the process that they belong to: where the names of code are that it generates. */
void module_files_look(struct module_files *files, int pid, uint64_t start_time);
struct generated *module_files_generated(struct module_files *files);

/* Takes over *fd (which may be -1).  -ENOSPC past a limit, -EEXIST: that module, or its
 * file, is known (a file that was missing is taken), -ENOMEM. */
int module_files_add(struct module_files *files, const struct wire_module *message, int *fd);
/* For symbolize_snapshot(): the file of each module of the snapshot, -1 where there is none.  The
 * descriptors stay the files'; the list is to be freed.  NULL: no memory. */
int *module_files_match(const struct module_files *files, const struct snapshot *snapshot);

#endif
