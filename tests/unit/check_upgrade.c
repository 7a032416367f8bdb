/* Two builds of a program: what is told apart, and what is one all the same. */
#include "snapshot_builder.h"

#include "model/builds.h"
#include "model/definition.h"
#include "model/index.h"
#include "model/trend.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct statistics_query query;

static void setup(void)
{
	query = (struct statistics_query){ .key_is_open = true };
}

/* --- snapshots --- */

static uint64_t moment;

/* build: 0 for an object without a build-id. */
static struct snapshot *snapshot_of(const char *object, uint8_t build)
{
	struct snapshot *snapshot = snapshot_new();
	uint32_t module = build_module(snapshot, object);

	memset(snapshot->modules.items[module].build_id, build, 20);
	snapshot->modules.items[module].build_id_len = build ? 20 : 0;
	snapshot->exact = true;
	snapshot->pid = 4242;
	snapshot->start_time = 1;
	snapshot->taken_ns = snapshot->clock_ns = ++moment * 3600000000000ULL;
	return snapshot;
}

/* file: NULL for none, and a function likewise. */
static void allocates(struct snapshot *snapshot, const char *function, const char *file, uint32_t line, uint64_t bytes)
{
	uint32_t frame = build_frame(snapshot, 0, FRAME_CALL, 16 * snapshot->frames.count + (file ? line : 0));

	if (function || file)
		build_location(snapshot, function, 1, file, line, false);
	build_trace(snapshot, build_node(snapshot, STACK_ROOT, frame), DOMAIN_MALLOC, 1, bytes);
}

/* --- answers --- */

static const struct statistic *find(const struct statistics *statistics, const char *name, const char *function)
{
	for (size_t i = 0; i < statistics->row_count; i++) {
		const struct statistic_frame *frame = &statistics->rows[i].frames[0];

		if (strcmp(strtab_get(statistics->strings, frame->name), name) == 0 &&
		    strcmp(strtab_get(statistics->strings, frame->function), function) == 0)
			return &statistics->rows[i];
	}
	ck_abort_msg("no row of %s in %s", function, name);
}

static struct statistics *compare(struct snapshot *older, struct snapshot *newer)
{
	struct statistics *statistics;
	const char *reason;

	ck_assert_int_eq(statistics_compare(older, newer, &query, &statistics, &reason), 0);
	snapshot_put(older);
	snapshot_put(newer);
	return statistics;
}

static void require_row(const struct statistics *statistics, const char *name, const char *function, uint64_t size,
			int64_t size_diff)
{
	const struct statistic *row = find(statistics, name, function);

	ck_assert_uint_eq(row->size, size);
	ck_assert_int_eq(row->size_diff, size_diff);
}

/* --- names --- */

START_TEST(what_a_compiler_appends_to_a_function_is_not_its_name)
{
	static const char *const own[][2] = {
		{ "f", "f" },
		{ "f.constprop.0", "f" },
		{ "f.isra.0.cold", "f" },
		{ "f.part.12.lto_priv.3", "f" },
		{ "f.cold.1", "f" },
		{ "f.llvm.1234567890", "f" },
		{ "f._omp_fn.0", "f" },
		{ "f(int) [clone .constprop.0] [clone .cold]", "f(int)" },
		{ "Table<int [2]>::add(int)", "Table<int [2]>::add(int)" },
		{ "Table<int>::operator[]", "Table<int>::operator[]" },
		/* names of other languages */
		{ "main.part", "main.part" },
		{ "main.(*T).grow.func1", "main.(*T).grow.func1" },
		{ "f.17", "f.17" },
		{ ".cold", ".cold" },
		{ "", "" },
	};

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		ck_assert_msg(definition_function_length(own[i][0]) == strlen(own[i][1]), "%s", own[i][0]);
}
END_TEST

START_TEST(an_object_is_named_without_folders_and_version)
{
	size_t len;

	ck_assert_str_eq(definition_object_name("/opt/x-1.0/bin/x", &len), "x");
	ck_assert_uint_eq(len, 1);
	ck_assert_str_eq(definition_object_name("/lib/libz.so.1.2.13", &len), "libz.so.1.2.13");
	ck_assert_uint_eq(len, strlen("libz.so"));
	definition_object_name("/lib/.so.1", &len);
	ck_assert_uint_eq(len, 5);
}
END_TEST

