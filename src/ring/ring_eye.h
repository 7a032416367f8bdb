/* Who only looks at the records of a ring: in any thread, at any time, while the reader reads them and the program writes new ones over
 * those that were read.  So what is told may be of a record that is there no more, or of none: it is checked as the reader checks it, and
 * never leads out of the ring's memory, but whether it was true only the reader can say.  Nothing is written.  Of a ring that nobody
 * unmaps meanwhile. */
#ifndef ALLOCWATCH_RING_RING_EYE_H
#define ALLOCWATCH_RING_RING_EYE_H

#include "ring/ring.h"

/* What of a ring never changes, away from what its reader writes. */
struct ring_eye {
	const uint8_t *data;
	const uint64_t *head;
	uint64_t size, key;
};

struct ring_eye ring_eye(const struct ring *ring);
/* How many bytes have been reserved behind this position; 0 also where the program says what cannot be. */
uint64_t ring_eye_reserved(const struct ring_eye *eye, uint64_t position);
/* The record at this position, and its length; a void one is a call of no site.  False: none is committed there. */
bool ring_eye_look(const struct ring_eye *eye, uint64_t position, struct ring_record *ret_record, uint32_t *ret_length);
/* The first committed record at or behind a position, before `end`.  False: there is none. */
bool ring_eye_find(const struct ring_eye *eye, uint64_t *position, uint64_t end);

#endif
