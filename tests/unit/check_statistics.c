#include "model/index.h"
#include "model/statistics.h"
#include "snapshot_builder.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct snapshot *s;
static struct statistics_query query;
static uint32_t stacks[3];

/* main -> serve -> work, of two objects; serve calls itself once. */
static void setup(void)
{
	uint32_t program, plugin, frames[3];

	s = snapshot_new();
	s->frames_limit = 25;
	s->exact = true;
	s->unknown.before_attach_frees = 3;
	program = build_module(s, "/bin/program");
	plugin = build_module(s, "/lib/plugin.so");
	frames[0] = build_frame(s, program, FRAME_CALL, 0x100);
	build_location(s, "main", 1, "/src/main.c", 10, false);
	frames[1] = build_frame(s, program, FRAME_CALL, 0x200);
	build_location(s, "serve", 2, "/src/serve.c", 20, false);
	frames[2] = build_frame(s, plugin, FRAME_CALL, 0x300);
	build_location(s, "work", 3, NULL, 0, false);
	stacks[0] = build_node(s, STACK_ROOT, frames[0]);
	stacks[1] = build_node(s, build_node(s, stacks[0], frames[1]), frames[1]);
	stacks[2] = build_node(s, stacks[1], frames[2]);
	build_trace(s, stacks[0], DOMAIN_MALLOC, 1, 100);
	build_trace(s, stacks[1], DOMAIN_NEW, 2, 50);
	build_trace(s, stacks[2], DOMAIN_MALLOC, 5, 10);
	build_trace(s, stacks[2], DOMAIN_MMAP, 0, 0);
	query = (struct statistics_query){ .key = KEY_LINENO };
}

static void teardown(void)
{
	snapshot_put(s);
}

static struct statistics *make(void)
{
	struct statistics *statistics;
	const char *reason = "";

	ck_assert_int_eq(statistics_make(s, &query, &statistics, &reason), 0);
	return statistics;
}

static const char *name_of(const struct statistics *statistics, size_t row)
{
	ck_assert_uint_lt(row, statistics->row_count);
	ck_assert_uint_gt(statistics->rows[row].frame_count, 0);
	return strtab_get(statistics->strings, statistics->rows[row].frames[0].name);
}

START_TEST(lines_without_line_information_go_by_function)
{
	struct statistics *t = make();

	ck_assert_uint_eq(t->row_count, 3);
	ck_assert_str_eq(name_of(t, 0), "/src/main.c");
	ck_assert_uint_eq(t->rows[0].frames[0].line, 10);
	ck_assert(t->rows[0].frames[0].has_line);
	ck_assert_str_eq(name_of(t, 2), "/lib/plugin.so(work+0x3)");
	ck_assert(!t->rows[2].frames[0].has_line);
	ck_assert_str_eq(strtab_get(t->strings, t->rows[2].frames[0].object), "/lib/plugin.so");
	ck_assert_str_eq(strtab_get(t->strings, t->rows[2].frames[0].function), "work");
	statistics_free(t);
}
END_TEST

START_TEST(files_are_shown_with_line_0_as_tracemalloc_does)
{
	struct statistics *t;

	query.key = KEY_FILENAME;
	t = make();
	ck_assert_str_eq(name_of(t, 0), "/src/main.c");
	ck_assert_uint_eq(t->rows[0].frames[0].line, 0);
	ck_assert(t->rows[0].frames[0].has_line);
	ck_assert(!t->rows[2].frames[0].has_line);
	statistics_free(t);
}
END_TEST

START_TEST(functions_objects_and_domains_are_keys_too)
{
	struct statistics *t;

	query.key = KEY_FUNCTION;
	t = make();
	ck_assert_str_eq(name_of(t, 1), "serve");
	ck_assert(!t->rows[1].frames[0].has_line);
	statistics_free(t);

	query.key = KEY_OBJECT;
	t = make();
	ck_assert_uint_eq(t->row_count, 2);
	ck_assert_str_eq(name_of(t, 0), "/bin/program");
	ck_assert_uint_eq(t->rows[0].size, 150);
	statistics_free(t);

	query.key = KEY_DOMAIN;
	t = make();
	ck_assert_uint_eq(t->row_count, 2);
	ck_assert_uint_eq(t->rows[0].domain, DOMAIN_MALLOC);
	ck_assert_uint_eq(t->rows[0].size, 110);
	ck_assert_uint_eq(t->rows[0].frame_count, 0);
	statistics_free(t);
}
END_TEST