START_TEST(folders_are_alike_from_the_end_first)
{
	const char *wanted = "/build/x-1.0/lib/util.c";

	ck_assert_uint_gt(definition_likeness(wanted, "/y/lib/util.c"), definition_likeness(wanted, "/build/x-1.0/util.c"));
	ck_assert_uint_gt(definition_likeness(wanted, "/build/x-1.0/util.c"), definition_likeness(wanted, "/build/y/util.c"));
	ck_assert_uint_eq(definition_likeness("util.c", "util.c"), 0);
	ck_assert_uint_eq(definition_likeness("/util.c", "util.c"), 0);
}
END_TEST

/* --- one build --- */

START_TEST(functions_of_one_name_in_two_files_are_two_definitions)
{
	struct snapshot *snapshot = snapshot_of("/bin/served", 1);
	struct statistics *t;
	const char *reason;

	allocates(snapshot, "make", "/src/a.c", 10, 100);
	allocates(snapshot, "make", "/src/a.c", 20, 11);
	allocates(snapshot, "make.part.0", "/src/a.c", 30, 1);
	allocates(snapshot, "make", "/src/b.c", 10, 50);
	allocates(snapshot, "make", NULL, 0, 30);
	allocates(snapshot, NULL, NULL, 0, 20);
	allocates(snapshot, NULL, NULL, 0, 3);
	query.key = KEY_DEFINITION;
	for (int kept = 0; kept < 2; kept++) {
		ck_assert_int_eq(statistics_make(snapshot, &query, &t, &reason), 0);
		ck_assert_uint_eq(t->row_count, 4);
		require_row(t, "/src/a.c", "make", 112, 0);
		require_row(t, "/src/b.c", "make", 50, 0);
		require_row(t, "/bin/served", "make", 30, 0);
		require_row(t, "/bin/served", "", 23, 0);
		ck_assert_uint_eq(t->rows[0].frames[0].line, 0);
		statistics_free(t);
		ck_assert_int_eq(snapshot_index_keep(snapshot), 0);
	}
	snapshot_put(snapshot);
}
END_TEST

/* Of one build other folders are other files. */
START_TEST(files_of_one_build_are_never_matched)
{
	struct snapshot *old = snapshot_of("/bin/served", 1), *new = snapshot_of("/bin/served", 1);
	struct statistics *t;

	allocates(old, "make", "/src/a/util.c", 10, 100);
	allocates(new, "make", "/src/b/util.c", 10, 130);
	query = (struct statistics_query){ .key = KEY_DEFINITION };
	t = compare(old, new);
	ck_assert_uint_eq(t->row_count, 2);
	statistics_free(t);
}
END_TEST

/* --- two builds --- */

START_TEST(functions_of_one_name_keep_apart_when_lines_move)
{
	struct snapshot *old = snapshot_of("/bin/served", 1), *new = snapshot_of("/bin/served", 2);
	struct statistics *t;

	allocates(old, "make", "/src/a.c", 10, 100);
	allocates(old, "make", "/src/b.c", 10, 50);
	allocates(new, "make", "/src/a.c", 14, 130);
	allocates(new, "make.constprop.0", "/src/b.c", 11, 40);
	t = compare(old, new);
	ck_assert_int_eq(t->key, KEY_DEFINITION);
	ck_assert_uint_eq(t->row_count, 2);
	require_row(t, "/src/a.c", "make", 130, 30);
	require_row(t, "/src/b.c", "make", 40, -10);
	statistics_free(t);
}
END_TEST

START_TEST(sources_that_lie_elsewhere_are_the_same)
{
	struct snapshot *old = snapshot_of("/bin/served", 1), *new = snapshot_of("/bin/served", 2);
	struct statistics *t;

	allocates(old, "make", "/build/x-1.0/util.c", 10, 100);
	allocates(old, "make", "/build/x-1.0/lib/util.c", 10, 50);
	allocates(old, "serve", "/build/x-1.0/serve.c", 10, 7);
	allocates(new, "make", "/build/x-1.1/util.c", 14, 130);
	allocates(new, "make", "/build/x-1.1/lib/util.c", 11, 40);
	allocates(new, "serve", "./serve.c", 10, 9);
	t = compare(old, new);
	ck_assert_uint_eq(t->row_count, 3);
	require_row(t, "/build/x-1.1/util.c", "make", 130, 30);
	require_row(t, "/build/x-1.1/lib/util.c", "make", 40, -10);
	require_row(t, "./serve.c", "serve", 9, 2);
	statistics_free(t);
}
END_TEST

