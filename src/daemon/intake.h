/* A snapshot's way from a tracer's memfd to one with names: checked, read, symbolized.
 *
 * The memfd must be sealed, or the tracer could change the bytes under our eyes.  The image is read in
 * a thread; names come from the symbolizer, at once, so that they do not depend on files that may
 * be gone later. */
#ifndef ALLOCWATCH_DAEMON_INTAKE_H
#define ALLOCWATCH_DAEMON_INTAKE_H

#include "daemon/module_files.h"
#include "daemon/snapshots.h"
#include "daemon/symbolize.h"
#include "daemon/work.h"
#include "model/snapshot.h"

struct intakes;

/* snapshots: whose memory they are read into.  max_bytes: of one image. */
int intakes_new(struct work *work, struct symbolize *symbolize, struct snapshots *snapshots, uint64_t max_bytes,
		struct intakes **ret);
void intakes_free(struct intakes *intakes);
void intakes_set_max_bytes(struct intakes *intakes, uint64_t max_bytes);
size_t intakes_running(const struct intakes *intakes);
/* Of one process those whose names are still looked for. */
size_t intakes_naming(const struct intakes *intakes, int pid, uint64_t start_time);

struct intake_steps {
	void *context;
	/* The image is read: the snapshot has no names yet.  Or it failed (snapshot NULL): negative errno
	 * and a reason, and nothing follows. */
	void (*read)(void *context, struct snapshot *snapshot, int error, const char *reason);
	/* It has all names that could be found.  The reference is the receiver's. */
	void (*named)(void *context, struct snapshot *snapshot);
	bool last;                     /* it came by itself and cannot be asked for again */
};

/* Takes over *fd; files: a reference is taken.  The image must be of this process.  0, and the steps are
 * told from the event loop; or negative errno with *ret_reason: -EBADMSG not sealed, -E2BIG, -ENOSPC
 * too many at a time, of all or of one owner, or no memory allowed for it, -ENOMEM. */
int intake_start(struct intakes *intakes, int *fd, struct module_files *files, int pid, uint64_t start_time,
		 const struct intake_steps *steps, const char **ret_reason);

#endif
