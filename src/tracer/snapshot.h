/* Snapshots of a session: a forked child writes them from its copy-on-write image of the tables, so no
 * thread of the target waits for more than the fork. */
#ifndef ALLOCWATCH_TRACER_SNAPSHOT_H
#define ALLOCWATCH_TRACER_SNAPSHOT_H

#include "tracer/session.h"

#define SNAPSHOTS_RUNNING_MAX 16
/* Asked for while so many are being written: they are taken one by one, as others end. */
#define SNAPSHOTS_WAITING_MAX 256
/* Each snapshot takes a date of its own, of which there are 100 a second: dates, and with them the ages of blocks, go
 * wrong by no more than this, and then snapshots wait. */
#define SNAPSHOTS_AHEAD_MS 500

/* Starts one, at once or when others have ended; its end is told by snapshot_child_ended. */
void snapshot_start(struct session *session, uint32_t serial, bool with_blocks);
/* For a target that has ended, or is about to be let go: written here and now. */
void snapshot_write_now(struct session *session, enum wire_snapshot_reason reason);
/* Those whose time has come. */
void snapshot_start_waiting(struct session *session);
/* A child of ours ended: true when it was one of these.  session: NULL when there is none any more. */
bool snapshot_child_ended(struct session *session, pid_t child, bool well);
/* Waits for those that still run (their session goes). */
unsigned snapshot_running(void);
/* In a forked process: those that run are not its own. */
void snapshot_forget_running(void);
/* A sealed memfd with the image of `heap`. */
int snapshot_image(struct session *session, struct heap *heap, bool with_blocks, int *ret_fd);
/* The image of the session's heap into a file; -EFBIG: it would be larger than that. */
int snapshot_write_file(struct session *session, bool with_blocks, int fd, uint64_t max_bytes);

#endif
