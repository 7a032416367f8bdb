/* Something that is tried once a second, and when that fails less and less often. */
#ifndef ALLOCWATCH_BASE_RETRY_H
#define ALLOCWATCH_BASE_RETRY_H

#include <stdbool.h>

struct retry {
	unsigned between, until_next;  /* seconds: from the last try to the next one, and what is left of that */
};

/* The first try is due at once. */
static inline void retry_begin(struct retry *retry)
{
	*retry = (struct retry){ 1, 1 };
}

/* Once a second.  True: it is to be tried now. */
static inline bool retry_is_due(struct retry *retry)
{
	if (retry->until_next > 0)
		retry->until_next--;
	return retry->until_next == 0;
}

/* It has been tried.  most: a power of two, in seconds. */
static inline void retry_later(struct retry *retry, unsigned most)
{
	retry->between *= retry->between < most ? 2 : 1;
	retry->until_next = retry->between;
}

#endif
