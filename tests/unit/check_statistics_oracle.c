/* Statistics, differences, filters and patterns against Python's own tracemalloc and fnmatch, on
 * random snapshots: every row's values and the order of all rows.  Prints how much was compared;
 * to compare nothing is a failure, and so is a machine without Python. */
#include "model/index.h"
#include "model/statistics.h"
#include "oracle.h"
#include "require.h"
#include "share.h"
#include "snapshot_builder.h"

#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

enum { ROUNDS = 60, QUERIES = 40, TRACES = 120, DEPTH = 8, PATTERNS = 60000 };

static unsigned pick(unsigned below)
{
	return (unsigned)rand() % below;
}

/* --- random snapshots; the traces go to the oracle as they are meant --- */

static const char *const files[] = {
	"/src/a.c", "/src/b.c", "/src/b.c.orig", "/src/z/a.c", "/src/\xc3\xa9.c", "/src/\xe9.c",
	"/src/\xed\x9f\xbf.c", "/src/\xee\x80\x80.c", "/src/\xf0\x9f\x98\x80.c", "/src/[x].c", "a", "/src/m.pyc", "/src/m.py",
};

static const char *const runtimes[] = { "malloc", "operator new(unsigned long)", "std::string::grow()" };

/* The frames that a trace shows, the most recent first. */
struct shown {
	const char *file;             /* NULL: named by function and object */
	unsigned line;
	char name[64];
};

static void pick_frame(struct shown *frame)
{
	frame->file = pick(6) ? files[pick(COUNT(files))] : NULL;
	frame->line = frame->file ? 1 + pick(3) : 0;
	snprintf(frame->name, sizeof(frame->name), "/bin/p(f%u+0x%x)", pick(3), 1 + pick(2));
}

static void add_location(struct snapshot *s, const struct shown *frame, bool inlined)
{
	unsigned function = 0, offset = 0;
	char name[16];

	if (frame->file) {
		build_location(s, "user", 1, frame->file, frame->line, inlined);
		return;
	}
	ck_assert_int_eq(sscanf(frame->name, "/bin/p(f%u+0x%x)", &function, &offset), 2);
	snprintf(name, sizeof(name), "f%u", function);
	build_location(s, name, offset, NULL, 0, inlined);
}

/* Shown frames become physical frames, some of them inlined into the next one outwards. */
static uint32_t add_stack(struct snapshot *s, const struct shown *frames, unsigned count)
{
	uint32_t ids[DEPTH + 3], outermost_first[DEPTH + 3];
	unsigned made = 0;

	for (unsigned i = pick(3); i > 0; i--) {
		ids[made++] = build_frame(s, 0, FRAME_CALL, s->frames.count);
		build_location(s, runtimes[pick(COUNT(runtimes))], 1, pick(2) ? "/src/a.c" : NULL, 1, false);
	}
	for (unsigned i = 0; i < count; made++) {
		unsigned inlined = pick(3) ? 0 : pick(count - i);

		ids[made] = build_frame(s, 0, FRAME_CALL, s->frames.count);
		for (; inlined > 0; inlined--)
			add_location(s, &frames[i++], true);
		add_location(s, &frames[i++], false);
	}
	for (unsigned i = 0; i < made; i++)
		outermost_first[i] = ids[made - 1 - i];
	return build_stack(s, outermost_first, made);
}

static json_t *shown_json(const struct shown *frame)
{
	return json_pack("[o, i]", oracle_hex(frame->file ? frame->file : frame->name), (int)frame->line);
}

static json_t *add_trace(struct snapshot *s)
{
	static const uint32_t domains[] = { 0, 1, 2, 100 };
	json_t *sizes = json_array(), *list = json_array();
	uint32_t domain = domains[pick(COUNT(domains))];
	unsigned count = 1 + pick(DEPTH), blocks = pick(4);
	struct shown frames[DEPTH];
	uint64_t bytes = 0;

	for (unsigned i = 0; i < count; i++) {
		/* A frame that comes twice: cumulative statistics count it twice. */
		if (i > 0 && pick(4) == 0)
			frames[i] = frames[pick(i)];
		else
			pick_frame(&frames[i]);
		json_array_append_new(list, shown_json(&frames[i]));
	}
	for (unsigned i = 0; i < blocks; i++) {
		unsigned size = pick(3) * 8;

		bytes += size;
		json_array_append_new(sizes, json_integer(size));
	}
	build_trace(s, add_stack(s, frames, count), domain, blocks, bytes);
	return json_pack("[i, o, o]", (int)domain, sizes, list);
}

