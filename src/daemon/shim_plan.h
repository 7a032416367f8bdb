/* What the shim needs to know of a service: its commands, whether it can stand before them, and the files that say so.
 * Read from systemd's properties of the unit (the answer of GetAll), and from its files what systemd does not tell; no
 * question is asked here. */
#ifndef ALLOCWATCH_DAEMON_SHIM_PLAN_H
#define ALLOCWATCH_DAEMON_SHIM_PLAN_H

#include "daemon/exec_start.h"

#include <stdbool.h>
#include <systemd/sd-bus.h>

#define SHIM_REASON_MAX 320
/* Of a service, its own and drop-ins. */
#define SHIM_FILES_MAX 256

struct shim_plan {
	struct exec_start start;
	char **files;                  /* FragmentPath and DropInPaths; NULL-terminated, or NULL */
	bool allow_shim;               /* NoExecPaths= must let it through */
	bool needs_reload;             /* its files have changed since systemd read them */
	bool searches;                 /* ExecSearchPath= is set */
	bool is_up_at_once;            /* by its Type=, before it says anything */
	char refusal[SHIM_REASON_MAX]; /* "": the shim can stand before its commands */
};

/* reply: of GetAll, for all interfaces.  0, and ret is to be freed with shim_plan_fini(); -EBADMSG: systemd's answer is not what
 * this version knows; -ENOMEM. */
int shim_plan_read(sd_bus_message *reply, const char *shim, struct shim_plan *ret);
void shim_plan_fini(struct shim_plan *plan);

#endif
