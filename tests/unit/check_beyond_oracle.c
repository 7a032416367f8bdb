/* What goes beyond tracemalloc - ages, what was born, churn, the peak, histograms, trends - on random series of
 * snapshots against tests/oracle/beyond.py, as the JSON that clients get: every row and the order of all rows.  Prints
 * how much was compared. */
#include "oracle.h"
#include "random_series.h"

#include "model/trend.h"
#include "varlink/codec.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

enum { QUERIES = 22 };

/* --- random questions --- */

static const char *const keys[] = { "lineno", "filename", "traceback", "function", "object", "definition", "thread", "domain" };

struct asked {
	struct statistics_query query;
	struct filter filters[2];
	size_t count, of[SERIES_MAX];
};

static json_t *random_filter(struct filter *ret_filter)
{
	char number_text[DOMAIN_TEXT_MAX];
	static const char *const patterns[] = { "/src/a.c", "*.c", "*\xc3*", "/src/?.c", "*(*", "/bin/*", "*" };
	const char *pattern = pick(6) ? patterns[pick(COUNT(patterns))] : NULL, *reason = "";
	int line = pattern && !pick(3) ? 1 + (int)pick(2) : 0, domain = !pattern || !pick(4) ? (int)pick(3) : -1;
	bool inclusive = pick(2), all = pattern && pick(2);
	char text[256], part[64];

	snprintf(text, sizeof(text), "%s%s", inclusive ? "+" : "-", pattern ? pattern : "");
	if (line) {
		snprintf(part, sizeof(part), ":%d", line);
		strcat(text, part);
	}
	if (domain >= 0) {
		snprintf(part, sizeof(part), "@domain=%s", domain_name((uint32_t)domain, number_text));
		strcat(text, part);
	}
	strcat(text, all ? "@all" : "");
	ck_assert_msg(filter_parse(text, ret_filter, &reason) == 0, "%s: %s", text, reason);
	return json_pack("{s:b, s:o, s:o, s:b, s:o}", "inclusive", inclusive, "pattern", hex_or_null(pattern), "lineno",
			 line ? json_integer(line) : json_null(), "all_frames", all, "domain",
			 domain >= 0 ? json_integer(domain) : json_null());
}

/* One, two or more of a series, most of them in order. */
static json_t *pick_snapshots(struct asked *asked, const struct series *series)
{
	static const unsigned kinds[] = { 0, 1, 1, 2 };
	unsigned kind = kinds[pick(COUNT(kinds))];
	json_t *of = json_array();

	if (kind < 2) {
		asked->count = kind + 1;
		for (size_t i = 0; i < asked->count; i++)
			asked->of[i] = pick((unsigned)series->count);
		if (kind == 1 && asked->of[0] > asked->of[1] && pick(4)) {
			size_t other = asked->of[0];

			asked->of[0] = asked->of[1];
			asked->of[1] = other;
		}
	} else {
		for (size_t i = 0; i < series->count; i++) {
			if (series->count - i <= 3 - asked->count || pick(3))
				asked->of[asked->count++] = pick(40) ? i : pick((unsigned)series->count);
			if (asked->count >= 3 && pick(6) == 0)
				break;
		}
	}
	for (size_t i = 0; i < asked->count; i++)
		json_array_append_new(of, json_integer((json_int_t)asked->of[i]));
	return of;
}

static json_t *random_query(struct asked *asked, const struct series *series)
{
	static const char *const sorts[] = { "abs", "growth", "shrink", "churn" };
	struct statistics_query *query = &asked->query;
	json_t *of, *filters = json_array(), *older = json_null();
	unsigned key = pick(COUNT(keys)), sort, topic = pick(6);
	bool plain;

	*asked = (struct asked){ .count = 0 };
	of = pick_snapshots(asked, series);
	plain = asked->count > 2 && pick(10);
	sort = pick(4) || plain ? 0 : pick(COUNT(sorts));
	ck_assert_int_eq(statistics_key_parse(keys[key], &query->key), 0);
	ck_assert_int_eq(diff_sort_parse(sorts[sort], &query->sort), 0);
	query->cumulative = pick(key == 2 || key > 5 ? 20 : 3) == 0;
	query->churn = query->sort == SORT_CHURN || (!plain && (topic == 1 || pick(30) == 0));
	query->peak = topic == 2 || pick(30) == 0;
	query->histogram = !plain && (topic == 3 || pick(8) == 0);
	query->born = asked->count == 2 && !query->churn && !query->peak && (topic == 4 || pick(3) == 0);
	if (topic == 5 || pick(12) == 0) {
		uint64_t ns = pick(50) * series->unit;

		query->ages = statistics_older_than(ns);
		older = json_integer((json_int_t)ns);
	}
	query->traceback.limit = pick(3) ? 0 : 1 + pick(SERIES_DEPTH);
	query->filters = asked->filters;
	query->filter_count = pick(2) ? 0 : 1 + pick(2);
	for (size_t i = 0; i < query->filter_count; i++)
		json_array_append_new(filters, random_filter(&asked->filters[i]));
	return json_pack("{s:o, s:s, s:s, s:b, s:b, s:b, s:b, s:b, s:o, s:i, s:o}", "of", of, "key", keys[key], "sort",
			 sorts[sort], "cumulative", query->cumulative, "churn", query->churn, "peak", query->peak, "histogram",
			 query->histogram, "born", query->born, "older_ns", older, "frames", (int)query->traceback.limit,
			 "filters", filters);
}

