/* Children that are followed: each a target of its own, with a tracer of its own.
 *
 * The tracer forks together with its target: the copy has the parent's heap, stacks and tables at no cost, for
 * what is live in the parent at the fork is live in the child, too.  The child waits parked meanwhile.
 * It is a process of its own, so parent and child are traced on several cores. */
#ifndef ALLOCWATCH_TRACER_FOLLOW_H
#define ALLOCWATCH_TRACER_FOLLOW_H

#include "tracer/session.h"

#define FOLLOWED_MAX 256           /* children's tracers of one tracer that run at the same time; further children are
				    * let go clean, and counted */

/* struct target's copy_made; context is the session. */
bool follow_copy(void *context, struct task *parent, pid_t child);
/* A task that shared the memory has begun another program (its exec event's stop). */
void follow_guest(struct session *session, struct task *guest);
/* A child process of this tracer ended. */
void follow_child_ended(pid_t pid);

#endif