START_TEST(what_is_as_much_like_one_as_like_another_is_left_alone)
{
	struct snapshot *old = snapshot_of("/bin/served", 1), *new = snapshot_of("/bin/served", 2);
	struct statistics *t;

	allocates(old, "make", "/a/util.c", 10, 100);
	allocates(old, "make", "/b/util.c", 10, 50);
	allocates(old, "make", "/c/util.c", 10, 25);
	allocates(new, "make", "/d/util.c", 14, 130);
	t = compare(old, new);
	ck_assert_uint_eq(t->row_count, 4);
	require_row(t, "/d/util.c", "make", 130, 130);
	require_row(t, "/a/util.c", "make", 0, -100);
	statistics_free(t);
}
END_TEST

START_TEST(of_too_many_files_each_is_what_its_name_says)
{
	struct snapshot *old = snapshot_of("/bin/served", 1), *new = snapshot_of("/bin/served", 2);
	struct statistics *t;
	char file[32];

	for (int i = 0; i < 17; i++) {
		snprintf(file, sizeof(file), "/1.0/%d/util.c", i);
		allocates(old, "make", file, 10, 100);
		snprintf(file, sizeof(file), "/1.1/%d/util.c", i);
		allocates(new, "make", file, 10, 100);
	}
	t = compare(old, new);
	ck_assert_uint_eq(t->row_count, 34);
	statistics_free(t);
}
END_TEST

START_TEST(a_library_of_another_version_is_the_same)
{
	struct snapshot *old = snapshot_of("/lib/libz.so.1.2", 1), *new = snapshot_of("/usr/lib/libz.so.1.3", 2);
	struct statistics *t;

	allocates(old, "inflate", NULL, 0, 100);
	allocates(old, NULL, NULL, 0, 10);
	allocates(new, "inflate", NULL, 0, 130);
	allocates(new, NULL, NULL, 0, 12);
	t = compare(old, new);
	ck_assert_int_eq(t->key, KEY_DEFINITION);
	ck_assert_uint_eq(t->row_count, 2);
	require_row(t, "/usr/lib/libz.so.1.3", "inflate", 130, 30);
	require_row(t, "/usr/lib/libz.so.1.3", "", 12, 2);
	statistics_free(t);
}
END_TEST

static void compare_stripped(bool old_is)
{
	struct snapshot *whole = snapshot_of("/bin/served", 1), *stripped = snapshot_of("/bin/served", 2);
	struct statistics *t;

	allocates(whole, "make", "/src/a.c", 10, 100);
	allocates(whole, "make", "/src/b.c", 10, 50);
	allocates(whole, "serve", "/src/b.c", 10, 1);
	allocates(stripped, "make.isra.0", NULL, 0, 130);
	allocates(stripped, "other", NULL, 0, 2);
	t = old_is ? compare(stripped, whole) : compare(whole, stripped);
	ck_assert_uint_eq(t->row_count, 3);
	require_row(t, "/bin/served", "make", old_is ? 150 : 130, old_is ? 20 : -20);
	require_row(t, "/src/b.c", "serve", old_is ? 1 : 0, old_is ? 1 : -1);
	require_row(t, "/bin/served", "other", old_is ? 0 : 2, old_is ? -2 : 2);
	statistics_free(t);
}

START_TEST(a_build_without_files_is_compared_by_function_and_object)
{
	compare_stripped(false);
	compare_stripped(true);
}
END_TEST

START_TEST(a_build_without_functions_is_compared_by_object)
{
	struct snapshot *old = snapshot_of("/bin/served", 1), *new = snapshot_of("/bin/served", 2);
	struct statistics *t;

	allocates(old, "make", "/src/a.c", 10, 100);
	allocates(old, "serve", NULL, 0, 50);
	allocates(new, NULL, NULL, 0, 80);
	allocates(new, NULL, NULL, 0, 90);
	t = compare(old, new);
	ck_assert_uint_eq(t->row_count, 1);
	require_row(t, "/bin/served", "", 170, 20);
	statistics_free(t);
}
END_TEST

