#include "model/trend.h"

#include "model/grouping.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HOUR_NS 3600e9

void trend_free(struct trend *trend)
{
	if (!trend)
		return;
	for (size_t i = 0; trend->rows && i < trend->statistics->row_count; i++)
		free(trend->rows[i].sizes);
	free(trend->rows);
	statistics_free(trend->statistics);
	free(trend);
}

/* --- one series --- */

static int compare_doubles(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare_doubles);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* slopes: room for one of each pair */
static void judge(struct trend_row *row, const double *hours, size_t count, double *slopes)
{
	size_t pairs = 0;
	long sign = 0;

	for (size_t i = 0; i < count; i++) {
		for (size_t j = i + 1; j < count; j++) {
			sign += (row->sizes[j] > row->sizes[i]) - (row->sizes[j] < row->sizes[i]);
			slopes[pairs++] = ((double)row->sizes[j] - (double)row->sizes[i]) / (hours[j] - hours[i]);
		}
	}
	row->steadiness = (double)sign / (double)pairs;
	row->growth = median(slopes, pairs);
}

/* --- all of them --- */

static int take_times(const struct snapshot *const *snapshots, size_t count, double *hours, const char **ret_reason)
{
	bool by_clock = true;

	for (size_t i = 0; i < count; i++)
		by_clock &= snapshots[i]->clock_ns != 0 && snapshots[i]->pid == snapshots[0]->pid &&
			    snapshots[i]->start_time == snapshots[0]->start_time;
	for (size_t i = 0; i < count; i++) {
		hours[i] = (double)(by_clock ? snapshots[i]->clock_ns : snapshots[i]->taken_ns) / HOUR_NS;
		if (i > 0 && !(hours[i] > hours[i - 1])) {
			*ret_reason = "a trend needs snapshots in the order in which they were taken, each once";
			return -EINVAL;
		}
	}
	return 0;
}

/* Adds one snapshot after the other into the same groups: what a group has more than before is what it has in
 * this one. */
static int take_series(struct grouping *grouping, const struct snapshot *const *snapshots, size_t count,
		       uint64_t *sums[], size_t *groups, struct measure *ret_last, const char **ret_reason)
{
	for (size_t i = 0; i < count; i++) {
		struct measure before = grouping->now;
		int r = grouping_add(grouping, snapshots[i], grouping->query->traceback.limit, false, ret_reason);

		if (r < 0)
			return r;
		groups[i] = grouping->groups.count;
		sums[i] = calloc(2 * groups[i] + 1, sizeof(**sums));
		if (!sums[i])
			return -ENOMEM;
		for (size_t at = 0; at < groups[i]; at++) {
			sums[i][2 * at] = grouping->groups.items[at].now.size;
			sums[i][2 * at + 1] = grouping->groups.items[at].now.count;
		}
		*ret_last = (struct measure){ .size = grouping->now.size - before.size,
					      .count = grouping->now.count - before.count };
	}
	return 0;
}

/* which: 0 the size, 1 the count */
static uint64_t sum_at(uint64_t *sums[], const size_t *groups, size_t snapshot, size_t group, size_t which)
{
	return group < groups[snapshot] ? sums[snapshot][2 * group + which] : 0;
}

static int make_rows(struct trend *trend, uint64_t *sums[], const size_t *groups, const double *hours)
{
	size_t count = trend->snapshot_count, rows = trend->statistics->row_count;
	double *slopes = calloc(count * (count - 1) / 2, sizeof(*slopes));

	trend->rows = calloc(rows + 1, sizeof(*trend->rows));
	for (size_t at = 0; trend->rows && slopes && at < rows; at++) {
		struct statistic *statistic = &trend->statistics->rows[at];
		struct trend_row *row = &trend->rows[at];

		row->row = at;
		row->sizes = calloc(count, sizeof(*row->sizes));
		if (!row->sizes) {
			free(slopes);
			return -ENOMEM;
		}
		for (size_t i = 0; i < count; i++)
			row->sizes[i] = sum_at(sums, groups, i, at, 0) - (i ? sum_at(sums, groups, i - 1, at, 0) : 0);
		statistic->size = row->sizes[count - 1];
		statistic->count = sum_at(sums, groups, count - 1, at, 1) - sum_at(sums, groups, count - 2, at, 1);
		judge(row, hours, count, slopes);
	}
	if (!trend->rows || !slopes) {
		free(slopes);
		return -ENOMEM;
	}
	free(slopes);
	return 0;
}

/* Growth counts as much as it is steady. */
static int compare_rows(const void *left, const void *right)
{
	const struct trend_row *a = left, *b = right;
	double first = a->growth * (a->steadiness < 0 ? -a->steadiness : a->steadiness);
	double second = b->growth * (b->steadiness < 0 ? -b->steadiness : b->steadiness);

	if (first != second)
		return first < second ? 1 : -1;
	return (a->row > b->row) - (a->row < b->row);
}

int trend_make(const struct snapshot *const *snapshots, size_t count, const struct statistics_query *query,
	       struct trend **ret, const char **ret_reason)
{
	uint64_t *sums[TREND_SNAPSHOTS_MAX] = { NULL };
	size_t groups[TREND_SNAPSHOTS_MAX];
	double hours[TREND_SNAPSHOTS_MAX];
	struct grouping grouping;
	struct measure last = { 0 };
	struct trend *trend;
	int r;

	if (count < TREND_SNAPSHOTS_LEAST || count > TREND_SNAPSHOTS_MAX) {
		*ret_reason = "a trend needs 3 to 100 snapshots";
		return -EINVAL;
	}
	r = take_times(snapshots, count, hours, ret_reason);
	if (r < 0)
		return r;
	trend = calloc(1, sizeof(*trend));
	if (!trend)
		return -ENOMEM;
	trend->snapshot_count = count;
	trend->statistics = statistics_new(snapshots[count - 1]);
	if (!trend->statistics) {
		free(trend);
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++)
		trend->statistics->exact &= snapshots[i]->exact;
	r = grouping_init(&grouping, query, trend->statistics->strings, ret_reason);
	if (r < 0)
		goto free_trend;
	r = take_series(&grouping, snapshots, count, sums, groups, &last, ret_reason);
	if (r == 0)
		r = grouping_take(&grouping, false, trend->statistics);
	grouping_fini(&grouping);
	if (r == 0)
		r = make_rows(trend, sums, groups, hours);
	for (size_t i = 0; i < count; i++)
		free(sums[i]);
	if (r < 0)
		goto free_trend;
	trend->statistics->total_size = last.size;
	trend->statistics->total_count = last.count;
	qsort(trend->rows, trend->statistics->row_count, sizeof(*trend->rows), compare_rows);
	*ret = trend;
	return 0;

free_trend:
	trend_free(trend);
	return r;
}
