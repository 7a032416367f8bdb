/* Estimates of what lives from samples of it: on average they are right, and their errors are what they say. */
#include "model/sampling.h"
#include "model/statistics.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RATE 4096
#define SEEDS 400

static uint64_t state;

static double random_unit(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return ((double)(state * 0x2545f4914f6cdd1dULL >> 11) + 0.5) / 0x1p53;
}

static void seed(uint64_t number)
{
	state = (number + 1) * 0x9e3779b97f4a7c15ULL;
	for (unsigned i = 0; i < 8; i++)
		random_unit();
}

static bool is_sampled(uint64_t size)
{
	return random_unit() < -expm1(-(double)(size ? size : 1) / RATE);
}

static struct alloc_event born(uint32_t stack, raddr address, uint64_t size)
{
	return (struct alloc_event){ .kind = ALLOC_BORN, .tid = 1, .stack = stack, .address = address, .size = size };
}

static struct heap *new_heap(uint64_t sample_bytes)
{
	struct heap *heap = heap_new(NULL, true, 1);

	ck_assert_ptr_nonnull(heap);
	heap_set_sampling(heap, sample_bytes);
	return heap;
}

static int take_trace(void *context, const struct heap_trace *trace)
{
	((struct heap_trace *)context)[trace->stack] = *trace;
	return 0;
}

/* --- one block --- */

START_TEST(without_sampling_a_block_is_what_it_is)
{
	struct sample_weight weight = sample_weight(0, 0x1000, 77);

	ck_assert_uint_eq(weight.bytes, 77);
	ck_assert_uint_eq(weight.blocks, 1);
	ck_assert(weight.bytes_variance <= 0 && weight.blocks_variance <= 0);
}
END_TEST

START_TEST(a_small_block_stands_for_the_rate_and_a_large_one_for_itself)
{
	struct sample_weight small = sample_weight(RATE, 0x1000, 16), large = sample_weight(RATE, 0x1000, RATE * 100);

	ck_assert_uint_eq(small.bytes, 4104);
	ck_assert(small.blocks == 256 || small.blocks == 257);
	ck_assert_uint_eq(large.bytes, RATE * 100);
	ck_assert_uint_eq(large.blocks, 1);
	ck_assert_double_lt(large.bytes_variance, 1);
}
END_TEST

START_TEST(blocks_are_rounded_without_a_bias)
{
	double sum = 0;

	for (raddr i = 0; i < 100000; i++)
		sum += (double)sample_weight(RATE, i * 16, RATE).blocks;
	ck_assert_double_eq_tol(sum / 100000, 1 / -expm1(-1), 0.01);
}
END_TEST

START_TEST(a_block_leaves_as_it_came)
{
	struct heap *heap = new_heap(RATE);
	struct heap_trace traces[2] = { { 0 } };

	for (raddr i = 1; i < 5000; i++) {
		struct alloc_event event = born(1, i * 16, i * 7 % 9000);

		ck_assert_int_eq(heap_apply(heap, &event), 0);
	}
	ck_assert_uint_gt(heap_counters(heap).live_bytes, 0);
	for (raddr i = 1; i < 5000; i++) {
		struct alloc_event event = { .kind = ALLOC_FREED, .tid = 1, .old_address = i * 16 };

		ck_assert_int_eq(heap_apply(heap, &event), 0);
	}
	heap_each_trace(heap, take_trace, traces);
	ck_assert_uint_eq(heap_counters(heap).live_bytes, 0);
	ck_assert_uint_eq(heap_counters(heap).live_blocks, 0);
	ck_assert_uint_eq(heap_counters(heap).unknown_frees, 0);
	ck_assert_uint_eq(traces[1].samples, 0);
	ck_assert_uint_eq(traces[1].bytes_deviation, 0);
	heap_free(heap);
}
END_TEST

static unsigned left;

static void count_left(void *context, raddr address)
{
	(void)context;
	left += address == 0x1000;
}

START_TEST(who_waits_for_blocks_to_leave_is_told_once_of_each)
{
	struct heap *heap = new_heap(RATE);
	struct alloc_event event = born(1, 0x1000, 10);
	struct alloc_event freed = { .kind = ALLOC_FREED, .tid = 1, .old_address = 0x1000 };
	struct alloc_event begin = { .kind = ALLOC_RESIZE_BEGIN, .tid = 1, .old_address = 0x1000 };
	struct alloc_event end = { .kind = ALLOC_RESIZE_END, .tid = 1, .old_address = 0x1000 };

	heap_set_left(heap, count_left, NULL);
	heap_apply(heap, &event);
	heap_apply(heap, &freed);
	ck_assert_uint_eq(left, 1);
	heap_apply(heap, &freed);
	ck_assert_uint_eq(left, 1);
	heap_apply(heap, &event);
	heap_apply(heap, &begin);
	heap_apply(heap, &end);
	ck_assert_uint_eq(left, 2);
	/* Also of those that a clear has forgotten. */
	heap_apply(heap, &event);
	heap_clear(heap);
	heap_apply(heap, &freed);
	ck_assert_uint_eq(left, 3);
	heap_free(heap);
}
END_TEST

/* --- sums, over many seeds --- */

#define SITES 3

/* Small ones alone, some of all sizes, mostly large ones. */
static uint64_t size_at(unsigned site, unsigned i)
{
	switch (site) {
	case 0:
		return 32;
	case 1:
		return 16u << i % 12;
	default:
		return 1000 + i * 37 % 20000;
	}
}

