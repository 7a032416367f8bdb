/* Clocks, in nanoseconds.  No sleeping: who waits polls with a deadline. */
#ifndef ALLOCWATCH_BASE_CLOCK_H
#define ALLOCWATCH_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define NSEC_PER_USEC 1000ULL
#define NSEC_PER_MSEC 1000000ULL
#define NSEC_PER_SEC 1000000000ULL

static inline uint64_t clock_read_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static inline uint64_t clock_monotonic_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

static inline uint64_t clock_realtime_ns(void)
{
	return clock_read_ns(CLOCK_REALTIME);
}

static inline uint64_t clock_in_ms(uint64_t ms)
{
	return clock_monotonic_ns() + ms * NSEC_PER_MSEC;
}

static inline bool clock_passed(uint64_t deadline_ns)
{
	return clock_monotonic_ns() >= deadline_ns;
}

#endif
