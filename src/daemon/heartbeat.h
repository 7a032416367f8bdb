/* Whether a tracer is at work: what it holds of its target while it is not runs no further.
 *
 * A tracer says every HEARTBEAT_MS that it is at work, and for how long it may be silent before its next step.  One
 * that is silent for longer is stuck, unless one of its threads runs, or would if others let it, at one of the last few
 * looks: on a machine with that much to do its target would not get on without it, either.  Such a one has more time, ten
 * seconds in all; one that has been in the same wait for a second has not, whatever it did before.  Time is counted in
 * looks, too: after a pause of the whole machine, or of the daemon, a tracer has as long as ever to be heard.
 */
#ifndef ALLOCWATCH_DAEMON_HEARTBEAT_H
#define ALLOCWATCH_DAEMON_HEARTBEAT_H

#include <stdint.h>
#include <sys/types.h>

#define HEARTBEAT_LOOK_US 250000       /* between two looks at one tracer */

struct heartbeat {
	uint64_t heard_ns, heard_cpu;
	uint32_t patience_ms;
	unsigned looks, stopped_looks;  /* since it was heard; the last so many of them found it stopped */
	uint64_t turns;                 /* on a CPU, at the last look */
	unsigned still_looks;           /* the last so many of them found that it had had none since */
	unsigned idle_looks;            /* the last so many of them found that it waits, and that none of its threads would run */
};

/* patience_ms: until it must be heard again. */
void heartbeat_heard(struct heartbeat *heartbeat, pid_t tracer, uint32_t patience_ms);
/* Called every HEARTBEAT_LOOK_US.  NULL: nothing is wrong, or it has ended; else what it is stuck in, for a
 * sentence: "is stopped". */
const char *heartbeat_look(struct heartbeat *heartbeat, pid_t tracer);
/* Why one that was killed a while ago has not ended, for a sentence. */
const char *heartbeat_outlives_kill(pid_t tracer);
uint64_t heartbeat_silence_ms(const struct heartbeat *heartbeat);

#endif
