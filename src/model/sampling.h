/* What a sampled block stands for.
 *
 * With one sample for each N bytes (Poisson sampling: every byte that is asked for is drawn with the probability 1/N) a block of so
 * many bytes is sampled with p = 1 - exp(-bytes / N), and stands for 1 / p blocks of its size: so sums over samples are, on
 * average, those over all blocks (Horvitz and Thompson's estimator), and (1 - p) / p^2 is what one adds to the variance of such a
 * sum. */
#ifndef ALLOCWATCH_MODEL_SAMPLING_H
#define ALLOCWATCH_MODEL_SAMPLING_H

#include "base/reader.h"

#include <stdint.h>

#define SAMPLE_BYTES_MAX ((uint64_t)1 << 30)

struct sample_weight {
	uint64_t bytes, blocks;        /* whole ones: 1 / p is rounded up as often as it is nearer to that, by the address */
	double bytes_variance, blocks_variance;
};

/* The same for the same block, whenever it is asked.  sample_bytes 0: nothing was left out. */
struct sample_weight sample_weight(uint64_t sample_bytes, raddr address, uint64_t size);

/* Half of the interval that the true value lies in with 95 in 100, of a sum over so many samples; no less than that with
 * few. */
double sample_error(double variance, uint64_t samples);

#endif
