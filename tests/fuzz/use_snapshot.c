#include "use_snapshot.h"

#include "fuzz.h"

#include "export/text.h"
#include "export/tracemalloc.h"
#include "model/statistics.h"
#include "model/trend.h"

#include <errno.h>

#define EXPORT_BLOCKS_MAX 20000u        /* more would only take time */

static FILE *nowhere;

static void group_by(const struct snapshot *s, enum statistics_key key, bool cumulative)
{
	const struct statistics_query query = { .key = key, .cumulative = cumulative };
	const struct text_style style = { .functions = true };
	struct statistics *statistics;
	const char *reason;

	if (statistics_make(s, &query, &statistics, &reason) < 0)
		return;
	for (size_t i = 0; i < statistics->row_count && i < 50; i++) {
		text_statistic(nowhere, statistics, &statistics->rows[i], false);
		text_statistic_traceback(nowhere, statistics, &statistics->rows[i], false, &style);
	}
	text_pretty(nowhere, statistics, 10, &style.source);
	statistics_free(statistics);
	MUST(statistics_compare(s, s, &query, &statistics, &reason) == 0);
	for (size_t i = 0; i < statistics->row_count; i++)
		MUST(statistics->rows[i].size_diff == 0 && statistics->rows[i].count_diff == 0);
	statistics_free(statistics);
}

/* Questions beyond tracemalloc's: each is answered or refused with a reason, and an answer can be printed. */
static void ask(const struct snapshot *old, const struct snapshot *new, const struct statistics_query *query)
{
	struct statistics *statistics;
	const char *reason = NULL;
	int r = old ? statistics_compare(old, new, query, &statistics, &reason) :
		      statistics_make(new, query, &statistics, &reason);

	if (r < 0) {
		MUST(r == -EINVAL && reason && *reason);
		return;
	}
	for (size_t i = 0; i < statistics->row_count && i < 50; i++) {
		const struct statistic *row = &statistics->rows[i];

		MUST(row->size <= INT64_MAX && row->count <= INT64_MAX && row->youngest_ns <= row->oldest_ns);
		text_statistic(nowhere, statistics, row, old != NULL);
		text_histogram(nowhere, row);
	}
	statistics_free(statistics);
}

/* The same heap at three moments, unless the file says something else: nothing grows. */
static void follow(const struct snapshot *s, const struct statistics_query *query)
{
	struct snapshot later[2] = { *s, *s };
	const struct snapshot *all[] = { s, &later[0], &later[1] };
	struct trend *trend;
	const char *reason = NULL;
	int r;

	for (size_t i = 0; i < 2; i++) {
		later[i].clock_ns += i + 1;
		later[i].taken_ns += i + 1;
	}
	r = trend_make(all, 3, query, NULL, &trend, &reason);
	if (r < 0) {
		MUST(r == -EINVAL && reason && *reason);
		return;
	}
	for (size_t i = 0; i < trend->statistics->row_count; i++)
		MUST(trend->rows[i].growth == 0 && trend->rows[i].steadiness == 0);
	trend_free(trend);
}

static void ask_beyond(const struct snapshot *s, enum statistics_key key)
{
	const struct block_ages ages = statistics_older_than(s->traces.count);
	const struct statistics_query queries[] = {
		{ .key = key, .ages = ages }, { .key = key, .ages = ages, .cumulative = true },
		{ .key = key, .churn = true, .sort = SORT_CHURN }, { .key = key, .churn = true, .cumulative = true },
		{ .key = key, .peak = true }, { .key = key, .peak = true, .cumulative = true },
		{ .key = key, .histogram = true }, { .key = key, .born = true },
	};
	struct snapshot later = *s;

	later.clock_ns += 1000;
	for (size_t i = 0; i < sizeof(queries) / sizeof(*queries); i++) {
		ask(NULL, s, &queries[i]);
		ask(s, &later, &queries[i]);
		follow(s, &queries[i]);
	}
}

static void export_it(const struct snapshot *s)
{
	const struct tracemalloc_options options = { 0 };
	uint64_t blocks = 0;

	for (size_t i = 0; i < s->traces.count; i++)
		blocks += s->traces.items[i].live_blocks;
	if (blocks <= EXPORT_BLOCKS_MAX)
		MUST(tracemalloc_write(nowhere, s, &options) == 0);
}

void fuzz_use_snapshot(const struct snapshot *s)
{
	const char *reason;

	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	MUST(nowhere && snapshot_check(s, &reason) == 0);
	for (int key = KEY_LINENO; key <= KEY_DOMAIN; key++) {
		group_by(s, (enum statistics_key)key, false);
		group_by(s, (enum statistics_key)key, true);
	}
	/* By one of the keys: these questions are many. */
	ask_beyond(s, (enum statistics_key)fuzz_pick(KEY_DOMAIN + 1));
	export_it(s);
}