START_TEST(a_function_shares_no_group_with_a_file_of_its_name)
{
	uint32_t called = build_line(s, "twin.c", "/src/other.c", 1), unnamed = build_line(s, NULL, "twin.c", 2);
	struct statistics *t;
	size_t twins = 0, files = 0;

	build_trace(s, build_node(s, STACK_ROOT, called), DOMAIN_MALLOC, 1, 7);
	build_trace(s, build_node(s, STACK_ROOT, unnamed), DOMAIN_MALLOC, 1, 7);
	query.key = KEY_FUNCTION;
	for (int kept = 0; kept < 2; kept++) {
		t = make();
		for (size_t i = 0; i < t->row_count; i++) {
			if (strcmp(name_of(t, i), "twin.c") != 0)
				continue;
			ck_assert_uint_eq(t->rows[i].size, 7);
			files += t->rows[i].frames[0].has_line;
			twins++;
		}
		statistics_free(t);
		ck_assert_int_eq(snapshot_index_keep(s), 0);
	}
	ck_assert_uint_eq(twins, 4);
	ck_assert_uint_eq(files, 2);
}
END_TEST

static bool compare_is_unnamed(bool older_has_names, bool newer_has_names)
{
	struct snapshot *newer = snapshot_new();
	struct statistics *t;
	const char *reason;
	bool unnamed;

	s->symbolized = older_has_names;
	newer->symbolized = newer_has_names;
	newer->frames_limit = s->frames_limit;
	ck_assert_int_eq(statistics_compare(s, newer, &query, &t, &reason), 0);
	unnamed = t->unnamed;
	statistics_free(t);
	snapshot_put(newer);
	return unnamed;
}

START_TEST(an_answer_knows_when_names_could_not_be_looked_for)
{
	for (int named = 0; named < 2; named++) {
		struct statistics *t;

		s->symbolized = named;
		t = make();
		ck_assert_int_eq(t->unnamed, !named);
		statistics_free(t);
	}
	ck_assert(!compare_is_unnamed(true, true));
	ck_assert(compare_is_unnamed(true, false));
	ck_assert(compare_is_unnamed(false, true));
}
END_TEST

static bool has_function(const char *name)
{
	struct statistics *t = make();
	bool has = false;

	for (size_t i = 0; i < t->row_count; i++)
		has |= strcmp(name_of(t, i), name) == 0;
	statistics_free(t);
	return has;
}

/* One that is kept was made by those before; who began with these sees them to the end. */
START_TEST(rules_that_take_the_place_of_others_hold_at_once)
{
	struct hidden_rules *rules = hidden_rules_new(), *before = hidden_rules_ref();
	const char *reason;

	query.key = KEY_FUNCTION;
	ck_assert_int_eq(snapshot_index_keep(s), 0);
	ck_assert(has_function("work"));
	ck_assert_int_eq(hidden_rules_add_to(rules, "work", &reason), 0);
	ck_assert(has_function("work"));
	hidden_rules_put_in_force(rules);
	ck_assert_ptr_null(snapshot_index_kept(s));
	ck_assert(!has_function("work"));
	hidden_rules_see(before);
	ck_assert_ptr_nonnull(snapshot_index_kept(s));
	ck_assert(has_function("work"));
	hidden_rules_see(NULL);
	hidden_rules_unref(before);
	/* It goes when nobody uses it, and the next one is by the new rules. */
	ck_assert_int_eq(snapshot_index_keep(s), 0);
	ck_assert_ptr_null(snapshot_index_kept(s));
	snapshot_index_drop(s);
	ck_assert_int_eq(snapshot_index_keep(s), 0);
	ck_assert_ptr_nonnull(snapshot_index_kept(s));
	ck_assert(!has_function("work"));
	hidden_rules_put_in_force(hidden_rules_new());
	ck_assert(has_function("work"));
}
END_TEST

