/* What must hold of ages, churn, histograms and trends whatever the numbers are, on random series of snapshots.  Prints how
 * much was looked at. */
#include "random_series.h"
#include "snapshot_builder.h"

#include "model/trend.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static struct statistics *make(const struct snapshot *s, const struct statistics_query *query)
{
	struct statistics *made = NULL;
	const char *reason = "";

	ck_assert_msg(statistics_make(s, query, &made, &reason) == 0, "%s", reason);
	return made;
}

static struct statistics *compare(const struct snapshot *old, const struct snapshot *new,
				  const struct statistics_query *query)
{
	struct statistics *made = NULL;
	const char *reason = "";

	ck_assert_msg(statistics_compare(old, new, query, &made, &reason) == 0, "%s", reason);
	return made;
}

static bool same_group(const struct statistics *a, const struct statistic *x, const struct statistics *b,
		       const struct statistic *y)
{
	if (x->frame_count != y->frame_count || x->domain != y->domain || x->thread != y->thread)
		return false;
	for (uint32_t i = 0; i < x->frame_count; i++) {
		if (x->frames[i].line != y->frames[i].line ||
		    strcmp(strtab_get(a->strings, x->frames[i].name), strtab_get(b->strings, y->frames[i].name)) != 0)
			return false;
		if (a->key == KEY_DEFINITION &&
		    strcmp(strtab_get(a->strings, x->frames[i].function), strtab_get(b->strings, y->frames[i].function)) != 0)
			return false;
	}
	return true;
}

/* A row without numbers when there is none. */
static const struct statistic *find(const struct statistics *in, const struct statistics *of, const struct statistic *row)
{
	static const struct statistic none;

	for (size_t i = 0; i < in->row_count; i++) {
		if (same_group(of, row, in, &in->rows[i]))
			return &in->rows[i];
	}
	return &none;
}

static struct statistics_query random_group_key(bool blocks)
{
	static const enum statistics_key some[] = { KEY_LINENO, KEY_FILENAME, KEY_TRACEBACK, KEY_FUNCTION, KEY_OBJECT,
						    KEY_DEFINITION, KEY_DOMAIN, KEY_THREAD };
	struct statistics_query query = { .key = some[pick(blocks ? COUNT(some) : COUNT(some) - 1)] };

	query.cumulative = query.key != KEY_TRACEBACK && query.key < KEY_THREAD && pick(2);
	query.traceback.limit = pick(2) ? 0 : 1 + pick(SERIES_DEPTH);
	return query;
}

/* What was there when OLD was taken, and what was born after it, is all there is; what is older than a time and
 * what is not, too. */
static size_t ages_part_the_blocks(const struct snapshot *old, const struct snapshot *new)
{
	struct statistics_query query = random_group_key(true), young = query, aged = query;
	struct statistics *all, *born, *there;
	size_t rows;

	if (!new->has_blocks || !old->clock_ns || old->clock_ns > new->clock_ns || old->pid != new->pid ||
	    old->start_time != new->start_time)
		return 0;
	young.born = true;
	aged.ages = (struct block_ages){ .given = true, .least_ns = new->clock_ns - old->clock_ns, .below_ns = UINT64_MAX };
	all = make(new, &query);
	born = compare(old, new, &young);
	there = make(new, &aged);
	for (size_t i = 0; i < all->row_count; i++) {
		const struct statistic *row = &all->rows[i], *a = find(born, all, row), *b = find(there, all, row);

		ck_assert_uint_eq(a->size + b->size, row->size);
		ck_assert_uint_eq(a->count + b->count, row->count);
		ck_assert(a->count == 0 || a->oldest_ns < aged.ages.least_ns);
		ck_assert(b->count == 0 || b->youngest_ns >= aged.ages.least_ns);
	}
	ck_assert_uint_eq(born->total_size + there->total_size, all->total_size);
	ck_assert_uint_eq(born->total_count + there->total_count, all->total_count);
	rows = all->row_count;
	statistics_free(all);
	statistics_free(born);
	statistics_free(there);
	return rows;
}