static struct snapshot *random_snapshot(json_t **ret_traces)
{
	struct snapshot *s = snapshot_new();
	const char *reason = "";

	build_module(s, "/bin/p");
	s->frames_limit = 1 + pick(DEPTH + 2);
	*ret_traces = json_array();
	for (unsigned i = pick(20) ? TRACES : 0; i > 0; i--)
		json_array_append_new(*ret_traces, add_trace(s));
	ck_assert_msg(snapshot_check(s, &reason) == 0, "%s", reason);
	return s;
}

/* --- random queries --- */

static json_t *random_filter(struct filter *ret_filter)
{
	char number_text[DOMAIN_TEXT_MAX];
	static const char *const patterns[] = {
		"/src/a.c", "*.c", "*a*", "/src/[!a]*", "*\xc3*", "/src/?.c", "/src/[\xc3\xa0-\xf0\x9f\x98\x80].c",
		"/bin/*", "*(f[01]+*", "nothing", "*", "/src/[[]x].c", "*.pyc", "/src/m.py", "*.py[c]", "/src/?.pyc",
	};
	bool inclusive = pick(2), all = pick(2);
	const char *pattern = pick(6) ? patterns[pick(COUNT(patterns))] : NULL, *reason = "";
	int line = pattern && !pick(3) ? (int)pick(4) : -1;
	int domain = !pattern || !pick(4) ? (int)pick(3) : -1;
	const char *sign = !inclusive ? "-" : pick(2) ? "+" : "";
	char text[256], part[64];

	snprintf(text, sizeof(text), "%s%s", sign, pattern ? pattern : "");
	if (line >= 0) {
		snprintf(part, sizeof(part), ":%d", line);
		strcat(text, part);
	}
	if (domain >= 0) {
		snprintf(part, sizeof(part), "@domain=%s", domain_name((uint32_t)domain, number_text));
		strcat(text, part);
	}
	if (all)
		strcat(text, "@all");
	ck_assert_msg(filter_parse(text, ret_filter, &reason) == 0, "%s: %s", text, reason);
	return json_pack("{s:b, s:o, s:o, s:b, s:o}", "inclusive", inclusive,
			 "pattern", pattern ? oracle_hex(pattern) : json_null(),
			 "lineno", line >= 0 ? json_integer(line) : json_null(), "all_frames", all,
			 "domain", domain >= 0 ? json_integer(domain) : json_null());
}

struct asked {
	struct statistics_query query;
	struct filter filters[3];
	bool diff;
};

static json_t *random_query(struct asked *asked, const struct snapshot *old, const struct snapshot *new)
{
	static const char *const keys[] = { "lineno", "filename", "traceback" };
	static const char *const sorts[] = { "abs", "growth", "shrink" };
	unsigned key = pick(3), sort = pick(3), limit = new->frames_limit;
	json_t *filters = json_array();

	*asked = (struct asked){ .diff = pick(2) };
	ck_assert_int_eq(statistics_key_parse(keys[key], &asked->query.key), 0);
	ck_assert_int_eq(diff_sort_parse(sorts[sort], &asked->query.sort), 0);
	asked->query.cumulative = asked->query.key != KEY_TRACEBACK && pick(2);
	asked->query.traceback.limit = pick(3) ? 0 : 1 + pick(DEPTH);
	asked->query.filters = asked->filters;
	asked->query.filter_count = pick(2) ? 0 : 1 + pick(3);
	for (size_t i = 0; i < asked->query.filter_count; i++)
		json_array_append_new(filters, random_filter(&asked->filters[i]));
	if (asked->diff && old->frames_limit < limit)
		limit = old->frames_limit;
	if (asked->query.traceback.limit && asked->query.traceback.limit < limit)
		limit = asked->query.traceback.limit;
	return json_pack("{s:s, s:b, s:b, s:s, s:i, s:o}", "key", keys[key],
			 "cumulative", asked->query.cumulative, "diff", asked->diff, "sort", sorts[sort], "limit", (int)limit, "filters", filters);
}

