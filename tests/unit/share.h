/* Tests that do one thing many times, each time with other numbers, do all of it, or one part in $UNIT_SHARE in a build
 * that is not the only one they run in.  What is asked of the sums is asked of the part. */
#ifndef ALLOCWATCH_TESTS_SHARE_H
#define ALLOCWATCH_TESTS_SHARE_H

#include <stdlib.h>

static inline unsigned share_of(unsigned whole)
{
	const char *text = getenv("UNIT_SHARE");
	int parts = text ? atoi(text) : 1;

	return parts > 1 ? whole / (unsigned)parts : whole;
}

#endif
