/* Names of frames as bytes, for a file that outlives the daemon.  Only names that come from debug information are in it: where
 * there was none, or a part of it was missing, it may be installed later, and symbols are quickly read again.
 *
 * The bytes are of this machine and of this version of the daemon.  Whatever else they are, they are refused as a whole: they
 * have a checksum, and nothing in them is believed before it was compared with their size. */
#ifndef ALLOCWATCH_DAEMON_NAMES_FILE_H
#define ALLOCWATCH_DAEMON_NAMES_FILE_H

#include "daemon/symbolize_cache.h"
#include "daemon/symbolize_files.h"

#include <stddef.h>

/* What was used last is kept, as far as there is room. */
#define NAMES_FILE_MAX (64u << 20)

/* The caller frees *ret_data.  0 or -ENOMEM. */
int names_file_encode(const struct symbolize_cache *cache, const struct symbolize_files *files, void **ret_data,
		      size_t *ret_len);
/* Adds what the bytes say to both.  0; -EBADMSG, and nothing is added; -ENOMEM. */
int names_file_decode(const void *data, size_t len, struct symbolize_cache *cache, struct symbolize_files *files);

#endif