START_TEST(a_kept_index_is_in_the_snapshots_account_until_it_is_dropped)
{
	uint64_t account = 0;
	size_t without = snapshot_memory(s), with;

	snapshot_charge(s, &account);
	ck_assert_uint_eq(account, without);
	ck_assert_int_eq(snapshot_index_keep(s), 0);
	with = snapshot_memory(s);
	ck_assert_uint_gt(with, without);
	ck_assert_uint_le(with - without, snapshot_index_estimate(s));
	snapshot_charge(s, &account);
	ck_assert_uint_eq(account, with);
	snapshot_index_drop(s);
	snapshot_charge(s, &account);
	ck_assert_uint_eq(account, without);
	s->account = NULL;              /* which ends before the snapshot */
}
END_TEST

START_TEST(an_index_of_a_program_without_names_takes_no_more_than_was_said)
{
	uint32_t module = build_module(s, "/opt/vendor/a/rather/long/path/to/a/program/without/any/names");
	size_t without, said;

	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t frame = build_frame(s, module, FRAME_CALL, 0x1000 + i * 16);

		if (i % 2)
			build_location(s, "a_function_without_a_line", 0x10, NULL, 0, false);
		build_trace(s, build_node(s, STACK_ROOT, frame), DOMAIN_MALLOC, 1, 1);
	}
	said = snapshot_index_estimate(s);
	without = snapshot_memory(s);
	ck_assert_int_eq(snapshot_index_keep(s), 0);
	ck_assert_uint_le(snapshot_memory(s) - without, said);
}
END_TEST

START_TEST(a_traceback_has_its_most_recent_frame_last_and_its_depth)
{
	struct statistics *t;

	query.key = KEY_TRACEBACK;
	query.traceback.limit = 3;
	t = make();
	ck_assert_uint_eq(t->rows[2].frame_count, 3);
	ck_assert_uint_eq(t->rows[2].total_frames, 4);
	ck_assert_int_eq(t->rows[2].truncated, TRUNCATED_LIMIT);
	ck_assert_str_eq(strtab_get(t->strings, t->rows[2].frames[2].function), "work");
	ck_assert_int_eq(t->rows[0].truncated, TRUNCATED_NONE);
	statistics_free(t);
}
END_TEST

START_TEST(a_cumulative_statistic_counts_a_recursion_as_tracemalloc_does)
{
	struct statistics *t;

	query.cumulative = true;
	t = make();
	ck_assert_str_eq(name_of(t, 0), "/src/main.c");
	ck_assert_uint_eq(t->rows[0].size, 160);
	ck_assert_str_eq(name_of(t, 1), "/src/serve.c");
	ck_assert_uint_eq(t->rows[1].size, 2 * 60);
	ck_assert_uint_eq(t->total_size, 160);
	statistics_free(t);
}
END_TEST

START_TEST(cumulative_is_refused_where_no_frames_are_counted)
{
	struct statistics *t;
	const char *reason = NULL;

	query.cumulative = true;
	query.key = KEY_TRACEBACK;
	ck_assert_int_eq(statistics_make(s, &query, &t, &reason), -EINVAL);
	ck_assert_ptr_nonnull(reason);
	ck_assert_int_eq(statistics_compare(s, s, &query, &t, &reason), -EINVAL);
	query.key = KEY_DOMAIN;
	ck_assert_int_eq(statistics_make(s, &query, &t, &reason), -EINVAL);
}
END_TEST

static void add_block(uint32_t trace, uint32_t thread, uint64_t size)
{
	struct snapshot_block *block = vec_push(&s->blocks);

	*block = (struct snapshot_block){ .address = 0x1000 * s->blocks.count, .size = size, .trace = trace,
					  .thread = thread };
	s->has_blocks = true;
}

/* All blocks of setup()'s traces. */
static void add_blocks_of_threads(void)
{
	add_block(0, 11, 100);
	add_block(1, 22, 20);
	add_block(1, 11, 30);
	for (int i = 0; i < 4; i++)
		add_block(2, 0, 2);
	add_block(2, 33, 2);
}

static void require_thread(const struct statistic *row, uint32_t thread, uint64_t size, uint64_t count)
{
	ck_assert(row->is_thread);
	ck_assert_uint_eq(row->frame_count, 0);
	ck_assert_uint_eq(row->thread, thread);
	ck_assert_uint_eq(row->size, size);
	ck_assert_uint_eq(row->count, count);
}

