/* The daemon's side of the symbolizer process: hands it files and offsets, fills names into
 * snapshots, restarts it when it dies.  The daemon itself parses no ELF and no DWARF. */
#ifndef ALLOCWATCH_DAEMON_SYMBOLIZE_H
#define ALLOCWATCH_DAEMON_SYMBOLIZE_H

#include "model/snapshot.h"

#include <systemd/sd-event.h>

struct symbolize;

/* program: path of the symbolizer; it is started on first use. */
int symbolize_new(sd_event *event, const char *program, struct symbolize **ret);
void symbolize_free(struct symbolize *symbolize);            /* accepts NULL; kills the process */

/* Resolves all frames of `snapshot` (as snapshot_image_read made it) and fills its locations and
 * strings, then calls done(context, snapshot, 0).  fds[i] is the ELF file of snapshot->modules[i],
 * borrowed until done, -1 when there is none.  What cannot be resolved (no file, the symbolizer
 * crashed twice on it, a deadline) stays without locations; done is called in any case and only
 * from the event loop.  Answers are cached by build-id across snapshots and targets (bounded:
 * SYMBOLIZE_CACHE_MAX bytes).  Negative errno: not started, done is not called. */
#define SYMBOLIZE_CACHE_MAX (256u << 20)
int symbolize_snapshot(struct symbolize *symbolize, struct snapshot *snapshot, const int *fds,
		       size_t fd_count,
		       void (*done)(void *context, struct snapshot *snapshot, int result),
		       void *context);

#endif
