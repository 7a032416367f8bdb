/* How a person names a snapshot: a PID, the id of a kept one, WHO:NAME, a file. */
#ifndef ALLOCWATCH_CLI_SNAP_H
#define ALLOCWATCH_CLI_SNAP_H

#include <stdbool.h>
#include <sys/types.h>

enum snap_kind {
	SNAP_PID,       /* 4242: a fresh one of a live process, else its last one */
	SNAP_ID,        /* s17 */
	SNAP_NAMED,     /* 4242:before, redis-server.service:last */
	SNAP_FILE,      /* anything with a / in it */
};

struct snap {
	enum snap_kind kind;
	const char *text;       /* as written, borrowed */
	pid_t pid;              /* SNAP_PID and SNAP_NAMED; 0: of a unit */
};

/* 0, or -EINVAL with *ret_reason (a static text). */
int snap_parse(const char *text, struct snap *ret_snap, const char **ret_reason);
/* A positive number that can be a PID; 0 or -EINVAL. */
int snap_parse_pid(const char *text, pid_t *ret_pid);

#endif
