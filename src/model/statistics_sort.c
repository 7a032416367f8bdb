#define _GNU_SOURCE             /* qsort_r */
#include "model/grouping.h"
#include "model/utf8.h"

#include <errno.h>
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

/* What decides between most rows, as a number: the comparison begins with it. */
static uint64_t first_criterion(const struct order *order, const struct statistic *row)
{
	const uint64_t sign = 1ULL << 63;

	if (order->with_diff && order->sort == SORT_GROWTH)
		return (uint64_t)row->size_diff ^ sign;
	if (order->with_diff && order->sort == SORT_SHRINK)
		return ~((uint64_t)row->size_diff ^ sign);
	if (order->sort == SORT_CHURN)
		return (uint64_t)row->made_count ^ sign;
	return order->with_diff ? magnitude(row->size_diff) : row->size;
}

/* Rows are large and lie anywhere: most comparisons do without them. */
struct sorted {
	uint64_t first;
	const struct statistic *row;
};

static int compare_sorted(const void *left, const void *right, void *context)
{
	const struct sorted *a = left, *b = right;

	return a->first != b->first ? COMPARE(b->first, a->first) : compare_rows(a->row, b->row, context);
}

/* Each row goes to its place and makes room for the next one, around each circle. */
static void put_in_order(struct statistic *rows, struct sorted *sorted, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct statistic first = rows[i];
		size_t at = i;

		while (sorted[at].row && sorted[at].row != &rows[i]) {
			size_t from = (size_t)(sorted[at].row - rows);

			rows[at] = rows[from];
			sorted[at].row = NULL;
			at = from;
		}
		if (sorted[at].row)
			rows[at] = first;
		sorted[at].row = NULL;
	}
}

int statistics_sort(struct statistics *statistics, bool with_diff, enum diff_sort sort)
{
	struct order order = { statistics->strings, with_diff, sort };
	size_t count = statistics->row_count;
	struct sorted *sorted = calloc(count + 1, sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		sorted[i] = (struct sorted){ first_criterion(&order, &statistics->rows[i]), &statistics->rows[i] };
	qsort_r(sorted, count, sizeof(*sorted), compare_sorted, &order);
	put_in_order(statistics->rows, sorted, count);
	free(sorted);
	return 0;
}

int statistics_order(const struct statistics *statistics, const struct statistic *a, const struct statistic *b)
{
	struct order order = { statistics->strings, false, SORT_ABS };

	return -compare_plain(&order, a, b);
}
