#include "daemon/query.h"

#include "base/reason.h"
#include "daemon/limits.h"
#include "daemon/params.h"
#include "varlink/codec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct param members[] = {
	{ "key", PARAM_TEXT, true },    { "cumulative", PARAM_BOOL, true },
	{ "filters", PARAM_TEXTS, true }, { "sort", PARAM_TEXT, true },
	{ "limit", PARAM_COUNT, true }, { "frames", PARAM_COUNT, true },
	{ "show_runtime", PARAM_BOOL, true }, { "older_than_ms", PARAM_MS, true },
	{ "born", PARAM_BOOL, true },   { "churn", PARAM_BOOL, true },
	{ "peak", PARAM_BOOL, true },   { "histogram", PARAM_BOOL, true },
	{ "older_than_ns", PARAM_NS, true }, { "tables", PARAM_BOOL, true }, { 0 }
};

void query_fini(struct query *query)
{
	for (size_t i = 0; i < query->statistics.filter_count; i++)
		filter_fini(&query->filters[i]);
	free(query->filters);
	memset(query, 0, sizeof(*query));
}

static int take_filters(const json_t *list, struct query *query, char **ret_reason)
{
	size_t count = json_array_size(list);

	if (count > CODEC_FILTERS_MAX)
		return reason_set(ret_reason, -EINVAL,
				  "there are %zu filters, and at most %d are allowed", count, CODEC_FILTERS_MAX);
	query->filters = calloc(count + 1, sizeof(*query->filters));
	if (!query->filters)
		return -ENOMEM;
	query->statistics.filters = query->filters;
	for (size_t i = 0; i < count; i++) {
		const char *text = json_string_value(json_array_get(list, i)), *reason;
		int r = filter_parse(text, &query->filters[i], &reason);

		if (r == -EINVAL)
			return reason_set(ret_reason, -EINVAL, "filter '%.200s': %s", text, reason);
		if (r < 0)
			return r;
		query->statistics.filter_count++;
	}
	return 0;
}

static int take_members(const json_t *json, struct query *query, char **ret_reason)
{
	const char *key = param_text(json, "key", "lineno"), *sort = param_text(json, "sort", "abs");

	if (statistics_key_parse(key, &query->statistics.key) < 0)
		return reason_set(ret_reason, -EINVAL,
				  "'%.64s' is no key to group by; lineno, filename, traceback, function, definition, "
				  "object, thread and domain are", key);
	if (diff_sort_parse(sort, &query->statistics.sort) < 0)
		return reason_set(ret_reason, -EINVAL,
				  "'%.64s' is no order of differences; abs, growth, shrink and churn are", sort);
	query->statistics.key_is_open = !json_is_string(json_object_get(json, "key"));
	query->statistics.cumulative = param_bool(json, "cumulative");
	query->statistics.traceback.limit = param_count(json, "frames", 0);
	query->statistics.traceback.show_runtime = param_bool(json, "show_runtime");
	query->statistics.born = param_bool(json, "born");
	query->statistics.churn = param_bool(json, "churn") || query->statistics.sort == SORT_CHURN;
	query->statistics.histogram = param_bool(json, "histogram");
	query->statistics.peak = param_bool(json, "peak");
	if (json_is_integer(json_object_get(json, "older_than_ms")))
		query->statistics.ages = statistics_older_than(param_ms(json, "older_than_ms"));
	if (json_is_integer(json_object_get(json, "older_than_ns")))
		query->statistics.ages = statistics_older_than(param_ns(json, "older_than_ns"));
	query->tables = param_bool(json, "tables");
	query->limited = json_is_integer(json_object_get(json, "limit"));
	query->limit = param_count(json, "limit", 0);
	return take_filters(json_object_get(json, "filters"), query, ret_reason);
}

bool query_needs_blocks(const json_t *json)
{
	return strcmp(param_text(json, "key", ""), "thread") == 0 || param_bool(json, "born") ||
	       param_bool(json, "histogram") || json_is_integer(json_object_get(json, "older_than_ms")) ||
	       json_is_integer(json_object_get(json, "older_than_ns"));
}

int query_parse(const json_t *json, struct query *ret, const char **ret_parameter, char **ret_reason)
{
	struct query query = { 0 };
	int r;

	*ret_parameter = NULL;
	*ret_reason = NULL;
	if (json && !json_is_null(json)) {
		*ret_parameter = params_check(json, members);
		if (*ret_parameter)
			return -EINVAL;
	}
	r = take_members(json, &query, ret_reason);
	if (r < 0) {
		query_fini(&query);
		return r;
	}
	*ret = query;
	return 0;
}