/* Static functions of a library may have no names while the others do. */
START_TEST(what_both_builds_have_is_not_joined_with_what_one_has)
{
	struct snapshot *old = snapshot_of("/bin/served", 1), *new = snapshot_of("/bin/served", 2);
	struct statistics *t;

	allocates(old, "make", "/src/a.c", 10, 100);
	allocates(old, "make", NULL, 0, 10);
	allocates(old, NULL, NULL, 0, 50);
	allocates(new, "make", NULL, 0, 11);
	allocates(new, NULL, NULL, 0, 51);
	t = compare(old, new);
	ck_assert_uint_eq(t->row_count, 3);
	require_row(t, "/src/a.c", "make", 0, -100);
	require_row(t, "/bin/served", "make", 11, 1);
	require_row(t, "/bin/served", "", 51, 1);
	statistics_free(t);
}
END_TEST

START_TEST(ages_churn_and_sizes_are_joined_too)
{
	struct snapshot *old = snapshot_of("/bin/served", 1), *new = snapshot_of("/bin/served", 2);
	struct statistics *t;
	const struct statistic *row;

	allocates(old, "make", "/1.0/a.c", 10, 100);
	allocates(new, "make", "/1.1/a.c", 14, 130);
	new->traces.items[0].total_blocks = 5;
	old->traces.items[0].total_blocks = 2;
	*vec_push(&new->blocks) = (struct snapshot_block){ .address = 16, .size = 130 };
	new->has_blocks = old->has_blocks = true;
	query.churn = query.histogram = true;
	t = compare(old, new);
	ck_assert_uint_eq(t->row_count, 1);
	row = &t->rows[0];
	ck_assert_int_eq(row->made_count, 3);
	ck_assert_int_eq(row->freed_count, 3);
	ck_assert_ptr_nonnull(row->histogram);
	ck_assert_uint_eq(row->histogram[histogram_step(130)], 1);
	statistics_free(t);
}
END_TEST

/* --- more than two --- */

static void require_sizes(const struct trend *trend, const char *name, const char *function, const uint64_t *sizes)
{
	const struct statistic *row = find(trend->statistics, name, function);
	size_t number = (size_t)(row - trend->statistics->rows);

	for (size_t i = 0; i < trend->statistics->row_count; i++) {
		if (trend->rows[i].row != number)
			continue;
		for (size_t j = 0; j < trend->snapshot_count; j++)
			ck_assert_uint_eq(trend_size(trend, &trend->rows[i], j), sizes[j]);
		return;
	}
	ck_abort_msg("no trend of %s", function);
}

static struct trend *trend_of(struct snapshot **snapshots, size_t count)
{
	struct trend *trend;
	const char *reason;

	ck_assert_int_eq(trend_make((const struct snapshot *const *)snapshots, count, &query, NULL, &trend, &reason), 0);
	for (size_t i = 0; i < count; i++)
		snapshot_put(snapshots[i]);
	return trend;
}

START_TEST(a_trend_goes_on_across_builds)
{
	struct snapshot *s[5] = { snapshot_of("/bin/served", 1), snapshot_of("/bin/served", 1), snapshot_of("/bin/served", 2),
				  snapshot_of("/bin/served", 3), snapshot_of("/bin/served", 2) };
	struct trend *trend;

	allocates(s[0], "make", "/1.0/a.c", 10, 10);
	allocates(s[0], "make", "/1.0/b.c", 10, 5);
	allocates(s[1], "serve", "/1.0/a.c", 50, 1);
	allocates(s[1], "make", "/1.0/a.c", 10, 20);
	allocates(s[2], "make", "/1.1/b.c", 20, 4);
	allocates(s[2], "make", "/1.1/a.c", 20, 30);
	allocates(s[3], "other", "/1.2/a.c", 7, 2);
	allocates(s[3], "make", "/1.2/a.c", 30, 40);
	allocates(s[4], "make", "/1.1/a.c", 20, 50);
	allocates(s[4], "make", "/1.1/b.c", 20, 6);
	trend = trend_of(s, 5);
	ck_assert_int_eq(trend->statistics->key, KEY_DEFINITION);
	ck_assert_uint_eq(trend->statistics->row_count, 4);
	require_sizes(trend, "/1.2/a.c", "make", (uint64_t[]){ 10, 20, 30, 40, 50 });
	require_sizes(trend, "/1.1/b.c", "make", (uint64_t[]){ 5, 0, 4, 0, 6 });
	require_sizes(trend, "/1.0/a.c", "serve", (uint64_t[]){ 0, 1, 0, 0, 0 });
	require_sizes(trend, "/1.2/a.c", "other", (uint64_t[]){ 0, 0, 0, 2, 0 });
	trend_free(trend);
}
END_TEST

