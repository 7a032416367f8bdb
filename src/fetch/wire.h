/* What the daemon says to a fetcher (allocwatch-fetcher) and hears from it, over a SOCK_SEQPACKET socket: one request, one
 * answer, and the end.  When the daemon closes the socket before that, the fetcher gives up. */
#ifndef ALLOCWATCH_FETCH_WIRE_H
#define ALLOCWATCH_FETCH_WIRE_H

#include "tracer/wire.h"

#include <stddef.h>
#include <stdint.h>

#define FETCH_BUILD_ID_MIN 8
#define FETCH_BUILD_ID_MAX 64
#define FETCH_URLS_MAX 4096            /* their NUL included */

struct fetch_request {
	struct wire_identity identity; /* whose rights it takes; none: its own, but never root's */
	uint32_t build_id_len;
	uint8_t build_id[FETCH_BUILD_ID_MAX];
	uint32_t silence_s;            /* a server that sends nothing for so long is given up */
	uint32_t time_s;               /* for all of it */
	uint64_t bytes_max;            /* of the file */
	char urls[FETCH_URLS_MAX];     /* as in DEBUGINFOD_URLS, separated by spaces */
};

/* With the file as its descriptor, which no name leads to any more. */
struct fetch_answer {
	int32_t result;                /* 0 or negative errno: -ENOENT, no server knows it; -ENOSYS, this fetcher was built
					* without libdebuginfod; -EBADMSG, what came is no ELF file */
	uint32_t pad;
};

/* 0 or -EBADMSG. */
int fetch_check_request(const struct fetch_request *request, size_t len);
int fetch_check_answer(const struct fetch_answer *answer, size_t len, int fd);

#endif
