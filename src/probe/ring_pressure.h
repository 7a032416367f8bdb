/* Whether the threads that read a ring are too few for it, or too many: by how full it was each time that it was read. */
#ifndef ALLOCWATCH_PROBE_RING_PRESSURE_H
#define ALLOCWATCH_PROBE_RING_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>

#define RING_PRESSED_MS 100            /* for so long there is more to read than they can: one more */
#define RING_IDLE_MS 1000              /* for so long nothing to read: one alone */

enum ring_advice { RING_ENOUGH_READERS, RING_ONE_MORE_READER, RING_ONE_READER };

struct ring_pressure {
	uint64_t pressed_ns, idle_ns;      /* since then it was so at each reading; 0: it is not */
	uint64_t waits;                    /* of its writers for room, as they were last */
};

/* After a reading: how many bytes of the ring's size are left to be read, and how often writers have waited in all. */
enum ring_advice ring_pressure_follow(struct ring_pressure *pressure, uint64_t now_ns, bool has_read, uint64_t left, uint64_t size,
				      uint64_t waits);

#endif
