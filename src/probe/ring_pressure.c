#include "probe/ring_pressure.h"

#include "base/clock.h"

/* Has lasted for longer than that. */
static bool lasts(uint64_t *since_ns, uint64_t now_ns, bool is_so, uint64_t ms)
{
	if (!is_so)
		*since_ns = 0;
	else if (*since_ns == 0)
		*since_ns = now_ns;
	return is_so && now_ns - *since_ns > ms * NSEC_PER_MSEC;
}

enum ring_advice ring_pressure_follow(struct ring_pressure *pressure, uint64_t now_ns, bool has_read, uint64_t left, uint64_t size,
				      uint64_t waits)
{
	bool is_pressed = has_read && (left > size / 2 || waits != pressure->waits);

	pressure->waits = waits;
	if (lasts(&pressure->idle_ns, now_ns, !has_read, RING_IDLE_MS))
		return RING_ONE_READER;
	if (!lasts(&pressure->pressed_ns, now_ns, is_pressed, RING_PRESSED_MS))
		return RING_ENOUGH_READERS;
	pressure->pressed_ns = 0;
	return RING_ONE_MORE_READER;
}