START_TEST(a_trend_over_a_stripped_build_joins_what_it_knew)
{
	struct snapshot *s[4] = { snapshot_of("/bin/served", 1), snapshot_of("/bin/served", 1), snapshot_of("/bin/served", 2),
				  snapshot_of("/bin/served", 1) };
	struct trend *trend;

	allocates(s[0], "serve", "/src/a.c", 10, 1);
	allocates(s[0], "make", "/src/a.c", 10, 10);
	allocates(s[1], "other", "/src/a.c", 10, 3);
	allocates(s[1], "make", "/src/b.c", 10, 20);
	allocates(s[2], "make", NULL, 0, 30);
	allocates(s[3], "make", "/src/b.c", 10, 25);
	allocates(s[3], "make", "/src/a.c", 10, 15);
	trend = trend_of(s, 4);
	ck_assert_uint_eq(trend->statistics->row_count, 3);
	require_sizes(trend, "/bin/served", "make", (uint64_t[]){ 10, 20, 30, 40 });
	require_sizes(trend, "/src/a.c", "serve", (uint64_t[]){ 1, 0, 0, 0 });
	require_sizes(trend, "/src/a.c", "other", (uint64_t[]){ 0, 3, 0, 0 });
	trend_free(trend);
}
END_TEST

START_TEST(a_trend_of_one_build_is_by_line)
{
	struct snapshot *s[3] = { snapshot_of("/bin/served", 1), snapshot_of("/bin/served", 1), snapshot_of("/bin/served", 1) };
	struct trend *trend;

	for (int i = 0; i < 3; i++)
		allocates(s[i], "make", "/src/a.c", 10, 10);
	trend = trend_of(s, 3);
	ck_assert_int_eq(trend->statistics->key, KEY_LINENO);
	trend_free(trend);
}
END_TEST

/* --- which objects were built anew --- */

static void require_builds(struct snapshot *a, struct snapshot *b, const char *object, bool differ)
{
	const struct snapshot *const both[] = { a, b };
	struct builds *builds;

	ck_assert_int_eq(builds_new(both, 2, &builds), 0);
	ck_assert_int_eq(builds_differ(builds, object, 0, 1), differ);
	ck_assert(!builds_differ(builds, "/not/there", 0, 1));
	ck_assert(!builds_differ(builds, "/not/there", 0, 1));
	builds_free(builds);
	snapshot_put(a);
	snapshot_put(b);
}

static void also_has(struct snapshot *snapshot, const char *object, uint8_t build)
{
	uint32_t module = build_module(snapshot, object);

	memset(snapshot->modules.items[module].build_id, build, 20);
	snapshot->modules.items[module].build_id_len = 20;
}

/* Two plugins of one name. */
START_TEST(an_object_that_comes_besides_is_no_other_build)
{
	struct snapshot *a = snapshot_of("/p/plugin.so", 1), *b = snapshot_of("/p/plugin.so", 1);

	also_has(b, "/q/plugin.so", 2);
	require_builds(a, b, "/p/plugin.so", false);
	a = snapshot_of("/p/plugin.so", 1);
	b = snapshot_of("/p/plugin.so", 3);
	also_has(a, "/q/plugin.so", 2);
	also_has(b, "/q/plugin.so", 2);
	require_builds(a, b, "/p/plugin.so", true);
}
END_TEST

START_TEST(an_object_without_a_build_id_is_no_other_build)
{
	require_builds(snapshot_of("/bin/x", 0), snapshot_of("/bin/x", 1), "/bin/x", false);
	require_builds(snapshot_of("/bin/x", 0), snapshot_of("/bin/x", 0), "/bin/x", false);
	require_builds(snapshot_of("/bin/x", 2), snapshot_of("/opt/x", 1), "/bin/x", true);
}
END_TEST

/* Of a program without a build-id: a call at an offset in a function that starts at another one. */
static void lies(struct snapshot *snapshot, const char *function, const char *file, uint32_t line, uint32_t start,
		 uint32_t offset)
{
	uint32_t frame = build_frame(snapshot, 0, FRAME_CALL, offset);

	build_location(snapshot, function, offset - start, file, line, false);
	build_trace(snapshot, build_node(snapshot, STACK_ROOT, frame), DOMAIN_MALLOC, 1, 10);
}

static struct snapshot *without_id(void)
{
	return snapshot_of("/bin/x", 0);
}

