/* Numbers that look random and are the same in every run. */
#ifndef ALLOCWATCH_TESTS_RANDOM_H
#define ALLOCWATCH_TESTS_RANDOM_H

#include <stdint.h>

static uint64_t random_state = 88172645463325252ULL;

static inline uint64_t random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

#endif
