#include "model/sampling.h"

#include "base/hash.h"

#include <math.h>

#define NORMAL_95 1.959963984540054    /* of a normal distribution, 95 in 100 are within so many deviations */

/* By chance, but always alike: the block leaves as it came. */
static uint64_t rounded(double value, raddr address, uint64_t size)
{
	double whole = floor(value);

	return (uint64_t)whole + ((double)hash_pair(address, size) / 0x1p64 < value - whole);
}

struct sample_weight sample_weight(uint64_t sample_bytes, raddr address, uint64_t size)
{
	double p, rest, fraction;

	if (sample_bytes == 0)
		return (struct sample_weight){ .bytes = size, .blocks = 1 };
	/* A request for nothing counts as one byte. */
	p = -expm1(-(double)(size ? size : 1) / (double)sample_bytes);
	rest = (1 - p) / (p * p);
	fraction = 1 / p - floor(1 / p);
	return (struct sample_weight){
		.bytes = (uint64_t)((double)size / p + 0.5),
		.blocks = rounded(1 / p, address, size),
		.bytes_variance = rest * (double)size * (double)size,
		.blocks_variance = rest + fraction * (1 - fraction),
	};
}

/* The deviation that so few samples show may be too small by chance: as if there were one more of their kind. */
double sample_error(double variance, uint64_t samples)
{
	return samples ? NORMAL_95 * sqrt(variance * (1 + 1 / (double)samples)) : 0;
}
