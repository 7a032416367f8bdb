/* The frames of one snapshot with the names that statistics show, each made once. */
#ifndef ALLOCWATCH_MODEL_NAMES_H
#define ALLOCWATCH_MODEL_NAMES_H

#include "model/statistics.h"

struct names {
	const struct snapshot *snapshot;
	struct strtab *strings;
	uint32_t *first;                      /* of a snapshot's frame: the number of its first place */
	uint32_t place_count;
	struct statistic_frame *frames;       /* by place, with room for one more; name 0: not made yet */
	uint32_t *texts;                      /* by string of the snapshot: its id in `strings`; 0: not added yet */
	uint8_t *text_verdicts;               /* by string of the snapshot: see names.c */
	uint8_t *verdicts;                    /* by place, the same */
};

int names_init(struct names *names, const struct snapshot *snapshot, struct strtab *strings);
void names_fini(struct names *names);
/* Frees what making further names takes: from now on only `frames` of those that were made, and `first`, are there. */
void names_settle(struct names *names);

static inline uint32_t names_place(const struct names *names, struct place place)
{
	return names->first[place.frame] + place.location;
}

/* NULL without memory; good as long as the names are. */
const struct statistic_frame *names_get(struct names *names, struct place place);
/* The same walk that a traceback makes. */
struct walk names_walk(struct names *names, uint32_t stack, bool show_runtime);

#endif
