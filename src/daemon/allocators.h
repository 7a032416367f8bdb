/* Allocators that users have described, by the configuration or for one process: what a tracer is told of them. */
#ifndef ALLOCWATCH_DAEMON_ALLOCATORS_H
#define ALLOCWATCH_DAEMON_ALLOCATORS_H

#include "tracer/wire.h"

#include <jansson.h>

struct hidden_rules;

struct allocators {
	struct wire_allocator list[WIRE_ALLOCATORS_MAX];
	unsigned count;
};

/* Adds a description, and gives its domain a number.  -EINVAL, with *ret_reason (to be freed, a sentence without its subject)
 * when that is known; -E2BIG: there are WIRE_ALLOCATORS_MAX, or DOMAIN_NAMES_MAX names; -ENOMEM. */
int allocators_add(struct allocators *allocators, const char *text, char **ret_reason);

/* What the configuration says of allocators, and of frames that are hidden: theirs, too. */
struct described {
	struct allocators allocators;
	struct hidden_rules *rules;        /* a reference */
};

/* Of lines that were checked before (NULL: none).  0, and described_fini() frees it; -E2BIG as above, -ENOMEM. */
int described_init(struct described *described, const char *allocators, const char *hide);
void described_fini(struct described *described);

#endif