/* A-A is nothing and A-B the opposite of B-A, in churn, too. */
static size_t differences_have_an_opposite(const struct snapshot *a, const struct snapshot *b)
{
	struct statistics_query query = random_group_key(false);
	struct statistics *there, *back, *none;
	size_t rows;

	query.churn = true;
	query.sort = pick(2) ? SORT_CHURN : SORT_ABS;
	there = compare(a, b, &query);
	back = compare(b, a, &query);
	none = compare(a, a, &query);
	ck_assert_int_eq(there->total_size_diff, -back->total_size_diff);
	ck_assert_int_eq(there->total_count_diff, -back->total_count_diff);
	/* By definition a row has the newer build's name and object, and by that it is, or is not, one with another. */
	if (query.key != KEY_DEFINITION)
		ck_assert_uint_eq(there->row_count, back->row_count);
	for (size_t i = 0; query.key != KEY_DEFINITION && i < there->row_count; i++) {
		const struct statistic *x = &there->rows[i], *y = find(back, there, x);

		ck_assert_int_eq(x->size_diff, -y->size_diff);
		ck_assert_int_eq(x->count_diff, -y->count_diff);
		ck_assert_int_eq(x->made_size, -y->made_size);
		ck_assert_int_eq(x->made_count, -y->made_count);
		ck_assert_int_eq(x->freed_count, -y->freed_count);
		ck_assert_int_eq(x->temporary_count, -y->temporary_count);
		/* Whatever was made and was not freed is there. */
		ck_assert_int_eq(x->made_count - x->freed_count, x->count_diff);
		ck_assert_int_eq((int64_t)x->count - x->count_diff, (int64_t)y->count);
		ck_assert(statistic_is_bigger(x) + statistic_is_bigger(y) <= 1);
	}
	for (size_t i = 0; i < none->row_count; i++) {
		const struct statistic *x = &none->rows[i];

		ck_assert(!x->size_diff && !x->count_diff && !x->made_size && !x->made_count && !x->freed_count &&
			  !x->temporary_count && !statistic_is_bigger(x));
	}
	ck_assert_int_eq(there->total_size_diff, -back->total_size_diff);
	ck_assert_int_eq(there->total_count_diff, -back->total_count_diff);
	rows = there->row_count + none->row_count;
	statistics_free(there);
	statistics_free(back);
	statistics_free(none);
	return rows;
}

/* A histogram has each block of its group once, within its bounds; and by whatever key, all groups are all blocks. */
static size_t groups_add_up(const struct snapshot *s)
{
	struct statistics_query query = random_group_key(false);
	uint64_t size = 0, count = 0, steps[HISTOGRAM_STEPS] = { 0 }, blocks[HISTOGRAM_STEPS] = { 0 };
	struct statistics *made;
	size_t rows;

	if (!s->has_blocks)
		return 0;
	query.cumulative = false;
	query.histogram = true;
	made = make(s, &query);
	for (size_t i = 0; i < made->row_count; i++) {
		const struct statistic *row = &made->rows[i];
		uint64_t least = 0, sum = 0;
		long double most = 0;

		for (unsigned step = 0; step < HISTOGRAM_STEPS; step++) {
			sum += row->histogram[step];
			least += row->histogram[step] * histogram_least(step);
			most += (long double)row->histogram[step] * (long double)histogram_most(step);
			steps[step] += row->histogram[step];
		}
		ck_assert_uint_eq(sum, row->count);
		ck_assert(least <= row->size && (long double)row->size <= most);
		size += row->size;
		count += row->count;
	}
	ck_assert_uint_eq(size, made->total_size);
	ck_assert_uint_eq(count, made->total_count);
	for (size_t i = 0; i < s->blocks.count; i++)
		blocks[histogram_step(s->blocks.items[i].size)]++;
	ck_assert_mem_eq(steps, blocks, sizeof(steps));
	rows = made->row_count;
	statistics_free(made);
	return rows;
}

