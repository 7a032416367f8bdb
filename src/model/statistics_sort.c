#define _GNU_SOURCE             /* qsort_r */
#include "model/grouping.h"
#include "model/utf8.h"

#include <stdlib.h>

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

struct order {
	const struct strtab *strings;
	bool with_diff;
	enum diff_sort sort;
};

static int compare_frames(const struct strtab *strings, const struct statistic_frame *a,
			  const struct statistic_frame *b)
{
	if (a->name != b->name)
		return utf8_compare(strtab_get(strings, a->name), strtab_get(strings, b->name));
	return COMPARE(a->line, b->line);
}

/* Tuples of frames, the oldest first. */
static int compare_tracebacks(const struct strtab *strings, const struct statistic *a,
			      const struct statistic *b)
{
	for (uint32_t i = 0; i < a->frame_count && i < b->frame_count; i++) {
		int order = compare_frames(strings, &a->frames[i], &b->frames[i]);

		if (order != 0)
			return order;
	}
	if (a->frame_count != b->frame_count)
		return COMPARE(a->frame_count, b->frame_count);
	if (a->domain != b->domain)
		return COMPARE(a->domain, b->domain);
	return COMPARE(a->thread, b->thread);
}

static uint64_t magnitude(int64_t difference)
{
	return difference < 0 ? 0 - (uint64_t)difference : (uint64_t)difference;
}

/* Statistic: size, count, traceback.  StatisticDiff: abs(size_diff), size, abs(count_diff), count,
 * traceback. */
static int compare_plain(const struct order *order, const struct statistic *a, const struct statistic *b)
{
	int r = 0;

	if (order->with_diff)
		r = COMPARE(magnitude(a->size_diff), magnitude(b->size_diff));
	if (r == 0)
		r = COMPARE(a->size, b->size);
	if (r == 0 && order->with_diff)
		r = COMPARE(magnitude(a->count_diff), magnitude(b->count_diff));
	if (r == 0)
		r = COMPARE(a->count, b->count);
	return r != 0 ? r : compare_tracebacks(order->strings, a, b);
}

static int compare_churn(const struct statistic *a, const struct statistic *b)
{
	int r = COMPARE(a->made_count, b->made_count);

	return r != 0 ? r : COMPARE(a->made_size, b->made_size);
}

/* Descending. */
static int compare_rows(const void *left, const void *right, void *context)
{
	const struct statistic *a = left, *b = right;
	const struct order *order = context;
	int r = 0;

	if (order->with_diff && order->sort == SORT_GROWTH)
		r = COMPARE(a->size_diff, b->size_diff);
	else if (order->with_diff && order->sort == SORT_SHRINK)
		r = COMPARE(b->size_diff, a->size_diff);
	else if (order->sort == SORT_CHURN)
		r = compare_churn(a, b);
	return -(r != 0 ? r : compare_plain(order, a, b));
}

void statistics_sort(struct statistics *statistics, bool with_diff, enum diff_sort sort)
{
	struct order order = { statistics->strings, with_diff, sort };

	qsort_r(statistics->rows, statistics->row_count, sizeof(*statistics->rows), compare_rows, &order);
}

int statistics_order(const struct statistics *statistics, const struct statistic *a, const struct statistic *b)
{
	struct order order = { statistics->strings, false, SORT_ABS };

	return -compare_plain(&order, a, b);
}
