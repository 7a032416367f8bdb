/* The reader's side of a ring, for the files that make it up: ring.c (records, lengths of stacks), ring_parse.c (what a record says),
 * ring_eye.c (who only looks), ring_sampling.c. */
#ifndef ALLOCWATCH_RING_RING_PRIVATE_H
#define ALLOCWATCH_RING_RING_PRIVATE_H

#include "ring/ring.h"

struct ring {
	int fd;
	uint64_t size, key;                       /* what the program has of them is not asked again */
	uint8_t *mapping;
	struct ring_control *control;
	const uint8_t *data;
	uint64_t position;                        /* of the next record to read */
	uint64_t head;                            /* as last seen */
	uint64_t published;                       /* the tail that writers see */
	uint32_t length;                          /* of the record at the position, once it was looked at */
	uint64_t lost;                            /* of those, told already */
	uint64_t hook_served;                     /* as in the control page */
	uint16_t too_short[RING_LENGTHS];         /* in units, as the lengths in the control pages */
	uint32_t taken;                           /* entries for lengths */
	uint32_t unknown_length;                  /* as in the control page */
	uint64_t sample_bytes;                    /* these two likewise */
	uint32_t families;
};

/* Of what is checked each word is loaded just once: the program may write to it meanwhile. */
#define RING_LOAD(part, word) __atomic_load_n(&(part)->word, __ATOMIC_RELAXED)

/* Takes the record at this place, of which no more than `most` bytes can have been reserved; its position stays what it is.  Returns its
 * length; 0: it is none. */
uint32_t ring_parse(const uint8_t *at, uint64_t most, struct ring_record *record);
void ring_parse_site(uint32_t site, struct ring_record *record);

#endif
