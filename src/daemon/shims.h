/* Services whose rule says "from the start": the shim is put before their commands by a drop-in, and taken out again.
 *
 * A drop-in repeats the commands that it changes, and must not outlive them: when a file of the unit changes (an upgrade, an
 * edit) it goes at once, and is made anew from what systemd has read.  Nothing is restarted.  See doc/ARCHITECTURE.md. */
#ifndef ALLOCWATCH_DAEMON_SHIMS_H
#define ALLOCWATCH_DAEMON_SHIMS_H

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

struct shims;
/* path: of the drop-in, NULL: none; refusal: why not, NULL: it is in force. */
typedef void (*shims_done_fn)(void *context, const char *path, const char *refusal);

/* 0 or negative errno. */
int shims_new(sd_event *event, struct shims **ret);
void shims_free(struct shims *shims);              /* accepts NULL; what is on disk stays */
/* A bus on which systemd answers; NULL: there is none (any more), why not. */
void shims_use_bus(struct shims *shims, sd_bus *bus, const char *problem);

/* Puts the shim before the unit's commands, once there is a bus.  done (or NULL) is told once, never before this returns.  0;
 * -EBUSY: somebody waits for the same; or negative errno. */
int shims_put(struct shims *shims, const char *unit, shims_done_fn done, void *context);
/* Takes it out; done (or NULL) is told once systemd has read that.  No shim there: told at once.  Who waits for its being
 * put is told that it was taken back, and may take it out in that. */
void shims_take_out(struct shims *shims, const char *unit, shims_done_fn done, void *context);
/* Of the drop-in that is in force; NULL: none is. */
const char *shims_path(const struct shims *shims, const char *unit);

#endif
