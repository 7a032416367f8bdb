#include "estimates.h"

#include "live.h"
#include "tool.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define NORMAL_95 1.959963984540054
#define LUCK 1e-8

/* Blocks are drawn independently of each other: of so many the samples have this mean and this variance, whatever was drawn. */
struct estimate {
	const char *name;
	double mean, variance, samples;
};

static struct estimate estimates[ESTIMATES_MAX];
static unsigned count_of_names;

static struct estimate *find(const char *name)
{
	for (unsigned i = 0; i < count_of_names; i++) {
		if (strcmp(estimates[i].name, name) == 0)
			return &estimates[i];
	}
	require(count_of_names < ESTIMATES_MAX);
	estimates[count_of_names].name = name;
	return &estimates[count_of_names++];
}

static void require_near(const char *name, const char *what, double is, double should, double room)
{
	if (fabs(is - should) > room)
		live_fail("%s: %s is %.0f, and not %.0f +- %.0f", name, what, is, should, room);
}

/* The error of so many samples with this variance each: as if there were one more, see model/sampling.h. */
static double error_of(double samples, double variance)
{
	return NORMAL_95 * sqrt((samples + 1) * variance);
}

static void require_error(json_t *row, const char *name, const char *what, double should)
{
	require_near(name, what, (double)json_number(row, what), should, should / 1000 + 4);
}

/* As sums are rounded: a block's size once, its number of blocks up or down, and deviations to whole ones, of each stack. */
static void require_follows(json_t *row, const char *name, double p, double size, double samples)
{
	double variance = (1 - p) / (p * p), fraction = 1 / p - floor(1 / p);

	require_near(name, "size", (double)json_number(row, "size"), samples * size / p, samples);
	require_near(name, "count", (double)json_number(row, "count"), samples / p, samples);
	require_error(row, name, "size_error", size * error_of(samples, variance));
	require_error(row, name, "count_error", error_of(samples, variance + fraction * (1 - fraction)));
}

void estimates_add(json_t *row, const char *name, uint64_t sample_bytes, uint64_t size, uint64_t count)
{
	double p = -expm1(-(double)size / (double)sample_bytes), samples = (double)json_number(row, "samples");
	struct estimate *estimate = find(name);

	live_note("%s: %.0f samples of %lu blocks, %.1f on average", name, samples, count, (double)count * p);
	require_follows(row, name, p, (double)size, samples);
	estimate->mean += (double)count * p;
	estimate->variance += (double)count * p * (1 - p);
	estimate->samples += samples;
}

/* Bernstein's inequality: a sum of independent draws is `away` from its mean with at most 2 exp(-away^2 / (2 (variance + away / 3))),
 * few as they may be. */
static double most_away(double variance)
{
	double least = log(2 / LUCK);

	return least / 3 + sqrt(least * least / 9 + 2 * least * variance);
}

static void require_unbiased(const struct estimate *estimate)
{
	double away = estimate->samples - estimate->mean;

	live_note("%s: %.0f samples, %+.2f deviations from %.0f; up to %.1f are luck", estimate->name, estimate->samples,
		  away / sqrt(estimate->variance), estimate->mean, most_away(estimate->variance) / sqrt(estimate->variance));
	require_near(estimate->name, "its samples' number", estimate->samples, estimate->mean, most_away(estimate->variance));
}

void estimates_require_unbiased(void)
{
	struct estimate all = { .name = "all" };

	for (unsigned i = 0; i < count_of_names; i++) {
		require_unbiased(&estimates[i]);
		all.mean += estimates[i].mean;
		all.variance += estimates[i].variance;
		all.samples += estimates[i].samples;
	}
	require_unbiased(&all);
}
