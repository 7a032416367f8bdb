/* What samples say of blocks that are known: whether it is what so many samples have to say, and whether there are as many as
 * chance would give. */
#ifndef ALLOCWATCH_TESTS_ESTIMATES_H
#define ALLOCWATCH_TESTS_ESTIMATES_H

#include <jansson.h>
#include <stdint.h>

#define ESTIMATES_MAX 16               /* of a case, by their names */

/* A row of statistics of `count` blocks of `size` bytes each, one sample for each sample_bytes: fails when its sum, its number of
 * blocks or their errors are not those of its samples, and notes how many these are, under a name that is kept. */
void estimates_add(json_t *row, const char *name, uint64_t sample_bytes, uint64_t size, uint64_t count);
/* Fails when the samples of a name, or of all, are so few or so many that this happens by luck less than once in 10^8 times. */
void estimates_require_unbiased(void);

#endif
