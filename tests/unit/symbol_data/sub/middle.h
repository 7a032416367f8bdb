#ifndef MIDDLE_H
#define MIDDLE_H

#include "deepest.h"

static inline __attribute__((always_inline)) void *middle(unsigned long size)
{
	unsigned long bigger = size * 2;

	return deepest(bigger);
}

#endif