START_TEST(blocks_are_grouped_by_the_thread_that_allocated_them)
{
	struct filter filter = { .inclusive = false, .file_pattern = (char []){ "/src/main.c" }, .domain = -1 };
	struct statistics *t;

	add_blocks_of_threads();
	query.key = KEY_THREAD;
	t = make();
	ck_assert_uint_eq(t->row_count, 4);
	require_thread(&t->rows[0], 11, 130, 2);
	require_thread(&t->rows[1], 22, 20, 1);
	require_thread(&t->rows[2], 0, 8, 4);
	require_thread(&t->rows[3], 33, 2, 1);
	ck_assert_uint_eq(t->total_size, 160);
	ck_assert_uint_eq(t->total_count, 8);
	statistics_free(t);
	query.filters = &filter;
	query.filter_count = 1;
	t = make();
	ck_assert_uint_eq(t->row_count, 4);
	require_thread(&t->rows[0], 11, 30, 1);
	statistics_free(t);
}
END_TEST

START_TEST(threads_differ_between_two_snapshots_as_other_groups_do)
{
	struct snapshot *old = snapshot_new();
	const char *reason = NULL;
	struct statistics *t;

	add_blocks_of_threads();
	old->has_blocks = true;
	query.key = KEY_THREAD;
	ck_assert_int_eq(statistics_compare(old, s, &query, &t, &reason), 0);
	ck_assert_uint_eq(t->row_count, 4);
	require_thread(&t->rows[0], 11, 130, 2);
	ck_assert_int_eq(t->rows[0].size_diff, 130);
	statistics_free(t);
	ck_assert_int_eq(statistics_compare(s, old, &query, &t, &reason), 0);
	ck_assert_int_eq(t->rows[0].size_diff, -130);
	statistics_free(t);
	old->has_blocks = false;
	ck_assert_int_eq(statistics_compare(old, s, &query, &t, &reason), -EINVAL);
	ck_assert_ptr_nonnull(strstr(reason, "--blocks"));
	ck_assert_int_eq(statistics_make(old, &query, &t, &reason), -EINVAL);
	snapshot_put(old);
}
END_TEST

static void add_aged(uint32_t trace, uint64_t size, uint64_t age_ns)
{
	add_block(trace, 1, size);
	s->blocks.items[s->blocks.count - 1].age_ns = age_ns;
}

START_TEST(blocks_of_an_age_are_counted_up_to_the_nanosecond)
{
	struct statistics *t;

	add_aged(0, 100, 1001);
	add_aged(1, 20, 1000);
	add_aged(1, 30, 5000);
	query.ages = statistics_older_than(1000);
	t = make();
	ck_assert(t->has_ages);
	ck_assert_uint_eq(t->row_count, 2);
	ck_assert_uint_eq(t->rows[0].size, 100);
	ck_assert_uint_eq(t->rows[1].size, 30);
	ck_assert_uint_eq(t->rows[1].count, 1);
	ck_assert_uint_eq(t->rows[1].youngest_ns, 5000);
	ck_assert_uint_eq(t->total_count, 2);
	statistics_free(t);
	query.ages = statistics_older_than(0);
	query.key = KEY_DOMAIN;
	t = make();
	ck_assert_uint_eq(t->total_size, 150);
	ck_assert_uint_eq(t->rows[1].oldest_ns, 5000);
	ck_assert_uint_eq(t->rows[1].youngest_ns, 1000);
	statistics_free(t);
}
END_TEST

START_TEST(what_was_born_needs_two_snapshots_of_one_process_in_their_order)
{
	struct snapshot *old = snapshot_new();
	struct statistics *t;
	const char *reason;

	add_aged(0, 100, 499);
	add_aged(1, 20, 500);
	s->clock_ns = 10500;
	query.born = true;
	ck_assert_int_eq(statistics_compare(old, s, &query, &t, &reason), -EINVAL);
	ck_assert_ptr_nonnull(strstr(reason, "older version"));
	old->clock_ns = 10000;
	ck_assert_int_eq(statistics_compare(old, s, &query, &t, &reason), 0);
	ck_assert_uint_eq(t->total_size, 100);
	statistics_free(t);
	ck_assert_int_eq(statistics_compare(s, old, &query, &t, &reason), -EINVAL);
	ck_assert_ptr_nonnull(strstr(reason, "comes first"));
	old->start_time = s->start_time + 1;
	ck_assert_int_eq(statistics_compare(old, s, &query, &t, &reason), -EINVAL);
	ck_assert_ptr_nonnull(strstr(reason, "one process"));
	snapshot_put(old);
}
END_TEST

