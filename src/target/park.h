/* Handing a stopped task over to another tracer without its running anything of its own in between.
 *
 * It waits in a system call of a stub, with all signals held back by that call alone, until the other one
 * seizes it.  Should that never come, it goes on by itself as if nothing had been. */
#ifndef ALLOCWATCH_TARGET_PARK_H
#define ALLOCWATCH_TARGET_PARK_H

#include "target/target.h"

#include <sys/user.h>

#define PARK_SECONDS 2

struct parking {
	pid_t tid;
	struct user_regs_struct regs;  /* as they shall be when it goes on */
	raddr stub, note;
	uint32_t length;
};

/* Sends the task, stopped at an event, into a stub at `stub` in its memory, and detaches from it.  note: of its main
 * area's header, so that nobody takes it for one whose tracer has died; 0: it has none.  On failure it is as it was. */
#define PARK_DATA 24               /* bytes behind a stub's code */
int park_leave(pid_t tid, raddr stub, raddr note, struct parking *ret_parking);
/* Seizes the parked task: on success it is held, a task of the target, with its registers back and the stub's bytes
 * zero again.  -ETIMEDOUT: it has gone on by itself, and goes on. */
int park_take(struct target *target, const struct parking *parking, struct task **ret_task);

#endif
