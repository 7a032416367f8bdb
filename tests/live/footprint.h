/* What a process takes of the machine. */
#ifndef ALLOCWATCH_TESTS_FOOTPRINT_H
#define ALLOCWATCH_TESTS_FOOTPRINT_H

#include <sys/types.h>

struct footprint {
	long rss, anonymous, data;      /* KiB; anonymous: of rss, what is no file's */
	long descriptors, mappings, threads;
};

/* Fails when there is no such process. */
struct footprint footprint_of(pid_t pid);
/* Entries of a folder that do not begin with a dot; the sum of their sizes is added to *ret_bytes, unless that is NULL. */
long folder_entries(const char *path, long long *ret_bytes);

#endif
