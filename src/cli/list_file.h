/* What a snapshot file holds, without a daemon. */
#ifndef ALLOCWATCH_CLI_LIST_FILE_H
#define ALLOCWATCH_CLI_LIST_FILE_H

#include "cli/options.h"
#include "store/store.h"

/* store_load(), or store_describe(). */
typedef int (*store_read_fn)(const char *path, unsigned which, struct snapshot **ret_snapshot, char **ret_reason);

/* Shows all its snapshots; returns an exit status. */
int list_file(const struct options *options, const char *path, store_read_fn read);

#endif
