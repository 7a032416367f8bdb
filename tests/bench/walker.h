/* libdw's own walker over a recording: what the unwinder is measured against. */
#ifndef ALLOCWATCH_TESTS_WALKER_H
#define ALLOCWATCH_TESTS_WALKER_H

#include "recording.h"

#define WALKER_FRAMES_MAX 256

struct walker;

/* A session with all modules reported; NULL with the message of libdwfl on stderr. */
struct walker *walker_new(const struct recording *recording);
void walker_free(struct walker *walker);
/* Walks one stack; returns the number of frames, their pcs in `pcs`. */
unsigned int walker_walk(struct walker *walker, const struct recorded_stack *stack,
			 raddr pcs[WALKER_FRAMES_MAX]);

#endif