START_TEST(without_build_ids_a_function_that_lies_elsewhere_tells)
{
	struct snapshot *a = without_id(), *b = without_id();

	lies(a, "make", "/1.0/a.c", 10, 0x100, 0x110);
	lies(b, "make.cold", "/1.1/a.c", 10, 0x140, 0x190);
	require_builds(a, b, "/bin/x", true);
	a = without_id();
	b = without_id();
	lies(a, "make", "/1.0/a.c", 10, 0x100, 0x110);
	lies(b, "make", "/1.0/a.c", 14, 0x100, 0x140);
	lies(b, "make", "/1.0/b.c", 10, 0x500, 0x510);
	require_builds(a, b, "/bin/x", false);
}
END_TEST

START_TEST(without_build_ids_a_line_that_lies_elsewhere_tells)
{
	struct snapshot *a = without_id(), *b = without_id();

	lies(a, "make", "/1.0/a.c", 10, 0x100, 0x110);
	lies(b, "make", "/1.0/a.c", 50, 0x100, 0x110);
	require_builds(a, b, "/bin/x", true);
}
END_TEST

/* Two static functions of one name and file name, or a part of a function. */
START_TEST(a_function_of_several_starts_tells_nothing)
{
	struct snapshot *a = without_id(), *b = without_id();

	lies(a, "make", "/a/u.c", 10, 0x100, 0x110);
	lies(a, "make", "/b/u.c", 10, 0x200, 0x210);
	lies(b, "make", "/b/u.c", 12, 0x200, 0x220);
	require_builds(a, b, "/bin/x", false);
}
END_TEST

START_TEST(builds_without_build_ids_are_compared_by_definition)
{
	struct snapshot *s[3] = { without_id(), without_id(), without_id() };
	struct trend *trend;

	lies(s[0], "make", "/1.0/a.c", 10, 0x100, 0x110);
	lies(s[1], "make", "/1.0/a.c", 10, 0x100, 0x110);
	lies(s[2], "make", "/1.1/a.c", 50, 0x140, 0x150);
	trend = trend_of(s, 3);
	ck_assert_int_eq(trend->statistics->key, KEY_DEFINITION);
	ck_assert_uint_eq(trend->statistics->row_count, 1);
	require_sizes(trend, "/1.1/a.c", "make", (uint64_t[]){ 10, 10, 10 });
	trend_free(trend);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("upgrade");
	TCase *tcase = tcase_create("upgrade");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, what_a_compiler_appends_to_a_function_is_not_its_name);
	tcase_add_test(tcase, an_object_is_named_without_folders_and_version);
	tcase_add_test(tcase, folders_are_alike_from_the_end_first);
	tcase_add_test(tcase, functions_of_one_name_in_two_files_are_two_definitions);
	tcase_add_test(tcase, files_of_one_build_are_never_matched);
	tcase_add_test(tcase, functions_of_one_name_keep_apart_when_lines_move);
	tcase_add_test(tcase, sources_that_lie_elsewhere_are_the_same);
	tcase_add_test(tcase, what_is_as_much_like_one_as_like_another_is_left_alone);
	tcase_add_test(tcase, of_too_many_files_each_is_what_its_name_says);
	tcase_add_test(tcase, a_library_of_another_version_is_the_same);
	tcase_add_test(tcase, a_build_without_files_is_compared_by_function_and_object);
	tcase_add_test(tcase, a_build_without_functions_is_compared_by_object);
	tcase_add_test(tcase, what_both_builds_have_is_not_joined_with_what_one_has);
	tcase_add_test(tcase, ages_churn_and_sizes_are_joined_too);
	tcase_add_test(tcase, a_trend_goes_on_across_builds);
	tcase_add_test(tcase, a_trend_over_a_stripped_build_joins_what_it_knew);
	tcase_add_test(tcase, a_trend_of_one_build_is_by_line);
	tcase_add_test(tcase, an_object_that_comes_besides_is_no_other_build);
	tcase_add_test(tcase, an_object_without_a_build_id_is_no_other_build);
	tcase_add_test(tcase, without_build_ids_a_function_that_lies_elsewhere_tells);
	tcase_add_test(tcase, without_build_ids_a_line_that_lies_elsewhere_tells);
	tcase_add_test(tcase, a_function_of_several_starts_tells_nothing);
	tcase_add_test(tcase, builds_without_build_ids_are_compared_by_definition);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