static const unsigned blocks_of[SITES] = { 20000, 3000, 500 };

struct tally {
	double true_bytes, sum_bytes, sum_blocks;
	unsigned bytes_within, blocks_within;
};

static void tally_once(struct tally *tallies)
{
	struct heap *heap = new_heap(RATE);
	struct heap_trace traces[SITES + 1] = { { 0 } };
	raddr address = (raddr)(random_unit() * 0x1p40);

	for (unsigned site = 0; site < SITES; site++) {
		tallies[site].true_bytes = 0;
		for (unsigned i = 0; i < blocks_of[site]; i++, address += 32768) {
			struct alloc_event event = born(site + 1, address, size_at(site, i));

			tallies[site].true_bytes += (double)event.size;
			if (is_sampled(event.size))
				heap_apply(heap, &event);
		}
	}
	heap_each_trace(heap, take_trace, traces);
	for (unsigned site = 0; site < SITES; site++) {
		const struct heap_trace *trace = &traces[site + 1];
		double bytes = (double)trace->bytes_deviation, blocks = (double)trace->blocks_deviation;

		tallies[site].sum_bytes += (double)trace->live_bytes;
		tallies[site].sum_blocks += (double)trace->live_blocks;
		tallies[site].bytes_within += fabs((double)trace->live_bytes - tallies[site].true_bytes) <=
					      sample_error(bytes * bytes, trace->samples);
		tallies[site].blocks_within += fabs((double)trace->live_blocks - blocks_of[site]) <=
					       sample_error(blocks * blocks, trace->samples);
	}
	heap_free(heap);
}

START_TEST(the_truth_is_within_the_error_in_95_of_100)
{
	struct tally tallies[SITES] = { { 0 } };

	for (unsigned i = 0; i < SEEDS; i++) {
		seed(i);
		tally_once(tallies);
	}
	for (unsigned site = 0; site < SITES; site++) {
		const struct tally *tally = &tallies[site];

		printf("site %u: bytes %.4f and blocks %.4f of the truth on average, which is within the error in %.1f and %.1f of "
		       "100\n", site, tally->sum_bytes / SEEDS / tally->true_bytes, tally->sum_blocks / SEEDS / blocks_of[site],
		       tally->bytes_within * 100.0 / SEEDS, tally->blocks_within * 100.0 / SEEDS);
		ck_assert_double_eq_tol(tally->sum_bytes / SEEDS / tally->true_bytes, 1, 0.02);
		ck_assert_double_eq_tol(tally->sum_blocks / SEEDS / blocks_of[site], 1, 0.02);
		/* Three deviations of such a share. */
		ck_assert_uint_ge(tally->bytes_within, SEEDS * 917 / 1000);
		/* A few samples of the smallest ones decide how many there are of sizes from 16 to 32768: the manual says it. */
		ck_assert_uint_ge(tally->blocks_within, SEEDS * (site == 1 ? 850 : 917) / 1000);
	}
}
END_TEST

/* A handful of samples. */
START_TEST(the_error_of_few_samples_is_not_too_small)
{
	unsigned within = 0;

	for (unsigned i = 0; i < 4000; i++) {
		uint64_t samples = 0;
		double variance = 0, bytes = 0;

		seed(i);
		for (unsigned k = 0; k < 640; k++) {
			struct sample_weight weight = sample_weight(RATE, k * 32, 32);

			if (!is_sampled(32))
				continue;
			samples++;
			bytes += (double)weight.bytes;
			variance += weight.bytes_variance;
		}
		within += fabs(bytes - 640 * 32) <= sample_error(variance, samples);
	}
	printf("with 5 samples on average the truth is within the error in %.1f of 100\n", within / 40.0);
	ck_assert_uint_ge(within, 3760);
}
END_TEST

static struct snapshot *sampled_snapshot(uint64_t sample_bytes)
{
	struct snapshot *snapshot = snapshot_new();

	ck_assert_ptr_nonnull(snapshot);
	snapshot->sample_bytes = sample_bytes;
	return snapshot;
}

START_TEST(snapshots_of_different_rates_are_not_compared)
{
	struct snapshot *older = sampled_snapshot(RATE), *newer = sampled_snapshot(RATE * 2);
	const struct statistics_query query = { .key = KEY_DOMAIN };
	struct statistics *statistics;
	const char *reason = "none";

	ck_assert_int_eq(statistics_compare(older, newer, &query, &statistics, &reason), -EINVAL);
	ck_assert_ptr_nonnull(strstr(reason, "rate"));
	newer->sample_bytes = RATE;
	ck_assert_int_eq(statistics_compare(older, newer, &query, &statistics, &reason), 0);
	ck_assert_uint_eq(statistics->sample_bytes, RATE);
	statistics_free(statistics);
	snapshot_put(older);
	snapshot_put(newer);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sampling");
	TCase *tests = tcase_create("sampling");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tests);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, without_sampling_a_block_is_what_it_is);
	tcase_add_test(tests, a_small_block_stands_for_the_rate_and_a_large_one_for_itself);
	tcase_add_test(tests, blocks_are_rounded_without_a_bias);
	tcase_add_test(tests, a_block_leaves_as_it_came);
	tcase_add_test(tests, who_waits_for_blocks_to_leave_is_told_once_of_each);
	tcase_add_test(tests, the_truth_is_within_the_error_in_95_of_100);
	tcase_add_test(tests, the_error_of_few_samples_is_not_too_small);
	tcase_add_test(tests, snapshots_of_different_rates_are_not_compared);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
