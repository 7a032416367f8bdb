#define _GNU_SOURCE             /* qsort_r */
#include "model/trend.h"

#include "model/builds.h"
#include "model/grouping.h"
#include "model/match.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HOUR_NS 3600e9

void trend_free(struct trend *trend)
{
	if (!trend)
		return;
	for (size_t i = 0; i < trend->snapshot_count; i++)
		free(trend->sizes[i]);
	free(trend->rows);
	statistics_free(trend->statistics);
	free(trend);
}

/* --- one series --- */

static void swap(double *a, double *b)
{
	double kept = *a;

	*a = *b;
	*b = kept;
}

/* Moves the values so that the `rank` smallest come first and the next one stands there. */
static double select_rank(double *values, size_t count, size_t rank)
{
	size_t low = 0, high = count - 1;

	while (low < high) {
		double pivot = values[low + (high - low) / 2];
		size_t i = low, j = high;

		for (;;) {
			while (values[i] < pivot)
				i++;
			while (values[j] > pivot)
				j--;
			if (i >= j)
				break;
			swap(&values[i++], &values[j--]);
		}
		/* Up to j none is above the pivot, behind it none below. */
		if (rank <= j)
			high = j;
		else
			low = j + 1;
	}
	return values[rank];
}

static double median(double *values, size_t count)
{
	double upper = select_rank(values, count, count / 2);

	return count % 2 ? upper : (select_rank(values, count / 2, count / 2 - 1) + upper) / 2;
}

/* slopes: room for one of each pair */
static void judge(const struct trend *trend, struct trend_row *row, const uint64_t *times, double *slopes)
{
	uint64_t sizes[TREND_SNAPSHOTS_MAX];
	size_t pairs = 0;
	long sign = 0;

	for (size_t j = 0; j < trend->snapshot_count; j++) {
		sizes[j] = trend_size(trend, row, j);
		for (size_t i = 0; i < j; i++) {
			sign += (sizes[j] > sizes[i]) - (sizes[j] < sizes[i]);
			slopes[pairs++] = ((double)sizes[j] - (double)sizes[i]) / ((double)(times[j] - times[i]) / HOUR_NS);
		}
	}
	row->steadiness = (double)sign / (double)pairs;
	row->growth = median(slopes, pairs);
}

/* --- what can be compared --- */

/* Of one process the clock that nobody sets; between processes, perhaps of different boots, the date. */
static uint64_t time_of(const struct snapshot *snapshot, bool by_clock)
{
	return by_clock ? snapshot->clock_ns : snapshot->taken_ns;
}

static int take_times(const struct snapshot *const *snapshots, size_t count, uint64_t *times, const char **ret_reason)
{
	bool by_clock = true;

	for (size_t i = 0; i < count; i++)
		by_clock &= snapshots[i]->clock_ns != 0 && snapshots[i]->pid == snapshots[0]->pid &&
			    snapshots[i]->start_time == snapshots[0]->start_time;
	for (size_t i = 0; i < count; i++) {
		times[i] = time_of(snapshots[i], by_clock);
		if (i > 0 && times[i] <= times[i - 1]) {
			*ret_reason = "a trend needs snapshots in the order in which they were taken, each once";
			return -EINVAL;
		}
	}
	return 0;
}

/* NULL, or why this is no question for a trend. */
static const char *contradiction(size_t count, const struct statistics_query *query)
{
	if (count < TREND_SNAPSHOTS_LEAST || count > TREND_SNAPSHOTS_MAX)
		return "a trend needs 3 to 100 snapshots";
	if (query->churn || query->sort != SORT_ABS)
		return "a trend is of what lives, in an order of its own: not of churn, and not sorted otherwise";
	if (query->histogram)
		return "a trend is of sizes over time: it has no histogram";
	if (query->born)
		return "what was born between two snapshots is a question about two: a trend is about more";
	return NULL;
}

/* --- all of them --- */

/* left: of the room. */
static int keep_sizes(struct trend *trend, struct grouping *grouping, size_t snapshot, struct trend_room *left,
		      const char **ret_reason)
{
	size_t groups = grouping->groups.count;

	if (groups > left->sizes_max) {
		*ret_reason = "there are too many groups in so many snapshots: take fewer snapshots, filters, or another key";
		return -E2BIG;
	}
	left->sizes_max -= groups;
	if (left->take && !left->take(left->context, (groups + 1) * sizeof(**trend->sizes))) {
		*ret_reason = "its groups need more memory than trends may have: take fewer snapshots, filters, or another key";
		return -E2BIG;
	}
	trend->sizes[snapshot] = calloc(groups + 1, sizeof(**trend->sizes));
	if (!trend->sizes[snapshot])
		return -ENOMEM;
	trend->known[snapshot] = groups;
	for (size_t i = 0; i < groups; i++)
		trend->sizes[snapshot][i] = grouping->groups.items[i].now.size;
	return 0;
}

/* Sizes of groups that have become one. */
static void join_sizes(struct trend *trend, size_t snapshots, const uint32_t *into)
{
	for (size_t i = 0; i < snapshots; i++) {
		uint64_t *sizes = trend->sizes[i];
		size_t known = 0;

		/* Numbers go down only, and a new one is the highest so far. */
		for (size_t group = 0; group < trend->known[i]; group++) {
			uint64_t size = sizes[group];

			if (into[group] == known)
				sizes[known++] = size;
			else
				sizes[into[group]] += size;
		}
		trend->known[i] = known;
	}
}