/* In whatever order a tracer hands its traces over, the answer is the same. */
static size_t the_order_of_traces_does_not_matter(struct snapshot *s)
{
	struct statistics_query query = random_group_key(true);
	struct statistics *before, *after;
	size_t traces = s->traces.count, rows;

	if (query.key == KEY_THREAD && !s->has_blocks)
		query.key = KEY_DOMAIN;
	query.peak = query.key != KEY_THREAD && pick(3) == 0;
	query.churn = !query.peak && query.key != KEY_THREAD && pick(2);
	before = make(s, &query);
	for (size_t i = 0; i < traces / 2; i++) {
		struct snapshot_trace trace = s->traces.items[i];

		s->traces.items[i] = s->traces.items[traces - 1 - i];
		s->traces.items[traces - 1 - i] = trace;
	}
	for (size_t i = 0; i < s->blocks.count; i++)
		s->blocks.items[i].trace = (uint32_t)traces - 1 - s->blocks.items[i].trace;
	after = make(s, &query);
	ck_assert_uint_eq(after->row_count, before->row_count);
	for (size_t i = 0; i < before->row_count; i++) {
		const struct statistic *x = &before->rows[i], *y = &after->rows[i];

		ck_assert(same_group(before, x, after, y));
		ck_assert(x->size == y->size && x->count == y->count && x->made_size == y->made_size &&
			  x->made_count == y->made_count && x->freed_count == y->freed_count &&
			  x->temporary_count == y->temporary_count);
	}
	rows = before->row_count;
	statistics_free(before);
	statistics_free(after);
	return rows;
}

START_TEST(ages_differences_and_groups_add_up)
{
	size_t aged = 0, opposite = 0, added = 0, moved = 0;

	for (unsigned i = 0; i < series_rounds(); i++) {
		struct series series;

		series_make(&series);
		for (size_t n = 1; n < series.count; n++) {
			aged += ages_part_the_blocks(series.snapshots[n - 1], series.snapshots[n]);
			opposite += differences_have_an_opposite(series.snapshots[n - 1], series.snapshots[n]);
			added += groups_add_up(series.snapshots[n]);
			moved += the_order_of_traces_does_not_matter(series.snapshots[n]);
		}
		series_free(&series);
	}
	printf("rows: %zu parted by age, %zu with their opposites, %zu added up, %zu of traces in another order\n", aged,
	       opposite, added, moved);
	ck_assert(aged > 10 * series_rounds() && opposite > 10 * series_rounds() && added > 10 * series_rounds() && moved > 10 * series_rounds());
}
END_TEST

/* --- trends --- */

enum { LINES = 6, MOMENTS = 9 };
#define HOUR_NS 3600000000000ULL

/* A process whose lines have these sizes at that time. */
static struct snapshot *sized(uint64_t at_ns, const uint64_t sizes[LINES])
{
	struct snapshot *s = snapshot_new();

	ck_assert_ptr_nonnull(s);
	s->pid = s->start_time = 1;
	s->clock_ns = s->taken_ns = at_ns;
	s->frames_limit = 25;
	for (uint32_t i = 0; i < LINES; i++) {
		uint32_t frame = build_line(s, "f", "/src/a.c", i + 1);

		build_trace(s, build_stack(s, &frame, 1), 0, sizes[i] > 0, sizes[i]);
	}
	return s;
}

static struct trend *trend_of(struct snapshot **snapshots, size_t count)
{
	const struct statistics_query query = { .key = KEY_LINENO };
	struct trend *trend = NULL;
	const char *reason = "";

	ck_assert_msg(trend_make((const struct snapshot *const *)snapshots, count, &query, NULL, &trend, &reason) == 0, "%s", reason);
	for (size_t i = 0; i < count; i++)
		snapshot_put(snapshots[i]);
	return trend;
}

static const struct trend_row *row_of_line(const struct trend *trend, uint32_t line)
{
	for (size_t i = 0; i < trend->statistics->row_count; i++) {
		if (trend->statistics->rows[trend->rows[i].row].frames[0].line == line)
			return &trend->rows[i];
	}
	return NULL;
}

START_TEST(a_line_that_grows_linearly_has_its_slope_whatever_the_moments)
{
	size_t lines = 0;

	for (unsigned round = 0; round < series_rounds(); round++) {
		size_t count = 3 + pick(MOMENTS - 2);
		struct snapshot *snapshots[MOMENTS];
		uint64_t at[MOMENTS] = { 0 }, base[LINES];
		int64_t slope[LINES];
		struct trend *trend;

		for (size_t line = 0; line < LINES; line++) {
			base[line] = 1 << 20 | pick(1 << 20);
			slope[line] = (int64_t)pick(2001) - 1000;
		}
		for (size_t i = 0; i < count; i++) {
			uint64_t sizes[LINES];

			at[i] = i ? at[i - 1] + 1 + pick(100) : 1;
			for (size_t line = 0; line < LINES; line++)
				sizes[line] = base[line] + (uint64_t)(slope[line] * (int64_t)at[i]);
			/* one peak changes nothing of a series of five and more */
			if (i == count / 2 && count > 6)
				sizes[0] += 1 << 30;
			snapshots[i] = sized(at[i] * HOUR_NS, sizes);
		}
		trend = trend_of(snapshots, count);
		for (uint32_t line = 0; line < LINES; line++) {
			const struct trend_row *row = row_of_line(trend, line + 1);

			if (line > 0 || count <= 6) {
				ck_assert(fabs(row->growth - (double)slope[line]) < 1e-6);
				ck_assert(row->steadiness == (slope[line] > 0) - (slope[line] < 0));
				lines++;
			} else {
				ck_assert(fabs(row->growth - (double)slope[line]) < 1e-6 || count < 8);
			}
		}
		for (size_t i = 1; i < trend->statistics->row_count; i++) {
			const struct trend_row *a = &trend->rows[i - 1], *b = &trend->rows[i];

			ck_assert(a->growth * fabs(a->steadiness) >= b->growth * fabs(b->steadiness));
		}
		trend_free(trend);
	}
	printf("%zu linear series have their slopes\n", lines);
}
END_TEST

