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
	for (size_t i = 0; i < rows_shown(options, trend); i++) {
		const struct trend_row *row = &trend->rows[i];
		char growth[TEXT_SIZE_MAX];

		printf("%s/h, steadiness %+.2f: ", text_size(growth, row->growth, true), row->steadiness);
		text_statistic(stdout, trend->statistics, &trend->statistics->rows[row->row], false);
	}
	if (terminal_is(stdout))
		show_unknown(stdout, trend->statistics->exact, &trend->statistics->unknown);
	return show_finish();
}

/* NULL: out of memory. */
static json_t *encode_sizes(const struct trend *trend, const struct trend_row *row)
{
	json_t *sizes = json_array();

	for (size_t i = 0; sizes && i < trend->snapshot_count; i++) {
		if (json_array_append_new(sizes, json_integer((json_int_t)row->sizes[i])) < 0) {
			json_decref(sizes);
			return NULL;
		}
	}
	return sizes;
}

/* NULL: out of memory. */
static json_t *encode_row(const struct trend *trend, const struct trend_row *row)
{
	json_t *list = codec_statistics_rows(trend->statistics, row->row, 1, false);
	json_t *json = json_incref(json_array_get(list, 0));

	json_decref(list);
	if (json_object_set_new(json, "growth_per_hour", json_real(row->growth)) == 0 &&
	    json_object_set_new(json, "steadiness", json_real(row->steadiness)) == 0 &&
	    json_object_set_new(json, "sizes", encode_sizes(trend, row)) == 0)
		return json;
	json_decref(json);
	return NULL;
}

static int print_json(const struct options *options, const struct trend *trend)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < rows_shown(options, trend); i++) {
		if (json_array_append_new(rows, encode_row(trend, &trend->rows[i])) < 0) {
			json_decref(rows);
			return fail_memory();
		}
	}
	return show_json(codec_statistics_frame(trend->statistics, rows, false));
}

static int show(const struct options *options, const struct statistics_query *query,
		const struct snapshot *const *snapshots, size_t count)
{
	const char *reason = NULL;
	struct trend *trend;
	int r = trend_make(snapshots, count, query, &trend, &reason);

	if (r == -EINVAL)
		return fail_usage("trend", "%s", reason);
	if (r < 0)
		return fail_memory();
	if (options_have(options, OPTION(JSON)))
		r = print_json(options, trend);
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
	if (r == EXIT_DONE && query.key == KEY_TRACEBACK)
		r = fail_usage("trend", "cannot group by traceback: use 'diff --by traceback' for what has grown");
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
