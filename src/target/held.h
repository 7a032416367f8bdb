/* How long threads are held at once, the time included that a stop waits to be seen.
 *
 * Nobody tells when a thread stopped.  It was at the earliest when it was last known to run: let go, or looked at; or when
 * nobody stood still unseen, which is so when this process had nothing to do, and at the beginning of a sweep. */
#ifndef ALLOCWATCH_TARGET_HELD_H
#define ALLOCWATCH_TARGET_HELD_H

#include "target/target.h"

/* It ran at that time, of CLOCK_MONOTONIC: one from before the look that found it so, since it may stop right after the look, and
 * this process then lose its processor before it asks what time it is. */
void held_runs(struct task *task, uint64_t ns);
/* It goes on now, which ends a time of being held: to be called right before the request. */
void held_ends(struct task *task);
/* Then all stops had been seen. */
void held_none_since(struct target *target, uint64_t ns);
/* The same after a wait for a stop that began then, if it was a long one: the time that this process waited for a processor before it saw the
 * stop is the thread's, too. */
void held_waited(struct target *target, uint64_t began_ns);

#endif