/* Sizes at moments, that are changed: mirrored in time, stretched, moved, with more of everything. */
START_TEST(a_trend_turns_stretches_and_moves_with_its_series)
{
	enum { PLAIN, MIRRORED, STRETCHED, MOVED, DOUBLED, FORMS };
	size_t compared = 0;

	for (unsigned round = 0; round < series_rounds(); round++) {
		size_t count = 3 + pick(MOMENTS - 2);
		uint64_t sizes[MOMENTS][LINES], at[MOMENTS] = { 0 };
		struct trend *trends[FORMS];

		for (size_t i = 0; i < count; i++) {
			at[i] = i ? at[i - 1] + (1 + pick(50)) * (HOUR_NS / 1024) : HOUR_NS;
			for (size_t line = 0; line < LINES; line++)
				sizes[i][line] = 1 + pick(pick(2) ? 4 : 1000);
		}
		for (unsigned form = 0; form < FORMS; form++) {
			struct snapshot *snapshots[MOMENTS];

			for (size_t i = 0; i < count; i++) {
				uint64_t now[LINES], when = form == MIRRORED ? at[0] + at[count - 1] - at[count - 1 - i] :
							    form == STRETCHED ? 4 * at[i] :
							    form == MOVED ? at[i] + 12345 * HOUR_NS : at[i];

				for (size_t line = 0; line < LINES; line++)
					now[line] = sizes[form == MIRRORED ? count - 1 - i : i][line] * (form == DOUBLED ? 2 : 1);
				snapshots[i] = sized(when, now);
			}
			trends[form] = trend_of(snapshots, count);
		}
		for (uint32_t line = 1; line <= LINES; line++) {
			const struct trend_row *rows[FORMS];

			for (unsigned form = 0; form < FORMS; form++)
				rows[form] = row_of_line(trends[form], line);
			ck_assert(rows[MIRRORED]->growth == -rows[PLAIN]->growth);
			ck_assert(rows[MIRRORED]->steadiness == -rows[PLAIN]->steadiness);
			ck_assert(rows[STRETCHED]->growth == rows[PLAIN]->growth / 4);
			ck_assert(rows[STRETCHED]->steadiness == rows[PLAIN]->steadiness);
			ck_assert(rows[MOVED]->growth == rows[PLAIN]->growth);
			ck_assert(rows[DOUBLED]->growth == 2 * rows[PLAIN]->growth);
			ck_assert(rows[DOUBLED]->steadiness == rows[PLAIN]->steadiness);
			compared++;
		}
		for (unsigned form = 0; form < FORMS; form++)
			trend_free(trends[form]);
	}
	printf("%zu series turned, stretched, moved and doubled\n", compared);
}
END_TEST

/* Of groups that tie, the largest, then the one with most blocks, then the traceback: nothing is left to chance. */
START_TEST(groups_that_tie_in_a_trend_are_ordered_as_statistics_are)
{
	size_t ties = 0;

	for (unsigned round = 0; round < series_rounds(); round++) {
		struct snapshot *snapshots[4];
		struct trend *trend;

		for (size_t i = 0; i < 4; i++) {
			uint64_t sizes[LINES];

			for (size_t line = 0; line < LINES; line++)
				sizes[line] = 1 + (line * 7 + round) % 3;
			snapshots[i] = sized((i + 1) * HOUR_NS, sizes);
		}
		trend = trend_of(snapshots, 4);
		ck_assert_uint_eq(trend->statistics->row_count, LINES);
		for (size_t i = 1; i < LINES; i++) {
			const struct statistic *a = &trend->statistics->rows[trend->rows[i - 1].row];
			const struct statistic *b = &trend->statistics->rows[trend->rows[i].row];

			ck_assert(a->size > b->size || (a->size == b->size && a->frames[0].line > b->frames[0].line));
			ties++;
		}
		trend_free(trend);
	}
	printf("%zu ties in order\n", ties);
}
END_TEST

