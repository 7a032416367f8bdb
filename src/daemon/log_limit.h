/* How many lines of one kind come into the log: so many in each period; further ones are counted, and their number is told
 * once the period is over. */
#ifndef ALLOCWATCH_DAEMON_LOG_LIMIT_H
#define ALLOCWATCH_DAEMON_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define LOG_PERIOD_NS (60ULL * 1000000000)
/* In place of the time: whatever the period, it is over. */
#define LOG_AT_THE_END UINT64_MAX

/* All 0 at first. */
struct log_limit {
	uint64_t begin_ns;             /* of the present period, by CLOCK_MONOTONIC */
	unsigned lines, dropped;       /* in it */
};

/* How many were dropped in a period that is over, to be told now; the next one begins then. */
unsigned log_limit_rest(struct log_limit *limit, uint64_t now_ns);
/* Whether one more may be written, of at most `most`; else it is counted.  After log_limit_rest(). */
bool log_limit_pass(struct log_limit *limit, unsigned most);

#endif
