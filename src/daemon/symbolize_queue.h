/* Snapshots that wait for their names, in turns: each user has a line of their own, and whoever has much to be named holds up
 * nobody else for longer than a turn.
 *
 * A user is who has had the process traced, and as whom its files are opened: root's snapshots of a user's processes do
 * not wait behind that user's own.  The group is left out, since one user may have many. */
#ifndef ALLOCWATCH_DAEMON_SYMBOLIZE_QUEUE_H
#define ALLOCWATCH_DAEMON_SYMBOLIZE_QUEUE_H

#include "daemon/symbolize_job.h"

#include <stdbool.h>
#include <stdint.h>

struct symbolize_line;

struct symbolize_queue {
	struct symbolize_line *first, **last;        /* the first one has its turn */
	uint64_t turn_began_ns;                      /* CLOCK_MONOTONIC; for who came later, when they came */
};

void symbolize_queue_init(struct symbolize_queue *queue);
void symbolize_queue_fini(struct symbolize_queue *queue);     /* frees the jobs, too */

/* Takes the job over, to the end of its user's line.  -ENOMEM. */
int symbolize_queue_add(struct symbolize_queue *queue, struct symbolize_job *job);
/* The one to work on, which stays the queue's; NULL: there is none. */
struct symbolize_job *symbolize_queue_first(const struct symbolize_queue *queue);
/* The same, which is the caller's now; the last one of a line ends its user's turn. */
struct symbolize_job *symbolize_queue_take_first(struct symbolize_queue *queue);

/* Whether several users wait. */
bool symbolize_queue_is_shared(const struct symbolize_queue *queue);
/* Whether a snapshot waits beside this one, whoever's. */
bool symbolize_queue_has_others(const struct symbolize_queue *queue, const struct symbolize_job *job);
/* For how long others have been kept waiting by this turn; 0: there are none. */
uint64_t symbolize_queue_turn_ns(const struct symbolize_queue *queue);
/* The deadlines of who waits for the next turn wait, too. */
void symbolize_queue_next_turn(struct symbolize_queue *queue);

#endif
