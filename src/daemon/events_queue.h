/* Events that one subscriber has not taken yet, so many at most, and how many were dropped.
 *
 * One user's events must not crowd out another's: of those that have to share, each owner has a fourth of the queue and all of
 * them three fourths.  What was dropped is told once what came before it is taken; what finds room meanwhile is
 * told after that. */
#ifndef ALLOCWATCH_DAEMON_EVENTS_QUEUE_H
#define ALLOCWATCH_DAEMON_EVENTS_QUEUE_H

#include "daemon/limits.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct queued_event {
	uid_t owner;
	bool shares;
	json_t *body;                        /* a reference */
};

struct events_queue {
	struct queued_event items[EVENTS_QUEUED_MAX];        /* a ring */
	size_t first, count;
	uint64_t missed;
	size_t missed_after;                 /* so many of the items come before what was missed */
};

void events_queue_fini(struct events_queue *queue);
/* owner: whom it concerns; shares: for others' events, and not the daemon's own user's or the subscriber's.  body: a reference is
 * taken when there is room; NULL: there was no memory for it, so it is missed. */
void events_queue_add(struct events_queue *queue, uid_t owner, bool shares, json_t *body);
/* The next body, whose reference is the caller's; or NULL and how many were missed there.  False: there is nothing. */
bool events_queue_take(struct events_queue *queue, json_t **ret_body, uint64_t *ret_missed);

#endif