struct account {
	uint64_t bytes, most;
};

static bool take_bytes(void *context, uint64_t bytes)
{
	struct account *account = context;

	if (bytes > account->most - account->bytes)
		return false;
	account->bytes += bytes;
	return true;
}

START_TEST(a_trend_keeps_as_many_sizes_as_there_is_room_for_and_not_one_more)
{
	static const uint64_t sizes[LINES] = { 1, 2, 3, 4, 5, 6 };
	enum { SERIES = 4, BYTES = SERIES * (LINES + 1) * sizeof(uint64_t) };
	const struct snapshot *series[SERIES];
	const struct statistics_query query = { .key = KEY_LINENO };

	ck_assert_uint_eq(TREND_SIZES_MAX * sizeof(uint64_t), 512u << 20);
	for (size_t i = 0; i < SERIES; i++)
		series[i] = sized(i + 1, sizes);
	for (int lacking = 0; lacking < 3; lacking++) {
		struct account account = { .most = BYTES - (lacking == 2) };
		struct trend_room room = { SERIES * LINES - (lacking == 1), take_bytes, &account };
		struct trend *trend = NULL;
		const char *reason = NULL;
		int r = trend_make(series, SERIES, &query, &room, &trend, &reason);

		ck_assert_int_eq(r, lacking ? -E2BIG : 0);
		if (lacking)
			ck_assert_ptr_nonnull(strstr(reason, lacking == 1 ? "too many groups" : "more memory"));
		else
			ck_assert_uint_eq(account.bytes, BYTES);
		trend_free(trend);
	}
	for (size_t i = 0; i < SERIES; i++)
		snapshot_put((struct snapshot *)series[i]);
}
END_TEST

START_TEST(a_trend_of_one_snapshot_twice_or_of_too_many_is_refused)
{
	static const uint64_t sizes[LINES] = { 1, 2, 3, 4, 5, 6 };
	const struct snapshot *many[TREND_SNAPSHOTS_MAX + 1];
	const struct statistics_query query = { .key = KEY_LINENO };
	struct trend *trend;
	const char *reason;

	for (size_t i = 0; i < COUNT(many); i++)
		many[i] = sized(i + 1, sizes);
	ck_assert_int_eq(trend_make(many, COUNT(many), &query, NULL, &trend, &reason), -EINVAL);
	ck_assert_int_eq(trend_make(many, 2, &query, NULL, &trend, &reason), -EINVAL);
	ck_assert_int_eq(trend_make((const struct snapshot *[]){ many[0], many[1], many[1] }, 3, &query, NULL, &trend, &reason),
			 -EINVAL);
	ck_assert_ptr_nonnull(strstr(reason, "in the order"));
	ck_assert_int_eq(trend_make(many, TREND_SNAPSHOTS_MAX, &query, NULL, &trend, &reason), 0);
	for (size_t i = 0; i < LINES; i++)
		ck_assert(trend->rows[i].growth == 0 && trend->rows[i].steadiness == 0);
	trend_free(trend);
	for (size_t i = 0; i < COUNT(many); i++)
		snapshot_put((struct snapshot *)many[i]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("laws beyond tracemalloc");
	TCase *tcase = tcase_create("laws");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 600);
	tcase_add_test(tcase, ages_differences_and_groups_add_up);
	tcase_add_test(tcase, a_line_that_grows_linearly_has_its_slope_whatever_the_moments);
	tcase_add_test(tcase, a_trend_turns_stretches_and_moves_with_its_series);
	tcase_add_test(tcase, groups_that_tie_in_a_trend_are_ordered_as_statistics_are);
	tcase_add_test(tcase, a_trend_keeps_as_many_sizes_as_there_is_room_for_and_not_one_more);
	tcase_add_test(tcase, a_trend_of_one_snapshot_twice_or_of_too_many_is_refused);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