/* --- comparing --- */

static size_t limited_rows;

static int64_t number(const json_t *array, size_t index)
{
	return json_integer_value(json_array_get(array, index));
}

static void compare_row(const struct statistics *have, const struct statistic *row, const json_t *want)
{
	const json_t *frames = json_array_get(want, 4);

	REQUIRE((int64_t)row->size == number(want, 0));
	REQUIRE((int64_t)row->count == number(want, 1));
	REQUIRE(row->size_diff == number(want, 2));
	REQUIRE(row->count_diff == number(want, 3));
	REQUIRE(row->frame_count == json_array_size(frames));
	for (uint32_t i = 0; i < row->frame_count; i++) {
		json_t *name = oracle_hex(strtab_get(have->strings, row->frames[i].name));
		const json_t *frame = json_array_get(frames, i);

		REQUIRE(strcmp(json_string_value(name), json_string_value(json_array_get(frame, 0))) == 0);
		REQUIRE(row->frames[i].line == number(frame, 1));
		json_decref(name);
	}
}

static struct statistics *ask(const struct asked *asked, const struct snapshot *old, const struct snapshot *new)
{
	struct statistics *have = NULL;
	const char *reason = "";
	int r = asked->diff ? statistics_compare(old, new, &asked->query, &have, &reason) :
			      statistics_make(new, &asked->query, &have, &reason);

	ck_assert_msg(r == 0, "%s", reason);
	return have;
}

/* With a limit there are the same rows, as far as it goes, and the same sums. */
static void compare_first(const struct asked *asked, const struct snapshot *old, const struct snapshot *new,
			  const json_t *rows, const struct statistics *all)
{
	struct asked limited = *asked;
	struct statistics *have;

	limited.query.limit = 1 + pick((unsigned)all->row_count + 1);
	have = ask(&limited, old, new);
	ck_assert_uint_eq(have->row_count, all->row_count < limited.query.limit ? all->row_count : limited.query.limit);
	for (size_t i = 0; i < have->row_count; i++)
		compare_row(have, &have->rows[i], json_array_get(rows, i));
	ck_assert_uint_eq(have->all_rows, all->row_count);
	ck_assert_uint_eq(have->rows_size, all->rows_size);
	ck_assert_uint_eq(have->total_size, all->total_size);
	limited_rows += have->row_count;
	statistics_free(have);
}

static size_t compare_answer(const struct asked *asked, const struct snapshot *old,
			     const struct snapshot *new, const json_t *want)
{
	const json_t *rows = json_object_get(want, "rows"), *totals = json_object_get(want, "totals");
	const json_t *counts = json_object_get(want, "counts");
	struct statistics *have = ask(asked, old, new);
	size_t count;

	ck_assert_uint_eq(have->row_count, json_array_size(rows));
	for (size_t i = 0; i < have->row_count; i++)
		compare_row(have, &have->rows[i], json_array_get(rows, i));
	ck_assert_int_eq((int64_t)have->total_size, number(totals, 0));
	ck_assert_int_eq((int64_t)have->total_count, number(counts, 0));
	if (asked->diff) {
		ck_assert_int_eq(have->total_size_diff, number(totals, 0) - number(totals, 1));
		ck_assert_int_eq(have->total_count_diff, number(counts, 0) - number(counts, 1));
	}
	count = have->row_count;
	compare_first(asked, old, new, rows, have);
	statistics_free(have);
	return count;
}

static size_t compare_round(void)
{
	json_t *old_traces, *new_traces, *queries = json_array(), *answers;
	struct snapshot *old = random_snapshot(&old_traces), *new = random_snapshot(&new_traces);
	static struct asked asked[QUERIES];
	size_t compared = 0;

	/* Kept or made for each question, an index says the same. */
	if (pick(2))
		ck_assert_int_eq(snapshot_index_keep(old), 0);
	if (pick(2))
		ck_assert_int_eq(snapshot_index_keep(new), 0);
	for (int i = 0; i < QUERIES; i++)
		json_array_append_new(queries, random_query(&asked[i], old, new));
	answers = oracle_ask(json_pack("{s:o, s:o, s:o}", "old", old_traces, "new", new_traces,
				       "queries", queries));
	ck_assert_uint_eq(json_array_size(answers), QUERIES);
	for (size_t i = 0; i < QUERIES; i++) {
		compared += compare_answer(&asked[i], old, new, json_array_get(answers, i));
		for (size_t f = 0; f < asked[i].query.filter_count; f++)
			filter_fini(&asked[i].filters[f]);
	}
	json_decref(answers);
	snapshot_put(old);
	snapshot_put(new);
	return compared;
}

