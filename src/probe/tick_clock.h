/* Ticks of the processors' counter, by which the code in a program dates its records, as times of CLOCK_MONOTONIC.
 *
 * How fast the counter goes is measured every second by both clocks, since CLOCK_MONOTONIC is slewed by who keeps the time.  Where
 * the kernel does not have the counter among its clocks, since it does not go evenly or not the same on all processors, it dates
 * nothing. */
#ifndef ALLOCWATCH_PROBE_TICK_CLOCK_H
#define ALLOCWATCH_PROBE_TICK_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct tick_moment {
	uint64_t ns, ticks;
};

struct tick_clock {
	bool usable;
	bool rough;                            /* the rate was measured in a moment, or is from before the counter has gone elsewhere */
	struct tick_moment began;              /* nothing is from before that */
	struct tick_moment last;               /* when both were read last */
	struct tick_moment rate;               /* so many ns in so many ticks */
};

/* Takes 2 ms the first time; a later clock begins with the rate of the first, since a program that was just executed is held then. */
void tick_clock_begin(struct tick_clock *clock);
uint64_t tick_clock_per_ms(const struct tick_clock *clock);
/* Reads both clocks when that is due. */
void tick_clock_follow(struct tick_clock *clock, uint64_t now_ns);
/* CLOCK_MONOTONIC, not after now_ns; 0: that is not known. */
uint64_t tick_clock_ns(const struct tick_clock *clock, uint64_t ticks, uint64_t now_ns);

/* What the two do with what they have read: apart for tests.  A counter that has gone elsewhere meanwhile (the machine was
 * suspended, or moved) dates nothing from before that. */
void tick_clock_set(struct tick_clock *clock, struct tick_moment began, struct tick_moment ended);
void tick_clock_take(struct tick_clock *clock, struct tick_moment moment);

#endif