START_TEST(traces_without_live_blocks_are_no_rows)
{
	struct statistics *t;

	build_trace(s, build_node(s, stacks[0], build_line(s, "gone", "gone.c", 1)), 0, 0, 0);
	t = make();
	ck_assert_uint_eq(t->row_count, 3);
	ck_assert_uint_eq(t->total_count, 8);
	statistics_free(t);
}
END_TEST

START_TEST(a_stack_without_frames_is_unknown)
{
	struct statistics *t;

	build_trace(s, STACK_ROOT, 0, 1, 1000);
	t = make();
	ck_assert_str_eq(name_of(t, 0), "<unknown>");
	/* tracemalloc writes "<unknown>:0" */
	ck_assert(t->rows[0].frames[0].has_line);
	ck_assert_uint_eq(t->rows[0].frames[0].line, 0);
	statistics_free(t);
}
END_TEST

START_TEST(filters_by_function_and_object_choose_traces)
{
	static const struct { const char *text; uint64_t count; } cases[] = {
		{ "@function=main", 1 }, { "@function=main@all", 8 }, { "@object=*.so", 5 },
		{ "-@object=*.so", 3 }, { "-@function=serve@all", 1 }, { "*serve.c@function=main@all", 0 },
		{ "@domain=new", 2 }, { "-@domain=new", 6 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct filter filter;
		struct statistics *t;
		const char *reason;

		ck_assert_int_eq(filter_parse(cases[i].text, &filter, &reason), 0);
		query.filters = &filter;
		query.filter_count = 1;
		t = make();
		ck_assert_msg(t->total_count == cases[i].count, "%s: %lu", cases[i].text, (unsigned long)t->total_count);
		statistics_free(t);
		filter_fini(&filter);
	}
}
END_TEST

START_TEST(an_answer_says_whether_it_is_exact)
{
	struct snapshot *other = snapshot_new();
	struct statistics *t = make();
	const char *reason;

	ck_assert(t->exact);
	ck_assert_uint_eq(t->unknown.before_attach_frees, 3);
	statistics_free(t);
	other->frames_limit = 25;
	ck_assert_int_eq(statistics_compare(other, s, &query, &t, &reason), 0);
	ck_assert(!t->exact);
	ck_assert_uint_eq(t->unknown.before_attach_frees, 3);
	ck_assert(!t->limits_differ);
	statistics_free(t);
	snapshot_put(other);
}
END_TEST

START_TEST(different_limits_are_compared_at_the_smaller_one_and_said)
{
	struct snapshot *other = snapshot_new();
	struct statistics *t;
	const char *reason;

	other->frames_limit = 2;
	query.key = KEY_TRACEBACK;
	ck_assert_int_eq(statistics_compare(other, s, &query, &t, &reason), 0);
	ck_assert(t->limits_differ);
	for (size_t i = 0; i < t->row_count; i++)
		ck_assert_uint_le(t->rows[i].frame_count, 2);
	statistics_free(t);
	query.traceback.limit = 2;
	ck_assert_int_eq(statistics_compare(other, s, &query, &t, &reason), 0);
	ck_assert(!t->limits_differ);
	statistics_free(t);
	query.traceback.limit = 0;
	query.key = KEY_LINENO;
	ck_assert_int_eq(statistics_compare(other, s, &query, &t, &reason), 0);
	ck_assert(!t->limits_differ);
	statistics_free(t);
	snapshot_put(other);
}
END_TEST

static void set_build(struct snapshot *snapshot, const char *path, uint8_t build)
{
	uint32_t module = build_module(snapshot, path);

	memset(snapshot->modules.items[module].build_id, build, 20);
	snapshot->modules.items[module].build_id_len = build ? 20 : 0;
}

/* The same allocation, before and after lines were added above it. */
static struct snapshot *edition(uint8_t build, uint32_t line, uint64_t bytes)
{
	struct snapshot *snapshot = snapshot_new();

	set_build(snapshot, "/lib/first.so", 9);
	set_build(snapshot, "/bin/served", build);
	build_trace(snapshot, build_node(snapshot, STACK_ROOT, build_line(snapshot, "parse", "/src/parse.c", line)),
		    DOMAIN_MALLOC, 1, bytes);
	return snapshot;
}

static void require_key(struct snapshot *older, struct snapshot *newer, enum statistics_key key, size_t rows)
{
	struct statistics *t;
	const char *reason;

	ck_assert_int_eq(statistics_compare(older, newer, &query, &t, &reason), 0);
	ck_assert_int_eq(t->key, key);
	ck_assert_uint_eq(t->row_count, rows);
	if (rows == 1)
		ck_assert_int_eq(t->rows[0].size_diff, 30);
	statistics_free(t);
}

START_TEST(two_builds_are_compared_by_definition_unless_a_key_is_chosen)
{
	struct snapshot *old = edition(1, 10, 100), *same = edition(1, 10, 130), *moved = edition(2, 14, 130);
	struct snapshot *unknown = edition(0, 14, 130);

	query.key_is_open = true;
	require_key(old, same, KEY_LINENO, 1);
	require_key(old, moved, KEY_DEFINITION, 1);
	require_key(old, unknown, KEY_LINENO, 2);
	query.key_is_open = false;
	require_key(old, moved, KEY_LINENO, 2);
	snapshot_put(old);
	snapshot_put(same);
	snapshot_put(moved);
	snapshot_put(unknown);
}
END_TEST

/* A program that has executed itself anew after an upgrade. */
START_TEST(the_newest_build_of_a_file_is_the_one_that_is_compared)
{
	struct snapshot *old = edition(1, 10, 100), *new = edition(2, 10, 130);

	set_build(old, "/bin/served", 2);
	query.key_is_open = true;
	require_key(old, new, KEY_LINENO, 1);
	snapshot_put(old);
	snapshot_put(new);
}
END_TEST

START_TEST(a_cumulative_count_past_all_bounds_stays_at_the_top)
{
	struct statistics *t;

	s->traces.items[1].live_bytes = INT64_MAX - 1000;
	query.cumulative = true;
	t = make();
	ck_assert_str_eq(name_of(t, 0), "/src/serve.c");
	ck_assert_uint_eq(t->rows[0].size, INT64_MAX);
	statistics_free(t);
}
END_TEST

/* --- properties of differences --- */

static struct snapshot *random_snapshot(void)
{
	struct snapshot *snapshot = snapshot_new();

	snapshot->frames_limit = 25;
	for (int i = 0; i < 200; i++) {
		char file[8] = { 'a' + (char)(rand() % 20), '.', 'c' };
		uint32_t node = STACK_ROOT;

		for (int depth = rand() % 4; depth >= 0; depth--)
			node = build_node(snapshot, node, build_line(snapshot, "f", file, 1 + (uint32_t)rand() % 5));
		build_trace(snapshot, node, (uint32_t)rand() % 3, 1 + (uint64_t)rand() % 3, (uint64_t)rand() % 1000);
	}
	return snapshot;
}

static const struct statistic *same_group(const struct statistics *in, const struct statistics *of,
					  const struct statistic *row)
{
	for (size_t i = 0; i < in->row_count; i++) {
		const struct statistic *have = &in->rows[i];
		uint32_t same = 0;

		if (have->frame_count != row->frame_count || have->domain != row->domain)
			continue;
		while (same < row->frame_count && have->frames[same].line == row->frames[same].line &&
		       strcmp(strtab_get(in->strings, have->frames[same].name),
			      strtab_get(of->strings, row->frames[same].name)) == 0)
			same++;
		if (same == row->frame_count)
			return have;
	}
	return NULL;
}

START_TEST(a_difference_of_equals_is_zero_and_the_reverse_has_the_other_sign)
{
	struct snapshot *a, *b;
	struct statistics *ab, *ba, *aa;
	const char *reason;

	srand((unsigned)_i + 3);
	a = random_snapshot();
	b = random_snapshot();
	for (query.key = KEY_LINENO; query.key <= KEY_DOMAIN; query.key++) {
		if (query.key == KEY_THREAD)
			continue;       /* of blocks, not of traces */
		ck_assert_int_eq(statistics_compare(a, b, &query, &ab, &reason), 0);
		ck_assert_int_eq(statistics_compare(b, a, &query, &ba, &reason), 0);
		ck_assert_int_eq(statistics_compare(a, a, &query, &aa, &reason), 0);
		ck_assert_uint_gt(ab->row_count, 0);
		ck_assert_uint_eq(ab->row_count, ba->row_count);
		for (size_t i = 0; i < ab->row_count; i++) {
			const struct statistic *row = &ab->rows[i], *other = same_group(ba, ab, row);

			ck_assert_ptr_nonnull(other);
			ck_assert_int_eq(row->size_diff, -other->size_diff);
			ck_assert_int_eq(row->count_diff, -other->count_diff);
			ck_assert_int_eq((int64_t)row->size - row->size_diff, (int64_t)other->size);
		}
		for (size_t i = 0; i < aa->row_count; i++)
			ck_assert(aa->rows[i].size_diff == 0 && aa->rows[i].count_diff == 0);
		ck_assert_int_eq(aa->total_size_diff, 0);
		statistics_free(ab);
		statistics_free(ba);
		statistics_free(aa);
	}
	snapshot_put(a);
	snapshot_put(b);
}
END_TEST

START_TEST(keys_and_orders_are_parsed_by_name)
{
	enum statistics_key key;
	enum diff_sort sort;

	ck_assert_int_eq(statistics_key_parse("object", &key), 0);
	ck_assert_int_eq(key, KEY_OBJECT);
	ck_assert_int_eq(statistics_key_parse("Object", &key), -EINVAL);
	ck_assert_int_eq(diff_sort_parse("shrink", &sort), 0);
	ck_assert_int_eq(sort, SORT_SHRINK);
	ck_assert_int_eq(diff_sort_parse("", &sort), -EINVAL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("statistics");
	TCase *tcase = tcase_create("statistics");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 600);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, lines_without_line_information_go_by_function);
	tcase_add_test(tcase, files_are_shown_with_line_0_as_tracemalloc_does);
	tcase_add_test(tcase, functions_objects_and_domains_are_keys_too);
	tcase_add_test(tcase, a_function_shares_no_group_with_a_file_of_its_name);
	tcase_add_test(tcase, a_kept_index_is_in_the_snapshots_account_until_it_is_dropped);
	tcase_add_test(tcase, an_answer_knows_when_names_could_not_be_looked_for);
	tcase_add_test(tcase, rules_that_take_the_place_of_others_hold_at_once);
	tcase_add_test(tcase, an_index_of_a_program_without_names_takes_no_more_than_was_said);
	tcase_add_test(tcase, a_traceback_has_its_most_recent_frame_last_and_its_depth);
	tcase_add_test(tcase, a_cumulative_statistic_counts_a_recursion_as_tracemalloc_does);
	tcase_add_test(tcase, cumulative_is_refused_where_no_frames_are_counted);
	tcase_add_test(tcase, traces_without_live_blocks_are_no_rows);
	tcase_add_test(tcase, a_stack_without_frames_is_unknown);
	tcase_add_test(tcase, filters_by_function_and_object_choose_traces);
	tcase_add_test(tcase, an_answer_says_whether_it_is_exact);
	tcase_add_test(tcase, different_limits_are_compared_at_the_smaller_one_and_said);
	tcase_add_test(tcase, two_builds_are_compared_by_definition_unless_a_key_is_chosen);
	tcase_add_test(tcase, the_newest_build_of_a_file_is_the_one_that_is_compared);
	tcase_add_test(tcase, a_cumulative_count_past_all_bounds_stays_at_the_top);
	tcase_add_loop_test(tcase, a_difference_of_equals_is_zero_and_the_reverse_has_the_other_sign, 0, 3);
	tcase_add_test(tcase, blocks_of_an_age_are_counted_up_to_the_nanosecond);
	tcase_add_test(tcase, what_was_born_needs_two_snapshots_of_one_process_in_their_order);
	tcase_add_test(tcase, blocks_are_grouped_by_the_thread_that_allocated_them);
	tcase_add_test(tcase, threads_differ_between_two_snapshots_as_other_groups_do);
	tcase_add_test(tcase, keys_and_orders_are_parsed_by_name);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
