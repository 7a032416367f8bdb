/* The frames of one snapshot with the names that statistics show, each made once. */
#ifndef ALLOCWATCH_MODEL_NAMES_H
#define ALLOCWATCH_MODEL_NAMES_H

#include "model/statistics.h"

struct names {
	struct strtab *strings;
	uint32_t *first;                      /* of a snapshot's frame: in `frames` */
	struct statistic_frame *frames;       /* name 0: not made yet */
};

int names_init(struct names *names, const struct snapshot *snapshot, struct strtab *strings);
void names_fini(struct names *names);
/* 0 or -ENOMEM. */
int names_get(struct names *names, const struct traceback_frame *frame,
	      struct statistic_frame *ret_frame);

#endif