START_TEST(rows_are_tracemallocs_in_value_and_order)
{
	size_t compared = 0;

	srand(20240501);
	oracle_start("tests/unit/statistics_oracle.py");
	for (int i = 0; i < (int)share_of(ROUNDS); i++)
		compared += compare_round();
	oracle_stop();
	printf("rows compared with tracemalloc: %zu, differing: 0; the first ones of them with a limit: %zu\n", compared,
	       limited_rows);
	ck_assert_uint_gt(limited_rows, 0);
	ck_assert_uint_gt(compared, share_of(10000));
}
END_TEST

/* --- patterns --- */

static void random_text(char *text, size_t max, const char *const *pieces, size_t count)
{
	*text = '\0';
	for (unsigned i = pick((unsigned)max); i > 0; i--)
		strcat(text, pieces[pick((unsigned)count)]);
}

/* Bracket expressions have the most corners: a third of the patterns is one, for one character. */
static void random_set(char *pattern, char *text)
{
	static const char *const members[] = {
		"a", "b", "c", "d", "-", "-", "-", "!", "]", "^", "\\", "\xc3\xa9", "[", "&", "~~", "||",
	};
	static const char *const characters[] = {
		"a", "b", "c", "d", "-", "!", "]", "^", "\\", "\xc3\xa9", "[", "&", "~", "|", "x",
	};
	char body[48];

	random_text(body, 9, members, COUNT(members));
	snprintf(pattern, 64, "[%s]", body);
	snprintf(text, 64, "%s", characters[pick(COUNT(characters))]);
}

START_TEST(patterns_match_what_pythons_fnmatch_matches)
{
	static const char *const pattern_pieces[] = {
		"a", "b", "c", "-", "-", "!", "[", "[", "[", "]", "]", "*", "?", "\\", "^", "&&", "~", "|", "x-",
		"\xc3\xa9", "\xc3", "[!", "[a-c]", "[c-a]", "[!-a]", "[]-a]", ".", "{", "$",
	};
	static const char *const text_pieces[] = {
		"a", "b", "c", "-", "!", "[", "]", "\\", "^", "&", "~", "|", "x", "\xc3\xa9", "\xc3", ".", "\n",
	};
	static char patterns[PATTERNS][64], texts[PATTERNS][64];
	json_t *pairs = json_array(), *answers;
	size_t matched = 0, count = share_of(PATTERNS);

	srand(7);
	oracle_start("tests/unit/statistics_oracle.py");
	for (size_t i = 0; i < count; i++) {
		if (i % 3 == 0) {
			random_set(patterns[i], texts[i]);
		} else {
			random_text(patterns[i], 10, pattern_pieces, COUNT(pattern_pieces));
			random_text(texts[i], 5, text_pieces, COUNT(text_pieces));
		}
		json_array_append_new(pairs, json_pack("[o, o]", oracle_hex(patterns[i]), oracle_hex(texts[i])));
	}
	answers = oracle_ask(json_pack("{s:o}", "fnmatch", pairs));
	ck_assert_uint_eq(json_array_size(answers), count);
	for (size_t i = 0; i < count; i++) {
		bool want = json_is_true(json_array_get(answers, i));

		if (fnmatch_python(patterns[i], texts[i]) != want)
			ck_abort_msg("pattern \"%s\", text \"%s\": Python says %d", patterns[i], texts[i],
				     want);
		matched += want;
	}
	json_decref(answers);
	oracle_stop();
	printf("patterns compared with fnmatch: %zu, of which %zu match, differing: 0\n", count, matched);
	ck_assert_uint_gt(matched, count / 100);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("statistics against Python");
	TCase *tcase = tcase_create("oracle");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 600);
	tcase_add_test(tcase, rows_are_tracemallocs_in_value_and_order);
	tcase_add_test(tcase, patterns_match_what_pythons_fnmatch_matches);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