static int match(struct trend *trend, struct grouping *grouping, const struct builds *builds, size_t snapshot)
{
	uint32_t *into = NULL;
	int r = match_groups(grouping, builds, false, &into);

	if (into)
		join_sizes(trend, snapshot, into);
	free(into);
	return r;
}

static void forget_numbers(struct grouping *grouping)
{
	grouping->now = (struct measure){ 0 };
	for (size_t i = 0; i < grouping->groups.count; i++)
		grouping->groups.items[i].now = (struct measure){ 0 };
}

/* One snapshot after the other into the same groups, whose numbers are the last one's in the end. */
static int take_series(struct trend *trend, struct grouping *grouping, const struct snapshot *const *snapshots,
		       const struct builds *builds, uint32_t limit, const struct trend_room *room, const char **ret_reason)
{
	struct trend_room left = *room;
	int r = 0;

	for (size_t i = 0; r == 0 && i < trend->snapshot_count; i++) {
		forget_numbers(grouping);
		r = grouping_add(grouping, snapshots[i], limit, false, ret_reason);
		if (r == 0 && grouping->query->key == KEY_DEFINITION)
			r = match(trend, grouping, builds, i);
		if (r == 0)
			r = keep_sizes(trend, grouping, i, &left, ret_reason);
	}
	return r;
}

static int make_rows(struct trend *trend, size_t rows, const uint64_t *times)
{
	size_t count = trend->snapshot_count;
	double *slopes = calloc(count * (count - 1) / 2, sizeof(*slopes));

	trend->rows = calloc(rows + 1, sizeof(*trend->rows));
	if (!trend->rows || !slopes) {
		free(slopes);
		return -ENOMEM;
	}
	for (size_t i = 0; i < rows; i++) {
		trend->rows[i].row = i;
		judge(trend, &trend->rows[i], times, slopes);
	}
	free(slopes);
	return 0;
}

/* Growth counts as much as it is steady. */
static int compare_rows(const void *left, const void *right, void *context)
{
	const struct trend_row *a = left, *b = right;
	double first = a->growth * (a->steadiness < 0 ? -a->steadiness : a->steadiness);
	double second = b->growth * (b->steadiness < 0 ? -b->steadiness : b->steadiness);

	if (first != second)
		return first < second ? 1 : -1;
	return grouping_order(context, (uint32_t)a->row, (uint32_t)b->row);
}

static int fill_in(struct trend *trend, const struct snapshot *const *snapshots, const struct statistics_query *query,
		   const struct builds *builds, const struct trend_room *room, const uint64_t *times, const char **ret_reason)
{
	struct statistics *statistics = trend->statistics;
	struct grouping grouping;
	uint32_t limit = query->traceback.limit;
	int r = grouping_init(&grouping, query, statistics->strings, ret_reason);

	if (r < 0)
		return r;
	for (size_t i = 0; i < trend->snapshot_count; i++) {
		statistics->exact &= snapshots[i]->exact;
		statistics->unnamed |= !snapshots[i]->symbolized;
	}
	statistics->limits_differ = statistics_common_limit(snapshots, trend->snapshot_count, query, &limit);
	r = take_series(trend, &grouping, snapshots, builds, limit, room, ret_reason);
	if (r == 0)
		r = make_rows(trend, grouping.groups.count, times);
	if (r == 0)
		qsort_r(trend->rows, grouping.groups.count, sizeof(*trend->rows), compare_rows, &grouping);
	if (r == 0)
		r = grouping_take_all(&grouping, statistics);
	grouping_fini(&grouping);
	return r;
}

static int make(struct trend *trend, const struct snapshot *const *snapshots, const struct statistics_query *query,
		const struct trend_room *room, const uint64_t *times, const char **ret_reason)
{
	struct statistics_query decided = *query;
	struct builds *builds;
	int r = builds_for_query(snapshots, trend->snapshot_count, &decided, &builds);

	if (r == 0) {
		trend->statistics = statistics_new(snapshots[trend->snapshot_count - 1], decided.key);
		r = trend->statistics ? fill_in(trend, snapshots, &decided, builds, room, times, ret_reason) : -ENOMEM;
	}
	builds_free(builds);
	return r;
}

int trend_make(const struct snapshot *const *snapshots, size_t count, const struct statistics_query *query,
	       const struct trend_room *room, struct trend **ret, const char **ret_reason)
{
	static const struct trend_room usual = { .sizes_max = TREND_SIZES_MAX };
	uint64_t times[TREND_SNAPSHOTS_MAX];
	struct trend *trend;
	int r;

	*ret_reason = contradiction(count, query);
	r = *ret_reason ? -EINVAL : take_times(snapshots, count, times, ret_reason);
	if (r < 0)
		return r;
	trend = calloc(1, sizeof(*trend));
	if (!trend)
		return -ENOMEM;
	trend->snapshot_count = count;
	r = make(trend, snapshots, query, room ? room : &usual, times, ret_reason);
	if (r < 0) {
		trend_free(trend);
		return r;
	}
	*ret = trend;
	return 0;
}
