/* Who is sampled, and what that does not go together with so far. */
#ifndef ALLOCWATCH_DAEMON_SAMPLING_H
#define ALLOCWATCH_DAEMON_SAMPLING_H

#include "tracer/wire.h"

#include <stdint.h>

/* Why the process would not be sampled though its message says so, all else in it being filled in; NULL: it would. */
const char *sampling_refusal(const struct wire_attach *message);
/* Has it sampled at the configuration's rate (0: not), unless that does not go together with the rest: nobody has asked for it. */
void sampling_by_default(struct wire_attach *message, uint64_t sample_bytes);

#endif
