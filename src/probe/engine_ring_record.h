/* What one record of the ring says was seen of its thread: to be served as what a stop says is. */
#ifndef ALLOCWATCH_PROBE_ENGINE_RING_RECORD_H
#define ALLOCWATCH_PROBE_ENGINE_RING_RECORD_H

#include "probe/ring_stack.h"
#include "probe/serve.h"

/* Made once for many records: most of it is the same again, and to clear all of it takes longer than to tell the rest. */
struct ring_sighting {
	struct sighting seen;
	struct engine *engine;
	const struct ring_record *record;
	struct ring_piece piece;
	struct reader piece_reader, address_reader;    /* of the piece, and of the return address alone */
};

void ring_sighting_init(struct ring_sighting *sighting, struct engine *engine);
/* Serves the record that ring_next has returned last. */
void ring_sighting_serve(struct ring_sighting *sighting, const struct ring_record *record);

#endif