/* --- comparing --- */

/* As the daemon and the client answer; null for a question that has no answer. */
static json_t *answer(const struct asked *asked, const struct series *series)
{
	const struct snapshot *snapshots[SERIES_MAX];
	struct statistics *statistics = NULL;
	struct trend *trend = NULL;
	const char *reason = NULL;
	json_t *json;
	int r;

	for (size_t i = 0; i < asked->count; i++)
		snapshots[i] = series->snapshots[asked->of[i]];
	if (asked->count == 1)
		r = statistics_make(snapshots[0], &asked->query, &statistics, &reason);
	else if (asked->count == 2)
		r = statistics_compare(snapshots[0], snapshots[1], &asked->query, &statistics, &reason);
	else
		r = trend_make(snapshots, asked->count, &asked->query, NULL, &trend, &reason);
	if (r == -EINVAL) {
		ck_assert_msg(reason && *reason, "refused without a reason");
		return json_null();
	}
	ck_assert_int_eq(r, 0);
	json = trend ? codec_trend(trend, 0) : codec_statistics(statistics, 0, asked->count == 2 && !asked->query.born);
	ck_assert_ptr_nonnull(json);
	statistics_free(statistics);
	trend_free(trend);
	return json;
}

static void explain(const json_t *query, const json_t *have, const json_t *want)
{
	const json_t *ours = json_object_get(have, "statistics"), *theirs = json_object_get(want, "statistics");
	size_t count = json_array_size(ours) > json_array_size(theirs) ? json_array_size(ours) : json_array_size(theirs);

	for (size_t i = 0; i < count; i++) {
		const json_t *a = json_array_get(ours, i), *b = json_array_get(theirs, i);

		if (!json_equal(a, b))
			ck_abort_msg("%.1000s: row %zu is\n%.1000s\nthe oracle's\n%.1000s", json_dumps(query, 0), i,
				     a ? json_dumps(a, JSON_SORT_KEYS) : "not there", b ? json_dumps(b, JSON_SORT_KEYS) : "not there");
	}
	ck_abort_msg("%.1000s: the answer is\n%.1000s\nthe oracle's\n%.1000s", json_dumps(query, 0),
		     json_dumps(have, JSON_ENCODE_ANY), json_dumps(want, JSON_ENCODE_ANY));
}

/* What answers were about, each with how many rows were compared. */
static const char *const topics[] = { "plain", "older than", "born", "churn", "peak", "histogram", "trend" };
static struct {
	size_t answers, rows;
} tally[COUNT(topics)];
static size_t refused;

static void count(const struct asked *asked, const json_t *have)
{
	const struct statistics_query *query = &asked->query;
	const bool about[COUNT(topics)] = { false, query->ages.given, query->born, query->churn, query->peak, query->histogram,
					    asked->count > 2 };
	bool plain = true;

	if (json_is_null(have)) {
		refused++;
		return;
	}
	for (size_t i = 1; i < COUNT(topics); i++)
		plain = plain && !about[i];
	for (size_t i = 0; i < COUNT(topics); i++) {
		if (about[i] || (i == 0 && plain)) {
			tally[i].answers++;
			tally[i].rows += json_array_size(json_object_get(have, "statistics"));
		}
	}
}

static void compare_series(void)
{
	static struct asked asked[QUERIES];
	json_t *queries = json_array(), *kept, *wanted;
	struct series series;

	series_make(&series);
	for (size_t i = 0; i < QUERIES; i++)
		json_array_append_new(queries, random_query(&asked[i], &series));
	kept = json_incref(queries);
	wanted = oracle_ask(json_pack("{s:O, s:o}", "snapshots", series.documents, "queries", queries));
	ck_assert_uint_eq(json_array_size(wanted), QUERIES);
	for (size_t i = 0; i < QUERIES; i++) {
		json_t *have = answer(&asked[i], &series), *want = json_array_get(wanted, i);

		if (!json_equal(have, want))
			explain(json_array_get(kept, i), have, want);
		count(&asked[i], have);
		json_decref(have);
		for (size_t f = 0; f < asked[i].query.filter_count; f++)
			filter_fini(&asked[i].filters[f]);
	}
	json_decref(kept);
	json_decref(wanted);
	series_free(&series);
}

START_TEST(answers_are_the_oracles_in_value_and_order)
{
	oracle_start("tests/oracle/beyond.py");
	for (unsigned i = 0; i < series_rounds(); i++)
		compare_series();
	oracle_stop();
	printf("%u series of snapshots; compared, differing: 0:", series_rounds());
	for (size_t i = 0; i < COUNT(topics); i++) {
		printf(" %s %zu rows in %zu answers;", topics[i], tally[i].rows, tally[i].answers);
		ck_assert_msg(tally[i].rows >= 2 * series_rounds(), "%s: only %zu rows", topics[i], tally[i].rows);
	}
	printf(" refused %zu\n", refused);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("beyond tracemalloc");
	TCase *tcase = tcase_create("oracle");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 600);
	tcase_add_test(tcase, answers_are_the_oracles_in_value_and_order);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
