#include "cli/command.h"
#include "cli/failure.h"
#include "cli/fetch.h"
#include "cli/show.h"
#include "cli/terminal.h"
#include "export/text.h"
#include "model/trend.h"
#include "varlink/codec.h"

#include <errno.h>
#include <stdlib.h>

static size_t rows_shown(const struct options *options, const struct trend *trend)
{
	size_t count = trend->statistics->row_count;

	return options->limit > 0 && options->limit < count ? options->limit : count;
}

static int print_text(const struct options *options, const struct trend *trend)
{
	struct source *source = source_new();
	const struct text_style style = show_style(options, source);
	int r = source ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < rows_shown(options, trend); i++) {
		const struct trend_row *row = &trend->rows[i];
		const struct statistic *statistic = &trend->statistics->rows[row->row];
		char growth[TEXT_SIZE_MAX];

		printf("%s/h, steadiness %+.2f: ", text_size(growth, row->growth, true), row->steadiness);
		if (options->key == KEY_TRACEBACK)
			r = text_statistic_traceback(stdout, trend->statistics, statistic, false, &style);
		else
			text_statistic(stdout, trend->statistics, statistic, false);
	}
	source_free(source);
	if (r < 0)
		return fail_memory();
	if (terminal_is(stdout))
		show_unknown(stdout, trend->statistics->exact, &trend->statistics->unknown);
	return show_finish();
}

static int show(const struct options *options, const struct statistics_query *query,
		const struct snapshot *const *snapshots, size_t count)
{
	const char *reason = NULL;
	struct trend *trend;
	int r = trend_make(snapshots, count, query, NULL, &trend, &reason);

	if (r == -EINVAL)
		return fail_usage("trend", "%s", reason);
	if (r == -E2BIG)
		return fail("cannot make the trend: %s", reason);
	if (r < 0)
		return fail_memory();
	show_limits(trend->statistics);
	show_names(trend->statistics);
	show_key(options, trend->statistics);
	if (options_have(options, OPTION(JSON)))
		r = show_json(codec_trend(trend, options->limit));
	else
		r = print_text(options, trend);
	if (r == EXIT_DONE)
		r = show_verdict(options, trend->statistics->exact);
	trend_free(trend);
	return r;
}

int cmd_trend(const struct options *options, int argc, char **argv)
{
	struct snapshot *snapshots[TREND_SNAPSHOTS_MAX] = { NULL };
	size_t count = (size_t)argc;
	struct statistics_query query;
	struct fetch fetch;
	struct snap snap;
	int r = show_query(options, "trend", &query);

	if (r == EXIT_DONE && (count < TREND_SNAPSHOTS_LEAST || count > TREND_SNAPSHOTS_MAX))
		r = fail_usage("trend", "a trend needs 3 to 100 snapshots");
	for (size_t i = 0; r == EXIT_DONE && i < count; i++)
		r = fetch_check("trend", argv[i], &snap);
	if (r != EXIT_DONE)
		return r;
	fetch_init(&fetch, options);
	for (size_t i = 0; r == EXIT_DONE && i < count; i++)
		r = fetch_snapshot(&fetch, "trend", argv[i], &snapshots[i]);
	if (r == EXIT_DONE)
		r = show(options, &query, (const struct snapshot *const *)snapshots, count);
	for (size_t i = 0; i < count; i++)
		snapshot_put(snapshots[i]);
	fetch_fini(&fetch);
	return r;
}
