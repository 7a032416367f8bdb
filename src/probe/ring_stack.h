/* The stack of a record of the ring: unwound from the piece that came with it, and how much the next one needs.
 *
 * Never read from the process: its stack has gone on since. */
#ifndef ALLOCWATCH_PROBE_RING_STACK_H
#define ALLOCWATCH_PROBE_RING_STACK_H

#include "ring/ring.h"
#include "unwind/unwind.h"

/* What a place gets that nothing is known of: it is learned at once. */
#define RING_STACK_UNKNOWN RING_STACK_MAX

struct ring_stack {
	uint32_t node;                 /* of the unwinder's stack table */
	uint32_t needed;               /* bytes, of its record's two stacks the larger; of one that was cut: more than there were */
	uint32_t had;                  /* bytes that the record has of the first */
	bool whole;                    /* to its end, or as many frames as were asked for */
	bool cut;                      /* the piece was too short: the stack ends where it did, and says so */
};

/* What ring_stack.had is of a record. */
uint32_t ring_stack_had(const struct ring_record *record);
/* Unwinds a return's record as at the entry of its function, at `function`: there its caller's registers are what they are at
 * every return.  Objects of the map, and code wherever it is, are read by `code`. */
struct ring_stack ring_stack_unwind(struct unwinder *unwinder, const struct module_map *map, const struct reader *code,
				    const struct ring_record *record, raddr function, uint32_t max_frames);

/* Reads the stack that came with a record, objects and code as above, and no other memory.  `code` is given. */
struct ring_piece {
	const struct ring_record *record;
	const struct module_map *map;
	const struct reader *code;
	bool lenient;                  /* zeros behind its end, which are seen to be used */
};
struct reader ring_piece_reader(struct ring_piece *piece);

/* Makes the next record from the same place as long as the longest that it was seen to need and a quarter more, and several
 * times as long as any that was too short. */
void ring_stack_learn(struct ring *ring, const struct ring_record *record, const struct ring_stack *stack);

#endif
