/* Allocators that users have described, by the configuration or for one process: what a tracer is told of them. */
#ifndef ALLOCWATCH_DAEMON_ALLOCATORS_H
#define ALLOCWATCH_DAEMON_ALLOCATORS_H

#include "tracer/wire.h"

#include <jansson.h>

struct allocators {
	struct wire_allocator list[WIRE_ALLOCATORS_MAX];
	unsigned count;
};

/* Adds a description, and gives its domain a number.  -EINVAL, with *ret_reason (to be freed, a sentence without its subject)
 * when that is known; -E2BIG: there are WIRE_ALLOCATORS_MAX, or DOMAIN_NAMES_MAX names; -ENOMEM. */
int allocators_add(struct allocators *allocators, const char *text, char **ret_reason);
/* Adds the lines of a text, which was checked before (NULL: none), and hides their functions' frames. */
int allocators_add_lines(struct allocators *allocators, const char *lines);

#endif
