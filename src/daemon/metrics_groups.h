/* The source lines that hold most of a process's memory, as they were a while ago.
 *
 * They come from the newest kept snapshot when that is new enough, else from one that is taken for it and not kept.  A
 * process is asked no sooner than its interval says, nor than METRICS_REST times as long as the last snapshot took; a few
 * at a time, the others wait for their turn. */
#ifndef ALLOCWATCH_DAEMON_METRICS_GROUPS_H
#define ALLOCWATCH_DAEMON_METRICS_GROUPS_H

#include "export/openmetrics.h"

struct daemon;
struct metrics_groups;
struct session;

struct metrics_groups *metrics_groups_new(struct daemon *daemon);      /* NULL without memory */
void metrics_groups_stop(struct metrics_groups *groups);               /* nothing new begins any more */
void metrics_groups_free(struct metrics_groups *groups);               /* accepts NULL; its jobs have ended */
/* count: lines of a process; 0: none. */
void metrics_groups_set(struct metrics_groups *groups, size_t count, uint64_t interval_ns);

/* Whether newer ones are on their way; then `arrived` is told once, from the event loop. */
bool metrics_groups_refresh(struct metrics_groups *groups, const struct session *session,
			    void (*arrived)(void *context), void *context);
/* Those that are there, the largest first, good until the next event: how many; *ret_ns: CLOCK_REALTIME, 0: none. */
size_t metrics_groups_get(const struct metrics_groups *groups, const struct session *session,
			  const struct openmetrics_group **ret_groups, uint64_t *ret_ns);
/* Forgets processes that are no longer in the list. */
void metrics_groups_tidy(struct metrics_groups *groups);

#endif
